// A request for another budget, from both sides.

#include "tools/timeline/live/asker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "allocator/base/error.hpp"
#include "live_support.hpp"
#include "support/message_of.hpp"
#include "tools/timeline/live/publisher.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::HasSubstr;
using weir::testing::message_of;

/// Longer than anything that works takes.
constexpr std::chrono::seconds kPatience{60};

/// The requests to this process.
struct Asked {
  std::mutex mutex;
  std::vector<BudgetAsk> asks;
  std::atomic<std::uint64_t> budget{gib(8).count};
};
Asked& asked() {
  static Asked all;
  return all;
}

std::vector<BudgetAsk> asks() {
  const std::lock_guard lock(asked().mutex);
  return asked().asks;
}

BudgetAnswer take(const BudgetAsk& ask) noexcept {
  const std::lock_guard lock(asked().mutex);
  asked().asks.push_back(ask);
  const Bytes before{asked().budget.exchange(ask.budget.count)};
  return {.code = BudgetCode::kTaken,
          .before = before,
          .after = ask.budget,
          .used = mib(3),
          .total = gib(16)};
}

/// This process, published.
class Listening {
 public:
  explicit Listening(const Place& place, LiveListener listener = {.set_budget = take},
                     std::chrono::nanoseconds period = kShort)
      : publisher_({.folders = place.folders(),
                    .program = "listens",
                    .period = period,
                    .listener = listener}) {
    {
      const std::lock_guard lock(asked().mutex);
      asked().asks.clear();
      asked().budget = gib(8).count;
    }
    publisher_.start();
    EXPECT_TRUE(publisher_.wait_for_samples(1));
  }
  [[nodiscard]] std::string path() const { return publisher_.path(); }

 private:
  Publisher publisher_;
};

TEST(LiveAsker, GetsTheProgramsAnswer) {
  const Place place;
  const Listening program(place);
  Asker asker(place.survey().programs.at(0));
  const auto result = asker.ask({.device = 2, .budget = gib(6)}, kPatience);
  ASSERT_TRUE(result.answer);
  EXPECT_EQ(result.answer->code, BudgetCode::kTaken);
  EXPECT_EQ(result.answer->before, gib(8));
  EXPECT_EQ(result.answer->after, gib(6));
  EXPECT_EQ(result.answer->used, mib(3));
  EXPECT_EQ(result.answer->total, gib(16));
  ASSERT_EQ(asks().size(), 1U);
  EXPECT_EQ(asks()[0].device, 2U);
  EXPECT_EQ(asks()[0].budget, gib(6));
}

TEST(LiveAsker, OfAProgramThatDoesNotListenIsToldThatItsBudgetIsFixed) {
  const Place place;
  const Listening program(place, {});
  Asker asker(place.survey().programs.at(0));
  const auto result = asker.ask({.device = 1, .budget = gib(6)}, kPatience);
  ASSERT_TRUE(result.answer);
  EXPECT_EQ(result.answer->code, BudgetCode::kFixed);
}

TEST(LiveAsker, DoesNotBelieveAnAnswerWithFiguresThatNoDeviceHas) {
  const Place place;
  const Listening program(place, {.set_budget = [](const BudgetAsk& ask) noexcept {
                            return BudgetAnswer{.code = BudgetCode::kTaken,
                                                .before = {~std::uint64_t{0}},
                                                .after = ask.budget};
                          }});
  Asker asker(place.survey().programs.at(0));
  const auto result = asker.ask({.device = 1, .budget = gib(6)}, 100 * kShort);
  EXPECT_FALSE(result.answer);
  EXPECT_EQ(result.failure, Asker::Failure::kSilent);
}

TEST(LiveAsker, OfAFileThatSomebodyChangedIsToldSo) {
  const Place place;
  const Listening program(place);
  Asker asker(place.survey().programs.at(0));
  ASSERT_EQ(link(program.path().c_str(), (program.path() + ".too").c_str()), 0);
  const auto result = asker.ask({.device = 1, .budget = gib(6)}, kPatience);
  ASSERT_TRUE(result.answer);
  EXPECT_EQ(result.answer->code, BudgetCode::kTampered);
  EXPECT_TRUE(asks().empty());
}

