#include "bench/simulate/workload.hpp"

#include <algorithm>

namespace weir::simulate {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

Bytes scaled(Bytes bytes, double factor) {
  return {static_cast<std::uint64_t>(static_cast<double>(bytes.count) * factor)};
}

std::vector<Workload> make_workloads() {
  return {
      {.name = "steady-0.1ms",
       .about = "equal batches of 0.1 ms",
       .goal = Goal::kSteady,
       .compute = microseconds(100),
       .submit = 0.05},
      {.name = "steady-2ms", .about = "equal batches of 2 ms", .goal = Goal::kSteady},
      {.name = "steady-50ms",
       .about = "equal batches of 50 ms",
       .goal = Goal::kSteady,
       .compute = milliseconds(50)},
      {.name = "bursts",
       .about = "20 batches of 2 ms, then a pause of 55 ms on the host",
       .goal = Goal::kBursts,
       .load = 0.02,
       .burst = 20,
       .pause = milliseconds(55)},
      {.name = "log-normal", .about = "sizes and times vary log-normally, sigma 0.5", .sigma = 0.5},
      {.name = "kinds-1:10",
       .about = "two kinds in turn, one ten times the other",
       .load = 0.02,
       .other_kind = 10},
      {.name = "new-kinds",
       .about = "a new kind every five batches",
       .goal = Goal::kNewKinds,
       .new_kind = 5},
      {.name = "too-large-0.9",
       .about = "every tenth batch needs 0.9 of the budget",
       .goal = Goal::kTooLarge,
       .too_large = 0.9},
      {.name = "too-large-1.1",
       .about = "every tenth batch needs 1.1 budgets, and fails",
       .goal = Goal::kTooLarge,
       .too_large = 1.1},
      {.name = "too-large-3",
       .about = "every tenth batch needs 3 budgets, and fails",
       .goal = Goal::kTooLarge,
       .too_large = 3},
      {.name = "slow-loader", .about = "loading takes 1.5 times as long as computing", .load = 1.5},
      {.name = "fast-loader", .about = "loading is ten times faster than elsewhere", .load = 0.01},
      {.name = "copies-ahead",
       .about = "large inputs whose copies take a twentieth of the compute",
       .load = 0.01,
       .copy = 0.05,
       .inputs = mib(384),
       .work = mib(128)},
      {.name = "producers-1:1",
       .about = "two threads of equal batches",
       .goal = Goal::kFair,
       .producers = {1, 1}},
      {.name = "producers-1:10",
       .about = "two threads, one of batches ten times as large",
       .goal = Goal::kFair,
       .load = 0.05,
       .producers = {1, 10}},
      {.name = "retained",
       .about = "each batch keeps 64 MiB for 4 batches",
       .retained = mib(64),
       .retain = 4},
      {.name = "host-bound",
       .about = "submitting takes 1.2 times as long as computing",
       .load = 0.05,
       .submit = 1.2},
      {.name = "collectives",
       .about = "a collective of 0.4 batches on a second stream",
       .collective = 0.4},
      {.name = "accumulation",
       .about = "a collective of 0.8 batches after every eighth batch",
       .load = 0.05,
       .collective = 0.8,
       .collective_every = 8},
      {.name = "long-copies",
       .about = "copies take half of the computes, and every tenth four times as long",
       .load = 0.05,
       .copy = 0.5,
       .long_copy = 4},
      {.name = "hints-x10",
       .about = "a new kind every 200 batches, with hints ten times too large",
       .goal = Goal::kHints,
       .new_kind = 200,
       .hint = 10},
      {.name = "hints-x0.1",
       .about = "the same, with hints ten times too small",
       .goal = Goal::kHints,
       .new_kind = 200,
       .hint = 0.1},
  };
}

}  // namespace

std::span<const Workload> workloads() {
  static const std::vector<Workload> kAll = make_workloads();
  return kAll;
}

Batches::Batches(const Workload& workload, std::size_t producer, std::uint64_t seed, Bytes budget)
    : workload_(workload), producer_(producer), budget_(budget), random_(seed * 1000 + producer) {}

BatchShape Batches::next() {
  const Workload& of = workload_;
  const std::uint64_t index = index_++;
  double size = of.producers.at(producer_);
  if (of.sigma > 0) size *= std::min(8.0, std::exp(of.sigma * random_.normal()));
  const bool is_other = of.other_kind > 0 && index % 2 == 1;
  if (is_other) size *= of.other_kind;
  BatchShape shape{.kind = producer_ + (is_other ? 16U : 0U),
                   .inputs = scaled(of.inputs, size),
                   .work = scaled(of.work, size),
                   .retained = scaled(of.retained, size)};
  if (of.new_kind > 0) shape.kind += 32 * (index / of.new_kind);
  const Time compute = simulate::scaled(of.compute, size);
  shape.load = simulate::scaled(compute, of.load);
  shape.submit = simulate::scaled(compute, of.submit);
  const bool is_long = of.long_copy > 0 && index % 10 == 9;
  shape.copy = simulate::scaled(compute, is_long ? of.long_copy : of.copy);
  shape.compute = compute;
  if (index % of.collective_every == of.collective_every - 1) {
    shape.collective = simulate::scaled(compute, of.collective);
  }
  if (of.burst > 0 && index > 0 && index % of.burst == 0) shape.load += of.pause;
  if (of.hint > 0) shape.hint = scaled(shape.peak(), of.hint);
  if (of.too_large > 0 && index % 10 == 9) {
    const double factor =
        of.too_large * static_cast<double>(budget_.count) / static_cast<double>(shape.peak().count);
    shape.kind += 16;
    shape.inputs = scaled(shape.inputs, factor);
    shape.work = scaled(shape.work, factor);
  }
  return shape;
}

Needs needs_of(const Workload& workload, std::uint64_t batches, std::uint64_t seed) {
  Workload fitting = workload;
  fitting.too_large = 0;
  Needs needs{};
  for (std::size_t producer = 0; producer < workload.producers.size(); ++producer) {
    Batches all(fitting, producer, seed, {});
    Bytes most_inputs;
    Bytes most_work;
    Bytes most;
    Bytes retained;
    for (std::uint64_t i = 0; i < batches; ++i) {
      const BatchShape shape = all.next();
      most_inputs = std::max(most_inputs, shape.inputs);
      most_work = std::max(most_work, shape.work);
      most = std::max(most, shape.inputs + shape.work);
      retained = std::max(retained, shape.retained * (workload.retain + 1));
    }
    needs.one = std::max(needs.one, most + retained);
    needs.two = std::max(needs.two, most_inputs * 2 + most_work + retained);
  }
  return needs;
}

}  // namespace weir::simulate
