#pragma once

// Computes what submitting threads did at each moment, for the causes of device gaps.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tools/timeline/analysis/idle.hpp"
#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

/// The states of one thread, from its first record on. Of nested waits, the outer one counts.
class ThreadStates {
 public:
  struct Turn {
    enum class What : std::uint8_t { kWait, kCall, kBatch };
    std::uint64_t at = 0;
    std::uint32_t number = 0;  ///< of the wait, call or batch; equal at begin and end
    std::uint32_t site = 0;
    What what{};
    bool begins = false;
    IdleCause cause{};  ///< of a wait
  };
  /// `turns` may be in any order.
  explicit ThreadStates(std::vector<Turn> turns);

  struct Doings {
    IdleTimes times{};
    std::uint32_t barrier_site = 0;  ///< call site of the last barrier in it
  };
  /// Returns the times within a span by the idle cause that they would be.
  [[nodiscard]] Doings in(Span span) const;

 private:
  static constexpr std::size_t kBlock = 64;  ///< number of segments per stored sum
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Segment {
    std::uint64_t begin = 0;  ///< ends where the next one begins
    std::uint32_t site = 0;
    std::uint32_t last_barrier = kNone;  ///< its own index or an earlier one
    IdleCause cause{};
  };
  void build(const std::vector<Turn>& turns);
  void append(Span span, IdleCause cause, std::uint32_t site);
  void sum_up();
  [[nodiscard]] std::size_t segment_at(std::uint64_t at) const;
  /// Sums the times from the first segment to `at`.
  [[nodiscard]] IdleTimes until(std::uint64_t at) const;

  std::vector<Segment> segments_;
  std::vector<IdleTimes> sums_;  ///< before each kBlock-th segment
  std::uint64_t end_ = 0;
};

/// The states of all threads that submit work or begin batches.
class FrontendStates {
 public:
  explicit FrontendStates(const Index& index);
  /// Returns null for a thread that does neither.
  [[nodiscard]] const ThreadStates* of(std::uint32_t thread) const;
  /// Returns the thread that began a batch; if unknown, the thread that begins all batches; 0:
  /// unknown.
  [[nodiscard]] std::uint32_t thread_of_batch(std::uint32_t batch) const;

 private:
  std::map<std::uint32_t, ThreadStates> threads_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> begun_;  ///< batch and its thread, by batch
  std::uint32_t only_ = 0;
};

}  // namespace weir::timeline
