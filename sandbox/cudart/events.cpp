// Events: a moment in a stream. Streams do everything at once, so an event is over when it is recorded.
#include <algorithm>
#include <chrono>

#include "graphs.h"
#include "work.h"

namespace {

constexpr unsigned kDisableTiming = 2;
constexpr float kLeastMilliseconds = 0.001f;  // programs divide by what they measure

cudaError_t known(cudaEvent_t event) {
    Call call;
    if (!runtime().events.count(event)) return call.end(cudaErrorInvalidResourceHandle);
    return call.refused();
}

}  // namespace

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    Call call;
    if (!event || flags > 7) return call.end(cudaErrorInvalidValue);
    *event = new Event{flags, false, 0, nullptr, {}};
    runtime().events.insert(*event);
    return cudaSuccess;
}

EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }

EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event) {
    Call call;
    if (!runtime().events.erase(event)) return call.end(cudaErrorInvalidResourceHandle);
    delete event;
    return cudaSuccess;
}

EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    Call call;
    Stream *found = find_stream(stream);
    if (!found || !runtime().events.count(event)) return call.end(cudaErrorInvalidResourceHandle);
    event->capture = found->capture;  // a captured event marks a place in the graph
    event->tails = found->tails;
    if (found->capture) return cudaSuccess;
    return call.end(submit(stream, RecordEvent{event}, "cudaEventRecord"));
}
ALSO(cudaEventRecord_ptsz, cudaEventRecord)

EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
    return cudaEventRecord(event, stream);
}
ALSO(cudaEventRecordWithFlags_ptsz, cudaEventRecordWithFlags)

EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event) { return known(event); }
EXPORT cudaError_t cudaEventQuery(cudaEvent_t event) { return known(event); }

EXPORT cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
    Call call;
    if (cudaError_t error = call.refused()) return error;
    if (call.backend()->records())
        return call.end(call.backend()->unsupported("cudaEventElapsedTime", "a recorded launch takes no time"));
    if (!milliseconds) return call.end(cudaErrorInvalidValue);
    for (cudaEvent_t event : {start, end})
        if (!runtime().events.count(event) || !event->recorded || (event->flags & kDisableTiming))
            return call.end(cudaErrorInvalidResourceHandle);
    call.backend()->note("times are of the emulation, not of a GPU");
    auto passed = static_cast<float>((end->time - start->time) * 1e3);
    *milliseconds = passed < 0 ? passed : std::max(passed, kLeastMilliseconds);
    return cudaSuccess;
}
