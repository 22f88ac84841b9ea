#pragma once

// The operations of one batch as a list, collected instead of submitted, and what two lists of the
// same shape have in common.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/scheduler.hpp"
#include "trainer/model/submitter.hpp"

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

}  // namespace weir
