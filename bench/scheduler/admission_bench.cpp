// Measures the cost of beginning and closing a batch that nothing holds back. `begin_batch` settles
// what the device has passed, joins the queue, decides and opens a charge. The end of the scope
// hands the charge over. The batch submits nothing. Also measures how fast a frontend goes on that
// was held back, beside a bare condition variable.

#include <benchmark/benchmark.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/shared/rig.hpp"
#include "bench/shared/table.hpp"
#include "tools/program/median.hpp"

namespace weir::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// How fast the machine is: a lock that nobody else takes, its release, and a look at the clock.
void lock_and_clock(benchmark::State& state) {
  std::mutex mutex;
  for ([[maybe_unused]] auto _ : state) {
    const std::scoped_lock lock(mutex);
    benchmark::DoNotOptimize(Clock::now());
  }
}

/// `begin_batch` alone. What looking at the clock costs is measured each time, and subtracted.
void begin(benchmark::State& state) {
  Rig rig;
  for ([[maybe_unused]] auto _ : state) {
    const Clock::time_point before = Clock::now();
    const Clock::time_point start = Clock::now();
    const Batch batch = rig.scheduler.begin_batch("train");
    const auto took = (Clock::now() - start) - (start - before);
    state.SetIterationTime(std::chrono::duration<double>(took).count());
  }
}

void begin_and_close(benchmark::State& state, Scheduler& scheduler) {
  for ([[maybe_unused]] auto _ : state) {
    const Batch batch = scheduler.begin_batch("train");
    benchmark::DoNotOptimize(batch.joined());
  }
}

void uncontended(benchmark::State& state) {
  Rig rig;
  begin_and_close(state, rig.scheduler);
}

/// Behind a late device: each decision examines 100 unsettled batches.
void behind_100_batches(benchmark::State& state) {
  Rig rig({.run_ahead = {.batches = std::nullopt, .time = {}}});
  { const Batch first = rig.scheduler.begin_batch("train"); }  // so that the kind is known
  const Busy busy(rig.scheduler);
  for (int i = 0; i < 100; ++i) {
    const Batch batch = rig.scheduler.begin_batch("train");
    rig.scheduler.submit("queued", {}, [](Stream&, Inputs, Outputs) {});
  }
  begin_and_close(state, rig.scheduler);
}

/// All threads begin batches of one scheduler.
std::unique_ptr<Rig> shared;

void contended(benchmark::State& state) { begin_and_close(state, shared->scheduler); }

/// Keeps the calling thread and those that it starts on one core. How long a virtual machine takes
/// to reach another core depends on what that did before, and is many times what is measured here.
class OnOneCore {
 public:
  OnOneCore() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OnOneCore() { sched_setaffinity(0, sizeof before_, &before_); }
  OnOneCore(const OnOneCore&) = delete;
  OnOneCore& operator=(const OnOneCore&) = delete;

 private:
  cpu_set_t before_{};
};

/// Returns when another thread sleeps that is about to.
void let_sleep() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

/// Measures wake-ups one after the other and reports their median, so that a core that the machine
/// needed elsewhere spoils some and not the figure.
template <typename WakeUp>
void report_median(benchmark::State& state, const WakeUp& wake_up) {
  constexpr int kWakeUps = 300;
  for ([[maybe_unused]] auto _ : state) {
    std::vector<double> seconds;
    seconds.reserve(kWakeUps);
    for (int i = 0; i < kWakeUps; ++i) {
      seconds.push_back(std::chrono::duration<double>(wake_up()).count());
    }
    state.SetIterationTime(median(seconds));
  }
}

/// Who sleeps, and on what.
enum class Sleep : std::uint8_t {
  kAdmission,  ///< a frontend in begin_batch
  kBare,       ///< the same thread on a condition variable
};

