#pragma once

// The operations of one batch as a list, collected instead of submitted, and the plan of all
// batches with such a list: where each tensor is, and how to run the closures there.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/kernel.hpp"
#include "scheduler/scheduler.hpp"
#include "trainer/model/operations.hpp"
#include "trainer/static/batch_graphs.hpp"

namespace weir {

/// One operation of a list. Tensors are numbers, in the order of their first use in the list.
struct ListedOperation {
  std::string name;
  std::vector<std::uint32_t> reads;
  std::vector<std::uint32_t> writes;
  friend bool operator==(const ListedOperation&, const ListedOperation&) = default;
};

/// How a list uses one tensor.
struct ListedTensor {
  Shape shape;
  std::size_t first = 0;  ///< operation that uses it
  std::size_t last = 0;   ///< likewise
  bool read_first = false;
  bool written = false;
  /// Nobody else has a handle, and the list writes it before it reads it: no other batch can ever
  /// see its contents.
  bool inner = false;
  friend bool operator==(const ListedTensor&, const ListedTensor&) = default;
};

/// All of a batch but its closures, their constants and the tensors themselves.
struct BatchShapeList {
  std::vector<ListedOperation> operations;
  std::vector<ListedTensor> tensors;
  friend bool operator==(const BatchShapeList&, const BatchShapeList&) = default;
};

/// The closures of a batch, and their constants one after the other.
struct BatchWork {
  std::vector<Kernel> kernels;
  std::vector<double> constants;
};

/// Collects one batch at a time. One thread at a time.
class BatchList {
 public:
  /// Takes the operation over. Throws UsageError for an empty handle.
  void add(std::string_view name, const Uses& uses, Kernel&& kernel, Constants constants,
           CallSite where);
  /// Whether an operation in the list uses one of these tensors.
  [[nodiscard]] bool uses_any(const Uses& uses) const;
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Looks who else has handles. Call when the code that submitted the batch has dropped its own.
  [[nodiscard]] const BatchShapeList& shape();
  /// Returns the tensor with this number. Valid until `clear`.
  [[nodiscard]] const Tensor& tensor(std::size_t number) const { return tensors_[number]; }
  /// Takes the closures out.
  [[nodiscard]] BatchWork take_work();

  /// Submits the operations one by one, and drops each tensor behind its last use. What it throws
  /// leaves the rest of the list unsubmitted.
  void submit_to(Scheduler& scheduler);
  void clear() noexcept;

 private:
  /// Returns the tensor's number, a new one at its first use.
  [[nodiscard]] std::uint32_t number_of(const Tensor& tensor, bool reads);

  BatchShapeList shape_;          ///< its first `size_` operations are the batch's
  std::size_t size_ = 0;          ///< the others keep their memory for the next batch
  std::vector<Tensor> tensors_;   ///< one handle of each
  std::vector<CallSite> places_;  ///< where each operation was submitted
  BatchWork work_;
};

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
