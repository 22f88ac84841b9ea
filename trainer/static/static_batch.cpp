#include "trainer/static/static_batch.hpp"

#include <algorithm>

#include "allocator/base/error.hpp"
#include "scheduler/device/device_kind.hpp"
#include "trainer/static/batch_plan.hpp"

namespace weir {

std::shared_ptr<BatchGraphs> make_batch_graphs(const Device& device) {
  const DeviceId id = parse_device_id(device.name());
  switch (id.kind) {  // the compiler asks for every kind
    case DeviceKind::kCpu:
      return nullptr;
    case DeviceKind::kCuda:
      return make_cuda_graphs(id.ordinal);
  }
  throw UsageError("a device of an unknown kind has no graphs");
}

StaticBatch::Collecting::Collecting(StaticBatch& batch) : batch_(batch) {
  if (batch_.collecting_) throw UsageError("a static batch inside a static batch");
  batch_.collecting_ = true;
  batch_.gave_up_ = false;
  batch_.submitter_.collect_in(&batch_);
}

StaticBatch::Collecting::~Collecting() {
  batch_.submitter_.collect_in(nullptr);
  batch_.list_.clear();
  batch_.collecting_ = false;
}

void StaticBatch::collect(std::string_view name, const Uses& uses, Kernel&& kernel,
                          Constants constants, CallSite where) {
  const bool here = uses.stream == StreamRole::kCompute;
  if (!here && !gave_up_ && list_.uses_any(uses)) give_up();
  if (here && !gave_up_) return list_.add(name, uses, std::move(kernel), constants, where);
  submitter_.scheduler().submit(name, uses, std::move(kernel), where);
}

void StaticBatch::give_up() {
  gave_up_ = true;
  list_.submit_to(submitter_.scheduler());
  list_.clear();
}

void StaticBatch::finish(std::string_view name) {
  if (list_.empty()) return;
  const BatchShapeList& shape = list_.shape();
  if (const auto plan = find_plan(shape)) return replay(name, plan);
  list_.submit_to(submitter_.scheduler());
  add_plan(shape);
}

std::shared_ptr<const BatchPlan> StaticBatch::find_plan(const BatchShapeList& shape) {
  const auto known = std::ranges::find(
      plans_, shape, [](const auto& plan) -> const BatchShapeList& { return plan->shape; });
  if (known == plans_.end()) return nullptr;
  std::rotate(plans_.begin(), known, known + 1);
  return plans_.front();
}

void StaticBatch::add_plan(const BatchShapeList& shape) {
  plans_.insert(plans_.begin(), std::make_shared<const BatchPlan>(shape, ++planned_));
  if (plans_.size() > kPlans) plans_.pop_back();
}

void StaticBatch::replay(std::string_view name, const std::shared_ptr<const BatchPlan>& plan) {
  if (plan->arena != 0 && (!arena_ || arena_.shape().elements() < plan->arena)) {
    // First the old one is freed, so that both need not fit. In stream order: batches that use it
    // come before this one.
    arena_ = {};
    arena_ = submitter_.empty({plan->arena}, "static arena");
  }
  std::vector<Tensor> reads;
  std::vector<Tensor> writes;
  for (const std::uint32_t number : plan->reads) reads.push_back(list_.tensor(number));
  if (plan->arena != 0) writes.push_back(arena_);
  for (const std::uint32_t number : plan->writes) writes.push_back(list_.tensor(number));
  submitter_.scheduler().submit(
      name, {.reads = reads, .writes = writes},
      [batch = std::make_shared<PlannedBatch>(plan, list_.take_work(), graphs_)](
          Stream& stream, Inputs in, Outputs out) { batch->run(stream, in, out); });
  ++replayed_;
}

}  // namespace weir