TEST(LiveAsker, OpensNoFileThatIsNotTheUsersAlone) {
  const auto refused = [](const std::function<void(const std::string& path)>& change) {
    const Place place;
    const Listening program(place);
    const LiveProgram found = place.survey().programs.at(0);
    change(program.path());
    return message_of<Error>([&found] { const Asker asker(found); });
  };
  EXPECT_THAT(refused([](const std::string& path) { chmod(path.c_str(), 0666); }),
              HasSubstr("is accessible to other users"));
  EXPECT_THAT(refused([](const std::string& path) { EXPECT_EQ(truncate(path.c_str(), 99), 0); }),
              HasSubstr("is accessible to other users, or truncated"));
  EXPECT_THAT(refused([](const std::string& path) {
                EXPECT_EQ(rename(path.c_str(), (path + ".old").c_str()), 0);
                EXPECT_EQ(symlink((path + ".old").c_str(), path.c_str()), 0);
              }),
              HasSubstr("cannot be opened"));
  EXPECT_THAT(refused([](const std::string& path) {
                std::filesystem::copy_file(path, path + ".copy");
                EXPECT_EQ(rename((path + ".copy").c_str(), path.c_str()), 0);
              }),
              HasSubstr("was replaced by another file"));
  EXPECT_THAT(refused([](const std::string& path) { unlink(path.c_str()); }),
              HasSubstr("cannot be opened"));
}

TEST(LiveAsker, TellsAnotherProcessOfTheSameNumber) {
  const Place place;
  const Listening program(place);
  LiveProgram found = place.survey().programs.at(0);
  --found.started;
  EXPECT_THAT(message_of<Error>([&found] { const Asker asker(found); }), HasSubstr("has ended"));
}

TEST(LiveAsker, OfAProgramThatEndsIsToldSo) {
  const Place place;
  Forked child([&place](const Telling& tell) {
    const BlockFile block(place.folders(), "never answers");
    tell.and_wait();
  });
  ASSERT_TRUE(child.told());
  Asker asker(place.survey().programs.at(0));
  std::thread killer([&child] { child.send(SIGKILL); });
  const auto result = asker.ask({.device = 1, .budget = gib(1)}, kPatience);
  killer.join();
  EXPECT_FALSE(result.answer);
  EXPECT_EQ(result.failure, Asker::Failure::kEnded);
}

TEST(LiveAsker, TakesBackWhatNobodyAnswers) {
  const Place place;
  BlockFile block(place.folders(), "silent");
  Asker asker(place.survey().programs.at(0));
  const auto result = asker.ask({.device = 1, .budget = gib(1)}, kShort);
  EXPECT_FALSE(result.answer);
  EXPECT_EQ(result.failure, Asker::Failure::kSilent);
  EXPECT_FALSE(block.next_request()) << "it would be done long after";
}

TEST(LiveAsker, WaitsItsTurnAndNoLongerThanItMay) {
  const Place place;
  BlockFile block(place.folders(), "silent");
  const LiveProgram program = place.survey().programs.at(0);
  Asker first(program);
  Asker second(program);
  std::atomic<bool> answered{false};
  std::thread one(
      [&] { answered = first.ask({.device = 1, .budget = gib(1)}, kPatience).answer.has_value(); });
  std::optional<BudgetAsk> ask;
  while (!ask) ask = block.next_request();
  const auto result = second.ask({.device = 1, .budget = gib(2)}, kShort);
  EXPECT_EQ(result.failure, Asker::Failure::kBusy);
  block.answer({.code = BudgetCode::kTaken});
  one.join();
  EXPECT_TRUE(answered);
}

TEST(LiveAsker, ManyAreServedOneAfterTheOther) {
  const Place place;
  const Listening program(place);
  const LiveProgram found = place.survey().programs.at(0);
  constexpr std::uint64_t kAskers = 8;
  std::atomic<std::uint64_t> own{0};
  {
    std::vector<std::jthread> askers;
    for (std::uint64_t i = 1; i <= kAskers; ++i) {
      askers.emplace_back([&, i] {
        Asker asker(found);
        const auto result = asker.ask({.device = i, .budget = gib(i)}, kPatience);
        if (result.answer && result.answer->after == gib(i)) ++own;
      });
    }
  }
  EXPECT_EQ(own, kAskers) << "each has the answer to what it asked";
  EXPECT_EQ(asks().size(), kAskers);
}

TEST(LiveAsker, AProgramLooksBeforeEachSample) {
  static std::atomic<int> looks{0};
  const Place place;
  Publisher publisher({.folders = place.folders(),
                       .program = "looks",
                       .period = kShort,
                       .listener = {.look = []() noexcept { ++looks; }}});
  publisher.start();
  ASSERT_TRUE(publisher.wait_for_samples(3));
  EXPECT_GE(looks, 3);
}

}  // namespace
}  // namespace weir::timeline::testing
