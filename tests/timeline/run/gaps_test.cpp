// Gaps of known cause in a real run on the cpu: the recording finds each with its cause.
//
// The test itself measures how long the device was idle and what the frontend did meanwhile. Work
// and preparation are sleeps, which other threads delay less than computation. If the machine was
// so busy that a gap differs from the plan, the run is repeated.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../../trainer/temporary_directory.hpp"
#include "scheduler/scheduler.hpp"
#include "tools/timeline/analysis/idle.hpp"
#include "tools/timeline/files/read.hpp"
#include "tools/timeline/recorder/recording.hpp"

namespace weir::timeline::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// How long `what` takes.
template <typename What>
Clock::duration time_of(const What& what) {
  const auto start = Clock::now();
  what();
  return Clock::now() - start;
}

/// A scheduler on its own device, recorded from begin to end.
class RecordedRun {
 public:
  static constexpr Bytes kBudget = mib(64);

  struct Work {
    Clock::time_point begin;
    Clock::time_point end;
    Clock::time_point submitted;
    double held = 0;  ///< share of the planned cause in the time since the last submission
  };

  explicit RecordedRun(const SchedulerOptions& options)
      : recorder_(begin_recording({.file = {directory_.file("run.json"), "--timeline"}})),
        device_(open_device("cpu")),
        pool_(device_.memory(), small_pool()) {
    scheduler_.emplace(device_, pool_, options);
    works_.reserve(kMostWorks);
  }
  ~RecordedRun() { (void)recorder_->finish(); }
  RecordedRun(const RecordedRun&) = delete;
  RecordedRun& operator=(const RecordedRun&) = delete;

  Scheduler* operator->() { return &*scheduler_; }
  /// Submits an operation that keeps the device busy. The planned cause took `held` of the
  /// frontend's time since the last submission.
  void submit_work(std::chrono::nanoseconds time, Clock::duration held) {
    const auto since = works_.empty() ? Clock::time_point{} : works_.back().submitted;
    Work& work = works_.emplace_back();
    work.held = share(held, Clock::now() - since);
    scheduler_->submit("work", {}, [&work, time](Stream&, Inputs, Outputs) {
      work.begin = Clock::now();
      std::this_thread::sleep_for(time);
      work.end = Clock::now();
    });
    work.submitted = Clock::now();
  }
  /// Ends the run and reads the recording. Call it once.
  [[nodiscard]] const Process& finish() {
    scheduler_->wait_all();
    scheduler_.reset();
    (void)recorder_->finish();
    timeline_ = read_timeline(recorder_->file());
    return timeline_.processes.at(0);
  }
  struct Idle {
    double made = 0;    ///< nanoseconds of the planned cause
    double others = 0;  ///< of a machine busy with other things
    int gaps = 0;       ///< of that cause, and clearly of no other
  };
  /// By the test's own clock. Work that was submitted and began late is another cause.
  [[nodiscard]] Idle idle() const {
    Idle idle;
    for (std::size_t i = 1; i < works_.size(); ++i) {
      const Work& work = works_[i];
      const auto gap = work.begin - works_[i - 1].end;
      const auto late = work.begin - std::max(work.submitted, works_[i - 1].end);
      const bool made = work.held > kClearly && share(late, gap) < 1 - kClearly;
      (made ? idle.made : idle.others) += static_cast<double>(gap.count());
      idle.gaps += made ? 1 : 0;
    }
    return idle;
  }

 private:
  static constexpr std::size_t kMostWorks = 100;  // they stay where they are
  static constexpr double kClearly = 0.6;         // half decides: avoids close calls

  static double share(Clock::duration part, Clock::duration whole) {
    return static_cast<double>(part.count()) / static_cast<double>(std::max(whole.count(), 1L));
  }

  static PoolOptions small_pool() {
    PoolOptions options;
    options.budget = BudgetRequest{.bytes = kBudget};
    return options;
  }

  const weir::testing::TemporaryDirectory directory_;
  Recorder* const recorder_;
  Device device_;
  Pool pool_;
  std::optional<Scheduler> scheduler_;
  std::vector<Work> works_;
  Timeline timeline_;
};

constexpr int kGaps = 10;

/// Checks that the recording attributes the made gaps to `cause`, up to 5%, and finds no other idle
/// time.
void expect_found(const Process& process, const RecordedRun& run, IdleCause cause) {
  const Index index(process);
  const std::vector<DeviceIdle> devices = idle_by_cause(index);
  ASSERT_EQ(devices.size(), 1U);
  const DeviceIdle& found = devices.front();
  const auto found_of = [&](IdleCause one) {
    return static_cast<double>(found.causes.at(static_cast<std::size_t>(one)).total);
  };
  const RecordedRun::Idle known = run.idle();
  EXPECT_NEAR(found_of(cause), known.made, known.made / 20) << to_string(cause);
  EXPECT_NEAR(static_cast<double>(found.idle), known.made + known.others,
              (known.made + known.others) / 20);
  for (std::size_t i = 0; i < kIdleCauses; ++i) {
    const auto one = static_cast<IdleCause>(i);
    if (one == cause) continue;
    EXPECT_LE(found_of(one), known.others + known.made / 20) << to_string(one);
  }
}

