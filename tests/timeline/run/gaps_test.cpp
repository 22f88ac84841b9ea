// Gaps of known cause in a real run on the cpu: the recording finds each, and says what made it.
//
// The test measures for itself how long the device was idle and what the frontend did meanwhile, so
// that the figures hold however busy the machine is. Work and preparation are sleeps: threads that
// sleep are not held up by others as much as those that compute.

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

/// A scheduler on a device of its own, recorded from its beginning to its end.
class RecordedRun {
 public:
  struct Work {
    Clock::time_point begin;
    Clock::time_point end;
    Clock::time_point submitted;
    bool held = false;  ///< the cause that the test makes took longest since the last submission
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
  /// Submits an operation that keeps the device busy. The cause that the test makes took `held` of
  /// the frontend's time since the last submission.
  void submit_work(std::chrono::nanoseconds time, Clock::duration held) {
    const auto since = works_.empty() ? Clock::time_point{} : works_.back().submitted;
    Work& work = works_.emplace_back();
    work.held = 2 * held > Clock::now() - since;
    scheduler_->submit("work", {}, [&work, time](Stream&, Inputs, Outputs) {
      work.begin = Clock::now();
      std::this_thread::sleep_for(time);
      work.end = Clock::now();
    });
    work.submitted = Clock::now();
  }
  /// Ends the run and reads what was recorded. Once.
  [[nodiscard]] const Process& finish() {
    scheduler_->wait_all();
    scheduler_.reset();
    (void)recorder_->finish();
    timeline_ = read_timeline(recorder_->file());
    return timeline_.processes.at(0);
  }
  struct Idle {
    double made = 0;    ///< nanoseconds, of the cause that the test makes
    double others = 0;  ///< of a machine that was busy with other things
    int gaps = 0;       ///< of that cause; fewer on a busy machine
  };
  /// By the test's own clock. Work that began late, once it was submitted, is another cause.
  [[nodiscard]] Idle idle() const {
    Idle idle;
    for (std::size_t i = 1; i < works_.size(); ++i) {
      const Work& work = works_[i];
      const auto gap = work.begin - works_[i - 1].end;
      const auto late = work.begin - std::max(work.submitted, works_[i - 1].end);
      const bool made = work.held && 2 * late < gap;
      (made ? idle.made : idle.others) += static_cast<double>(gap.count());
      idle.gaps += made ? 1 : 0;
    }
    return idle;
  }

 private:
  static constexpr std::size_t kMostWorks = 100;  // they stay where they are

  static PoolOptions small_pool() {
    PoolOptions options;
    options.budget = BudgetRequest{.bytes = mib(64)};
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

/// The recording puts what the test made down to `cause`, but for 5%, and finds no idle time that
/// was not there.
void expect_found(const Process& process, const RecordedRun& run, IdleCause cause) {
  const Index index(process);
  const std::vector<DeviceIdle> devices = idle_by_cause(index);
  ASSERT_EQ(devices.size(), 1U);
  const DeviceIdle& found = devices.front();
  const auto found_of = [&](IdleCause one) {
    return static_cast<double>(found.causes.at(static_cast<std::size_t>(one)).total);
  };
  const RecordedRun::Idle known = run.idle();
  EXPECT_GT(known.gaps, 0) << "the machine is too busy to tell";  // kGaps where it is quiet
  EXPECT_NEAR(found_of(cause), known.made, known.made / 20) << to_string(cause);
  EXPECT_NEAR(static_cast<double>(found.idle), known.made + known.others,
              (known.made + known.others) / 20);
  for (std::size_t i = 0; i < kIdleCauses; ++i) {
    const auto one = static_cast<IdleCause>(i);
    if (one == cause) continue;
    EXPECT_LE(found_of(one), known.others + known.made / 20) << to_string(one);
  }
}

TEST(KnownGaps, ASlowLoaderIsFound) {
  RecordedRun run({.policy = Policy::kThrottled});
  run.submit_work(2ms, {});
  for (int i = 0; i < kGaps; ++i) {
    const auto loaded = time_of([] { std::this_thread::sleep_for(50ms); });
    const Batch batch = run->begin_batch("train");
    run.submit_work(2ms, loaded);
  }
  const Process& process = run.finish();
  EXPECT_GT(run.idle().made, 0.04e9 * run.idle().gaps);
  expect_found(process, run, IdleCause::kLoader);
}

TEST(KnownGaps, ABarrierAfterEachBatchIsFoundWithItsCallSite) {
  RecordedRun run({.policy = Policy::kThrottled});
  run.submit_work(20ms, {});
  constexpr int kLine = __LINE__ + 2;
  for (int i = 0; i < kGaps; ++i) {
    const auto waited = time_of([&] { run->wait_all(); });
    const Batch batch = run->begin_batch("train");
    std::this_thread::sleep_for(5ms);  // what a barrier keeps from being done in time
    run.submit_work(20ms, waited);
  }
  const Process& process = run.finish();
  EXPECT_GT(run.idle().made, 0.005e9 * run.idle().gaps);
  expect_found(process, run, IdleCause::kBarrier);
  const Index index(process);
  const std::string site = "gaps_test.cpp:" + std::to_string(kLine);
  const std::vector<DeviceIdle> devices = idle_by_cause(index);
  for (const Gap& gap : devices.at(0).gaps) {
    if (gap.cause != IdleCause::kBarrier) continue;
    EXPECT_TRUE(process.name(gap.site).ends_with(site)) << process.name(gap.site);
  }
}

TEST(KnownGaps, TheBarriersOfThePolicyAreFound) {
  RecordedRun run({.policy = Policy::kBarrier});
  Clock::duration waited{};
  for (int i = 0; i <= kGaps; ++i) {
    Batch batch = run->begin_batch("train");
    std::this_thread::sleep_for(5ms);
    run.submit_work(20ms, waited);
    waited = time_of([&] { batch.close(); });
  }
  const Process& process = run.finish();
  EXPECT_GT(run.idle().made, 0.005e9 * run.idle().gaps);
  expect_found(process, run, IdleCause::kBarrier);
}

TEST(KnownGaps, ALimitOfOneBatchIsFound) {
  RecordedRun run({.policy = Policy::kThrottled, .run_ahead = {.batches = 1, .time = 0ns}});
  for (int i = 0; i <= kGaps; ++i) {
    Batch batch;
    const auto held = time_of([&] { batch = run->begin_batch("train"); });
    std::this_thread::sleep_for(5ms);
    run.submit_work(20ms, held);
  }
  const Process& process = run.finish();
  EXPECT_GT(run.idle().made, 0.005e9 * run.idle().gaps);
  expect_found(process, run, IdleCause::kRunAhead);
}

}  // namespace
}  // namespace weir::timeline::testing
