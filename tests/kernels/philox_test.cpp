#include "kernels/parts/philox.hpp"

#include <gtest/gtest.h>

#include <array>

namespace {

using weir::philox4x32;
using weir::PhiloxKey;
using weir::PhiloxWords;

struct KnownAnswer {
  PhiloxWords counter;
  PhiloxKey key;
  PhiloxWords result;
};

// The lines "philox4x32 10" of Random123's tests/kat_vectors.
constexpr std::array<KnownAnswer, 3> kKnownAnswers{{
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
}};

constexpr bool compiler_gives(const KnownAnswer& known) {
  return philox4x32(known.counter, known.key) == known.result;
}
static_assert(compiler_gives(kKnownAnswers[0]));
static_assert(compiler_gives(kKnownAnswers[1]));
static_assert(compiler_gives(kKnownAnswers[2]));

TEST(Philox, GivesTheKnownAnswersOfRandom123AtRunTime) {
  for (const KnownAnswer& known : kKnownAnswers) {
    const volatile std::uint32_t first = known.counter.x;
    PhiloxWords counter = known.counter;
    counter.x = first;
    const PhiloxWords drawn = philox4x32(counter, known.key);
    EXPECT_EQ(drawn.x, known.result.x);
    EXPECT_EQ(drawn.y, known.result.y);
    EXPECT_EQ(drawn.z, known.result.z);
    EXPECT_EQ(drawn.w, known.result.w);
  }
}

}  // namespace
