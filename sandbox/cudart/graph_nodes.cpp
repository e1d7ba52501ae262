// The nodes of graphs: adding them, asking for what they do and changing it, also in graphs made ready to run.
#include <algorithm>
#include <cstring>

#include "graphs.h"

struct cudaKernelNodeParams {
    void *func;
    dim3 gridDim, blockDim;
    unsigned sharedMemBytes;
    void **kernelParams;
    void **extra;
};

struct cudaHostNodeParams {
    cudaHostFn_t fn;
    void *userData;
};

cudaMemcpy3DParms linear_copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);

namespace {

// Adds what was made ready to a graph, after nodes of it.
struct Place {
    cudaGraphNode_t *made;
    cudaGraph_t graph;
    const cudaGraphNode_t *after;
    size_t count;

    cudaError_t add(NodeType type, Work work) const {
        if (!made || !known_graph(graph) || (count && !after)) return cudaErrorInvalidValue;
        for (size_t i = 0; i < count; i++)
            if (!graph->find(after[i])) return cudaErrorInvalidValue;
        *made = graph->add(type, std::move(work));
        (*made)->dependencies.assign(after, after + count);
        return cudaSuccess;
    }
};

Node *of_type(cudaGraphNode_t node, NodeType type) { return node && node->type == type ? node : nullptr; }

// The launch of a kernel node; null for other nodes, and for a captured call of a library, whose kernels nobody knows.
Launch *launch_of(cudaGraphNode_t node) {
    return of_type(node, kKernelNode) ? std::get_if<Launch>(&node->work) : nullptr;
}

// The node's counterpart in a graph that is ready to run.
Node *ready(cudaGraphExec_t graph, cudaGraphNode_t node, NodeType type) {
    return graph && node ? of_type(graph->graph->counterpart(node), type) : nullptr;
}

cudaError_t set_kernel(Node *node, const cudaKernelNodeParams *parameters) {
    if (!node || !parameters || !parameters->func) return cudaErrorInvalidValue;
    if (parameters->extra && !parameters->kernelParams)
        return runtime().backend->unsupported("cudaGraphAddKernelNode", "parameters in `extra`");
    auto *before = std::get_if<Launch>(&node->work);
    Launch launch;
    cudaError_t error = prepare_launch(parameters->func, parameters->gridDim, parameters->blockDim, parameters->kernelParams,
                                       parameters->sharedMemBytes, nullptr, before && before->cooperative, launch);
    if (error) return error;
    node->kernel.function = parameters->func;
    node->work = std::move(launch);
    return cudaSuccess;
}

template <class T>
cudaError_t set(Node *node, const T *work) {
    if (!node || !work) return cudaErrorInvalidValue;
    node->work = *work;
    return cudaSuccess;
}

template <class T>
cudaError_t get(Node *node, T *work) {
    if (!node || !work) return cudaErrorInvalidValue;
    *work = std::get<T>(node->work);
    return cudaSuccess;
}

cudaError_t set_host(Node *node, const cudaHostNodeParams *parameters) {
    if (!node || !parameters || !parameters->fn) return cudaErrorInvalidValue;
    node->work = HostCall{parameters->fn, parameters->userData};
    return cudaSuccess;
}

cudaError_t set_child(Node *node, cudaGraph_t graph) {
    if (!node || !graph) return cudaErrorInvalidValue;
    node->child = graph->clone();
    node->work = node->child.get();
    return cudaSuccess;
}

cudaError_t symbol_copy(const void *symbol, size_t offset, void *other, size_t bytes, cudaMemcpyKind kind, bool to_symbol,
                        cudaMemcpy3DParms &copy) {
    const Variable *variable = nullptr;
    Address address = 0;
    if (cudaError_t error = find_symbol(symbol, bytes, offset, variable, address)) return error;
    auto *place = reinterpret_cast<void *>(address);
    copy = to_symbol ? linear_copy(place, other, bytes, kind) : linear_copy(other, place, bytes, kind);
    return cudaSuccess;
}

}  // namespace

EXPORT cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *after,
                                         size_t count) {
    return Call().end(Place{made, graph, after, count}.add(kEmptyNode, Nothing{}));
}

EXPORT cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *after,
                                          size_t count, const cudaKernelNodeParams *parameters) {
    Call call;
    Node scratch;
    if (cudaError_t error = set_kernel(&scratch, parameters)) return call.end(error);
    if (cudaError_t error = Place{made, graph, after, count}.add(kKernelNode, scratch.work)) return call.end(error);
    (*made)->kernel = scratch.kernel;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *parameters) {
    return Call().end(set_kernel(of_type(node, kKernelNode), parameters));
}

