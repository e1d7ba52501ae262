// Making graphs node by node, asking for their shape, running them.
#include "graphs.h"

#include <algorithm>
#include <cstdio>

namespace {

std::map<Graph *, std::unique_ptr<Graph>> &graphs() {
    static auto *all = new std::map<Graph *, std::unique_ptr<Graph>>;
    return *all;
}

std::set<GraphExec *> &instances() {
    static auto *all = new std::set<GraphExec *>;
    return *all;
}

// A list of nodes as the runtime gives it: the number alone, or as many as there is room for.
cudaError_t give(const std::vector<Node *> &found, cudaGraphNode_t *nodes, size_t *count) {
    if (!count) return cudaErrorInvalidValue;
    if (nodes) {
        std::fill(std::copy_n(found.begin(), std::min(found.size(), *count), nodes), nodes + *count, nullptr);
        *count = std::min(*count, found.size());
    } else {
        *count = found.size();
    }
    return cudaSuccess;
}

cudaError_t instantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags) {
    Call call;
    if (!made || !known_graph(graph)) return call.end(cudaErrorInvalidValue);
    if (graph->ordered().size() != graph->nodes.size()) return call.end(cudaErrorInvalidValue);
    *made = new GraphExec{graph->clone(), flags};
    instances().insert(*made);
    return cudaSuccess;
}

}  // namespace

bool known_graph(Graph *graph) {
    if (graphs().count(graph)) return true;
    for (auto &[whole, kept] : graphs())  // children of nodes are graphs as well
        for (auto &node : whole->nodes)
            if (node->child.get() == graph && graph) return true;
    return false;
}

void keep_graph(std::unique_ptr<Graph> graph) {
    Graph *pointer = graph.get();
    graphs()[pointer] = std::move(graph);
}

Node *Graph::add(NodeType type, Work work) {
    nodes.push_back(std::make_unique<Node>());
    Node *node = nodes.back().get();
    node->graph = this;
    node->type = type;
    node->work = std::move(work);
    return node;
}

Node *Graph::find(const Node *wanted) const {
    for (auto &node : nodes)
        if (node.get() == wanted) return node.get();
    return nullptr;
}

Node *Graph::counterpart(const Node *original) const {
    for (auto &node : nodes)
        if (node->original == original) return node.get();
    return nullptr;
}

std::unique_ptr<Graph> Graph::clone() const {
    auto copy = std::make_unique<Graph>();
    std::map<const Node *, Node *> twins;
    for (auto &node : nodes) {
        Node *twin = copy->add(node->type, node->work);
        twin->kernel = node->kernel;
        twin->allocation = node->allocation;
        twin->freed = node->freed;
        twin->enabled = node->enabled;
        twin->original = node.get();
        if (node->child) {
            twin->child = node->child->clone();
            twin->work = twin->child.get();
        }
        twins[node.get()] = twin;
    }
    for (auto &node : nodes)
        for (Node *dependency : node->dependencies) twins[node.get()]->dependencies.push_back(twins[dependency]);
    return copy;
}

std::vector<Node *> Graph::ordered() const {
    std::vector<Node *> order;
    std::set<const Node *> done;
    for (size_t before = ~size_t{0}; before != order.size();) {
        before = order.size();
        for (auto &node : nodes) {
            auto &needed = node->dependencies;
            if (done.count(node.get()) || !std::all_of(needed.begin(), needed.end(), [&](Node *n) { return done.count(n); }))
                continue;
            done.insert(node.get());
            order.push_back(node.get());
        }
    }
    return order;
}

cudaError_t perform_graph(const Graph &graph) {
    for (Node *node : graph.ordered())
        if (node->enabled)
            if (cudaError_t error = perform(node->work, "cudaGraphLaunch")) return error;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaGraphCreate")) return error;
    auto made = std::make_unique<Graph>();
    *graph = made.get();
    keep_graph(std::move(made));
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    Call call;
    return call.end(graphs().erase(graph) ? cudaSuccess : cudaErrorInvalidValue);
}

EXPORT cudaError_t cudaGraphClone(cudaGraph_t *copy, cudaGraph_t graph) {
    Call call;
    if (!copy || !known_graph(graph)) return call.end(cudaErrorInvalidValue);
    auto made = graph->clone();
    *copy = made.get();
    keep_graph(std::move(made));
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *found, cudaGraphNode_t original, cudaGraph_t copy) {
    Call call;
    if (!found || !known_graph(copy)) return call.end(cudaErrorInvalidValue);
    *found = copy->counterpart(original);
    return call.end(*found ? cudaSuccess : cudaErrorInvalidValue);
}

