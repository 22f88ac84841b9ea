// The collective calls between threads. Over an MPI: mpi_test.cpp.

#include "trainer/ranks/exchange.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <tuple>

#include "support/log_capture.hpp"
#include "support/message_of.hpp"
#include "trainer/ranks/shards.hpp"

namespace weir::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

/// The messages under way between all ranks, by sender, receiver and tag.
struct Mailboxes {
  std::mutex mutex;
  std::map<std::tuple<int, int, int>, std::deque<std::vector<std::byte>>> messages;
};

class MailboxTransport final : public Transport {
 public:
  MailboxTransport(Mailboxes& boxes, int rank, int size)
      : boxes_(boxes), rank_(rank), size_(size) {}

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return size_; }
  void send(std::span<const std::byte> bytes, int to, int tag) override {
    const std::lock_guard lock(boxes_.mutex);
    boxes_.messages[{rank_, to, tag}].emplace_back(bytes.begin(), bytes.end());
  }
  void receive(std::span<std::byte> bytes, int from, int tag) override {
    wanted_.push_back({bytes, from, tag});
  }
  bool progress() override {
    const std::lock_guard lock(boxes_.mutex);
    std::erase_if(wanted_, [this](const Wanted& wanted) {
      auto& box = boxes_.messages[{wanted.from, rank_, wanted.tag}];
      if (box.empty()) return false;
      if (box.front().size() != wanted.bytes.size()) throw std::runtime_error("another size");
      std::ranges::copy(box.front(), wanted.bytes.begin());
      box.pop_front();
      return true;
    });
    return wanted_.empty();
  }
  [[nodiscard]] std::vector<int> waits_for() const override {
    std::vector<int> others;
    for (const Wanted& wanted : wanted_) others.push_back(wanted.from);
    std::ranges::sort(others);
    return others;
  }
  void finish() override {}

 private:
  struct Wanted {
    std::span<std::byte> bytes;
    int from;
    int tag;
  };

  Mailboxes& boxes_;
  const int rank_;
  const int size_;
  std::vector<Wanted> wanted_;
};

struct GaveUp : std::runtime_error {
  using std::runtime_error::runtime_error;
};
constexpr std::size_t kSmallPiece = 64;

void give_up(const std::string& reason) { throw GaveUp(reason); }

/// Calls `body(exchange, rank)` on one thread for each rank.
void on_ranks(int size, const std::function<void(Exchange&, int)>& body) {
  Mailboxes boxes;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      MailboxTransport transport(boxes, rank, size);
      Exchange exchange(transport, {}, give_up, kSmallPiece);
      body(exchange, rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& [who, box] : boxes.messages) EXPECT_TRUE(box.empty()) << "not received";
}

std::vector<float> drawn(std::size_t count, int rank) {
  std::minstd_rand random(static_cast<unsigned>(rank) + 1);
  std::vector<float> values(count);
  // Of many magnitudes: another order of additions gives other bits.
  for (float& value : values) {
    value = std::ldexp(std::uniform_real_distribution<float>(-1, 1)(random),
                       std::uniform_int_distribution<int>(-12, 12)(random));
  }
  return values;
}

TEST(Exchange, AddsInTheOrderOfRanksWhateverTheSize) {
  for (const int size : {1, 2, 3, 5}) {
    const std::size_t several_rounds = 2 * kSmallPiece * static_cast<std::size_t>(size) + 3;
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{1000}, several_rounds}) {
      std::vector<float> sum = drawn(count, 0);
      for (int rank = 1; rank < size; ++rank) {
        const std::vector<float> other = drawn(count, rank);
        for (std::size_t i = 0; i < count; ++i) sum[i] += other[i];
      }
      on_ranks(size, [&](Exchange& exchange, int rank) {
        std::vector<float> values = drawn(count, rank);
        const std::span<float> part(values);
        exchange.all_reduce({&part, 1});
        EXPECT_TRUE(std::ranges::equal(std::as_bytes(part), std::as_bytes(std::span(sum))));
        EXPECT_EQ(exchange.traffic(), (Traffic{1, all_reduce_bytes(count, rank, size)}));
      });
    }
  }
}

TEST(Exchange, ReducesPartsAsIfTheyWereOne) {
  on_ranks(3, [](Exchange& exchange, int) {
    std::vector<float> first{1, 2};
    std::vector<float> none;
    std::vector<float> last{3, 4, 5};
    const std::vector<std::span<float>> parts{first, none, last};
    exchange.all_reduce(parts);
    EXPECT_THAT(first, ElementsAre(3, 6));
    EXPECT_THAT(last, ElementsAre(9, 12, 15));
    exchange.all_reduce({});
  });
}

TEST(Exchange, GathersAndBroadcastsAndCountsTheBytes) {
  constexpr int kRanks = 3;
  on_ranks(kRanks, [](Exchange& exchange, int rank) {
    const std::vector<float> mine{static_cast<float>(rank), 7};
    std::vector<float> all(6);
    exchange.all_gather(mine, all);
    EXPECT_THAT(all, ElementsAre(0, 7, 1, 7, 2, 7));
    EXPECT_EQ(exchange.traffic().bytes, all_gather_bytes(2, kRanks));

    std::uint32_t number = static_cast<std::uint32_t>(rank) + 40;
    std::vector<std::uint32_t> numbers(kRanks);
    const std::uint64_t before = exchange.traffic().bytes;
    exchange.gather_all(std::as_bytes(std::span(&number, 1)),
                        std::as_writable_bytes(std::span(numbers)));
    EXPECT_THAT(numbers, ElementsAre(40, 41, 42));
    EXPECT_EQ(exchange.traffic().bytes - before, rank == 0 ? 24 : 4) << "rank 0 sends all to each";

    const std::uint64_t gathered = exchange.traffic().bytes;
    exchange.broadcast(std::as_writable_bytes(std::span(&number, 1)));
    EXPECT_EQ(number, 40);
    EXPECT_EQ(exchange.traffic().bytes - gathered, rank == 0 ? 8 : 0);
    EXPECT_EQ(exchange.traffic().calls, 3);
  });
}

/// More calls than there are tags.
TEST(Exchange, GoesOnWhenTagsBeginAgain) {
  on_ranks(2, [](Exchange& exchange, int rank) {
    for (int call = 0; call < kMostTag + 10; ++call) {
      float value = static_cast<float>(rank + call);
      exchange.broadcast(std::as_writable_bytes(std::span(&value, 1)));
      ASSERT_EQ(value, static_cast<float>(call));
    }
  });
}

TEST(Exchange, NamesLateRanksAndGivesUpOnThemInTheEnd) {
  const LogCapture log;
  Mailboxes boxes;
  MailboxTransport transport(boxes, 0, 3);
  Exchange exchange(transport, {.warn_after = 1ms, .give_up_after = 3ms}, give_up);
  EXPECT_EQ(message_of<GaveUp>([&] { exchange.barrier(); }),
            "waited for ranks 1, 2 in barrier for 0.0 s");
  EXPECT_THAT(log.containing("waits"),
              ElementsAre("rank 0 waits for ranks 1, 2 in barrier since 0.0 s"));
}

}  // namespace
}  // namespace weir::testing
