#pragma once

// What is known of batches of one shape: where each tensor is, and how to run the closures there.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "scheduler/kernel.hpp"
#include "trainer/static/batch_graphs.hpp"
#include "trainer/static/batch_list.hpp"

namespace weir {

/// Of one tensor: its size, and the first and last step that uses it, both included.
struct Lifetime {
  std::size_t size = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Where each tensor begins, in the order of the lifetimes, and the size of the whole.
struct Layout {
  std::vector<std::size_t> offsets;
  std::size_t size = 0;
};

/// Returns offsets, multiples of `alignment`, such that tensors alive in the same step do not
/// overlap. Sizes and offsets have one unit, the caller's. The largest tensor is placed first, each
/// at the lowest offset that is free (Pisarchyk and Lee 2020, "Efficient memory management for deep
/// neural net inference", greedy by size), or the same in the order of first use, if that is
/// smaller. `alignment` is at least 1.
[[nodiscard]] Layout plan_layout(std::span<const Lifetime> tensors, std::size_t alignment);

struct BatchPlan {
  /// `its_number` distinguishes it from every other plan of its StaticBatch.
  BatchPlan(const BatchShapeList& list, std::uint64_t its_number);

  std::uint64_t number;
  BatchShapeList shape;
  std::size_t arena = 0;  ///< elements; zero: no tensor is inner, and there is no arena

  /// Where a tensor is: in the arena, or the i-th that the one operation reads or writes.
  struct Place {
    enum class In : std::uint8_t { kArena, kReads, kWrites } in;
    std::size_t at;  ///< element or index
  };
  std::vector<Place> places;          ///< in the order of the tensors
  std::vector<std::uint32_t> reads;   ///< tensors that the one operation reads
  std::vector<std::uint32_t> writes;  ///< those that it writes, behind the arena, if there is one
};

/// The closures of one batch on their way to the device.
class PlannedBatch {
 public:
  PlannedBatch(std::shared_ptr<const BatchPlan> plan, BatchWork work,
               std::shared_ptr<BatchGraphs> graphs);
  /// Calls the closures, or launches their graph. Throws OperationError, which names the operation.
  void run(Stream& stream, Inputs in, Outputs out);

 private:
  void call_all(Stream& stream);

  const std::shared_ptr<const BatchPlan> plan_;
  BatchWork work_;
  const std::shared_ptr<BatchGraphs> graphs_;
  std::vector<View> tensors_;  ///< where each is
  std::shared_ptr<const void> launched_;
};

}  // namespace weir
