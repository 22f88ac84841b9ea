#include "tools/preload/context/context_captures.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace weir::preload {

void ContextCaptures::note_end(StreamId stream, bool ended) noexcept {
  const FollowedStream* const found = streams_.find(stream);
  if (!ended && found != nullptr && !streams_.ended()) {
    // A broken capture has ended, too. But if, for example, the capture must end on another stream,
    // it goes on.
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const Inside inside;
    if (driver_.cuStreamIsCapturing(found->handle, &status) != CUDA_SUCCESS) expect_unknown();
    if (status != CU_STREAM_CAPTURE_STATUS_NONE) return;
  }
  (void)remove(stream);
}

bool ContextCaptures::remove(StreamId stream) noexcept {
  const auto found = captured_.find(stream);
  if (found == captured_.end()) return false;
  const bool began_it = found->second.began_it;
  if (began_it) CapturesUnderWay::end(found->second.capture);
  captured_.erase(found);
  return began_it;
}

void ContextCaptures::end() noexcept {
  while (!captured_.empty()) (void)remove(captured_.begin()->first);
}

bool ContextCaptures::any() const {
  if (captured_.empty()) return false;
  std::erase_if(captured_, [this](const auto& each) {
    const auto& [stream, captured] = each;
    if (!captured.began_it) return !CapturesUnderWay::has(captured.capture);
    // A capture of a thread's default stream ends with the thread.
    const FollowedStream* const its = streams_.find(stream);
    if (its != nullptr && !its->gone()) return false;
    CapturesUnderWay::end(captured.capture);
    return true;
  });
  return !captured_.empty();
}

bool ContextCaptures::forbid_asking() const {
  return any() && std::ranges::any_of(captured_, [](const auto& each) {
           return each.second.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
         });
}

CUstreamCaptureMode ContextCaptures::mode_of(CaptureId capture) const noexcept {
  for (const auto& [stream, captured] : captured_) {
    if (captured.began_it && captured.capture == capture) return captured.mode;
  }
  return CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CaptureId ContextCaptures::capture_now(StreamId stream) const noexcept {
  const FollowedStream* const found = streams_.find(stream);
  return found != nullptr ? capture_of(driver_, found->handle) : 0;
}

std::string ContextCaptures::text() const {
  constexpr std::array kModes{"global", "thread-local", "relaxed"};
  std::string text;
  if (!any()) return text;
  for (const auto& [stream, captured] : captured_) {
    const FollowedStream* const its = streams_.find(stream);
    if (!captured.began_it || its == nullptr) continue;
    const auto since = std::chrono::duration<double>(Clock::now() - captured.since);
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(),
                  "a capture of stream %p (mode %s) has been open for %.1f s",
                  static_cast<void*>(its->handle),
                  kModes.at(static_cast<std::size_t>(captured.mode)), since.count());
    text += (text.empty() ? "" : ", ") + std::string(line.data());
  }
  return text;
}

}  // namespace weir::preload
