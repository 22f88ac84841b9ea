#pragma once

// What became of each batch.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

inline constexpr std::size_t kStallReasons = 4;  ///< of TimelineStall
/// `budget`, `run-ahead`, `turn`, `open batches`.
[[nodiscard]] std::string_view to_string(TimelineStall reason) noexcept;

struct BatchFigures {
  std::uint32_t number = 0;
  std::uint32_t kind = 0;                  ///< of the process's names
  std::uint32_t site = 0;                  ///< where it was begun
  std::uint32_t thread = 0;                ///< that began it
  std::optional<std::uint64_t> begun{};    ///< admitted; nothing: before the recording
  std::optional<std::uint64_t> closed{};   ///< submitted
  std::optional<std::uint64_t> settled{};  ///< the device is done with it
  bool forced = false;                     ///< admitted without room
  std::uint64_t estimate = 0;              ///< bytes that it was expected to hold
  std::uint64_t peak = 0;                  ///< bytes that it held at most, when it was closed
  std::uint64_t operations = 0;            ///< submitted by it
  std::uint64_t busy = 0;                  ///< time of its work on streams
  std::uint64_t stalls = 0;                ///< waits for its admission
  std::array<std::uint64_t, kStallReasons> stalled{};  ///< time of these, by reason

  [[nodiscard]] std::uint64_t stalled_in_all() const noexcept;
};
/// By number. A stall without a batch is that of the batch which its thread began next.
[[nodiscard]] std::vector<BatchFigures> batches(const Index& index);

/// How often and how long threads waited.
struct Waits {
  std::uint64_t count = 0;
  std::uint64_t total = 0;
};
/// Of a process: what held frontends back.
struct StallFigures {
  std::array<Waits, kStallReasons> admission{};  ///< kStall, by reason
  Waits memory{};                                ///< kPoolWait and kMemoryWait
  Waits pace{};                                  ///< kPace
  std::uint64_t failures = 0;

  /// Of admission, all reasons.
  [[nodiscard]] Waits stalls() const noexcept;
};
[[nodiscard]] StallFigures stall_figures(const Index& index);
/// When threads stood in kStall, as spans that do not touch, by time; for the shading of a picture.
[[nodiscard]] std::vector<Span> stalled_spans(const Index& index);

}  // namespace weir::timeline
