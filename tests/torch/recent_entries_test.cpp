#include "tools/torch/books/recent_entries.hpp"

#include <gmock/gmock.h>

#include <string>
#include <thread>
#include <utility>

namespace weir::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using torch_plug::merged;
using torch_plug::RecentEntries;

TEST(RecentEntries, AreTheNewestInTheirOrder) {
  RecentEntries<int> entries;
  entries.add(1);
  entries.add(2);
  EXPECT_THAT(entries.all(), ElementsAre(2)) << "one until more are asked for";
  entries.set_most(3);
  entries.add(3, 4);
  entries.add(5);
  EXPECT_THAT(entries.all(), ElementsAre(3, 4, 5));
  entries.set_most(2);
  EXPECT_THAT(entries.all(), ElementsAre(4, 5));
  entries.set_most(0);
  EXPECT_THAT(entries.all(), ElementsAre(5));
  entries.clear();
  EXPECT_THAT(entries.all(), IsEmpty());
}

// As an entry ends with Python objects, whose end may allocate and free tensors.
TEST(RecentEntries, EndOutsideTheLock) {
  struct Asking {
    RecentEntries<Asking>* asked = nullptr;
    Asking() = default;
    explicit Asking(RecentEntries<Asking>& entries) : asked(&entries) {}
    Asking(const Asking& other) = default;
    Asking(Asking&& other) noexcept : asked(std::exchange(other.asked, nullptr)) {}
    Asking& operator=(const Asking&) = default;
    Asking& operator=(Asking&&) = default;
    ~Asking() {
      if (asked != nullptr) asked->set_most(2);
    }
  };
  RecentEntries<Asking> entries;
  entries.set_most(2);
  for (int i = 0; i < 5; ++i) entries.add(Asking(entries));
  entries.set_most(1);
  entries.clear();
  entries.add(Asking());
  EXPECT_EQ(entries.all().size(), 1U);
}

TEST(RecentEntries, ThatAreAddedTogetherStayTogether) {
  RecentEntries<int> entries;
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  entries.set_most(2 * kThreads * kEach);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&entries, t] {
      for (int i = 0; i < kEach; ++i) entries.add(t * kEach + i, -(t * kEach + i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<int> all = entries.all();
  ASSERT_EQ(all.size(), 2U * kThreads * kEach);
  for (std::size_t i = 0; i < all.size(); i += 2) EXPECT_EQ(all[i], -all[i + 1]);
}

TEST(RecentEntries, OfTwoHistoriesAreMergedByTime) {
  using Entry = std::pair<int, std::string>;
  const auto time_of = [](const Entry& entry) { return entry.first; };
  const std::vector<Entry> ours{{5, "free requested"}, {5, "free completed"}, {3, "late"}};
  const std::vector<Entry> natives{{2, "first"}, {5, "native's"}, {9, "last"}};
  EXPECT_THAT(merged(ours, natives, 10, time_of),
              ElementsAre(Entry{2, "first"}, Entry{3, "late"}, Entry{5, "free requested"},
                          Entry{5, "free completed"}, Entry{5, "native's"}, Entry{9, "last"}));
  EXPECT_THAT(merged(ours, natives, 2, time_of),
              ElementsAre(Entry{5, "native's"}, Entry{9, "last"}));
  EXPECT_THAT(merged(ours, {}, 0, time_of), IsEmpty());
}

}  // namespace
}  // namespace weir::testing