/// Repeats runs until one has its kGaps as planned, the first if the machine is not busy. All of
/// them are found in it, with `cause`. `make` lets the run work; `check` checks what else is known.
template <typename Make, typename Check>
void expect_gaps(const SchedulerOptions& options, IdleCause cause, const Make& make,
                 const Check& check) {
  constexpr int kMostRuns = 20;
  std::string gaps;
  for (int i = 0; i < kMostRuns; ++i) {
    RecordedRun run(options);
    make(run);
    const Process& process = run.finish();
    gaps += std::to_string(run.idle().gaps) + " ";
    if (run.idle().gaps != kGaps) continue;
    expect_found(process, run, cause);
    check(process);
    return;
  }
  FAIL() << "the machine is too busy: no run had its " << kGaps << " gaps, but " << gaps;
}
template <typename Make>
void expect_gaps(const SchedulerOptions& options, IdleCause cause, const Make& make) {
  expect_gaps(options, cause, make, [](const Process& /*process*/) {});
}

// Long, so that a thread which wakes some milliseconds late does not change the gap's cause.
constexpr auto kWork = 40ms;
constexpr auto kPreparation = 20ms;

TEST(KnownGaps, ASlowLoaderIsFound) {
  expect_gaps({.policy = Policy::kThrottled}, IdleCause::kLoader, [](RecordedRun& run) {
    run.submit_work(2ms, {});
    for (int i = 0; i < kGaps; ++i) {
      const auto loaded = time_of([] { std::this_thread::sleep_for(50ms); });
      const Batch batch = run->begin_batch("train");
      run.submit_work(2ms, loaded);
    }
  });
}

TEST(KnownGaps, ABarrierAfterEachBatchIsFoundWithItsCallSite) {
  constexpr int kLine = __LINE__ + 4;
  const auto make = [](RecordedRun& run) {
    run.submit_work(kWork, {});
    for (int i = 0; i < kGaps; ++i) {
      const auto waited = time_of([&] { run->wait_all(); });
      const Batch batch = run->begin_batch("train");
      std::this_thread::sleep_for(kPreparation);  // a barrier keeps this from being done in time
      run.submit_work(kWork, waited);
    }
  };
  expect_gaps({.policy = Policy::kThrottled}, IdleCause::kBarrier, make, [](const Process& found) {
    const Index index(found);
    const std::string site = "gaps_test.cpp:" + std::to_string(kLine);
    const std::vector<DeviceIdle> devices = idle_by_cause(index);
    for (const Gap& gap : devices.at(0).gaps) {
      if (gap.cause != IdleCause::kBarrier) continue;
      EXPECT_TRUE(found.name(gap.site).ends_with(site)) << found.name(gap.site);
    }
  });
}

TEST(KnownGaps, TheBarriersOfThePolicyAreFound) {
  expect_gaps({.policy = Policy::kBarrier}, IdleCause::kBarrier, [](RecordedRun& run) {
    Clock::duration waited{};
    for (int i = 0; i <= kGaps; ++i) {
      Batch batch = run->begin_batch("train");
      std::this_thread::sleep_for(kPreparation);
      run.submit_work(kWork, waited);
      waited = time_of([&] { batch.close(); });
    }
  });
}

TEST(KnownGaps, ALimitOfOneBatchIsFound) {
  const SchedulerOptions options{.policy = Policy::kThrottled,
                                 .run_ahead = {.batches = 1, .time = 0ns}};
  expect_gaps(options, IdleCause::kRunAhead, [](RecordedRun& run) {
    for (int i = 0; i <= kGaps; ++i) {
      Batch batch;
      const auto held = time_of([&] { batch = run->begin_batch("train"); });
      std::this_thread::sleep_for(kPreparation);
      run.submit_work(kWork, held);
    }
  });
}

// A batch that is expected to need more than the budget is admitted alone.
TEST(KnownGaps, ABudgetThatIsTooSmallForTwoBatchesIsFound) {
  const SchedulerOptions options{.budget = RecordedRun::kBudget, .policy = Policy::kThrottled};
  expect_gaps(options, IdleCause::kBudget, [](RecordedRun& run) {
    for (int i = 0; i <= kGaps; ++i) {
      // Of its own kind: the kind's history would override a hint.
      const std::string kind = "train " + std::to_string(i);
      Batch batch;
      const auto held =
          time_of([&] { batch = run->begin_batch(kind, {.hint = RecordedRun::kBudget + mib(1)}); });
      std::this_thread::sleep_for(kPreparation);
      run.submit_work(kWork, held);
    }
  });
}

}  // namespace
}  // namespace weir::timeline::testing