/// A condition variable with its lock and condition.
class Signal {
 public:
  void set() {
    {
      const std::scoped_lock lock(mutex_);
      set_ = true;
    }
    changed_.notify_one();
  }
  /// Waits until it is set, and resets it.
  void wait() {
    std::unique_lock lock(mutex_);
    awaited_ = true;
    changed_.wait(lock, [this] { return set_; });
    set_ = awaited_ = false;
  }
  [[nodiscard]] bool is_awaited() {
    const std::scoped_lock lock(mutex_);
    return awaited_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
  bool awaited_ = false;
};

/// From the end of a batch's operation on the device until the frontend goes on that waited for it.
void woken_by_device(benchmark::State& state, Sleep sleep) {
  const OnOneCore one_core;
  Rig rig({.run_ahead = {.batches = 1, .time = Clock::duration{}}});
  Signal signal;
  std::atomic<Clock::time_point> ended;
  report_median(state, [&] {
    {
      const Batch batch = rig.scheduler.begin_batch("train");
      rig.scheduler.submit("run", {}, [&](Stream&, Inputs, Outputs) {
        let_sleep();
        ended = Clock::now();
        if (sleep == Sleep::kBare) signal.set();
      });
    }
    std::optional<Batch> next;
    if (sleep == Sleep::kBare) {
      signal.wait();
    } else {
      next.emplace(rig.scheduler.begin_batch("train"));
    }
    const auto took = Clock::now() - ended.load();
    next.reset();
    rig.scheduler.wait_all();
    return took;
  });
}

/// From the close of one producer's batch until another producer goes on that waited for its
/// memory.
void woken_by_close(benchmark::State& state, Sleep sleep) {
  const OnOneCore one_core;
  Rig rig;
  // Each needs the whole budget. An abandoned batch teaches nothing, so that it remains so.
  const auto begin_large = [&rig] {
    return rig.scheduler.begin_batch("train", {.hint = rig.pool.budget()});
  };
  Signal begins;
  Signal closed;
  Signal done;
  Clock::time_point woken;
  std::jthread other([&](const std::stop_token& stop) {
    for (begins.wait(); !stop.stop_requested(); begins.wait()) {
      std::optional<Batch> batch;
      if (sleep == Sleep::kBare) {
        closed.wait();
      } else {
        batch.emplace(begin_large());
      }
      woken = Clock::now();
      if (batch) batch->abandon();
      done.set();
    }
  });
  report_median(state, [&] {
    Batch own = begin_large();
    const std::uint64_t before = rig.scheduler.admission().sleeps;
    const auto sleeps = [&] {
      return sleep == Sleep::kBare ? closed.is_awaited()
                                   : rig.scheduler.admission().sleeps != before;
    };
    begins.set();
    while (!sleeps()) std::this_thread::yield();
    let_sleep();
    const Clock::time_point start = Clock::now();
    if (sleep == Sleep::kBare) {
      closed.set();
    } else {
      own.abandon();
    }
    done.wait();
    own.abandon();
    return woken - start;
  });
  other.request_stop();
  begins.set();
}

/// Adds a wake-up beside that of a bare condition variable.
void add_wake_up(Table& table, const std::string& name, void (*wake_up)(benchmark::State&, Sleep)) {
  const std::string bare = name + "/condition_variable";
  for (const Sleep sleep : {Sleep::kAdmission, Sleep::kBare}) {
    const Row row = sleep == Sleep::kBare ? Row{.figure = bare}
                                          : Row{.figure = name, .against = bare, .most_ratio = 2};
    table.add(row, [wake_up, sleep](benchmark::State& state) { wake_up(state, sleep); })
        ->UseManualTime()
        ->Iterations(1);
  }
}

}  // namespace

void add_admission(Table& table) {
  const std::string clock = "admission/lock_and_clock";
  const std::string alone = "admission/uncontended";
  table.add({.figure = clock}, lock_and_clock)->UseRealTime();
  table.add({.figure = "admission/begin", .against = clock, .most_ns = 200}, begin)
      ->UseManualTime();
  table.add({.figure = alone, .against = clock, .most_ns = 200}, uncontended)->UseRealTime();
  table.add({.figure = "admission/behind_100_batches", .against = alone}, behind_100_batches)
      ->UseRealTime();
  table.add({.figure = "admission/two_threads", .against = alone}, contended)
      ->Threads(2)
      ->UseRealTime()
      ->Setup([](const benchmark::State& /*state*/) { shared = std::make_unique<Rig>(); })
      ->Teardown([](const benchmark::State& /*state*/) { shared.reset(); });
  add_wake_up(table, "admission/woken_by_device", woken_by_device);
  add_wake_up(table, "admission/woken_by_close", woken_by_close);
}

}  // namespace weir::bench
