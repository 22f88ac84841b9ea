#include "trainer/dispatch/dispatch_addition.hpp"

#include <algorithm>
#include <latch>
#include <utility>

#include "allocator/base/time_after.hpp"
#include "kernels/elementwise/elementwise.hpp"

namespace weir {
namespace {

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

/// Keeps the device busy and off its queue, from construction until `open`.
class Addition::Gate {
 public:
  explicit Gate(Scheduler& scheduler) : scheduler_(scheduler) {
    scheduler_.submit("gate", {}, [this](Stream&, Inputs, Outputs) {
      closed_.count_down();
      open_.wait();
    });
    closed_.wait();
  }
  /// The device uses the gate until it is through.
  ~Gate() {
    open();
    scheduler_.wait_all();
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() {
    if (std::exchange(shut_, false)) open_.count_down();
  }

 private:
  Scheduler& scheduler_;
  bool shut_ = true;
  std::latch closed_{1};
  std::latch open_{1};
};

Addition::Addition(const std::string& device, const DispatchCase& what, std::stop_token stop)
    : what_(what),
      stop_(std::move(stop)),
      device_(open_device(device)),
      pool_(device_.memory()),
      scheduler_(device_, pool_, {.policy = Policy::kUnbounded}),
      x_(scheduler_.empty({what.elements}, "x")),
      y_(scheduler_.empty({what.elements}, "y")) {
  scheduler_.submit("fill", {.writes = {x_}},
                    [](Stream&, Inputs, Outputs out) { fill(out[0], 1); });
  issue();
  scheduler_.wait(y_);
}

void Addition::work_in_frontend() const {
  if (what_.frontend.count() == 0) return;
  const Clock::time_point end = time_after_now(what_.frontend);
  while (Clock::now() < end) continue;
}

void Addition::issue() {
  work_in_frontend();
  scheduler_.submit("add", {.reads = {x_}, .writes = {y_}},
                    [this](Stream&, Inputs in, Outputs out) {
                      if (stopped()) return;
                      fill(out[0], 1);
                      add(in[0], out[0]);
                    });
}

void Addition::mark(Mark& mark) {
  scheduler_.submit("mark", {}, [this, &mark](Stream&, Inputs, Outputs) {
    mark = {.time = Clock::now(), .busy = device_.backend().busy(StreamRole::kCompute)};
  });
}

void Addition::measure_queued(std::uint64_t operations, Stages& stages) {
  Gate gate(scheduler_);
  mark(begin_);
  const Clock::time_point start = Clock::now();
  for (std::uint64_t i = 0; i < operations && !stopped(); ++i) issue();
  const auto took = Clock::now() - start;
  mark(end_);
  gate.open();
  scheduler_.wait_all();
  const auto n = static_cast<double>(operations);
  stages.submit = seconds(took) / n;
  stages.execute = seconds(end_.busy - begin_.busy) / n;
  stages.device = seconds(end_.time - begin_.time) / n;
}

void Addition::measure_round_trips(std::uint64_t count, RoundTrips& trips) {
  const Clock::time_point start = Clock::now();
  for (std::uint64_t i = 0; i < count && !stopped(); ++i) {
    const Clock::time_point called = Clock::now();
    issue();
    trips.call += seconds(Clock::now() - called);
    scheduler_.wait(y_);
  }
  trips.whole += seconds(Clock::now() - start);
  trips.count += count;
}

double Addition::run_each(std::uint64_t operations) {
  const Clock::time_point start = Clock::now();
  for (std::uint64_t i = 0; i < operations && !stopped(); ++i) {
    issue();
    scheduler_.wait(y_);
  }
  return seconds(Clock::now() - start);
}

void Addition::run_once(std::uint64_t operations, DispatchRound& round) {
  const Clock::time_point start = Clock::now();
  for (std::uint64_t i = 0; i < operations && !stopped(); ++i) issue();
  round.issued = seconds(Clock::now() - start);
  scheduler_.wait(y_);
  round.once = seconds(Clock::now() - start);
}

std::optional<DispatchRound> Addition::round(std::uint64_t operations) {
  DispatchRound round;
  RoundTrips trips;
  // Measure round trips before and after the run that they predict, since the cost of a wake-up
  // drifts with the machine. Queue as many operations as that run: other programs interrupt a long
  // stretch of work more than a short one.
  const std::uint64_t samples = std::max<std::uint64_t>(1, operations / 4);
  measure_round_trips(samples, trips);
  round.each = run_each(operations);
  measure_round_trips(samples, trips);
  measure_queued(operations, round.stages);
  run_once(operations, round);
  if (stopped()) return std::nullopt;
  const auto count = static_cast<double>(trips.count);
  round.stages.submit_waking = trips.call / count;
  round.stages.back = trips.whole / count - round.stages.submit - round.stages.execute;
  return round;
}

}  // namespace weir
