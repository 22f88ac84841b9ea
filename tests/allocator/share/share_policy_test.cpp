// The policy in every state of two and three processes with a small budget.

#include "allocator/share/share_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/print.hpp"

namespace weir {
namespace {

constexpr std::uint64_t kBudget = 6;

/// Calls `visit` with every slot of an attached process: a floor, a lease and what it wants.
template <typename Visit>
void for_each_slot(const Visit& visit) {
  for (std::uint64_t floor = 1; floor <= kBudget; ++floor) {
    for (std::uint64_t lease = 0; lease <= kBudget; ++lease) {
      for (const std::uint64_t wanted : {std::uint64_t{0}, lease, lease + 1, kBudget + 1}) {
        visit(ShareSlot{{floor}, {lease}, {wanted}});
      }
    }
  }
}

Bytes sum(const std::vector<ShareSlot>& slots, Bytes (*part)(const ShareSlot&)) {
  Bytes all;
  for (const ShareSlot& slot : slots) all += part(slot);
  return all;
}
Bytes claim(const ShareSlot& slot) { return claimed(slot); }
Bytes floor_of(const ShareSlot& slot) { return slot.floor; }
Bytes lease_of(const ShareSlot& slot) { return slot.lease; }

/// Checks the whole policy for a process among others, in a state that can occur.
void check(const ShareSlot& own, const std::vector<ShareSlot>& others) {
  const Bytes budget{kBudget};
  const Bytes beside = sum(others, claim);
  ASSERT_EQ(left_by(others, budget), budget - beside);
  const Bytes fair = fair_part(others, budget, own);
  ASSERT_GE(fair, own.floor);
  for (std::uint64_t needed = 0; needed <= kBudget + 2; ++needed) {
    const Bytes raised = raised_lease(others, budget, own, {needed});
    ASSERT_LE(beside + raised, budget);
    ASSERT_GE(raised, own.lease);
    ASSERT_LE(raised, std::max(own.lease, Bytes{needed}));
    // The floor is there for whoever asks, whatever the others have or want.
    ASSERT_GE(raised, std::min(Bytes{needed}, own.floor));
    if (is_wanted(others)) {
      ASSERT_LE(raised, std::max(own.lease, fair));
    } else {
      ASSERT_EQ(raised, std::max(own.lease, std::min(Bytes{needed}, budget - beside)));
    }
  }
  for (std::uint64_t held = 0; held <= kBudget; ++held) {
    for (std::uint64_t committed = 0; committed <= held; ++committed) {
      const Bytes kept = kept_lease(others, budget, own, {{held}, {committed}});
      ASSERT_LE(kept, own.lease);
      ASSERT_GE(kept, std::min(own.lease, std::max(own.floor, Bytes{committed})));
      if (!is_wanted(others)) {
        ASSERT_EQ(kept, own.lease);
      } else {
        ASSERT_LE(kept, std::max({own.floor, Bytes{committed}, std::min(Bytes{held}, fair)}));
      }
    }
  }
}

TEST(SharePolicy, KeepsItsPromisesInEveryStateOfTwoProcesses) {
  std::uint64_t states = 0;
  for_each_slot([&](const ShareSlot& own) {
    check(own, {});
    for_each_slot([&](const ShareSlot& other) {
      if (sum({own, other}, claim) > Bytes{kBudget}) return;
      check(own, {other});
      ++states;
    });
  });
  EXPECT_GT(states, 1000U);
}

TEST(SharePolicy, KeepsItsPromisesInEveryStateOfThreeProcesses) {
  std::uint64_t states = 0;
  for_each_slot([&](const ShareSlot& own) {
    if (claimed(own) > Bytes{kBudget - 2} || testing::Test::HasFatalFailure()) return;
    for_each_slot([&](const ShareSlot& one) {
      if (sum({own, one}, claim) > Bytes{kBudget - 1}) return;
      for_each_slot([&](const ShareSlot& two) {
        if (sum({own, one, two}, claim) > Bytes{kBudget}) return;
        check(own, {one, two});
        ++states;
      });
    });
  });
  EXPECT_GT(states, 10000U);
}

TEST(SharePolicy, FloorsFitExactlyUpToTheBudget) {
  for (std::uint64_t a = 1; a <= kBudget; ++a) {
    for (std::uint64_t b = 1; b <= kBudget; ++b) {
      for (std::uint64_t floor = 1; floor <= kBudget + 1; ++floor) {
        const std::vector<ShareSlot> others{{{a}, {kBudget}, {}}, {{b}, {}, {}}};
        EXPECT_EQ(floors_fit(others, {kBudget}, {floor}), a + b + floor <= kBudget);
      }
    }
  }
}

TEST(SharePolicy, FairPartsOfAllProcessesFitInTheBudget) {
  for (std::uint64_t budget = 3; budget <= 12; ++budget) {
    for (std::uint64_t a = 1; a <= budget; ++a) {
      for (std::uint64_t b = 1; a + b <= budget; ++b) {
        for (std::uint64_t c = 1; a + b + c <= budget; ++c) {
          const std::vector<ShareSlot> all{{{a}, {}, {}}, {{b}, {}, {}}, {{c}, {}, {}}};
          ASSERT_LE(sum(all, floor_of), Bytes{budget});
          Bytes fair;
          for (std::size_t i = 0; i < all.size(); ++i) {
            std::vector<ShareSlot> others = all;
            others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
            fair += fair_part(others, {budget}, all[i]);
          }
          EXPECT_LE(fair, Bytes{budget});
          EXPECT_GT(fair + Bytes{3}, Bytes{budget}) << "nothing but the rounding is left over";
        }
      }
    }
  }
}

TEST(SharePolicy, NumbersBeyondTheBudgetLeaveNothingAndTakeNothing) {
  const Bytes huge{UINT64_MAX};
  const std::vector<ShareSlot> others{{huge, huge, huge}, {huge, {1}, huge}};
  EXPECT_EQ(left_by(others, {kBudget}), Bytes{});
  EXPECT_FALSE(floors_fit(others, {kBudget}, {1}));
  const ShareSlot own{{2}, {3}, {}};
  EXPECT_EQ(raised_lease(others, {kBudget}, own, {6}), Bytes{3}) << "it keeps what it has";
  EXPECT_EQ(kept_lease(others, {kBudget}, own, {{}, {}}), Bytes{2}) << "and at least its floor";
}

TEST(SharePolicy, WhatIsLeasedBeyondTheBudgetIsReturnedUnlessItIsCommitted) {
  // Such a state is possible only after a process could not see another's true lease.
  std::uint64_t states = 0;
  for_each_slot([&](const ShareSlot& own) {
    for_each_slot([&](const ShareSlot& other) {
      const std::vector<ShareSlot> others{other};
      const Bytes beside = minus_or_zero({kBudget}, other.lease);
      EXPECT_EQ(has_to_return(others, {kBudget}, own), is_wanted(others) || own.lease > beside);
      if (own.lease <= beside) return;
      for (std::uint64_t held = 0; held <= kBudget; ++held) {
        for (std::uint64_t committed = 0; committed <= held; ++committed) {
          const Bytes kept = kept_lease(others, {kBudget}, own, {{held}, {committed}});
          ASSERT_LE(kept, std::max({own.floor, Bytes{committed}, beside}));
          ASSERT_LE(kept, own.lease);
          ASSERT_GE(kept, std::min(own.lease, std::max(own.floor, Bytes{committed})));
        }
      }
      ++states;
    });
  });
  EXPECT_GT(states, 1000U);
}

TEST(SharePolicy, TwoWhoseLeasesExceedTheBudgetComeBackToItInAnyOrder) {
  for (unsigned order = 1; order < 256; ++order) {  // 0: the first would never have its turn
    ShareSlot a{{1}, {kBudget}, {kBudget}};
    ShareSlot b{{2}, {kBudget - 1}, {kBudget - 1}};
    for (unsigned step = 0; step < 8; ++step) {
      ShareSlot& own = ((order >> step) & 1U) != 0 ? a : b;
      const std::vector<ShareSlot> others{&own == &a ? b : a};
      own.lease = kept_lease(others, {kBudget}, own, {});
    }
    EXPECT_LE(sum({a, b}, lease_of), Bytes{kBudget}) << order;
  }
}

TEST(SharePolicy, TwoThatBothWantAllMeetAtTheirFairParts) {
  // Whatever the order of steps: each asks for all, and gives back while the other wants.
  for (unsigned order = 0; order < 256; ++order) {
    ShareSlot a{{1}, {kBudget - 1}, {kBudget}};
    ShareSlot b{{1}, {1}, {kBudget}};
    for (unsigned step = 0; step < 24; ++step) {
      ShareSlot& own = ((order >> (step % 8U)) & 1U) != 0 ? a : b;
      const std::vector<ShareSlot> others{&own == &a ? b : a};
      own.wanted = {kBudget};
      // Its batches settle; it goes on with what is left, and asks again.
      own.lease = kept_lease(others, {kBudget}, own, {own.lease, {}});
      own.lease = raised_lease(others, {kBudget}, own, {kBudget});
      ASSERT_LE(a.lease + b.lease, Bytes{kBudget});
    }
    if (order == 0 || order == 255) continue;  // only one of them had its turn
    EXPECT_EQ(a.lease, Bytes{3}) << order;
    EXPECT_EQ(b.lease, Bytes{3}) << order;
  }
}

}  // namespace
}  // namespace weir