EXPORT cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t graph, cudaGraphNode_t node,
                                                    const cudaKernelNodeParams *parameters) {
    return Call().end(set_kernel(ready(graph, node, kKernelNode), parameters));
}

// The arguments it gives lie in the node, and hold until the node changes.
EXPORT cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams *parameters) {
    Call call;
    Launch *found = launch_of(node);
    if (!found || !parameters) return call.end(cudaErrorInvalidValue);
    Launch &launch = *found;
    node->kernel.arguments.clear();
    for (auto [offset, size] : launch.kernel->parameters) node->kernel.arguments.push_back(&launch.parameters[offset]);
    const void *function = node->kernel.function ? node->kernel.function : launch.kernel;
    *parameters = {const_cast<void *>(function), launch.grid, launch.block, static_cast<unsigned>(launch.shared),
                   node->kernel.arguments.data(), nullptr};
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, int attribute, const int *value) {
    Call call;
    Launch *launch = launch_of(node);
    if (!launch || !value) return call.end(cudaErrorInvalidValue);
    if (attribute == cudaLaunchAttributeCooperative) launch->cooperative = *value != 0;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, int attribute, void *value) {
    Call call;
    Launch *launch = launch_of(node);
    if (!launch || !value) return call.end(cudaErrorInvalidValue);
    std::memset(value, 0, sizeof(cudaLaunchAttribute::val));
    if (attribute == cudaLaunchAttributeCooperative) *static_cast<int *>(value) = launch->cooperative;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *after,
                                          size_t count, const cudaMemcpy3DParms *copy) {
    Call call;
    return call.end(copy ? Place{made, graph, after, count}.add(kCopyNode, *copy) : cudaErrorInvalidValue);
}

EXPORT cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *after,
                                            size_t count, void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return Call().end(Place{made, graph, after, count}.add(kCopyNode, linear_copy(to, from, bytes, kind)));
}

EXPORT cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *after,
                                                  size_t count, const void *symbol, const void *from, size_t bytes,
                                                  size_t offset, cudaMemcpyKind kind) {
    Call call;
    cudaMemcpy3DParms copy;
    cudaError_t error = symbol_copy(symbol, offset, const_cast<void *>(from), bytes, kind, true, copy);
    return call.end(error ? error : Place{made, graph, after, count}.add(kCopyNode, copy));
}

EXPORT cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *made, cudaGraph_t graph,
                                                    const cudaGraphNode_t *after, size_t count, void *to,
                                                    const void *symbol, size_t bytes, size_t offset,
                                                    cudaMemcpyKind kind) {
    Call call;
    cudaMemcpy3DParms copy;
    cudaError_t error = symbol_copy(symbol, offset, to, bytes, kind, false, copy);
    return call.end(error ? error : Place{made, graph, after, count}.add(kCopyNode, copy));
}

EXPORT cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms *copy) {
    return Call().end(get(of_type(node, kCopyNode), copy));
}

EXPORT cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms *copy) {
    return Call().end(set(of_type(node, kCopyNode), copy));
}

EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t graph, cudaGraphNode_t node,
                                                    const cudaMemcpy3DParms *copy) {
    return Call().end(set(ready(graph, node, kCopyNode), copy));
}

EXPORT cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t bytes,
                                                  cudaMemcpyKind kind) {
    cudaMemcpy3DParms copy = linear_copy(to, from, bytes, kind);
    return Call().end(set(of_type(node, kCopyNode), &copy));
}

EXPORT cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t graph, cudaGraphNode_t node, void *to,
                                                      const void *from, size_t bytes, cudaMemcpyKind kind) {
    cudaMemcpy3DParms copy = linear_copy(to, from, bytes, kind);
    return Call().end(set(ready(graph, node, kCopyNode), &copy));
}

EXPORT cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *after,
                                          size_t count, const cudaMemsetParams *fill) {
    Call call;
    bool sized = fill && (fill->elementSize == 1 || fill->elementSize == 2 || fill->elementSize == 4);
    return call.end(sized ? Place{made, graph, after, count}.add(kFillNode, *fill) : cudaErrorInvalidValue);
}

EXPORT cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams *fill) {
    return Call().end(get(of_type(node, kFillNode), fill));
}

EXPORT cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams *fill) {
    return Call().end(set(of_type(node, kFillNode), fill));
}

EXPORT cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t graph, cudaGraphNode_t node,
                                                    const cudaMemsetParams *fill) {
    return Call().end(set(ready(graph, node, kFillNode), fill));
}

EXPORT cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *after,
                                        size_t count, const cudaHostNodeParams *parameters) {
    Call call;
    Node scratch;
    if (cudaError_t error = set_host(&scratch, parameters)) return call.end(error);
    return call.end(Place{made, graph, after, count}.add(kHostNode, scratch.work));
}

