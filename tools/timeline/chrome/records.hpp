#pragma once

// Converts events that our own writer wrote to records.

#include <deque>
#include <unordered_map>

#include "tools/timeline/chrome/builder.hpp"
#include "tools/timeline/chrome/event.hpp"

namespace weir::timeline::chrome {

class RecordTaker final : public EventTaker {
 public:
  /// `state` must outlive this.
  explicit RecordTaker(ReadState& state) : state_(state) {}

  /// Skips and counts invalid events.
  void take(const Event& event) override;
  /// Returns the timeline, with a note if events were skipped. Throws UsageError if it has no
  /// process.
  [[nodiscard]] Timeline finish();

 private:
  /// What all records of a track share.
  struct Track {
    std::uint32_t thread = 0;
    std::uint16_t device = 0;
    std::uint64_t stream = 0;
  };
  struct Reading {
    explicit Reading(ReadState& state) : builder(state) {}
    ProcessBuilder builder;
    std::unordered_map<std::uint32_t, Track> tracks;
  };

  // Each returns whether the event is valid.
  bool take_metadata(const Event& event);
  bool take_begin(const Event& event, std::uint32_t pid);
  bool take_track(const Event& event, Reading& process);
  bool take_record(const Event& event, Reading& process);
  [[nodiscard]] Reading* process_of(const Event& event);

  ReadState& state_;
  std::deque<Reading> processes_;
  std::unordered_map<std::uint32_t, Reading*> by_pid_;
  std::uint32_t last_pid_ = 0;
  Reading* last_ = nullptr;
  std::uint64_t dropped_ = 0;
};

/// Returns whether `event` is the first of our own file.
[[nodiscard]] bool is_ours(const Event& event);

}  // namespace weir::timeline::chrome
