// Writes the launch plan: one JSON object an operation, as sandbox/plan.py reads them.
#include "recording.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace {

constexpr size_t kMaxOperations = 100'000;
constexpr size_t kMaxUpload = size_t{1} << 24;       // of one operation
constexpr size_t kMaxUploads = size_t{1} << 25;      // of a whole plan
constexpr size_t kMaxDropped = 20;                   // launches told about
constexpr int kRangeTaken = 3;                       // exit code; sandbox/recorder/client.py tries again

// Operations name addresses as in the emulator, wherever the range of this recording is; what kernels are given, and
// what is uploaded, stays as it is.
int64_t named(Address address) { return static_cast<int64_t>(address - device_base + kDeviceBase); }

std::string quoted(std::string_view text) {
    static const char digits[] = "0123456789abcdef";
    std::string result = "\"";
    for (unsigned char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
            result += static_cast<char>(c);
        } else if (c < 0x20 || c >= 0x7f) {
            result += "\\u00";
            result += digits[c >> 4];
            result += digits[c & 15];
        } else {
            result += static_cast<char>(c);
        }
    }
    return result + '"';
}

std::string hex(const void *data, size_t bytes) {
    static const char digits[] = "0123456789abcdef";
    auto *from = static_cast<const unsigned char *>(data);
    std::string result(2 * bytes + 2, '"');
    for (size_t i = 0; i < bytes; i++) {
        result[2 * i + 1] = digits[from[i] >> 4];
        result[2 * i + 2] = digits[from[i] & 15];
    }
    return result;
}

std::string triple(const dim3 &size) {
    return "[" + std::to_string(size.x) + "," + std::to_string(size.y) + "," + std::to_string(size.z) + "]";
}

class Object {
  public:
    Object &text(const char *name, std::string_view value) { return raw(name, quoted(value)); }
    Object &number(const char *name, int64_t value) { return raw(name, std::to_string(value)); }
    Object &flag(const char *name, bool value) { return raw(name, value ? "true" : "false"); }
    Object &raw(const char *name, const std::string &value) {
        json_ += json_.empty() ? "{\"" : ",\"";
        json_ += name;
        json_ += "\":";
        json_ += value;
        return *this;
    }
    std::string end() { return json_ + "}"; }

  private:
    std::string json_;
};

