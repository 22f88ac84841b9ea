// What a pool writes to the allocation log: enough to replay its requests.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "allocator/base/error.hpp"
#include "allocator/log/allocation_log_reader.hpp"
#include "allocator/pool.hpp"
#include "support/manual_progress.hpp"
#include "support/print.hpp"

namespace weir::testing {
namespace {

constexpr StreamId kStream{1};
constexpr StreamId kOther{2};

/// Logs live as long as the process, so each test has its own.
class PoolLog : public ::testing::Test {
 protected:
  PoolLog()
      : path_(::testing::TempDir() + "pool." + std::to_string(getpid()) + "." +
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {}
  ~PoolLog() override { std::filesystem::remove(path_); }

  [[nodiscard]] PoolOptions options(PoolKind kind = PoolKind::kRound) const {
    PoolOptions options;
    options.kind = kind;
    options.log = {path_, "WEIR_ALLOC_LOG"};
    return options;
  }
  [[nodiscard]] std::vector<AllocationRecord> records() const {
    return read_allocation_log(path_).records;
  }
  [[nodiscard]] std::vector<AllocationEvent> events() const {
    std::vector<AllocationEvent> all;
    for (const AllocationRecord& record : records()) all.push_back(record.event);
    return all;
  }

  const std::string path_;
  SimulatedUpstream upstream_{mib(1)};
  ManualProgress progress_;
};

TEST_F(PoolLog, TellsEachThingThatHappensInItsOrder) {
  Pool pool({upstream_, progress_}, options());
  void* pointer = pool.allocate({5000}, kStream);
  pool.record_use(pointer, kOther);
  pool.deallocate(pointer, kStream);
  progress_.pass_all(kStream);
  progress_.pass_all(kOther);
  pool.trim();
  EXPECT_THROW((void)pool.allocate(mib(2), kOther), OutOfMemory);

  const std::vector<AllocationRecord> log = records();
  using enum AllocationEvent;
  EXPECT_EQ(events(), (std::vector{kPool, kGrow, kAllocate, kUse, kFree, kRelease, kFailure}));
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  for (const std::size_t i : {1U, 2U, 3U, 4U, 5U}) EXPECT_EQ(log[i].address, address) << i;
  EXPECT_EQ(log[0].bytes, pool.budget().count);
  EXPECT_EQ(log[1].bytes, kib(8).count) << "the block";
  EXPECT_EQ(log[2].bytes, 5000U) << "as asked for";
  EXPECT_EQ(log[2].stream, kStream.value);
  EXPECT_EQ(log[3].stream, kOther.value);
  EXPECT_EQ(log[4].bytes, 5000U);
  EXPECT_EQ(log[6].bytes, mib(2).count);
  EXPECT_EQ(log[6].stream, kOther.value);
}

TEST_F(PoolLog, PoolsOfOneProcessShareAFileAndHaveNumbers) {
  Pool first({upstream_, progress_}, options());
  Pool second({upstream_, progress_}, options(PoolKind::kNaive));
  (void)first.allocate(kib(4), kStream);
  (void)second.allocate(kib(4), kStream);
  std::map<std::uint16_t, int> of_pool;
  for (const AllocationRecord& record : records()) ++of_pool[record.pool];
  EXPECT_EQ(of_pool, (std::map<std::uint16_t, int>{{1, 3}, {2, 3}}));
}

/// Replays a log: no address is handed out twice, and every free is of a live one.
void expect_consistent(const std::vector<AllocationRecord>& log) {
  std::map<std::uint64_t, std::uint64_t> out;
  std::uint64_t last = 0;
  for (const AllocationRecord& record : log) {
    ASSERT_GT(record.sequence, last) << "two events of a pool have one place";
    last = record.sequence;
    if (record.event == AllocationEvent::kAllocate) {
      ASSERT_TRUE(out.emplace(record.address, record.bytes).second) << "out twice";
    } else if (record.event == AllocationEvent::kFree) {
      ASSERT_EQ(out.erase(record.address), 1U) << "freed, but not out";
    }
  }
  EXPECT_TRUE(out.empty());
}

TEST_F(PoolLog, ReplaysWithoutContradictionWhateverTheThreadsDid) {
  constexpr int kThreads = 4;
  progress_.record_without_entries();
  Pool pool({upstream_, progress_}, options());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&pool, t] {
      // All on one stream, so that one thread gets at once what another frees.
      std::minstd_rand random(static_cast<unsigned>(t + 1));
      for (int i = 0; i < 2000; ++i) {
        pool.deallocate(pool.allocate(kib(4 + random() % 8), kStream), kStream);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_consistent(records());
  EXPECT_GE(records().size(), 2U * 2000 * kThreads);
}

TEST_F(PoolLog, AHandoverThatFailsIsNoAllocation) {
  PoolOptions tight = options();
  tight.budget.value = {.bytes = kib(4)};
  Pool pool({upstream_, progress_}, tight);
  pool.deallocate(pool.allocate(kib(4), kStream), kStream);
  progress_.fail_make_waits(Fault::at(1));
  EXPECT_ANY_THROW((void)pool.allocate(kib(4), kOther));
  expect_consistent(records());
}

TEST_F(PoolLog, AFileThatCannotBeWrittenIsRefusedBeforeAnythingIsTaken) {
  PoolOptions bad;
  bad.log = {"/missing/folder/log", "WEIR_ALLOC_LOG"};
  EXPECT_THROW(Pool({upstream_, progress_}, bad), UsageError);
  EXPECT_EQ(upstream_.used(), Bytes{});
}

TEST(PoolOptionsLog, TheVariableNamesTheFileAndPercentPIsTheProcess) {
  const auto environment = [](std::string_view log, std::string_view limit) {
    return [=](const char* name) -> const char* {
      if (std::string_view(name) == "WEIR_ALLOC_LOG") return log.data();
      return std::string_view(name) == "WEIR_ALLOC_LOG_LIMIT" ? limit.data() : nullptr;
    };
  };
  const PoolOptions set =
      PoolOptions::from_environment(MxnetContext::kGpu, environment("a-%p.log", "16MiB"));
  EXPECT_EQ(set.log.value, "a-" + std::to_string(getpid()) + ".log");
  EXPECT_EQ(set.log.source, "WEIR_ALLOC_LOG");
  EXPECT_EQ(set.log_limit.value, mib(16));
  for (const char* limit : {"1000", "lots", "-1"}) {
    EXPECT_THROW(
        (void)PoolOptions::from_environment(MxnetContext::kGpu, environment("a.log", limit)),
        UsageError);
  }
}

}  // namespace
}  // namespace weir::testing
