#pragma once

// A process of a timeline while it is read: its names by text, and its records in pieces, so that
// they are in memory once.

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/timeline/model/read_limits.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// What was read of a file so far, and how much may be.
struct ReadState {
  std::string path;  ///< names the file in what is refused
  ReadLimits limits;
  std::uint64_t records = 0;
};

class ProcessBuilder {
 public:
  /// `state` is shared by the processes of a file, and outlives them.
  explicit ProcessBuilder(ReadState& state) : state_(state) {}

  ProcessInfo info;
  bool complete = false;
  std::uint64_t lost = 0;

  /// The number of a text; the same for equal texts. UsageError beyond the limits.
  [[nodiscard]] std::uint32_t name(std::string_view text);
  /// UsageError beyond the limits.
  void add(const TimelineRecord& record);
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Calls `change` for each record.
  template <typename Change>
  void for_each(const Change& change) {
    for (std::vector<TimelineRecord>& piece : pieces_) {
      for (TimelineRecord& record : piece) change(record);
    }
  }
  /// The process, its records in order. Nothing may be added afterwards.
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

/// The order of Process::records: by `begin`, and alike ones by `sequence`; of slices that begin
/// together the longer one is first.
[[nodiscard]] bool comes_before(const TimelineRecord& a, const TimelineRecord& b) noexcept;

}  // namespace weir::timeline
