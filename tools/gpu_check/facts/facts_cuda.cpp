#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "tools/gpu_check/facts/facts.hpp"
#include "tools/gpu_check/facts/facts_driver_cuda.hpp"

namespace weir::gpu_check {
namespace {

/// Returns the unit such that every pitch is the least multiple that fits, or the widths and
/// pitches if there is none.
std::string pitch(const Driver& driver) {
  std::string all;
  std::size_t common = 0;
  constexpr std::array<std::size_t, 6> kWidths{1, 100, 512, 513, 4000, 10000};
  std::array<std::size_t, kWidths.size()> pitches{};
  for (std::size_t i = 0; i < kWidths.size(); ++i) {
    CUdeviceptr at = 0;
    CALL(driver, cuMemAllocPitch, &at, &pitches[i], kWidths[i], std::size_t{3}, 4U);
    (void)RAW(driver, cuMemFree, at);
    if (i == 0) common = pitches[i];
    all += (all.empty() ? "" : ", ") + std::to_string(kWidths[i]) + " gives " +
           std::to_string(pitches[i]);
  }
  for (std::size_t i = 0; i < kWidths.size(); ++i) {
    if (common == 0 || pitches[i] != (kWidths[i] + common - 1) / common * common) return all;
  }
  return "the width up to a multiple of " + std::to_string(common);
}

/// Returns the largest power of two that divides the addresses of small allocations of odd sizes.
std::string alignment(const Driver& driver) {
  CUdeviceptr bits = 0;
  std::array<CUdeviceptr, 64> kept{};
  std::size_t made = 0;
  CUresult code = CUDA_SUCCESS;
  for (; made < kept.size() && code == CUDA_SUCCESS; ++made) {
    code = RAW(driver, cuMemAlloc, &kept[made], 2 * made + 1);
    bits |= kept[made];
  }
  for (const CUdeviceptr at : kept) {
    if (at != 0) (void)RAW(driver, cuMemFree, at);
  }
  check(code, "cuMemAlloc");
  return std::to_string(CUdeviceptr{1} << std::countr_zero(bits)) + " bytes";
}

std::string freed_at_once(const Driver& driver) {
  const Stream stream(driver);
  CUdeviceptr at = 0;
  CALL(driver, cuMemAllocAsync, &at, std::size_t{1} << 20, stream.get());
  CALL(driver, cuStreamSynchronize, stream.get());
  const CUresult code = RAW(driver, cuMemFree, at);
  if (code != CUDA_SUCCESS) (void)RAW(driver, cuMemFreeAsync, at, stream.get());
  return code_text(code);
}

std::string freed_in_order(const Driver& driver) {
  const Stream stream(driver);
  CUdeviceptr at = 0;
  CALL(driver, cuMemAlloc, &at, std::size_t{1} << 20);
  const CUresult code = RAW(driver, cuMemFreeAsync, at, stream.get());
  CALL(driver, cuStreamSynchronize, stream.get());
  if (code != CUDA_SUCCESS) (void)RAW(driver, cuMemFree, at);
  return code_text(code);
}

std::string handle_inside(const Driver& driver) {
  const Memory memory(driver, std::size_t{4} << 20);
  CUipcMemHandle base{};
  CUipcMemHandle inside{};
  CALL(driver, cuIpcGetMemHandle, &base, memory.at());
  const CUresult code = RAW(driver, cuIpcGetMemHandle, &inside, memory.at() + (1U << 20));
  if (code != CUDA_SUCCESS) return code_text(code);
  return std::memcmp(&base, &inside, sizeof base) == 0 ? "that of its base" : "another one";
}

std::string handle_in_order(const Driver& driver) {
  const Stream stream(driver);
  CUdeviceptr at = 0;
  CALL(driver, cuMemAllocAsync, &at, std::size_t{1} << 20, stream.get());
  CALL(driver, cuStreamSynchronize, stream.get());
  CUipcMemHandle handle{};
  const CUresult code = RAW(driver, cuIpcGetMemHandle, &handle, at);
  CALL(driver, cuMemFreeAsync, at, stream.get());
  return code_text(code);
}

std::string legacy_stream(const Driver& driver) {
  return during_capture(driver, CU_STREAM_CAPTURE_MODE_GLOBAL, [&](CUstream) {
    CUstreamCaptureStatus status{};
    return RAW(driver, cuStreamIsCapturing, CUstream{CU_STREAM_LEGACY}, &status);
  });
}

std::string captured_event(const Driver& driver, CUstreamCaptureMode mode) {
  CUevent event = nullptr;
  CALL(driver, cuEventCreate, &event, static_cast<unsigned>(CU_EVENT_DISABLE_TIMING));
  std::string found = during_capture(driver, mode, [&](CUstream stream) {
    const CUresult recorded = RAW(driver, cuEventRecord, event, stream);
    return recorded == CUDA_SUCCESS ? RAW(driver, cuEventQuery, event) : recorded;
  });
  (void)RAW(driver, cuEventDestroy, event);
  return found;
}

std::string relaxed_event(const Driver& driver) {
  return captured_event(driver, CU_STREAM_CAPTURE_MODE_RELAXED);
}

std::string global_event(const Driver& driver) {
  return captured_event(driver, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

constexpr std::array kQuestions{
    Question{"pitch of cuMemAllocPitch", "the width up to a multiple of 512", pitch},
    Question{"alignment of cuMemAlloc", "512 bytes", alignment},
    Question{"cuMemFree takes memory of cuMemAllocAsync", "yes", freed_at_once},
    Question{"cuMemFreeAsync takes memory of cuMemAlloc", "yes", freed_in_order},
    Question{"cuIpcGetMemHandle of an address inside an allocation", "that of its base",
             handle_inside},
    Question{"cuIpcGetMemHandle of memory of cuMemAllocAsync", "no, 1", handle_in_order},
    Question{"cuStreamIsCapturing of the legacy stream during a global capture", "906",
             legacy_stream},
    // For a capture whose begin the swap-in did not see: its event must not look passed.
    Question{"cuEventQuery of an event recorded in a relaxed capture", "907", relaxed_event,
             kMemoryIsEarly},
    Question{"cuEventQuery of an event recorded in a global capture", "907 or 900", global_event,
             kMemoryIsEarly},
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
  for (const std::span<const Question> questions :
       {std::span<const Question>(kQuestions), page_questions(), busy_questions(), cost_questions(),
        capture_questions(), memory_questions()}) {
    for (const Question& question : questions) ask(driver, question, told);
  }
  return "";
}

}  // namespace weir::gpu_check
