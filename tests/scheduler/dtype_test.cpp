// Tensors of every element type: what goes in and out, and what is refused.

#include "scheduler/dtype.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "rig.hpp"
#include "support/message_of.hpp"

namespace weir::testing {
/// A program's own type for the bits of a float16.
struct OwnHalf {
  std::uint16_t word;
  friend bool operator==(OwnHalf, OwnHalf) = default;
};
}  // namespace weir::testing

template <>
struct weir::DTypeOf<weir::testing::OwnHalf> {
  static constexpr DType kValue = DType::kFloat16;
};

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite
using ::testing::ElementsAre;
using ::testing::HasSubstr;

static_assert(Element<long> && Element<long long> && Element<std::byte> && Element<OwnHalf>);
static_assert(std::is_constructible_v<HostRoom, std::span<float>&>);
static_assert(!std::is_constructible_v<HostRoom, const std::vector<float>&>);
static_assert(!Element<double> && !Element<bool> && !Element<char> && !Element<std::uint32_t>);

template <typename T>
class TypedTensor : public ::testing::Test {
 protected:
  /// Five elements, each with other bits.
  [[nodiscard]] static std::vector<T> elements() {
    std::vector<T> made(5);
    for (std::size_t i = 0; i < made.size(); ++i)
      std::memset(static_cast<void*>(&made[i]), static_cast<int>(i) + 1, sizeof(T));
    return made;
  }
};
using ElementTypes = ::testing::Types<float, Float16, BFloat16, std::int32_t, std::int64_t,
                                      std::uint8_t, std::byte, OwnHalf>;
TYPED_TEST_SUITE(TypedTensor, ElementTypes);

TYPED_TEST(TypedTensor, ComesInIsComputedWithAndIsReadBack) {
  Rig rig;
  const std::vector<TypeParam> host = this->elements();
  const Tensor x = rig->copy_in(host, {5});
  EXPECT_EQ(x.dtype(), DTypeOf<TypeParam>::kValue);
  EXPECT_EQ(x.bytes(), Bytes{5 * sizeof(TypeParam)});
  const Tensor reversed = rig->empty({5}, x.dtype(), "reversed");
  rig->submit("reverse", {.reads = {x}, .writes = {reversed}}, [](Stream&, Inputs in, Outputs out) {
    std::ranges::reverse_copy(in.as<TypeParam>(0), out.as<TypeParam>(0).begin());
  });
  const std::vector<TypeParam> expected(host.rbegin(), host.rend());
  EXPECT_EQ(rig->read<TypeParam>(reversed), expected);
  std::array<TypeParam, 2> piece{};
  rig->read(reversed, 3, piece);
  EXPECT_EQ(piece[1], host[0]);
  rig->write(reversed, 0, piece);
  EXPECT_EQ(rig->read<TypeParam>(reversed)[1], host[0]);
}

TYPED_TEST(TypedTensor, TakesTheMemoryOfItsElements) {
  Rig rig;
  const std::size_t elements = kib(64).count / sizeof(TypeParam);
  const Tensor x = rig->empty({elements}, DTypeOf<TypeParam>::kValue);
  rig->submit("write", {.writes = {x}}, nothing());
  EXPECT_EQ(rig.pool.statistics().allocated.current, kib(64));
}

TEST(DTypes, AreFloat32UnlessSaid) {
  Rig rig;
  EXPECT_EQ(rig->empty({1}, "label").dtype(), DType::kFloat32);
  const std::vector<float> host(1);
  EXPECT_EQ(rig->copy_in(host, {1}).dtype(), DType::kFloat32);
  rig->wait_all();
  EXPECT_THAT(message_of<UsageError>([] { (void)Tensor().dtype(); }), HasSubstr("empty tensor"));
}

TEST(DTypes, OfAnotherTypeAreRefused) {
  Rig rig;
  const std::vector<std::int64_t> host{1, 2};
  const Tensor x = rig->copy_in(host, {2});
  std::vector<float> floats(2);
  EXPECT_EQ(message_of<UsageError>([&] { (void)rig->read(x); }),
            "read: the tensor of 2 has elements of int64, used as float32");
  EXPECT_THROW(rig->read(x, 0, floats), UsageError);
  EXPECT_EQ(message_of<UsageError>([&] { rig->write(x, 1, std::span(floats).first(1)); }),
            "write: the tensor of 2 has elements of int64, used as float32");
  EXPECT_THAT(rig->read<std::int64_t>(x), ElementsAre(1, 2)) << "nothing changed";
}

TEST(DTypes, AClosureThatTakesAnotherTypeFailsAndSaysWhichTensor) {
  Rig rig;
  const std::vector<std::int32_t> host{1, 2};
  const Tensor x = rig->copy_in(host, {2});
  const Tensor y = rig->empty({2}, DType::kBFloat16);
  rig->submit("mix", {.reads = {x, x}, .writes = {y}}, [](Stream&, Inputs in, Outputs) {
    EXPECT_EQ(in.bytes(1).size(), 8U);
    (void)in[1];
  });
  EXPECT_THAT(message_of<OperationError>([&] { rig->wait(y); }), HasSubstr("'mix'"));
  rig->submit("mix", {.writes = {y}}, [](Stream&, Inputs, Outputs out) {
    EXPECT_EQ(out.dtype(0), DType::kBFloat16);
    (void)out.as<Float16>(0);
  });
  EXPECT_THAT(message_of<OperationError>([&] { rig->wait(y); }),
              HasSubstr("output 0 has elements of bfloat16, used as float16"));
  settle(rig);
}

TEST(DTypes, TimesAShapeNeverOverflow) {
  EXPECT_THROW((Shape{SIZE_MAX / 8 + 1}), UsageError);
  EXPECT_THROW((Shape{std::size_t{1} << 31U, std::size_t{1} << 30U}), UsageError);
  const Shape huge{SIZE_MAX / 8};
  EXPECT_EQ(huge.bytes(DType::kInt64), Bytes{SIZE_MAX - 7});
  Rig rig;
  const Tensor x = rig->empty(huge, DType::kInt64);
  EXPECT_THROW(rig->submit("write", {.writes = {x}}, nothing()), OutOfMemory);
  expect_idle(rig);
}

}  // namespace
}  // namespace weir
