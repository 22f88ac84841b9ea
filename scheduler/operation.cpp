#include "scheduler/operation.hpp"

#include <algorithm>

namespace weir {

Operation::Operation() {
  constexpr std::size_t kMost = 8;
  fresh.reserve(kMost);
  inputs_.reserve(kMost);
  outputs_.reserve(kMost);
  input_views_.reserve(kMost);
  output_views_.reserve(kMost);
}

void Operation::describe(std::string_view name, CallSite where, Ticket* ticket) {
  name_ = {};
  std::ranges::copy(name.substr(0, name_.size() - 1), name_.begin());
  where_ = where;
  ticket_ = ticket;
  number_ = 0;
}

Operation::Operand Operation::use(const Tensor& tensor) noexcept {
  TensorState& state = *tensor.state_;
  state.references.fetch_add(1, std::memory_order_relaxed);
  return {.state = &state,
          .offset = tensor.offset_,
          .elements = tensor.shape_.elements(),
          .dtype = tensor.dtype_,
          .part = tensor.shape_.bytes(tensor.dtype_) != state.shape.bytes(state.dtype)};
}

void Operation::bind_views() {
  input_views_.clear();
  output_views_.clear();
  const auto view = [](const Operand& used) {
    std::byte* const data = used.state->data.load(std::memory_order_relaxed);
    return View{data + used.offset.count, used.elements, used.dtype};
  };
  for (const Operand& used : inputs_) input_views_.push_back(view(used));
  for (const Operand& used : outputs_) output_views_.push_back(view(used));
}

std::exception_ptr Operation::input_error() const noexcept {
  for (const Operand& input : inputs_) {
    if (auto error = table_->error(*input.state)) return error;
  }
  // Writing a part updates the tensor in place: what is lost elsewhere in it stays lost.
  for (const Operand& output : outputs_) {
    if (!output.part) continue;
    if (auto error = table_->error(*output.state)) return error;
  }
  return nullptr;
}

void Operation::run(Stream& stream) noexcept {
  role_ = stream.role();
  std::exception_ptr error = input_error();
  if (error != nullptr) {
    kernel_.reset();  // now: who learns from its end that it was skipped may be awaited
  } else {
    try {
      kernel_(stream, Inputs(input_views_), Outputs(output_views_));
    } catch (...) {
      error = describe_error(std::current_exception());
      table_->note_first(error);
    }
  }
  for (const Operand& output : outputs_) {
    if (error != nullptr) {
      table_->set_error(*output.state, error);
    } else {
      table_->clear_error(*output.state);
    }
  }
}

std::exception_ptr Operation::describe_error(const std::exception_ptr& cause) const noexcept {
  try {
    std::string text = "operation '" + std::string(name()) + "'";
    if (ticket_ != nullptr) {
      text += " of batch " + std::to_string(ticket_->serial) + " ('" + ticket_->kind->name + "')";
    }
    text += ", submitted at " + std::string(where_.file) + ":" + std::to_string(where_.line) +
            ", failed: ";
    try {
      std::rethrow_exception(cause);
    } catch (const std::exception& thrown) {
      text += thrown.what();
    } catch (...) {
      text += "an exception that is not a std::exception";
    }
    return std::make_exception_ptr(OperationError(text, cause));
  } catch (...) {
    return cause;  // no memory for the text: return the cause alone
  }
}

TaskInfo Operation::info() const noexcept {
  TaskInfo info{.name = name(),
                .file = where_.file,
                .line = where_.line,
                .batch = ticket_ != nullptr ? ticket_->number : 0,
                .operation = number_};
  // A copy to the host writes no tensor.
  for (const View& view : output_views_.empty() ? input_views_ : output_views_) {
    info.bytes += Bytes{view.size()};
  }
  return info;
}

void Operation::finished(const TaskTime& time) noexcept {
  if (ticket_ != nullptr) ticket_->note_ran(role_, time);
  list_->give_back(*this);
}

void Operation::drop_references() noexcept {
  kernel_.reset();  // first: a closure's end may mark the tensors
  for (const Operand& input : inputs_) table_->drop_reference(*input.state);
  for (const Operand& output : outputs_) table_->drop_reference(*output.state);
  inputs_.clear();
  outputs_.clear();
  input_views_.clear();
  output_views_.clear();
  fresh.clear();
}

OperationList::Handle OperationList::acquire() {
  const Lock lock(mutex_);
  if (free_.empty()) {
    // Reserves room for every operation, so that returning one cannot fail. Doubles, so that it
    // stays cheap.
    if (free_.capacity() <= operations_.size()) free_.reserve(2 * operations_.size() + 64);
    operations_.push_back(std::make_unique<Operation>());
    operations_.back()->list_ = this;
    operations_.back()->table_ = &table_;
    free_.push_back(operations_.back().get());
  }
  Operation* operation = free_.back();
  free_.pop_back();
  return Handle(operation);
}

void OperationList::give_back(Operation& operation) noexcept {
  operation.drop_references();
  const Lock lock(mutex_);
  free_.push_back(&operation);
}

}  // namespace weir
