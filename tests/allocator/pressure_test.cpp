#include "allocator/base/pressure.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "support/print.hpp"

namespace weir {
namespace {

constexpr std::array kLevels{PressureLevel::kNone, PressureLevel::kSoft, PressureLevel::kHard};

/// Whether `held` is at least `percent` of `budget` and above zero.
bool reaches(std::uint64_t held, std::uint64_t budget, unsigned percent) {
  return held > 0 && held * 100 >= budget * percent;
}

PressureLevel as_specified(std::uint64_t held, std::uint64_t budget, PressureLevel before,
                           const PressureLimits& l) {
  const unsigned hard = before == PressureLevel::kHard ? l.hard_leave : l.hard_enter;
  const unsigned soft = before == PressureLevel::kNone ? l.soft_enter : l.soft_leave;
  if (reaches(held, budget, hard)) return PressureLevel::kHard;
  return reaches(held, budget, soft) ? PressureLevel::kSoft : PressureLevel::kNone;
}

TEST(Pressure, FollowsItsLimitsInEverySmallState) {
  const PressureLimits limits;
  for (std::uint64_t budget = 1; budget <= 250; ++budget) {
    for (std::uint64_t held = 0; held <= budget + 10; ++held) {
      for (const PressureLevel before : kLevels) {
        ASSERT_EQ(pressure_level({held}, {budget}, before),
                  as_specified(held, budget, before, limits))
            << held << " held of " << budget << ", before " << static_cast<int>(before);
      }
    }
  }
}

TEST(Pressure, StaysAsLongAsWhatIsHeldIsInTheSteadyRange) {
  for (std::uint64_t budget = 1; budget <= 250; ++budget) {
    for (std::uint64_t held = 0; held <= budget + 10; ++held) {
      for (const PressureLevel level : kLevels) {
        ASSERT_EQ(steady_range({budget}, level).contains({held}),
                  pressure_level({held}, {budget}, level) == level)
            << held << " held of " << budget << " at " << static_cast<int>(level);
      }
    }
  }
}

TEST(Pressure, ALevelIsLeftLowerThanItIsEntered) {
  // Soft is entered at 75% and left below 65%; hard at 95% and below 85%.
  EXPECT_EQ(pressure_level({74}, {100}, PressureLevel::kNone), PressureLevel::kNone);
  EXPECT_EQ(pressure_level({75}, {100}, PressureLevel::kNone), PressureLevel::kSoft);
  EXPECT_EQ(pressure_level({65}, {100}, PressureLevel::kSoft), PressureLevel::kSoft);
  EXPECT_EQ(pressure_level({64}, {100}, PressureLevel::kSoft), PressureLevel::kNone);
  EXPECT_EQ(pressure_level({94}, {100}, PressureLevel::kSoft), PressureLevel::kSoft);
  EXPECT_EQ(pressure_level({95}, {100}, PressureLevel::kSoft), PressureLevel::kHard);
  EXPECT_EQ(pressure_level({85}, {100}, PressureLevel::kHard), PressureLevel::kHard);
  EXPECT_EQ(pressure_level({84}, {100}, PressureLevel::kHard), PressureLevel::kSoft);
}

TEST(PressureGauge, KnowsHowLongEachLevelHasLasted) {
  using std::chrono::milliseconds;
  const PressureGauge::Clock::time_point start{};
  PressureGauge gauge({100}, start);
  EXPECT_FALSE(gauge.follow({74}, start + milliseconds(1)));
  EXPECT_TRUE(gauge.follow({95}, start + milliseconds(3)));
  EXPECT_FALSE(gauge.follow({85}, start + milliseconds(5)));
  EXPECT_TRUE(gauge.follow({84}, start + milliseconds(8)));
  gauge.set_budget({80});
  EXPECT_FALSE(gauge.steady().contains({84}));
  EXPECT_TRUE(gauge.follow({84}, start + milliseconds(9)));
  EXPECT_EQ(gauge.level(), PressureLevel::kHard);
  EXPECT_EQ(gauge.times(start + milliseconds(20)),
            (PressureTimes{milliseconds(3), milliseconds(1), milliseconds(16)}));
}

TEST(Pressure, DoesNotOverflow) {
  EXPECT_EQ(pressure_level({UINT64_MAX}, {UINT64_MAX}, PressureLevel::kNone), PressureLevel::kHard);
  EXPECT_EQ(pressure_level({UINT64_MAX / 2}, {UINT64_MAX}, PressureLevel::kNone),
            PressureLevel::kNone);
  EXPECT_EQ(pressure_level({UINT64_MAX / 5 * 4}, {UINT64_MAX}, PressureLevel::kNone),
            PressureLevel::kSoft);
}

}  // namespace
}  // namespace weir
