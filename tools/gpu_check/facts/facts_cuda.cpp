#include <array>
#include <chrono>

#include "tools/gpu_check/facts/facts.hpp"
#include "tools/gpu_check/facts/facts_driver_cuda.hpp"
#include "tools/gpu_check/facts/spin_cuda.hpp"

namespace weir::gpu_check {
namespace {

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
  explicit Event(const Driver& driver) : driver_(driver) {
    CALL(driver_, cuEventCreate, &event_, static_cast<unsigned>(CU_EVENT_DISABLE_TIMING));
  }
  ~Event() { (void)RAW(driver_, cuEventDestroy, event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  [[nodiscard]] CUevent get() const { return event_; }

 private:
  const Driver& driver_;
  CUevent event_ = nullptr;
};

/// A page of the first device and an address for it, for the duration of a question.
class Page {
 public:
  explicit Page(const Driver& driver) : driver_(driver) {
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CALL(driver_, cuMemGetAllocationGranularity, &size_, &properties_,
         CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    CALL(driver_, cuMemAddressReserve, &at_, size_, std::size_t{0}, CUdeviceptr{0}, 0ULL);
  }
  ~Page() {
    if (mapped_) (void)RAW(driver_, cuMemUnmap, at_, size_);
    if (page_ != 0) (void)RAW(driver_, cuMemRelease, page_);
    (void)RAW(driver_, cuMemAddressFree, at_, size_);
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  /// Creates and maps the page, and lets the device use it.
  void map() {
    CALL(driver_, cuMemCreate, &page_, size_, &properties_, 0ULL);
    CALL(driver_, cuMemMap, at_, size_, std::size_t{0}, page_, 0ULL);
    mapped_ = true;
    CUmemAccessDesc access{};
    access.location = properties_.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CALL(driver_, cuMemSetAccess, at_, size_, &access, std::size_t{1});
  }
  void release() {
    CALL(driver_, cuMemUnmap, at_, size_);
    mapped_ = false;
    CALL(driver_, cuMemRelease, page_);
    page_ = 0;
  }

 private:
  const Driver& driver_;
  CUmemAllocationProp properties_{};
  std::size_t size_ = 0;
  CUdeviceptr at_ = 0;
  CUmemGenericAllocationHandle page_ = 0;
  bool mapped_ = false;
};

/// Returns what `ask(stream)` returns while the stream is captured.
template <typename Ask>
CUresult during_capture(const Driver& driver, CUstreamCaptureMode mode, const Ask& ask) {
  const Stream stream(driver);
  CALL(driver, cuStreamBeginCapture, stream.get(), mode);
  const CUresult answer = ask(stream.get());
  CUgraph graph = nullptr;
  (void)RAW(driver, cuStreamEndCapture, stream.get(), &graph);
  if (graph != nullptr) (void)RAW(driver, cuGraphDestroy, graph);
  return answer;
}

template <CUstreamCaptureMode Mode>
std::string captured_event(const Driver& driver) {
  const Event event(driver);
  return std::to_string(during_capture(driver, Mode, [&](CUstream stream) {
    const CUresult recorded = RAW(driver, cuEventRecord, event.get(), stream);
    return recorded == CUDA_SUCCESS ? RAW(driver, cuEventQuery, event.get()) : recorded;
  }));
}

/// Returns `yes`, or which call of `act` failed.
template <typename Act>
std::string works(const Act& act) {
  try {
    act();
    return "yes";
  } catch (const Error& error) {
    return std::string("no, ") + error.what();
  }
}

/// Returns whether mappings made in a context can be removed after that context is gone.
std::string outlives_context(const Driver& driver) {
  CUcontext context = nullptr;
#if CUDA_VERSION >= 13000
  CALL(driver, cuCtxCreate, &context, static_cast<CUctxCreateParams*>(nullptr), 0U, CUdevice{0});
#else
  CALL(driver, cuCtxCreate, &context, 0U, CUdevice{0});
#endif
  std::string found = works([&] {
    Page page(driver);
    page.map();
    CALL(driver, cuCtxDestroy, context);
    context = nullptr;
    page.release();
  });
  if (context != nullptr) (void)RAW(driver, cuCtxDestroy, context);
  return found;
}

/// Calls from a thread in relaxed mode, as our own calls are made.
std::string in_capture(const Driver& driver) {
  Page page(driver);  // given back after the capture
  std::string found;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CALL(driver, cuThreadExchangeStreamCaptureMode, &mode);
  (void)during_capture(driver, CU_STREAM_CAPTURE_MODE_GLOBAL, [&](CUstream) {
    found = works([&] {
      page.map();
      page.release();
    });
    return CUDA_SUCCESS;
  });
  CALL(driver, cuThreadExchangeStreamCaptureMode, &mode);
  return found;
}

/// How long a stream is busy during a question. A launch may return only at its end: the stream is
/// then idle by the time of the question.
constexpr std::chrono::milliseconds kBusy{100};

/// Returns whether the driver reports pending work for the stream or event, then waits for `busy`,
/// for which that would wait: beside an idle stream the answer means nothing.
std::string pending(const Driver& driver, CUresult code, CUstream busy) {
  const bool is_busy = RAW(driver, cuStreamQuery, busy) == CUDA_ERROR_NOT_READY;
  CALL(driver, cuStreamSynchronize, busy);
  if (code == CUDA_ERROR_NOT_READY) return "waits";
  return is_busy ? "does not (" + std::to_string(code) + ")" : "cannot be told";
}

// The swap-in's fences depend on both answers: tools/preload/context/fence_due.hpp.
std::string beside_busy_legacy(const Driver& driver) {
  const Stream blocking(driver);
  const Event event(driver);
  spin(cudaStreamLegacy, kBusy);
  CALL(driver, cuEventRecord, event.get(), blocking.get());
  const CUresult code = RAW(driver, cuEventQuery, event.get());
  return "an event on it " + pending(driver, code, CU_STREAM_LEGACY);
}

std::string legacy_beside_busy(const Driver& driver) {
  const Stream blocking(driver);
  spin(blocking.get(), kBusy);
  const CUresult code = RAW(driver, cuStreamQuery, CUstream{CU_STREAM_LEGACY});
  return "the legacy stream " + pending(driver, code, blocking.get());
}

/// See Fact.
struct Question {
  const char* fact;
  const char* expected;
  std::string (*ask)(const Driver&);
  const char* otherwise = "";
};

constexpr const char* kMemoryIsEarly = "memory may be handed out early";
constexpr std::array kQuestions{
    // For a capture whose begin the swap-in did not see: its event must not look passed.
    Question{"cuEventQuery of an event recorded in a relaxed capture", "907",
             captured_event<CU_STREAM_CAPTURE_MODE_RELAXED>, kMemoryIsEarly},
    Question{"cuEventQuery of an event recorded in a global capture", "907 or 900",
             captured_event<CU_STREAM_CAPTURE_MODE_GLOBAL>, kMemoryIsEarly},
    Question{"pages are unmapped and released when their context is gone", "yes", outlives_context,
             "pages may stay on the device and be in no budget"},
    Question{"pages are made, mapped and unmapped in relaxed mode during a global capture", "yes",
             in_capture, "an allocation may break a capture of the program"},
    Question{"a blocking stream, while the legacy stream is busy with a kernel",
             "an event on it waits", beside_busy_legacy, kMemoryIsEarly},
    Question{"cuStreamQuery of the legacy stream, while a blocking stream is busy with a kernel",
             "the legacy stream waits", legacy_beside_busy, kMemoryIsEarly},
    Question{"memory by the management library and by CUDA",
             "(the same; under MIG the whole, whose UUID is another than CUDA's)", memory_by_nvml},
};

/// Makes the first device's primary context current. The end of the process releases it.
void use_first_device(const Driver& driver) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CALL(driver, cuInit, 0U);
  CALL(driver, cuDeviceGet, &device, 0);
  CALL(driver, cuDevicePrimaryCtxRetain, &context, device);
  CALL(driver, cuCtxSetCurrent, context);
}

void ask(const Driver& driver, const Question& question, const FactsTold& told) {
  Fact fact{question.fact, question.expected, question.otherwise, "", false};
  told.asked(fact);
  try {
    fact.answer = question.ask(driver);
    fact.answered = true;
  } catch (const Error& error) {
    fact.answer = std::string("not answered: ") + error.what();
  }
  told.answered(fact);
}

}  // namespace

std::string ask_facts(const FactsTold& told) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return "there is no NVIDIA driver here (libcuda.so.1)";
  const Driver driver(library);
  try {
    use_first_device(driver);
  } catch (const Error& error) {
    return std::string("the driver does not answer: ") + error.what();
  }
  for (const Question& question : kQuestions) ask(driver, question, told);
  return "";
}

}  // namespace weir::gpu_check
