#include "tools/preload/context/captures.hpp"

#include <array>

namespace weir::preload {
namespace {

/// The captures' numbers. Captures that do not fit here are found only by asking the driver about
/// each stream.
constinit std::array<std::atomic<CaptureId>, 64> numbers{};

/// The driver counts from below.
constexpr CaptureId kFirstOfOurs = CaptureId{1} << 63U;
constinit std::atomic<CaptureId> next_of_ours{kFirstOfOurs};

/// Whether the driver reports `id` and `graph`; either may be null.
bool tells(const Driver& driver, CUstream stream, cuuint64_t* id, CUgraph* graph) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (driver.cuStreamGetCaptureInfo_v2 == nullptr) return false;
  const CUresult code =
      driver.cuStreamGetCaptureInfo_v2(stream, &status, id, graph, nullptr, nullptr);
  // For an invalidated capture it reports only the status.
  return code == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

}  // namespace

CaptureId CapturesUnderWay::begin(CaptureId told) noexcept {
  const CaptureId capture = told != 0 ? told : next_of_ours.fetch_add(1);
  for (auto& number : numbers) {
    CaptureId none = 0;
    if (number.compare_exchange_strong(none, capture)) break;
  }
  return capture;
}

void CapturesUnderWay::end(CaptureId capture) noexcept {
  for (auto& number : numbers) {
    CaptureId found = capture;
    if (number.compare_exchange_strong(found, 0)) break;
  }
  withdraw();
}

bool CapturesUnderWay::has(CaptureId capture) noexcept {
  if (capture == 0) return false;  // 0 marks a free place
  for (const auto& number : numbers) {
    if (number.load(std::memory_order_acquire) == capture) return true;
  }
  return false;
}

bool is_captured(const Driver& driver, CUstream stream) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CaptureId capture_of(const Driver& driver, CUstream stream) noexcept {
  cuuint64_t id = 0;
  return tells(driver, stream, &id, nullptr) ? id : 0;
}

CUgraph captured_graph(const Driver& driver, CUstream stream) noexcept {
  CUgraph graph = nullptr;
  return tells(driver, stream, nullptr, &graph) ? graph : nullptr;
}

}  // namespace weir::preload