EXPORT cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
    Call call;
    if (!node) return call.end(cudaErrorInvalidValue);
    Graph *graph = node->graph;
    for (auto &other : graph->nodes) std::erase(other->dependencies, node);
    std::erase_if(graph->nodes, [&](auto &kept) { return kept.get() == node; });
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                            const void *, size_t count) {
    Call call;
    if (!known_graph(graph)) return call.end(cudaErrorInvalidValue);
    for (size_t i = 0; i < count; i++) {
        if (!graph->find(from[i]) || !graph->find(to[i])) return call.end(cudaErrorInvalidValue);
        to[i]->dependencies.push_back(from[i]);
    }
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                               const cudaGraphNode_t *to, const void *, size_t count) {
    Call call;
    if (!known_graph(graph)) return call.end(cudaErrorInvalidValue);
    for (size_t i = 0; i < count; i++)
        if (!graph->find(to[i]) || !std::erase(to[i]->dependencies, from[i])) return call.end(cudaErrorInvalidValue);
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    Call call;
    if (!known_graph(graph)) return call.end(cudaErrorInvalidValue);
    std::vector<Node *> all;
    for (auto &node : graph->nodes) all.push_back(node.get());
    return call.end(give(all, nodes, count));
}

EXPORT cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    Call call;
    if (!known_graph(graph)) return call.end(cudaErrorInvalidValue);
    std::vector<Node *> roots;
    for (auto &node : graph->nodes)
        if (node->dependencies.empty()) roots.push_back(node.get());
    return call.end(give(roots, nodes, count));
}

EXPORT cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, void *,
                                     size_t *count) {
    Call call;
    if (!known_graph(graph)) return call.end(cudaErrorInvalidValue);
    std::vector<Node *> starts, ends;
    for (auto &node : graph->nodes)
        for (Node *dependency : node->dependencies) starts.push_back(dependency), ends.push_back(node.get());
    size_t room = count ? *count : 0;
    if (cudaError_t error = give(starts, from, count)) return call.end(error);
    return call.end(give(ends, to, to ? &room : count));
}

EXPORT cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes, void *, size_t *count) {
    Call call;
    return call.end(node ? give(node->dependencies, nodes, count) : cudaErrorInvalidValue);
}

EXPORT cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes, void *, size_t *count) {
    Call call;
    if (!node) return call.end(cudaErrorInvalidValue);
    std::vector<Node *> found;
    for (auto &other : node->graph->nodes)
        if (std::count(other->dependencies.begin(), other->dependencies.end(), node)) found.push_back(other.get());
    return call.end(give(found, nodes, count));
}

EXPORT cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, int *type) {
    Call call;
    if (!node || !type) return call.end(cudaErrorInvalidValue);
    *type = node->type;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned) {
    Call call;
    if (!known_graph(graph)) return call.end(cudaErrorInvalidValue);
    FILE *file = std::fopen(path, "w");
    if (!file) return call.end(cudaErrorUnknown);
    static const char *const names[] = {"kernel", "memcpy", "memset", "host",  "graph",    "empty",
                                        "wait",   "record", "signal", "await", "allocate", "free"};
    std::fprintf(file, "digraph graph_1 {\n");
    for (auto &node : graph->nodes) {
        auto *id = static_cast<void *>(node.get());
        std::fprintf(file, "  \"%p\" [label=\"%s\"];\n", id, names[node->type]);
        for (Node *dependency : node->dependencies)
            std::fprintf(file, "  \"%p\" -> \"%p\";\n", static_cast<void *>(dependency), id);
    }
    std::fprintf(file, "}\n");
    std::fclose(file);
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags) {
    return instantiate(made, graph, flags);
}

EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags) {
    return instantiate(made, graph, flags);
}

struct cudaGraphInstantiateParams {
    unsigned long long flags;
    cudaStream_t uploadStream;
    cudaGraphNode_t errNode_out;
    int result_out;
};

EXPORT cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *made, cudaGraph_t graph,
                                                  cudaGraphInstantiateParams *parameters) {
    cudaError_t error = instantiate(made, graph, parameters->flags);
    parameters->errNode_out = nullptr;
    parameters->result_out = error ? 1 : 0;
    return error;
}
ALSO(cudaGraphInstantiateWithParams_ptsz, cudaGraphInstantiateWithParams)

EXPORT cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t graph, unsigned long long *flags) {
    Call call;
    if (!instances().count(graph) || !flags) return call.end(cudaErrorInvalidValue);
    *flags = graph->flags;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    Call call;
    if (!instances().erase(graph)) return call.end(cudaErrorInvalidValue);
    delete graph;
    return cudaSuccess;
}

EXPORT cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t) {
    Call call;
    return call.end(instances().count(graph) ? cudaSuccess : cudaErrorInvalidValue);
}
ALSO(cudaGraphUpload_ptsz, cudaGraphUpload)

EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
    Call call;
    if (cudaError_t error = call.refused()) return error;
    if (!instances().count(graph)) return call.end(cudaErrorInvalidValue);
    return call.end(submit(stream, graph->graph.get(), "cudaGraphLaunch"));
}
ALSO(cudaGraphLaunch_ptsz, cudaGraphLaunch)
