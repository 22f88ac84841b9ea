#include "bench/simulate/gate.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "bench/simulate/dynamic_limit.hpp"

namespace weir::simulate {
namespace {

/// Waits until the oldest batch is passed, as long as `must_wait(shape)` and anything is submitted.
/// `is_soft`: that is a limit on running ahead, not memory.
class OldestGate : public Gate {
 public:
  using MustWait = std::function<bool(const BatchShape&)>;

  OldestGate(Device& device, MustWait must_wait, bool is_soft = true)
      : device_(device), must_wait_(std::move(must_wait)), is_soft_(is_soft) {}

  [[nodiscard]] Verdict ask(std::size_t /*producer*/, const BatchShape& shape,
                            Time /*now*/) override {
    if (device_.flights().empty() || !must_wait_(shape)) return {};
    return {.wait = Verdict::Wait::kDevice,
            .sequence = device_.flights().front().sequence,
            .soft = is_soft_,
            .memory = !is_soft_};
  }

 private:
  Device& device_;
  const MustWait must_wait_;
  const bool is_soft_;
};

/// MLX's rule (github.com/ml-explore/mlx, mlx/transforms.cpp, eval_impl): after each task, with
/// more than MAX_ACTIVE_TASKS tasks active, or with more memory active than the limit and any task
/// active, wait until one task ends, and go on waiting while memory is above the limit and any task
/// is active. The limit is soft: what is allocated meanwhile may exceed it.
///
/// Asked before a batch instead of after each task, so the host loads before it waits. Working sets
/// are reused in stream order, which is more than MLX does on Metal. Both favour it.
class TasksGate final : public Gate {
 public:
  TasksGate(const Memory& memory, const Device& device, std::uint64_t limit, Bytes budget)
      : memory_(memory), device_(device), limit_(limit), budget_(budget) {}

  [[nodiscard]] Verdict ask(std::size_t /*producer*/, const BatchShape& /*shape*/,
                            Time now) override {
    std::uint64_t active = 0;
    Time first = Time::max();
    const auto count = [&](Time time, Time end) {
      if (time == Time{} || end <= now) return;
      ++active;
      first = std::min(first, end);
    };
    for (const Flight& flight : device_.flights()) {
      count(flight.shape.copy, flight.copied);
      count(flight.shape.compute, flight.computed);
      count(flight.shape.collective, flight.end);
    }
    const bool is_over = memory_.used() > budget_;
    if (active <= limit_ && (!is_over || active == 0)) return {};
    return {.wait = Verdict::Wait::kTask,
            .task_end = first,
            .soft = active > limit_,
            .memory = active <= limit_};
  }

 private:
  const Memory& memory_;
  const Device& device_;
  const std::uint64_t limit_;
  const Bytes budget_;
};

class DynamicGate final : public OldestGate {
 public:
  explicit DynamicGate(Device& device)
      : OldestGate(device, [this](const BatchShape& /*shape*/) { return limit_.is_full(); }) {}

  void closed(std::size_t /*producer*/, Flight* flight, Time /*now*/) override {
    if (flight != nullptr) limit_.queue(flight->shape.peak().count);
  }
  void passed(const Flight& flight) override {
    limit_.complete(flight.shape.peak().count, flight.end);
  }

 private:
  DynamicLimit limit_;
};

}  // namespace

const std::vector<PolicyChoice>& policies() {
  using Rule = PolicyChoice::Rule;
  const auto milliseconds = [](int count) { return std::chrono::milliseconds(count); };
  static const std::vector<PolicyChoice> kAll{
      {.name = "throttled", .about = "weir: run-ahead auto", .rule = Rule::kWeir},
      {.name = "throttled-2",
       .about = "weir: run-ahead of two batches",
       .rule = Rule::kWeir,
       .run_ahead = {.batches = 2, .time = Time(0)}},
      {.name = "throttled-20ms",
       .about = "weir: two batches or 20 ms, whichever is more",
       .rule = Rule::kWeir,
       .run_ahead = {.batches = 2, .time = milliseconds(20)}},
      {.name = "beside-open",
       .about = "weir, and a batch starts in partial room also beside open batches",
       .rule = Rule::kBeside},
      {.name = "backstop", .about = "fills the budget; allocations wait"},
      {.name = "unbounded", .about = "memory without a limit", .has_budget = false},
      {.name = "barrier", .about = "waits after each batch", .barrier = true},
      {.name = "batches-1",
       .about = "one batch submitted",
       .rule = Rule::kBatches,
       .limit = 1,
       .hand_over = HandOver::kNever},
      {.name = "batches-2",
       .about = "two batches, as FSDP's limiter",
       .rule = Rule::kBatches,
       .limit = 2,
       .hand_over = HandOver::kNever},
      {.name = "batches-3",
       .about = "three batches",
       .rule = Rule::kBatches,
       .limit = 3,
       .hand_over = HandOver::kNever},
      {.name = "batches-4",
       .about = "four batches",
       .rule = Rule::kBatches,
       .limit = 4,
       .hand_over = HandOver::kNever},
      {.name = "programs-32",
       .about = "32 programs, as XLA's semaphore; a batch is one",
       .rule = Rule::kBatches,
       .limit = 32,
       .hand_over = HandOver::kNever},
      {.name = "tasks-10",
       .about = "ten tasks and a soft limit on bytes, as MLX",
       .rule = Rule::kTasks,
       .limit = 10,
       .may_exceed = true,
       .hand_over = HandOver::kNever},
      {.name = "bytes",
       .about = "waits until the batch fits",
       .rule = Rule::kBytes,
       .hand_over = HandOver::kNever},
      {.name = "bql",
       .about = "Linux's byte queue limits",
       .rule = Rule::kDynamic,
       .hand_over = HandOver::kNever},
  };
  return kAll;
}

std::unique_ptr<Gate> make_gate(const PolicyChoice& policy, Memory& memory, Device& device,
                                Bytes budget, std::size_t producers) {
  switch (policy.rule) {
    case PolicyChoice::Rule::kWeir:
    case PolicyChoice::Rule::kBeside:
      return make_weir_gate(policy.run_ahead, memory, producers,
                            policy.rule == PolicyChoice::Rule::kBeside);
    case PolicyChoice::Rule::kBatches:
      return std::make_unique<OldestGate>(device, [&device, limit = policy.limit](const auto&) {
        return device.flights().size() >= limit;
      });
    case PolicyChoice::Rule::kTasks:
      return std::make_unique<TasksGate>(memory, device, policy.limit, budget);
    case PolicyChoice::Rule::kBytes:
      return std::make_unique<OldestGate>(
          device,
          [&memory](const BatchShape& shape) {
            return memory.pressure().held + shape.peak() > memory.budget();
          },
          false);
    case PolicyChoice::Rule::kDynamic:
      return std::make_unique<DynamicGate>(device);
    case PolicyChoice::Rule::kNothing:
      break;
  }
  return std::make_unique<OldestGate>(device, [](const auto&) { return false; });
}

}  // namespace weir::simulate
