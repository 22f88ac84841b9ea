#include "trainer/ranks/star.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <thread>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "trainer/ranks/exchange.hpp"

namespace weir {
namespace {

using namespace std::chrono_literals;

MeetingPlace place_of(const Socket& listener) {
  return {
      .host = "127.0.0.1", .port = port_of(listener), .password = {'s', 'e', 's', 'a', 'm', 'e'}};
}

TEST(Star, ConnectsEachRankWithRankZeroAndCarriesItsCalls) {
  constexpr int kRanks = 3;
  const Socket listener = listen_on(0, true);
  const MeetingPlace place = place_of(listener);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<Links> sets = meet(rank, kRanks, place, listener, 2, 60s);
      ASSERT_EQ(sets.size(), 2);
      EXPECT_EQ(sets[0].size(), rank == 0 ? 2 : 1);
      const auto star = open_star(rank, kRanks, std::move(sets[1]));
      Exchange exchange(*star, {}, [](const std::string& why) { throw Error(why); });
      // More than a socket holds at once.
      std::vector<std::byte> mine(3'000'000, static_cast<std::byte>(rank + 1));
      std::vector<std::byte> all(mine.size() * kRanks);
      exchange.gather_all(mine, all);
      for (int other = 0; other < kRanks; ++other) {
        const auto part =
            std::span(all).subspan(static_cast<std::size_t>(other) * mine.size(), mine.size());
        EXPECT_EQ(part.front(), static_cast<std::byte>(other + 1));
        EXPECT_EQ(std::memcmp(part.data(), part.data() + 1, part.size() - 1), 0);
      }
      exchange.broadcast(mine);
      EXPECT_EQ(mine.back(), std::byte{1});
      exchange.barrier();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Star, NamesTheRanksThatDoNotCome) {
  const Socket listener = listen_on(0, true);
  const MeetingPlace place = place_of(listener);
  std::thread one([&] {
    const Links links = std::move(meet(1, 3, place, listener, 1, 60s)[0]);
    EXPECT_EQ(links.size(), 1);
  });
  one.join();
  const std::string message =
      testing::message_of<Error>([&] { (void)meet(0, 3, place, listener, 1, 100ms); });
  EXPECT_EQ(message,
            "no connection from rank 2: waiting for the other ranks to connect: nothing came in "
            "time");
}

TEST(Star, DropsAStrangersConnection) {
  const Socket listener = listen_on(0, true);
  const MeetingPlace place = place_of(listener);
  MeetingPlace stranger = place;
  stranger.password = {'p', 'l', 'e', 'a', 's', 'e'};
  (void)meet(1, 2, stranger, listener, 1, 60s);
  const std::string message =
      testing::message_of<Error>([&] { (void)meet(0, 2, place, listener, 1, 100ms); });
  EXPECT_NE(message.find("no connection from rank 1"), std::string::npos);
}

TEST(Star, RefusesCallsBetweenOtherRanks) {
  const auto star = open_star(1, 3, {});
  const std::byte byte{};
  EXPECT_EQ(testing::message_of<Error>([&] {
              star->send({&byte, 1}, 2, 0);
            }),
            "this call needs mpirun: ranks here reach rank 0 only");
}

TEST(Star, NoticesThatAnotherRankMadeAnotherCall) {
  const Socket listener = listen_on(0, true);
  const MeetingPlace place = place_of(listener);
  std::promise<void> noticed;
  std::thread one([&] {
    const auto star = open_star(1, 2, std::move(meet(1, 2, place, listener, 1, 60s)[0]));
    const std::array<std::byte, 4> bytes{};
    star->send(bytes, 0, 1);
    while (!star->progress()) std::this_thread::yield();
    noticed.get_future().wait();
  });
  const auto star = open_star(0, 2, std::move(meet(0, 2, place, listener, 1, 60s)[0]));
  std::array<std::byte, 8> bytes{};
  star->receive(bytes, 1, 1);
  EXPECT_EQ(testing::message_of<Error>([&] {
              while (!star->progress()) std::this_thread::yield();
            }),
            "another rank made another call, or one of another size");
  noticed.set_value();
  one.join();
}

}  // namespace
}  // namespace weir
