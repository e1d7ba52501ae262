// Graphs: work with its order, made node by node or by capturing streams.
#pragma once

#include <memory>
#include <vector>

#include "work.h"

enum NodeType : int {
    kKernelNode = 0,
    kCopyNode = 1,
    kFillNode = 2,
    kHostNode = 3,
    kGraphNode = 4,
    kEmptyNode = 5,
    kWaitNode = 6,
    kRecordNode = 7,
    kAllocateNode = 10,
    kFreeNode = 11,
};

struct cudaMemAllocNodeParams {
    char properties[88];
    const void *access;
    size_t access_count;
    size_t bytesize;
    void *dptr;
};

// What Launch leaves out of a kernel node: what programs ask for again.
struct KernelNode {
    void *function = nullptr;
    std::vector<void *> arguments;  // into the parameter block of the node's launch
};

struct Node {
    struct Graph *graph = nullptr;
    NodeType type = kEmptyNode;
    Work work = Nothing{};
    std::vector<Node *> dependencies;
    KernelNode kernel;
    cudaMemAllocNodeParams allocation{};
    void *freed = nullptr;
    std::unique_ptr<Graph> child;
    const Node *original = nullptr;  // in the graph this one was cloned or instantiated from
    bool enabled = true;
};

struct Graph {
    std::vector<std::unique_ptr<Node>> nodes;

    Node *add(NodeType type, Work work);
    Node *find(const Node *node) const;           // node itself, where it belongs to this graph
    Node *counterpart(const Node *original) const;  // its clone here
    std::unique_ptr<Graph> clone() const;
    std::vector<Node *> ordered() const;  // each after those it depends on; shorter where there is a circle
};

struct GraphExec {
    std::unique_ptr<Graph> graph;
    unsigned long long flags = 0;
};

// A capture under way: some streams, whose work becomes nodes.
struct Capture {
    Graph *graph = nullptr;
    Stream *origin = nullptr;
    std::vector<Stream *> streams;
    unsigned long long id = 0;
    bool invalid = false;
    bool owned = true;  // the graph was made for it
};

cudaError_t capture(Stream &stream, Work work);
cudaError_t join(Stream &stream, const Event &event);  // the stream waits for a captured event
cudaError_t invalidate(Capture &capture);
Node *capture_node(Stream &stream, NodeType type, Work work);

bool known_graph(Graph *graph);
void keep_graph(std::unique_ptr<Graph> graph);
