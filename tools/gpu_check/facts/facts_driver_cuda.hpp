#pragma once

// Asks the driver itself, by the names of its own functions. Our programs use the runtime, which
// answers some questions differently.

#include <cuda.h>
#include <dlfcn.h>

#include <span>
#include <string>
#include <thread>
#include <utility>

#include "allocator/base/error.hpp"

namespace weir::gpu_check {

/// The driver's functions used here.
class Driver {
 public:
  explicit Driver(void* library) : library_(library) {}

  /// Returns what `name` returns. Throws Error if the driver has no such function.
  template <typename Function, typename... Arguments>
  CUresult raw(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function == nullptr) throw Error("the driver has no " + std::string(name));
    return function(arguments...);
  }

 private:
  void* library_;
};

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): the symbol's version is in the name's own macro
#define WEIR_TEXT(name) #name
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define WEIR_SYMBOL(name) WEIR_TEXT(name)
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define RAW(driver, name, ...) (driver).raw<decltype(name)>(WEIR_SYMBOL(name), __VA_ARGS__)

inline void check(CUresult code, const char* call) {
  if (code != CUDA_SUCCESS) throw Error(std::string(call) + " returned " + std::to_string(code));
}
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define CALL(driver, name, ...) check(RAW(driver, name, __VA_ARGS__), #name)

class Stream {
 public:
  explicit Stream(const Driver& driver) : driver_(driver) {
    // Waits for the legacy stream, like most programs' streams.
    CALL(driver_, cuStreamCreate, &stream_, CU_STREAM_DEFAULT);
  }
  ~Stream() { (void)RAW(driver_, cuStreamDestroy, stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] CUstream get() const { return stream_; }

 private:
  const Driver& driver_;
  CUstream stream_ = nullptr;
};

/// An event without timing.
class Event {
 public:
  explicit Event(const Driver& driver, unsigned flags = CU_EVENT_DEFAULT) : driver_(driver) {
    CALL(driver_, cuEventCreate, &event_, flags | CU_EVENT_DISABLE_TIMING);
  }
  ~Event() { (void)RAW(driver_, cuEventDestroy, event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  [[nodiscard]] CUevent get() const { return event_; }

 private:
  const Driver& driver_;
  CUevent event_ = nullptr;
};

/// Device memory for the duration of a question.
class Memory {
 public:
  Memory(const Driver& driver, std::size_t bytes) : driver_(driver) {
    CALL(driver_, cuMemAlloc, &at_, bytes);
  }
  ~Memory() { (void)RAW(driver_, cuMemFree, at_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] CUdeviceptr at() const { return at_; }

 private:
  const Driver& driver_;
  CUdeviceptr at_ = 0;
};

[[nodiscard]] inline std::string code_text(CUresult code) {
  return code == CUDA_SUCCESS ? "yes" : "no, " + std::to_string(code);
}

/// A stream that is captured for the duration of a question.
class Captured {
 public:
  Captured(const Driver& driver, CUstreamCaptureMode mode) : driver_(driver), stream_(driver) {
    CALL(driver_, cuStreamBeginCapture, stream_.get(), mode);
  }
  ~Captured() { (void)end(); }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  [[nodiscard]] CUstream get() const { return stream_.get(); }
  /// Ends the capture. The returned code tells whether something broke it.
  CUresult end() {
    if (std::exchange(ended_, true)) return CUDA_SUCCESS;
    CUgraph graph = nullptr;
    const CUresult code = RAW(driver_, cuStreamEndCapture, stream_.get(), &graph);
    if (graph != nullptr) (void)RAW(driver_, cuGraphDestroy, graph);
    return code;
  }

 private:
  const Driver& driver_;
  const Stream stream_;
  bool ended_ = false;
};

/// Whether the answer also says if the question broke the capture.
enum class Effect { kNotTold, kTold };

/// Returns what `ask(stream)` returns while the stream is captured.
template <typename Ask>
std::string during_capture(const Driver& driver, CUstreamCaptureMode mode, const Ask& ask,
                           Effect effect = Effect::kNotTold) {
  Captured captured(driver, mode);
  std::string answer = std::to_string(ask(captured.get()));
  const CUresult ended = captured.end();
  if (effect == Effect::kNotTold || ended == CUDA_SUCCESS) return answer;
  return answer + " and breaks it (" + std::to_string(ended) + ")";
}

/// Asks in a capture on the capturing thread, and in another capture on another thread.
template <typename Ask>
std::string asked_on_both(const Driver& driver, CUstreamCaptureMode mode, const Ask& ask) {
  CUcontext context = nullptr;
  CALL(driver, cuCtxGetCurrent, &context);
  const auto on_another = [&](CUstream captured) {
    CUresult code = CUDA_SUCCESS;
    std::thread([&] {
      code = RAW(driver, cuCtxSetCurrent, context);
      if (code == CUDA_SUCCESS) code = ask(captured);
    }).join();
    return code;
  };
  return during_capture(driver, mode, ask, Effect::kTold) + ", by another thread " +
         during_capture(driver, mode, on_another, Effect::kTold);
}

/// See Fact. A question sets `otherwise` if code depends on the expected answer.
struct Question {
  const char* fact;
  const char* expected;
  std::string (*ask)(const Driver&);
  const char* otherwise = "";
};
inline constexpr const char* kMemoryIsEarly = "memory may be handed out early";
/// Pages mapped into reserved addresses, and the cost of mapping.
[[nodiscard]] std::span<const Question> page_questions();
/// What waits for streams that are busy with other work.
[[nodiscard]] std::span<const Question> busy_questions();
/// Captures, and who reports a stream's state.
[[nodiscard]] std::span<const Question> capture_questions();
/// The cost of events and stream queries.
[[nodiscard]] std::span<const Question> cost_questions();
/// How much memory there is, and who reports it.
[[nodiscard]] std::span<const Question> memory_questions();

}  // namespace weir::gpu_check
