#include "trainer/dispatch/dispatch.hpp"

#include <algorithm>
#include <chrono>
#include <latch>
#include <memory>
#include <utility>

#include "allocator/base/time_after.hpp"
#include "kernels/blas/blas.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "scheduler/device/stream.hpp"

namespace weir {
namespace {

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// The BLAS gets its memory before a device starts threads: if OpenBLAS cannot start its own
/// threads afterwards, it may wait for them forever.
Device open_behind_blas(const std::string& device) {
  reserve_blas_memory();
  set_blas_threads(1);
  return open_device(device);
}

/// Few rounds for the product, which takes long and varies little.
constexpr std::uint64_t kMostProductRounds = 5;

std::string describe_case(const DispatchCase& what) {
  return std::to_string(what.elements) + " elements";
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

Product::Product(const std::string& device, std::uint64_t rows, std::stop_token stop)
    : rows_(rows),
      stop_(std::move(stop)),
      device_(open_behind_blas(device)),
      pool_(device_.memory()),
      scheduler_(device_, pool_, {.policy = Policy::kUnbounded}),
      a_(scheduler_.empty({rows, rows}, "a")),
      b_(scheduler_.empty({rows, rows}, "b")) {
  scheduler_.submit("fill", {.writes = {a_}},
                    [](Stream&, Inputs, Outputs out) { fill(out[0], 0.5F); });
  (void)run(1);
}

void Product::issue() {
  scheduler_.submit(
      "dot", {.reads = {a_}, .writes = {b_}}, [this](Stream&, Inputs in, Outputs out) {
        if (stop_.stop_requested()) return;
        gemm(Precision::kFloat32, {.m = rows_, .n = rows_, .k = rows_}, in[0], in[0], out[0]);
      });
}

Product::Times Product::run(int calls) {
  using Clock = std::chrono::steady_clock;
  const auto since = [start = Clock::now()] {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  Times times;
  for (int i = 0; i < calls; ++i) issue();
  times.returned = since();
  scheduler_.wait(b_);
  times.completed = since();
  return times;
}

std::optional<ProductRound> Product::round() {
  const Times one = run(1);
  const Times many = run(kMany);
  if (stop_.stop_requested()) return std::nullopt;
  return ProductRound{.returned = one.returned,
                      .completed = one.completed,
                      .many_returned = many.returned,
                      .many_completed = many.completed};
}

std::string parse_dispatch_device(std::string_view name, std::string_view text) {
  if (text != "cpu") {
    refuse(name, text, "cpu: what is timed here are operations that run on the host");
  }
  return std::string(text);
}

std::vector<SettingLine> DispatchSettings::lines() const {
  std::vector<SettingLine> lines{setting_line("device", device.value, device)};
  const auto add = [&lines](const char* name, const Setting<std::uint64_t>& setting) {
    lines.push_back(setting_line(name, std::to_string(setting.value), setting));
  };
  add("operations", operations);
  add("rounds", rounds);
  add("elements-large", elements_large);
  add("elements-small", elements_small);
  add("frontend", frontend);
  add("matrix", matrix);
  return lines;
}

DispatchFigures measure_dispatch(const DispatchSettings& settings, const DispatchHooks& hooks) {
  DispatchFigures figures;
  Product product(settings.device.value, settings.matrix.value,
                  hooks.stop);  // the BLAS first
  const std::chrono::microseconds slow(settings.frontend.value);
  std::vector<std::unique_ptr<Addition>> additions;
  for (const DispatchCase& what : {DispatchCase{settings.elements_large.value, {}},
                                   DispatchCase{settings.elements_small.value, slow},
                                   DispatchCase{settings.elements_small.value, {}}}) {
    figures.cases.push_back({.what = what});
    additions.push_back(std::make_unique<Addition>(settings.device.value, what, hooks.stop));
  }
  const std::uint64_t rounds = settings.rounds.value;
  for (std::uint64_t r = 0; r < rounds && !hooks.stop.stop_requested(); ++r) {
    for (std::size_t i = 0; i < additions.size(); ++i) {
      if (hooks.on_done) hooks.on_done(describe_case(figures.cases[i].what), r, rounds);
      const auto round = additions[i]->round(settings.operations.value);
      if (round) figures.cases[i].rounds.push_back(*round);
    }
  }
  // Not in the rounds above: a frontend that has just computed without pause is the first that the
  // operating system preempts.
  const std::uint64_t product_rounds = std::min(rounds, kMostProductRounds);
  for (std::uint64_t r = 0; r < product_rounds && !hooks.stop.stop_requested(); ++r) {
    if (hooks.on_done) hooks.on_done("matrix product", r, product_rounds);
    if (const auto round = product.round()) figures.products.push_back(*round);
  }
  figures.interrupted = hooks.stop.stop_requested();
  return figures;
}

}  // namespace weir
