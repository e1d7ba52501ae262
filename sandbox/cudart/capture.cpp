// Capturing streams: what they are asked to do becomes a graph.
#include <algorithm>

#include "graphs.h"

namespace {

unsigned long long last_capture = 0;

void follow(std::vector<Node *> &tails, const std::vector<Node *> &others) {
    for (Node *other : others)
        if (std::find(tails.begin(), tails.end(), other) == tails.end()) tails.push_back(other);
}

NodeType type_of(const Work &work) {
    constexpr NodeType types[] = {kKernelNode, kCopyNode, kFillNode, kHostNode, kRecordNode, kWaitNode, kEmptyNode, kGraphNode, kKernelNode};
    return types[work.index()];
}

// Whether everything the capture's streams did last is followed by something, or is where the origin ended.
bool joined(const Capture &capture) {
    std::set<const Node *> followed(capture.origin->tails.begin(), capture.origin->tails.end());
    for (auto &node : capture.graph->nodes) followed.insert(node->dependencies.begin(), node->dependencies.end());
    for (const Stream *stream : capture.streams)
        for (const Node *tail : stream->tails)
            if (!followed.count(tail)) return false;
    return true;
}

void end(Capture *capture) {
    for (Stream *stream : capture->streams) {
        stream->capture = nullptr;
        stream->tails.clear();
    }
    for (const void *pointer : runtime().events) {
        auto *event = static_cast<Event *>(const_cast<void *>(pointer));
        if (event->capture == capture) event->capture = nullptr, event->tails.clear();
    }
    delete capture;
}

cudaError_t begin(cudaStream_t stream, Graph *graph, bool owned, std::vector<Node *> tails) {
    Stream *found = find_stream(stream);
    if (!found) return cudaErrorInvalidResourceHandle;
    if (!found->number && reinterpret_cast<uintptr_t>(stream) != 2) return cudaErrorStreamCaptureUnsupported;
    if (found->capture) return cudaErrorIllegalState;
    found->capture = new Capture{graph, found, {found}, ++last_capture, false, owned};
    found->tails = std::move(tails);
    return cudaSuccess;
}

}  // namespace

Node *capture_node(Stream &stream, NodeType type, Work work) {
    Node *node = stream.capture->graph->add(type, std::move(work));
    node->dependencies = std::exchange(stream.tails, {node});
    return node;
}

cudaError_t capture(Stream &stream, Work work) {
    if (stream.capture->invalid) return cudaErrorStreamCaptureInvalidated;
    Node *node = capture_node(stream, type_of(work), work);
    if (auto *graph = std::get_if<cudaGraph_t>(&work)) {
        node->child = (*graph)->clone();
        node->work = node->child.get();
    }
    return cudaSuccess;
}

cudaError_t join(Stream &stream, const Event &event) {
    if (stream.capture && stream.capture != event.capture) return invalidate(*stream.capture);
    if (!stream.capture) {
        stream.capture = event.capture;
        event.capture->streams.push_back(&stream);
    }
    follow(stream.tails, event.tails);
    return cudaSuccess;
}

cudaError_t invalidate(Capture &capture) {
    capture.invalid = true;
    return cudaErrorStreamCaptureUnsupported;
}

EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaStreamBeginCapture")) return error;
    if (mode < 0 || mode > 2) return call.end(cudaErrorInvalidValue);
    auto graph = std::make_unique<Graph>();
    cudaError_t error = begin(stream, graph.get(), true, {});
    if (!error) keep_graph(std::move(graph));
    return call.end(error);
}
ALSO(cudaStreamBeginCapture_ptsz, cudaStreamBeginCapture)

EXPORT cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *nodes,
                                                 const void *, size_t count, int) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaStreamBeginCaptureToGraph")) return error;
    if (!known_graph(graph)) return call.end(cudaErrorInvalidValue);
    return call.end(begin(stream, graph, false, {nodes, nodes + count}));
}
ALSO(cudaStreamBeginCaptureToGraph_ptsz, cudaStreamBeginCaptureToGraph)

EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph);

EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaStreamEndCapture")) return error;
    Stream *found = find_stream(stream);
    if (!found || !graph) return call.end(cudaErrorInvalidResourceHandle);
    *graph = nullptr;
    if (!found->capture) return call.end(cudaErrorIllegalState);
    Capture *capture = found->capture;
    if (capture->origin != found) return call.end(cudaErrorStreamCaptureUnmatched);
    cudaError_t error = capture->invalid     ? cudaErrorStreamCaptureInvalidated
                        : joined(*capture) ? cudaSuccess
                                             : cudaErrorStreamCaptureUnjoined;
    Graph *made = capture->graph;
    bool owned = capture->owned;
    end(capture);
    if (!error) *graph = made;
    if (error && owned) cudaGraphDestroy(made);
    return call.end(error);
}
ALSO(cudaStreamEndCapture_ptsz, cudaStreamEndCapture)

EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, int *status, unsigned long long *id, cudaGraph_t *graph,
                                            const cudaGraphNode_t **nodes, const void **edges, size_t *count) {
    Call call;
    Stream *found = find_stream(stream);
    if (!found || !status) return call.end(cudaErrorInvalidResourceHandle);
    Capture *capture = found->capture;
    *status = !capture ? 0 : capture->invalid ? 2 : 1;
    if (id) *id = capture ? capture->id : 0;
    if (graph) *graph = capture ? capture->graph : nullptr;
    if (nodes) *nodes = found->tails.data();
    if (edges) *edges = nullptr;
    if (count) *count = found->tails.size();
    return cudaSuccess;
}
ALSO(cudaStreamGetCaptureInfo_ptsz, cudaStreamGetCaptureInfo)

EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status) {
    return cudaStreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}
ALSO(cudaStreamIsCapturing_ptsz, cudaStreamIsCapturing)

EXPORT cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes, const void *,
                                                       size_t count, unsigned flags) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaStreamUpdateCaptureDependencies")) return error;
    Stream *found = find_stream(stream);
    if (!found) return call.end(cudaErrorInvalidResourceHandle);
    if (!found->capture) return call.end(cudaErrorIllegalState);
    if (flags == 1) found->tails.clear();  // to be set, not added to
    follow(found->tails, {nodes, nodes + count});
    return cudaSuccess;
}
ALSO(cudaStreamUpdateCaptureDependencies_ptsz, cudaStreamUpdateCaptureDependencies)

// Captures here never disturb each other.
EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(int *mode) {
    static thread_local int current = 0;
    std::swap(*mode, current);
    return cudaSuccess;
}
