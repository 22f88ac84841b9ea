#pragma once

// Which streams of one context are captured.

#include <string>
#include <unordered_map>

#include "tools/preload/context/captures.hpp"
#include "tools/preload/context/followed_streams.hpp"
#include "tools/preload/driver/scope.hpp"

namespace weir::preload {

/// A captured stream is never touched. While a capture of the context is open whose mode is not
/// relaxed, no fence is recorded, queried or waited for: CUDA lets a thread in relaxed mode ask of
/// streams that are not captured, but on an H100 that was seen for relaxed captures alone.
/// Not thread-safe, except for `expect_unknown`.
class ContextCaptures {
 public:
  ContextCaptures(const Driver& driver, const FollowedStreams& streams) noexcept
      : driver_(driver), streams_(streams) {
    contexts.fetch_add(1);
  }
  ~ContextCaptures() { contexts.fetch_sub(1); }
  ContextCaptures(const ContextCaptures&) = delete;
  ContextCaptures& operator=(const ContextCaptures&) = delete;

  /// Notes that an unseen capture may be under way. From now on no call assumes that all are known.
  static void expect_unknown() noexcept { unknown.store(true); }

  // See Fences for these. `any`, `forbid_asking` and `text` first forget captures that have ended.
  template <typename Begin>
  CUresult begin(StreamId stream, CUstreamCaptureMode mode, const Begin& begin) {
    const auto [entry, first] = captured_.try_emplace(stream);
    if (first) CapturesUnderWay::announce();  // other contexts' streams may join it at once
    const CUresult code = begin();
    if (first && code != CUDA_SUCCESS) {
      captured_.erase(entry);
      CapturesUnderWay::withdraw();
    } else if (first) {
      entry->second = {.capture = CapturesUnderWay::begin(capture_now(stream)),
                       .began_it = true,
                       .mode = mode,
                       .since = Clock::now()};
    }
    return code;
  }
  template <typename Wait>
  CUresult join(StreamId stream, const Wait& wait) {
    const auto [entry, first] = captured_.try_emplace(stream);  // nothing may fail once it waits
    const CUresult code = wait();
    if (!first) return code;
    const CaptureId joined = capture_now(stream);
    if (CapturesUnderWay::has(joined)) {
      entry->second = {.capture = joined, .mode = mode_of(joined)};
    } else {
      captured_.erase(entry);
    }
    return code;
  }
  void note_end(StreamId stream, bool ended) noexcept;
  [[nodiscard]] bool any() const;
  [[nodiscard]] bool forbid_asking() const;
  [[nodiscard]] std::string text() const;

  /// Forgets the stream. Returns whether it began its capture, which ends with that.
  bool remove(StreamId stream) noexcept;
  /// Call when the context is gone.
  void end() noexcept;

  [[nodiscard]] bool has(StreamId stream) const { return captured_.contains(stream); }
  /// With only one context, a capture would be its own and would begin under the lock.
  [[nodiscard]] Captures possible() const noexcept {
    const bool all_known = contexts.load() == 1 && !unknown.load();
    return all_known && captured_.empty() ? Captures::kNone : Captures::kPossible;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Captured {
    CaptureId capture = 0;
    bool began_it = false;  ///< began on this stream, rather than joined
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    Clock::time_point since{};
  };

  /// Returns the mode of a capture; the strictest if it began in another context.
  [[nodiscard]] CUstreamCaptureMode mode_of(CaptureId capture) const noexcept;
  /// Returns the driver's id of the stream's capture, or 0.
  [[nodiscard]] CaptureId capture_now(StreamId stream) const noexcept;

  inline static constinit std::atomic<int> contexts{0};  ///< contexts, even if gone
  inline static constinit std::atomic<bool> unknown{false};

  const Driver& driver_;
  const FollowedStreams& streams_;
  mutable std::unordered_map<StreamId, Captured> captured_;
};

}  // namespace weir::preload