EXPORT cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams *parameters) {
    HostCall host{};
    cudaError_t error = get(of_type(node, kHostNode), &host);
    if (!error && parameters) *parameters = {host.function, host.data};
    return Call().end(error);
}

EXPORT cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams *parameters) {
    return Call().end(set_host(of_type(node, kHostNode), parameters));
}

EXPORT cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t graph, cudaGraphNode_t node,
                                                  const cudaHostNodeParams *parameters) {
    return Call().end(set_host(ready(graph, node, kHostNode), parameters));
}

EXPORT cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *after,
                                              size_t count, cudaGraph_t child) {
    Call call;
    if (!known_graph(child)) return call.end(cudaErrorInvalidValue);
    cudaError_t error = Place{made, graph, after, count}.add(kGraphNode, Nothing{});
    return call.end(error ? error : set_child(*made, child));
}

EXPORT cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph) {
    Call call;
    if (!of_type(node, kGraphNode) || !graph) return call.end(cudaErrorInvalidValue);
    *graph = node->child.get();
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t graph, cudaGraphNode_t node, cudaGraph_t child) {
    return Call().end(set_child(ready(graph, node, kGraphNode), child));
}

EXPORT cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *after,
                                               size_t count, cudaEvent_t event) {
    return Call().end(Place{made, graph, after, count}.add(kRecordNode, RecordEvent{event}));
}

EXPORT cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *after,
                                             size_t count, cudaEvent_t event) {
    return Call().end(Place{made, graph, after, count}.add(kWaitNode, WaitEvent{event}));
}

// The graph's memory has its place as soon as the node is made; launches find it there.
EXPORT cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *after,
                                            size_t count, cudaMemAllocNodeParams *parameters) {
    Call call;
    if (!parameters || !parameters->bytesize) return call.end(cudaErrorInvalidValue);
    if (cudaError_t error = Place{made, graph, after, count}.add(kAllocateNode, Nothing{})) return call.end(error);
    if (cudaError_t error = allocate(&parameters->dptr, parameters->bytesize)) return error;
    (*made)->allocation = *parameters;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams *parameters) {
    Call call;
    if (!of_type(node, kAllocateNode) || !parameters) return call.end(cudaErrorInvalidValue);
    *parameters = node->allocation;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *after,
                                           size_t count, void *pointer) {
    Call call;
    if (cudaError_t error = Place{made, graph, after, count}.add(kFreeNode, Nothing{})) return call.end(error);
    (*made)->freed = pointer;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *pointer) {
    Call call;
    if (!of_type(node, kFreeNode) || !pointer) return call.end(cudaErrorInvalidValue);
    *static_cast<void **>(pointer) = node->freed;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t graph, cudaGraphNode_t node, unsigned enabled) {
    Call call;
    Node *found = graph && node ? graph->graph->counterpart(node) : nullptr;
    if (!found || found->type > kFillNode) return call.end(cudaErrorInvalidValue);
    found->enabled = enabled != 0;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t graph, cudaGraphNode_t node, unsigned *enabled) {
    Call call;
    Node *found = graph && node ? graph->graph->counterpart(node) : nullptr;
    if (!found || !enabled) return call.end(cudaErrorInvalidValue);
    *enabled = found->enabled;
    return cudaSuccess;
}

struct cudaGraphExecUpdateResultInfo {
    int result;
    cudaGraphNode_t errorNode, errorFromNode;
};

// Takes what the nodes of another graph of the same shape do.
EXPORT cudaError_t cudaGraphExecUpdate(cudaGraphExec_t ready_graph, cudaGraph_t graph,
                                       cudaGraphExecUpdateResultInfo *result) {
    Call call;
    constexpr int kTopologyChanged = 2, kTypeChanged = 3;
    if (!ready_graph || !known_graph(graph) || !result) return call.end(cudaErrorInvalidValue);
    *result = {0, nullptr, nullptr};
    auto before = ready_graph->graph->ordered(), after = graph->ordered();
    if (before.size() != after.size()) result->result = kTopologyChanged;
    for (size_t i = 0; !result->result && i < before.size(); i++) {
        if (before[i]->dependencies.size() != after[i]->dependencies.size()) result->result = kTopologyChanged;
        if (before[i]->type != after[i]->type) result->result = kTypeChanged;
        if (result->result) result->errorNode = after[i];
    }
    if (result->result) return call.end(cudaErrorGraphExecUpdateFailure);
    auto fresh = graph->clone();
    auto updated = fresh->ordered();
    for (size_t i = 0; i < before.size(); i++) {
        before[i]->work = std::move(updated[i]->work);
        before[i]->kernel = std::move(updated[i]->kernel);
        before[i]->child = std::move(updated[i]->child);
    }
    return cudaSuccess;
}