class Recording final : public Backend {
  public:
    Recording() {
        // Host code that reads what a device pointer points at faults here, as it would without this library.
        auto *wanted = reinterpret_cast<void *>(device_base);
        void *got = mmap(wanted, kDeviceBytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (got == wanted) return;
        fprintf(stderr, "kw-record: this process has something else at %p, where the device's memory should be\n", wanted);
        _exit(kRangeTaken);
    }

    bool records() const override { return true; }

    cudaError_t allocate(Address address, size_t bytes, Memory) override {
        return add(Object().text("op", "allocate").number("address", named(address)).number("bytes", bytes));
    }

    cudaError_t release(Address address) override {
        return add(Object().text("op", "free").number("address", named(address)));
    }

    cudaError_t fill(Address to, int value, size_t bytes, const char *) override {
        Object operation;
        operation.text("op", "memset").number("address", named(to));
        return add(operation.number("value", value).number("bytes", bytes));
    }

    cudaError_t copy(Address to, Address from, size_t bytes, const char *) override {
        Object operation;
        operation.text("op", "copy").number("to", named(to)).number("source", named(from));
        return add(operation.number("bytes", bytes));
    }

    cudaError_t upload(Address to, const void *from, size_t bytes, const char *) override {
        if (!room_for(bytes)) return unsupported("cudaMemcpy", "uploads of more than 16 MiB are not recorded");
        return add(Object().text("op", "upload").number("to", named(to)).raw("data", hex(from, bytes)));
    }

    cudaError_t download(void *, Address, size_t, const char *call) override {
        std::string what = std::string(call) + " with cudaMemcpyDeviceToHost";
        return unsupported(what.c_str(), "results that host code reads back are not recorded yet");
    }

    cudaError_t locate(const Variable &, Address &address) override {
        address = 0;
        return cudaSuccess;
    }

    cudaError_t write_symbol(const Variable &to, size_t offset, const void *from, size_t bytes) override {
        if (!room_for(bytes)) return unsupported("cudaMemcpyToSymbol", "uploads of more than 16 MiB are not recorded");
        Object operation;
        operation.text("op", "write_symbol").number("module", to.module).text("symbol", to.symbol);
        return add(operation.number("offset", offset).raw("data", hex(from, bytes)));
    }

    cudaError_t launch(Launch launch) override {
        if (errors_read_) unhandled_.clear();  // it was told, and went on in another way
        Object operation;
        operation.text("op", "launch").number("module", launch.kernel->module).text("kernel", launch.kernel->symbol);
        operation.raw("grid", triple(launch.grid)).raw("block", triple(launch.block));
        operation.number("shared_bytes", launch.shared);
        operation.raw("parameters", hex(launch.parameters.data(), launch.parameters.size()));
        return add(operation.flag("cooperative", launch.cooperative).number("stream", launch.stream));
    }

    void dropped(const Launch &launch, cudaError_t error, const std::string &reason) override {
        errors_read_ = false;
        if (unhandled_.size() >= kMaxDropped) return;
        Object told;
        told.text("kernel", launch.kernel->symbol).raw("grid", triple(launch.grid)).raw("block", triple(launch.block));
        told.number("shared_bytes", launch.shared).text("error", error_name(error)).text("reason", reason);
        unhandled_.push_back(told.end());
    }

    void errors_were_read() override { errors_read_ = true; }

    cudaError_t unsupported(const char *call, const char *why) override {
        if (unsupported_.empty()) unsupported_ = Object().text("call", call).text("why", why).end();
        return cudaErrorNotSupported;
    }

    // The whole recording as one JSON document.
    std::string document(const char *outcome, const char *detail) const {
        std::string result = "{\"outcome\":" + quoted(outcome) + ",\"detail\":" + quoted(detail);
        result += ",\"unsupported\":" + (unsupported_.empty() ? "null" : unsupported_);
        result += ",\"dropped\":[" + joined(unhandled_) + "],\"operations\":[" + operations_ + "]}";
        return result;
    }

  private:
    cudaError_t add(Object &&operation) { return add(operation); }

    cudaError_t add(Object &operation) {
        if (count_ == kMaxOperations) return unsupported("too many operations", "at most 100000 are recorded");
        if (count_++) operations_ += ',';
        operations_ += operation.end();
        return cudaSuccess;
    }

    bool room_for(size_t bytes) {
        if (bytes > kMaxUpload || bytes > kMaxUploads - uploaded_) return false;
        uploaded_ += bytes;
        return true;
    }

    static std::string joined(const std::vector<std::string> &parts) {
        std::string result;
        for (const std::string &part : parts) result += (result.empty() ? "" : ",") + part;
        return result;
    }

    std::string operations_;
    std::string unsupported_;
    std::vector<std::string> unhandled_;
    size_t count_ = 0;
    size_t uploaded_ = 0;
    bool errors_read_ = false;
};

Recording *instance = nullptr;

}  // namespace

Backend *recording() {
    if (!instance) instance = new Recording;
    return instance;
}

// Writes the recording to `file`. `outcome`: how launch ended; `detail`: more about it, or "".
EXPORT void kernelwright_finish(int file, const char *outcome, const char *detail) {
    Call call;
    std::string document = instance->document(outcome, detail);
    for (size_t done = 0; done < document.size();) {
        ssize_t written = write(file, document.data() + done, document.size() - done);
        if (written < 0 && errno != EINTR) return;
        if (written > 0) done += static_cast<size_t>(written);
    }
}
