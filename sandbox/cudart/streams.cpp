// Streams, and what they are asked to do. Everything happens in the order of the calls, which every dependency
// between streams allows; only host functions run on a thread of their own, and are waited for.
#include <condition_variable>
#include <thread>

#include "graphs.h"
#include "work.h"

namespace {

// Calls of host functions, one after another on one thread.
class HostCalls {
  public:
    void add(int stream, HostCall call) {
        std::lock_guard lock(mutex_);
        waiting_.emplace_back(stream, call);
        ++pending_[stream];
        if (!started_) std::thread([this] { run(); }).detach();
        started_ = true;
        changed_.notify_all();
    }

    void wait(const Stream *stream) {
        std::unique_lock lock(mutex_);
        if (std::this_thread::get_id() == thread_) return;  // a host function that calls the runtime
        changed_.wait(lock, [&] { return stream ? !pending_.count(stream->number) : pending_.empty(); });
    }

  private:
    void run() {
        std::unique_lock lock(mutex_);
        thread_ = std::this_thread::get_id();
        while (true) {
            changed_.wait(lock, [&] { return !waiting_.empty(); });
            auto [stream, call] = waiting_.front();
            waiting_.pop_front();
            lock.unlock();
            call.function(call.data);
            lock.lock();
            if (!--pending_[stream]) pending_.erase(stream);
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::pair<int, HostCall>> waiting_;
    std::map<int, int> pending_;  // by stream
    std::thread::id thread_;
    bool started_ = false;
};

HostCalls &host_calls() {
    static auto *calls = new HostCalls;
    return *calls;
}

template <class... Visitors>
struct Visitor : Visitors... {
    using Visitors::operator()...;
};

// What cudaStreamAddCallback's function is told beside its data.
struct Callback {
    cudaStream_t stream;
    void (*function)(cudaStream_t, cudaError_t, void *);
    void *data;
};

cudaError_t known(cudaStream_t stream) {
    Call call;
    return call.end(find_stream(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

// The end of everything the stream was asked to do.
cudaError_t finish(cudaStream_t stream) {
    Stream *found = nullptr;
    {
        Call call;
        found = find_stream(stream);
        if (!found) return call.end(cudaErrorInvalidResourceHandle);
        if (found->capture) return call.end(invalidate(*found->capture));
    }
    wait_for_host_calls(found->number ? found : nullptr);
    return Call().refused();
}

}  // namespace

void enqueue_host_call(Stream *stream, HostCall call) { host_calls().add(stream->number, call); }
void wait_for_host_calls(Stream *stream) { host_calls().wait(stream); }

Stream *find_stream(cudaStream_t stream) {
    static auto *standard = new Stream, *of_thread = new Stream;
    auto number = reinterpret_cast<uintptr_t>(stream);
    if (number <= 1) return standard;  // null, cudaStreamLegacy
    if (number == 2) return of_thread;
    return runtime().streams.count(stream) ? stream : nullptr;
}

cudaError_t perform(const Work &work, const char *name) {
    return std::visit(Visitor{
                          [](const Launch &launch) { return runtime().backend->launch(launch); },
                          [&](const cudaMemcpy3DParms &copy) { return perform_copy(copy, name); },
                          [&](const cudaMemsetParams &fill) { return perform_fill(fill, name); },
                          [](const HostCall &call) { return call.function(call.data), cudaSuccess; },
                          [](const RecordEvent &record) {
                              record.event->recorded = true;
                              record.event->time = seconds_now();
                              return cudaSuccess;
                          },
                          [](const WaitEvent &) { return cudaSuccess; },
                          [](const Nothing &) { return cudaSuccess; },
                          [](const cudaGraph_t &graph) { return perform_graph(*graph); },
                          [](const LibraryCall &call) { return runtime().backend->library(call); },
                      },
                      work);
}

cudaError_t submit(cudaStream_t stream, Work work, const char *name) {
    Stream *found = find_stream(stream);
    if (!found) return cudaErrorInvalidResourceHandle;
    if (found->capture) return capture(*found, std::move(work));
    wait_for_host_calls(found->number ? found : nullptr);
    return perform(work, name);
}

EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    Call call;
    if (!stream || flags > 1) return call.end(cudaErrorInvalidValue);
    *stream = new Stream{++runtime().last_stream, flags, std::min(0, std::max(priority, -5)), nullptr, {}};
    runtime().streams.insert(*stream);
    return cudaSuccess;
}

EXPORT cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }

EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    if (runtime().streams.count(stream)) wait_for_host_calls(stream);
    Call call;
    if (!runtime().streams.erase(stream)) return call.end(cudaErrorInvalidResourceHandle);
    delete stream;
    return cudaSuccess;
}

EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return finish(stream); }
ALSO(cudaStreamSynchronize_ptsz, cudaStreamSynchronize)

EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream) { return finish(stream); }
ALSO(cudaStreamQuery_ptsz, cudaStreamQuery)

