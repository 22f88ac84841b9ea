#pragma once

// How facts are asked for: the driver itself, by the names of its own functions. Under a program of
// ours stands the runtime, which answers some of it otherwise.

#include <cuda.h>
#include <dlfcn.h>

#include <span>
#include <string>

#include "allocator/base/error.hpp"

namespace weir::gpu_check {

/// The driver's functions that are called here.
class Driver {
 public:
  explicit Driver(void* library) : library_(library) {}

  /// What `name` returns. Error where the driver has no function of that name.
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
    // One that waits for the legacy stream, as most programs' do.
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

/// Device memory for as long as a question takes.
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

/// What `ask` returns while a stream captures; the capture is ended whatever it was.
template <typename Ask>
std::string during_capture(const Driver& driver, CUstreamCaptureMode mode, const Ask& ask) {
  const Stream stream(driver);
  CALL(driver, cuStreamBeginCapture, stream.get(), mode);
  const CUresult code = ask(stream.get());
  CUgraph graph = nullptr;
  (void)RAW(driver, cuStreamEndCapture, stream.get(), &graph);
  if (graph != nullptr) (void)RAW(driver, cuGraphDestroy, graph);
  return std::to_string(code);
}

/// As in Fact. A question has a text for `otherwise` where code counts on the expected answer.
struct Question {
  const char* fact;
  const char* expected;
  std::string (*ask)(const Driver&);
  const char* otherwise = "";
};
inline constexpr const char* kMemoryIsEarly = "memory may be handed out early";
/// Those about pages that are mapped into reserved addresses, and what a map costs.
[[nodiscard]] std::span<const Question> page_questions();
/// About what waits for streams that are busy with something else.
[[nodiscard]] std::span<const Question> busy_questions();
/// About captures, and who says of a stream what it is.
[[nodiscard]] std::span<const Question> capture_questions();
/// About the cost of events and of questions for streams.
[[nodiscard]] std::span<const Question> cost_questions();
/// About how much memory there is, and who says so.
[[nodiscard]] std::span<const Question> memory_questions();

}  // namespace weir::gpu_check
