#pragma once

/// @file
/// One submitted operation, from submission to its end on the device, and the error that it leaves
/// if it throws. Operations are reused, so that submitting allocates nothing.

#include <array>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/mutex.hpp"
#include "scheduler/kernel.hpp"
#include "scheduler/ledger/ticket.hpp"
#include "scheduler/tensor_table.hpp"

namespace weir {

/// An operation threw. `what()` names the operation, its batch, where it was submitted, and the
/// message; `cause()` is the original exception.
class OperationError : public Error {
 public:
  /// Called by the scheduler.
  OperationError(const std::string& message, std::exception_ptr cause)
      : Error(message), cause_(std::move(cause)) {}
  /// Returns the original exception; std::rethrow_exception reveals its type.
  [[nodiscard]] const std::exception_ptr& cause() const noexcept { return cause_; }

 private:
  std::exception_ptr cause_;
};

class OperationList;

class Operation final : public Task {
 public:
  /// Reserves room for usual numbers of inputs and outputs, so that a reused operation allocates
  /// nothing in the middle of training.
  Operation();

  /// Sets its description; `ticket` is null outside a batch.
  void describe(std::string_view name, CallSite where, Ticket* ticket);
  /// Sets its number in a timeline; 0: not recorded.
  void set_number(std::uint64_t number) noexcept { number_ = number; }
  void add_input(const Tensor& tensor) { inputs_.push_back(use(tensor)); }
  void add_output(const Tensor& tensor) { outputs_.push_back(use(tensor)); }
  void set_kernel(Kernel kernel) noexcept { kernel_ = std::move(kernel); }
  /// Reads where the tensors' memory is; all of them must have memory.
  void bind_views();

  void run(Stream& stream) noexcept override;
  [[nodiscard]] TaskInfo info() const noexcept override;
  void finished(const TaskTime& time) noexcept override;

  [[nodiscard]] std::string_view name() const noexcept { return name_.data(); }
  /// A tensor or view that the operation uses.
  struct Operand {
    TensorState* state;
    Bytes offset;
    std::size_t elements;
    DType dtype;
    bool part;  ///< fewer bytes than the tensor has
  };
  [[nodiscard]] const std::vector<Operand>& inputs() const noexcept { return inputs_; }
  [[nodiscard]] const std::vector<Operand>& outputs() const noexcept { return outputs_; }
  /// Memory allocated for outputs without any; becomes theirs once the operation is enqueued.
  struct Fresh {
    TensorState* state;
    TensorBlock allocation;
  };
  std::vector<Fresh> fresh;

 private:
  friend class OperationList;

  /// Takes a reference to the tensor.
  [[nodiscard]] static Operand use(const Tensor& tensor) noexcept;
  /// Returns the error of what the operation needs to be intact, if any.
  [[nodiscard]] std::exception_ptr input_error() const noexcept;
  [[nodiscard]] std::exception_ptr describe_error(const std::exception_ptr& cause) const noexcept;
  void drop_references() noexcept;

  OperationList* list_ = nullptr;
  TensorTable* table_ = nullptr;
  std::array<char, 48> name_{};
  CallSite where_;
  Ticket* ticket_ = nullptr;
  std::uint64_t number_ = 0;
  StreamRole role_ = StreamRole::kCompute;  ///< the stream's role
  Kernel kernel_;
  std::vector<Operand> inputs_;
  std::vector<Operand> outputs_;
  std::vector<View> input_views_;
  std::vector<View> output_views_;
};

/// Unused operations. Thread-safe.
class OperationList {
 public:
  explicit OperationList(TensorTable& table) noexcept : table_(table) {}

  struct GiveBack {
    void operator()(Operation* operation) const noexcept {
      operation->list_->give_back(*operation);
    }
  };
  /// Returns the operation to the list unless it is released to the device.
  using Handle = std::unique_ptr<Operation, GiveBack>;

  [[nodiscard]] Handle acquire();
  void give_back(Operation& operation) noexcept;

 private:
  TensorTable& table_;
  Mutex mutex_{LockRank::kLeaf};
  std::vector<std::unique_ptr<Operation>> operations_ WEIR_GUARDED_BY(mutex_);
  std::vector<Operation*> free_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir
