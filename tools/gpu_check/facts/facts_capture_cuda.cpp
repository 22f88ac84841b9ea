// What it costs to ask whether a stream is captured, whether that is always allowed, and what
// streams of green contexts report. The swap-in decides by these answers who serves a call.

#include <array>

#include "tools/gpu_check/facts/facts_clock.hpp"
#include "tools/gpu_check/facts/facts_driver_cuda.hpp"

namespace weir::gpu_check {
namespace {

CUresult is_capturing(const Driver& driver, CUstream stream) {
  CUstreamCaptureStatus status{};
  return RAW(driver, cuStreamIsCapturing, stream, &status);
}

/// Uses the form of drivers since 11.3.
CUresult capture_info(const Driver& driver, CUstream stream) {
  using Info = CUresult(CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*,
                        const CUgraphNode**, std::size_t*);
  CUstreamCaptureStatus status{};
  cuuint64_t id = 0;
  return driver.raw<Info>("cuStreamGetCaptureInfo_v2", stream, &status, &id,
                          static_cast<CUgraph*>(nullptr), static_cast<const CUgraphNode**>(nullptr),
                          static_cast<std::size_t*>(nullptr));
}

using Ask = CUresult (*)(const Driver&, CUstream);

std::string cost_of(const Driver& driver, Ask question) {
  constexpr std::chrono::milliseconds kLongest{50};
  const auto ask = [&](CUstream stream) {
    return cost_of_asking([&] { return question(driver, stream) == CUDA_SUCCESS; }, kLongest);
  };
  const Stream free(driver);
  const std::string found = "not captured: " + ask(free.get());
  const Captured captured(driver, CU_STREAM_CAPTURE_MODE_GLOBAL);
  return found + "; captured: " + ask(captured.get());
}

std::string cost_of_is_capturing(const Driver& driver) { return cost_of(driver, is_capturing); }
std::string cost_of_capture_info(const Driver& driver) { return cost_of(driver, capture_info); }

std::string asked_of_captured(const Driver& driver) {
  const auto both = [&](const char* name, Ask question) {
    return std::string(name) + ": " +
           asked_on_both(driver, CU_STREAM_CAPTURE_MODE_GLOBAL,
                         [&](CUstream captured) { return question(driver, captured); });
  };
  return both("cuStreamIsCapturing", is_capturing) + "; " +
         both("cuStreamGetCaptureInfo", capture_info);
}

std::string query_of_captured(const Driver& driver) {
  return during_capture(
      driver, CU_STREAM_CAPTURE_MODE_GLOBAL,
      [&](CUstream stream) { return RAW(driver, cuStreamQuery, stream); }, Effect::kTold);
}

#if CUDA_VERSION >= 12050
/// Returns which context a stream of a green context reports, and whether memory can be allocated
/// in its order.
std::string ask_green(const Driver& driver, CUgreenCtx green, CUcontext primary) {
  CUstream stream = nullptr;
  CUresult code = RAW(driver, cuGreenCtxStreamCreate, &stream, green,
                      static_cast<unsigned>(CU_STREAM_NON_BLOCKING), 0);
  if (code != CUDA_SUCCESS) return "no stream of it: " + std::to_string(code);
  using GetContext = CUresult(CUstream, CUcontext*);
  CUcontext its = nullptr;
  code = driver.raw<GetContext>("cuStreamGetCtx", stream, &its);
  std::string found =
      "cuStreamGetCtx gives " + (code != CUDA_SUCCESS ? std::to_string(code)
                                 : its == primary     ? std::string("the primary context")
                                                      : std::string("another context"));
  CUdeviceptr at = 0;
  code = RAW(driver, cuMemAllocAsync, &at, std::size_t{1} << 20U, stream);
  found += "; cuMemAllocAsync there: " + std::to_string(code);
  if (code == CUDA_SUCCESS) {
    found += ", cuMemFreeAsync: " + std::to_string(RAW(driver, cuMemFreeAsync, at, stream));
  }
  (void)RAW(driver, cuStreamSynchronize, stream);
  if (its != nullptr && RAW(driver, cuCtxPushCurrent, its) == CUDA_SUCCESS) {
    code = RAW(driver, cuMemAlloc, &at, std::size_t{1} << 20U);
    found += "; cuMemAlloc in its context: " + std::to_string(code);
    CUcontext popped = nullptr;
    (void)RAW(driver, cuCtxPopCurrent, &popped);
    if (code == CUDA_SUCCESS) {
      found += ", cuMemFree in the primary: " + std::to_string(RAW(driver, cuMemFree, at));
    }
  }
  (void)RAW(driver, cuStreamDestroy, stream);
  return found;
}

std::string green_contexts(const Driver& driver) {
  CUdevResource all{};
  CUdevResource part{};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CUcontext primary = nullptr;
  unsigned groups = 1;
  CALL(driver, cuCtxGetCurrent, &primary);
  CUresult code = RAW(driver, cuDeviceGetDevResource, CUdevice{0}, &all, CU_DEV_RESOURCE_TYPE_SM);
  if (code == CUDA_SUCCESS) {
    code =
        RAW(driver, cuDevSmResourceSplitByCount, &part, &groups,
            static_cast<const CUdevResource*>(&all), static_cast<CUdevResource*>(nullptr), 0U, 8U);
  }
  if (code == CUDA_SUCCESS) code = RAW(driver, cuDevResourceGenerateDesc, &description, &part, 1U);
  if (code == CUDA_SUCCESS) {
    code = RAW(driver, cuGreenCtxCreate, &green, description, CUdevice{0},
               static_cast<unsigned>(CU_GREEN_CTX_DEFAULT_STREAM));
  }
  if (code != CUDA_SUCCESS) return "there are none: " + std::to_string(code);
  std::string found = ask_green(driver, green, primary);
  (void)RAW(driver, cuGreenCtxDestroy, green);
  return found;
}
#else
std::string green_contexts(const Driver& /*driver*/) {
  throw Error("this toolkit is older than 12.5");
}
#endif

constexpr const char* kCaptureCost = "(a cost; in brackets how many were done in time)";
constexpr std::array kCaptureQuestions{
    Question{"cuStreamIsCapturing", kCaptureCost, cost_of_is_capturing},
    Question{"cuStreamGetCaptureInfo", kCaptureCost, cost_of_capture_info},
    Question{"whether a captured stream is, asked in a global capture",
             "cuStreamIsCapturing: 0, by another thread 0; cuStreamGetCaptureInfo: 0, by another "
             "thread 0",
             asked_of_captured},
    Question{"cuStreamQuery of a captured stream", "900 and breaks it (901)", query_of_captured},
    Question{"a stream of a green context", "(not documented)", green_contexts},
};

}  // namespace

std::span<const Question> capture_questions() { return kCaptureQuestions; }

}  // namespace weir::gpu_check
