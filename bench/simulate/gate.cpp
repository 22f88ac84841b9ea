#include "bench/simulate/gate.hpp"

#include <algorithm>

#include "bench/simulate/dynamic_limit.hpp"

namespace weir::simulate {
namespace {

/// Waits until the oldest batch is passed, as long as `must_wait` and anything is submitted.
class OldestGate : public Gate {
 public:
  OldestGate(Memory& memory, Device& device) : memory_(memory), device_(device) {}

  [[nodiscard]] Verdict ask(std::size_t /*producer*/, const BatchShape& shape,
                            Time /*now*/) override {
    if (device_.flights().empty() || !must_wait(shape)) return {};
    return {.wait = Verdict::Wait::kDevice,
            .sequence = device_.flights().front().sequence,
            .soft = is_soft(),
            .memory = !is_soft()};
  }

 protected:
  [[nodiscard]] virtual bool must_wait(const BatchShape& shape) = 0;
  [[nodiscard]] virtual bool is_soft() const { return true; }
  [[nodiscard]] const Memory& memory() const { return memory_; }
  [[nodiscard]] const Device& device() const { return device_; }

 private:
  Memory& memory_;
  Device& device_;
};

class NoGate final : public OldestGate {
 public:
  using OldestGate::OldestGate;

 private:
  [[nodiscard]] bool must_wait(const BatchShape& /*shape*/) override { return false; }
};

class BatchesGate final : public OldestGate {
 public:
  BatchesGate(Memory& memory, Device& device, std::uint64_t limit)
      : OldestGate(memory, device), limit_(limit) {}

 private:
  [[nodiscard]] bool must_wait(const BatchShape& /*shape*/) override {
    return device().flights().size() >= limit_;
  }
  const std::uint64_t limit_;
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

class BytesGate final : public OldestGate {
 public:
  using OldestGate::OldestGate;

 private:
  [[nodiscard]] bool must_wait(const BatchShape& shape) override {
    return memory().pressure().held + shape.peak() > memory().budget();
  }
  [[nodiscard]] bool is_soft() const override { return false; }
};

class DynamicGate final : public OldestGate {
 public:
  using OldestGate::OldestGate;

  void closed(std::size_t /*producer*/, Flight* flight, Time /*now*/) override {
    if (flight != nullptr) limit_.queue(flight->shape.peak().count);
  }
  void passed(const Flight& flight) override {
    limit_.complete(flight.shape.peak().count, flight.end);
  }

 private:
  [[nodiscard]] bool must_wait(const BatchShape& /*shape*/) override { return limit_.is_full(); }

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
      return std::make_unique<BatchesGate>(memory, device, policy.limit);
    case PolicyChoice::Rule::kTasks:
      return std::make_unique<TasksGate>(memory, device, policy.limit, budget);
    case PolicyChoice::Rule::kBytes:
      return std::make_unique<BytesGate>(memory, device);
    case PolicyChoice::Rule::kDynamic:
      return std::make_unique<DynamicGate>(memory, device);
    case PolicyChoice::Rule::kNothing:
      break;
  }
  return std::make_unique<NoGate>(memory, device);
}

}  // namespace weir::simulate
