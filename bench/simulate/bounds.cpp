#include "bench/simulate/comparison.hpp"
#include "tools/program/numbers.hpp"

namespace weir::simulate {
namespace {

double ratio(Bytes a, Bytes b) {
  return static_cast<double>(a.count) / static_cast<double>(b.count);
}

double ratio(const RunResult& a, const RunResult& b) { return a.throughput() / b.throughput(); }

class Bounds {
 public:
  void at_least(const std::string& what, double is, double bound) {
    if (is < bound) missed_.push_back({what, is, bound, true});
  }
  void at_most(const std::string& what, double is, double bound) {
    if (is > bound) missed_.push_back({what, is, bound, false});
  }
  [[nodiscard]] std::vector<Miss> take() { return std::move(missed_); }

 private:
  std::vector<Miss> missed_;
};

/// Whether the budget holds the inputs of a whole burst.
bool has_room_for_burst(const Reference& reference) {
  const Workload& of = reference.workload;
  return of.inputs * of.burst + of.work <= reference.budget;
}

}  // namespace

std::string Miss::text() const {
  return what + " " + format_number(is, 4) + (is_least ? " < " : " > ") + format_number(bound, 4);
}

std::string Better::text() const {
  return std::string(policy) + " has " + format_number(throughput, 3) + "x the throughput and " +
         format_number(memory, 2) + "x the memory";
}

std::vector<Miss> missed_bounds(const RunResult& run, const Reference& reference) {
  Bounds bounds;
  const Workload& of = reference.workload;
  const bool has_room_for_two = reference.needs.two <= reference.budget;
  const double of_filling = ratio(run, reference.filling);
  const double of_unbounded = ratio(run, reference.unbounded);
  if (of.goal == Goal::kSteady && has_room_for_two) {
    bounds.at_least("of unbounded", of_unbounded, 0.995);
    bounds.at_most("memory, of two batches'", ratio(run.warm_peak, reference.needs.two), 1.25);
  } else if (of.goal == Goal::kBursts) {
    bounds.at_least("of filling", of_filling, 0.98);
    if (has_room_for_burst(reference)) bounds.at_least("of unbounded", of_unbounded, 0.97);
  } else {
    bounds.at_least("of filling", of_filling, 0.99);
    bounds.at_most("memory, of filling", ratio(run.peak, reference.filling.peak), 1);
  }
  if (ratio(reference.budget, reference.needs.one) <= 2) {
    const double behind = ratio(reference.backstop, reference.unbounded) - of_unbounded;
    bounds.at_most("behind backstop by", behind, 0.005);
  }
  const double budgets = ratio(reference.budget, reference.needs.one);
  if (of.goal == Goal::kFair && budgets >= 4) bounds.at_least("Jain", run.jain, 0.95);
  bounds.at_most("out of memory", static_cast<double>(run.failed),
                 static_cast<double>(run.too_large));
  if (has_room_for_two) {
    const double caused =
        static_cast<double>(run.caused_idle.count()) / static_cast<double>(run.duration.count());
    bounds.at_most("throttle-caused idle", caused, 0.01);
  }
  return bounds.take();
}

std::vector<Better> better_policies(const RunResult& throttled, const std::vector<Named>& others) {
  std::vector<Better> better;
  for (const auto& [policy, run] : others) {
    const double faster = ratio(run, throttled);
    const double smaller = ratio(run.peak, throttled.peak);
    if (faster <= 1.01 || smaller >= 0.9) continue;
    better.push_back({.policy = policy, .throughput = faster, .memory = smaller});
  }
  return better;
}

}  // namespace weir::simulate
