#pragma once

// Converts events that our own writer wrote to records.

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/timeline/chrome/event.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

// Builds a process of a timeline while reading. Names are looked up by text. Records are kept in
// pieces, so that they are in memory only once.

/// How much of a file was read, and the limits.
struct ReadState {
  std::string path;  ///< the file's name for error messages
  ReadLimits limits;
  std::uint64_t records = 0;
};

class ProcessBuilder {
 public:
  /// `state` is shared by a file's processes and outlives them.
  explicit ProcessBuilder(ReadState& state) : state_(state) {}

  ProcessInfo info;
  bool complete = false;
  std::uint64_t lost = 0;

  /// Returns the number of a text; equal texts have one number. Throws UsageError beyond the
  /// limits.
  [[nodiscard]] std::uint32_t name(std::string_view text);
  /// Throws UsageError beyond the limits.
  void add(const TimelineRecord& record);
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Calls `change` for each record.
  template <typename Change>
  void for_each(const Change& change) {
    for (std::vector<TimelineRecord>& piece : pieces_) {
      for (TimelineRecord& record : piece) change(record);
    }
  }
  /// Returns the process with its records in order. Do not add anything afterwards.
  [[nodiscard]] Process finish();

 private:
  static constexpr std::size_t kPiece = 1U << 15U;

  ReadState& state_;
  std::deque<std::string> names_{{}};
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
  std::uint64_t name_bytes_ = 0;
  std::deque<std::vector<TimelineRecord>> pieces_;
  std::uint64_t size_ = 0;
};

/// Orders Process::records by `begin`, then by `sequence`. Of slices that begin together, the
/// longer one is first.
[[nodiscard]] bool comes_before(const TimelineRecord& a, const TimelineRecord& b) noexcept;

}  // namespace weir::timeline

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