EXPORT cudaError_t cudaDeviceSynchronize() {
    wait_for_host_calls(nullptr);
    return Call().refused();
}

EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    Call call;
    Stream *found = find_stream(stream);
    if (!found || !runtime().events.count(event)) return call.end(cudaErrorInvalidResourceHandle);
    if (event->capture) return call.end(join(*found, *event));
    return call.end(submit(stream, WaitEvent{event}, "cudaStreamWaitEvent"));
}
ALSO(cudaStreamWaitEvent_ptsz, cudaStreamWaitEvent)

EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
    Call call;
    if (cudaError_t error = call.refused_in_records("cudaLaunchHostFunc")) return error;
    Stream *found = find_stream(stream);
    if (!found) return call.end(cudaErrorInvalidResourceHandle);
    if (!function) return call.end(cudaErrorInvalidValue);
    if (found->capture) return call.end(capture(*found, HostCall{function, data}));
    enqueue_host_call(found, {function, data});
    return cudaSuccess;
}
ALSO(cudaLaunchHostFunc_ptsz, cudaLaunchHostFunc)

EXPORT cudaError_t cudaStreamAddCallback(cudaStream_t stream, void (*function)(cudaStream_t, cudaError_t, void *),
                                         void *data, unsigned) {
    if (!function) return Call().end(cudaErrorInvalidValue);
    auto *callback = new Callback{stream, function, data};
    auto call_back = [](void *pointer) {
        auto *made = static_cast<Callback *>(pointer);
        made->function(made->stream, runtime().sticky, made->data);
        delete made;
    };
    cudaError_t error = cudaLaunchHostFunc(stream, call_back, callback);
    if (error) delete callback;
    return error;
}
ALSO(cudaStreamAddCallback_ptsz, cudaStreamAddCallback)

EXPORT cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
    Call call;
    Stream *found = find_stream(stream);
    if (found) *flags = found->flags;
    return known(stream);
}
ALSO(cudaStreamGetFlags_ptsz, cudaStreamGetFlags)

EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
    Call call;
    Stream *found = find_stream(stream);
    if (found) *priority = found->priority;
    return known(stream);
}
ALSO(cudaStreamGetPriority_ptsz, cudaStreamGetPriority)

EXPORT cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device) {
    *device = 0;
    return known(stream);
}
ALSO(cudaStreamGetDevice_ptsz, cudaStreamGetDevice)

EXPORT cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id) {
    Call call;
    Stream *found = find_stream(stream);
    if (found) *id = static_cast<unsigned long long>(found->number);
    return known(stream);
}
ALSO(cudaStreamGetId_ptsz, cudaStreamGetId)

EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return cudaSuccess;
}

EXPORT cudaError_t cudaStreamSetAttribute(cudaStream_t stream, int, const void *) { return known(stream); }
ALSO(cudaStreamSetAttribute_ptsz, cudaStreamSetAttribute)
