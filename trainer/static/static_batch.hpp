#pragma once

// Gives each batch of a shape that recurs its addresses from one arena, and submits it as one
// operation: --static-alloc. With graphs, it is captured as well: --static-shape.
// docs/static-memory.md explains it.
//
// The first batch of a shape is submitted operation by operation, and its list is kept as a plan.
// From the second on, a batch with the same list of operations, on tensors of the same shapes, is
// one operation whose closure calls all closures of the batch. What lives only inside the batch
// lies in the arena; all other tensors are the scheduler's, as ever.

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/tensor.hpp"
#include "trainer/model/operations.hpp"
#include "trainer/static/batch_graphs.hpp"
#include "trainer/static/batch_plan.hpp"

namespace weir {

struct BatchPlan;

/// One thread at a time.
class StaticBatch final : private Collector {
 public:
  /// So many shapes are known, those used last.
  static constexpr std::size_t kPlans = 4;

  /// `submitter` must outlive it. Without `graphs` a batch's closures are called each time.
  explicit StaticBatch(Submitter& submitter, std::shared_ptr<BatchGraphs> graphs = nullptr)
      : submitter_(submitter), graphs_(std::move(graphs)) {}

  /// Collects what `body` submits, and submits that as the operation `name`, or one by one if its
  /// shape is new. Call inside the batch's scope. `body` drops its tensors before it returns, and
  /// waits for nothing that it submits. Throws what `body` throws; then none of its operations on
  /// the compute stream is submitted. Throws OutOfMemory for the arena; then the same.
  ///
  /// Operations on other streams are submitted at once, as long as they use no tensor of those
  /// collected. One that does ends the collecting: this batch is submitted one by one.
  template <typename Body>
  void run(std::string_view name, Body&& body) {
    const Collecting collecting(*this);
    std::forward<Body>(body)();
    finish(name);
  }

  /// Batches that were submitted as one operation.
  [[nodiscard]] std::uint64_t replayed() const noexcept { return replayed_; }
  /// Captures of a graph; zero without graphs.
  [[nodiscard]] std::uint64_t captures() const noexcept {
    return graphs_ != nullptr ? graphs_->captures() : 0;
  }
  /// Size of the arena, before the pool rounds it.
  [[nodiscard]] Bytes arena() const { return arena_ ? arena_.shape().bytes() : Bytes{}; }

 private:
  /// Operations are collected during its lifetime; then the list is empty.
  class Collecting {
   public:
    explicit Collecting(StaticBatch& batch);
    ~Collecting();
    Collecting(const Collecting&) = delete;
    Collecting& operator=(const Collecting&) = delete;

   private:
    StaticBatch& batch_;
  };

  void collect(std::string_view name, const Uses& uses, Kernel&& kernel, Constants constants,
               CallSite where) override;
  void finish(std::string_view name);
  /// Submits what is collected one by one, and from now on at once.
  void give_up();
  /// Returns the plan of this shape and makes it the one used last; null if there is none.
  [[nodiscard]] std::shared_ptr<const BatchPlan> find_plan(const BatchShapeList& shape);
  void add_plan(const BatchShapeList& shape);
  void replay(std::string_view name, const std::shared_ptr<const BatchPlan>& plan);

  Submitter& submitter_;
  const std::shared_ptr<BatchGraphs> graphs_;
  BatchList list_;
  bool collecting_ = false;
  bool gave_up_ = false;                                 ///< on this batch
  std::vector<std::shared_ptr<const BatchPlan>> plans_;  ///< used last first
  std::uint64_t planned_ = 0;
  std::uint64_t replayed_ = 0;
  Tensor arena_;  ///< of the largest plan replayed; empty before the first
};

}  // namespace weir
