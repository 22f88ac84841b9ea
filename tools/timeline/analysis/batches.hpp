#pragma once

// Computes the figures of each batch.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "allocator/base/names.hpp"
#include "tools/timeline/analysis/index.hpp"

namespace weir {

[[nodiscard]] constexpr auto names_of(TimelineStall /*of*/) noexcept {
  return name_table("budget", "run-ahead", "turn", "open batches");
}

namespace timeline {

inline constexpr std::size_t kStallReasons = names_of(TimelineStall{}).size();

struct BatchFigures {
  std::uint32_t number = 0;
  std::uint32_t kind = 0;                  ///< index into the process's names
  std::uint32_t site = 0;                  ///< the call site of its begin
  std::uint32_t thread = 0;                ///< the thread that began it
  std::optional<std::uint64_t> begun{};    ///< admitted; nothing if before the recording
  std::optional<std::uint64_t> closed{};   ///< submitted
  std::optional<std::uint64_t> settled{};  ///< the device has finished it
  bool forced = false;                     ///< admitted without room
  std::uint64_t estimate = 0;              ///< expected peak in bytes
  std::uint64_t peak = 0;                  ///< peak in bytes when it was closed
  std::uint64_t operations = 0;            ///< number of operations submitted
  std::uint64_t busy = 0;                  ///< time of its work on streams, summed
  std::uint64_t stalls = 0;                ///< number of waits for admission
  std::array<std::uint64_t, kStallReasons> stalled{};  ///< their time, by reason

  [[nodiscard]] std::uint64_t stalled_in_all() const noexcept;
};
/// Returns batches by number. A stall without a batch belongs to the batch that its thread began
/// next.
[[nodiscard]] std::vector<BatchFigures> batches(const Index& index);

/// Number and time of waits.
struct Waits {
  std::uint64_t count = 0;
  std::uint64_t total = 0;
};
/// What held a process's frontends back.
struct StallFigures {
  std::array<Waits, kStallReasons> admission{};  ///< kStall, by reason
  Waits memory{};                                ///< kPoolWait and kMemoryWait
  Waits pace{};                                  ///< kPace
  std::uint64_t failures = 0;

  /// Admission waits for all reasons.
  [[nodiscard]] Waits stalls() const noexcept;
};
[[nodiscard]] StallFigures stall_figures(const Index& index);

}  // namespace timeline
}  // namespace weir
