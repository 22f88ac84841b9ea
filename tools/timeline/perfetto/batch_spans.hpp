#pragma once

// Draws batches as slices: open from admission to close, then queued until the device is done.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "allocator/timeline/record.hpp"

namespace weir::timeline {

/// Decides which slices begin and end with a record, and on which lane, so that none overlap.
/// Several batches may be open or queued at once. Not thread-safe.
class BatchSpans {
 public:
  enum class Span : std::uint8_t { kOpen, kQueued };
  struct Change {
    Span span = Span::kOpen;
    bool begins = false;
    std::uint32_t lane = 0;
  };
  /// Returns the changes at `record.begin`, in order; none for an out-of-order record.
  [[nodiscard]] std::vector<Change> add(const TimelineRecord& record);

 private:
  struct Lane {
    bool taken = false;
    std::uint64_t free_from = 0;
  };
  struct Begun {
    Span span = Span::kOpen;
    std::uint32_t lane = 0;
    std::uint64_t time = 0;
  };
  std::vector<Lane>& lanes(Span span) { return span == Span::kOpen ? open_ : queued_; }
  void begin(const TimelineRecord& record, Span span, std::vector<Change>& changes);

  std::unordered_map<std::uint32_t, Begun> begun_;
  std::vector<Lane> open_, queued_;
};

}  // namespace weir::timeline
