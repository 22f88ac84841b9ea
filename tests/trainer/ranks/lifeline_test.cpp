#include "trainer/ranks/lifeline.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <future>
#include <memory>
#include <stdexcept>

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr LifelineOptions kFast{.beat = 5ms, .dead_after = 60ms};
/// Nobody is taken for silent, however slow the machine is.
constexpr LifelineOptions kPatient{.beat = 5ms, .dead_after = 1h};

std::pair<Socket, Socket> connected() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw std::runtime_error("no sockets");
  }
  return {Socket(ends[0]), Socket(ends[1])};
}

/// One rank that notes the first death that it is told of.
class Watcher {
 public:
  Watcher(int rank, Links links, const LifelineOptions& options)
      : line_(std::make_unique<Lifeline>(rank, std::move(links), options,
                                         [this](int dead, const std::string& what) {
                                           told_.set_value(std::to_string(dead) + " " + what);
                                         })) {}
  Lifeline& line() { return *line_; }
  /// Ends without a goodbye, as a dying process does.
  void die() { line_.reset(); }
  [[nodiscard]] std::string told() {
    std::future<std::string> told = told_.get_future();
    if (told.wait_for(60s) != std::future_status::ready) return "nothing";
    return told.get();
  }
  [[nodiscard]] bool was_told() {
    return told_.get_future().wait_for(0s) == std::future_status::ready;
  }

 private:
  std::promise<std::string> told_;
  std::unique_ptr<Lifeline> line_;
};

/// Ranks 0, 1 and 2, with rank 0 in the middle.
struct Three {
  explicit Three(const LifelineOptions& options) {
    auto [to_one, one] = connected();
    auto [to_two, two] = connected();
    Links from_zero;
    from_zero.emplace(1, std::move(to_one));
    from_zero.emplace(2, std::move(to_two));
    ranks[0] = std::make_unique<Watcher>(0, std::move(from_zero), options);
    Links from_one;
    from_one.emplace(0, std::move(one));
    ranks[1] = std::make_unique<Watcher>(1, std::move(from_one), options);
    Links from_two;
    from_two.emplace(0, std::move(two));
    ranks[2] = std::make_unique<Watcher>(2, std::move(from_two), options);
  }
  std::array<std::unique_ptr<Watcher>, 3> ranks;
};

TEST(Lifeline, TellsEveryRankOfOneThatEnds) {
  Three three(kPatient);
  three.ranks[2]->die();
  EXPECT_EQ(three.ranks[0]->told(), "2 ended before the others did");
  EXPECT_EQ(three.ranks[1]->told(), "2 ended before the others did");
}

TEST(Lifeline, TellsEveryRankOfTheEndOfRankZero) {
  Three three(kPatient);
  three.ranks[0]->die();
  EXPECT_EQ(three.ranks[1]->told(), "0 ended before the others did");
  EXPECT_EQ(three.ranks[2]->told(), "0 ended before the others did");
}

TEST(Lifeline, TellsEveryRankWhyOneAborted) {
  Three three(kPatient);
  three.ranks[1]->line().report("lost its GPU");
  for (const auto& rank : three.ranks) EXPECT_EQ(rank->told(), "1 lost its GPU");
}

TEST(Lifeline, CutsAReasonThatIsTooLong) {
  Three three(kPatient);
  three.ranks[1]->line().report(std::string(500, 'x'));
  EXPECT_EQ(three.ranks[2]->told(), "1 " + std::string(119, 'x'));
}

TEST(Lifeline, TakesASilentRankForDead) {
  auto [mine, silent] = connected();
  Links links;
  links.emplace(1, std::move(mine));
  Watcher zero(0, std::move(links), kFast);
  EXPECT_EQ(zero.told(), "1 has not answered for 0.0 s");
}

TEST(Lifeline, MissesNobodyWhoSaidGoodbye) {
  Three three(kPatient);
  std::array<std::thread, 3> leaving;
  for (std::size_t i = 0; i < 3; ++i) {
    leaving[i] = std::thread([&three, i] { three.ranks[i]->line().leave(); });
  }
  for (std::thread& thread : leaving) thread.join();
  for (const auto& rank : three.ranks) {
    rank->die();
    EXPECT_FALSE(rank->was_told());
  }
}

}  // namespace
}  // namespace weir
