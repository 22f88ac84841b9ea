#pragma once

// Builds a process of a timeline while reading. Names are looked up by text. Records are kept in
// pieces, so that they are in memory only once.

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

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
