#pragma once

// Where the operations of a model are submitted: to the scheduler at once, or to a collector that
// submits a whole batch as one. Everything that a model computes goes through here, so that a batch
// can be collected; what brings its inputs goes to the scheduler. One thread at a time.

#include <initializer_list>
#include <string_view>
#include <utility>

#include "scheduler/scheduler.hpp"
#include "scheduler/tensor.hpp"

namespace weir {

/// The numbers in a closure that may differ from batch to batch, such as a learning rate. What is
/// captured once and replayed compares them, and captures again if one has changed. Shapes, and
/// what never changes in a run, need not be told. Valid during the call.
using Constants = std::initializer_list<double>;

/// Receives operations in the scheduler's stead.
class Collector {
 public:
  Collector() = default;
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  virtual ~Collector() = default;
  /// Takes over what Submitter::submit was given.
  virtual void collect(std::string_view name, const Uses& uses, Kernel&& kernel,
                       Constants constants, CallSite where) = 0;
};

class Submitter {
 public:
  /// `scheduler` must outlive it.
  explicit Submitter(Scheduler& scheduler) noexcept : scheduler_(scheduler) {}

  [[nodiscard]] Scheduler& scheduler() const noexcept { return scheduler_; }

  /// As Scheduler::empty.
  [[nodiscard]] Tensor empty(const Shape& shape, std::string_view label = {}) const {
    return scheduler_.empty(shape, label);
  }
  /// As Scheduler::submit. While a batch is collected it is submitted at the batch's end: until
  /// then nobody may wait for what it writes, or use that outside this submitter.
  void submit(std::string_view name, const Uses& uses, Kernel kernel, Constants constants = {},
              CallSite where = CallSite::here()) {
    if (collector_ == nullptr) return scheduler_.submit(name, uses, std::move(kernel), where);
    scheduler_.require_here(name, uses);  // later the message would name the whole batch
    collector_->collect(name, uses, std::move(kernel), constants, where);
  }

  /// Sends operations to `collector` from now on, or to the scheduler again if that is null.
  void collect_in(Collector* collector) noexcept { collector_ = collector; }

 private:
  Scheduler& scheduler_;
  Collector* collector_ = nullptr;
};

}  // namespace weir
