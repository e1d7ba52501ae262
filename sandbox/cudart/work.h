// What a stream can be asked to do. It is done at once; while a stream is captured, it becomes a node of a graph.
#pragma once

#include <variant>

#include "library.h"
#include "runtime.h"

struct HostCall {
    cudaHostFn_t function;
    void *data;
};

struct RecordEvent {
    cudaEvent_t event;
};

struct WaitEvent {
    cudaEvent_t event;
};

struct Nothing {};  // an empty node, and what graphs do with memory that has its place from the start

using Work = std::variant<Launch, cudaMemcpy3DParms, cudaMemsetParams, HostCall, RecordEvent, WaitEvent, Nothing,
                          cudaGraph_t, LibraryCall>;

// `name` is the call's, for errors and reports.
cudaError_t submit(cudaStream_t stream, Work work, const char *name);
cudaError_t perform(const Work &work, const char *name);

cudaError_t perform_copy(const cudaMemcpy3DParms &copy, const char *name);
cudaError_t perform_fill(const cudaMemsetParams &fill, const char *name);
cudaError_t perform_graph(const struct Graph &graph);
// The work of one kernel launch, or the error of one that the device would refuse.
cudaError_t prepare_launch(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                           cudaStream_t stream, bool cooperative, Launch &launch);

// Host functions run on a thread of the runtime, in the order of their stream; later work of the stream waits.
void enqueue_host_call(Stream *stream, HostCall call);
void wait_for_host_calls(Stream *stream);  // nullptr: of every stream

double seconds_now();
