// Views: parts of tensors, and their bytes in other shapes and dtypes, share memory, order, errors
// and life with the tensor.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

#include "rig.hpp"
#include "support/message_of.hpp"
#include "support/random_seed.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A tensor of int32 with 0, 1, 2, ...
Tensor counting(Rig& rig, const Shape& shape) {
  std::vector<std::int32_t> host(shape.elements());
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<std::int32_t>(i);
  Tensor tensor = rig->copy_in(host, shape);
  rig->wait(tensor);  // `host` ends
  return tensor;
}

TEST(View, IsAPartByRowsAnotherShapeOrOtherBytes) {
  Rig rig;
  const Tensor x = counting(rig, {4, 3});
  EXPECT_THAT(rig->read<std::int32_t>(x.rows(1, 2)), ElementsAre(3, 4, 5, 6, 7, 8));
  EXPECT_EQ(x.rows(1, 2).shape(), (Shape{2, 3}));
  EXPECT_THAT(rig->read<std::int32_t>(x.reshape({2, 6}).rows(1, 1)),
              ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(rig->read<std::int32_t>(x.rows(1, 3).reshape({9}).rows(4, 2).rows(1, 1)),
              ElementsAre(8))
      << "a view of a view of a view";
  const Tensor low = x.rows(3, 1).view({4}, {2}, DType::kUInt8);
  EXPECT_THAT(rig->read<std::uint8_t>(low), ElementsAre(10, 0));
  EXPECT_EQ(x.as_bytes().shape(), Shape{48});
  EXPECT_EQ(rig->read<std::byte>(x.as_bytes())[44], std::byte{11});
}

TEST(View, RefersToTheSameElementsAsAnEqualOne) {
  Rig rig;
  const Tensor x = rig->empty({4, 3}, DType::kInt32);
  EXPECT_EQ(x.rows(0, 4), x);
  EXPECT_EQ(x.rows(1, 3).rows(1, 1), x.rows(2, 1));
  EXPECT_FALSE(x.rows(1, 1) == x.rows(2, 1));
  EXPECT_FALSE(x.reshape({12}) == x);
  EXPECT_FALSE(x.view({}, x.shape(), DType::kFloat32) == x);
  EXPECT_EQ(Tensor(), Tensor());
  EXPECT_EQ(x.handles(), 1U);
  const Tensor view = x.rows(1, 1);
  EXPECT_EQ(view.handles(), 2U);
}

TEST(View, WrittenIsATensorWritten) {
  Rig rig;
  const Tensor x = counting(rig, {6});
  rig->submit("fill", {.writes = {x.rows(2, 3)}, .stream = StreamRole::kCompute2},
              [](Stream&, Inputs, Outputs out) { std::ranges::fill(out.as<std::int32_t>(0), 9); });
  EXPECT_EQ(rig->written(x), rig->written(x.rows(0, 1)));
  EXPECT_THAT(rig->read<std::int32_t>(x), ElementsAre(0, 1, 9, 9, 9, 5));
  const std::vector<std::int32_t> seven{7};
  rig->write(x.rows(2, 3), 1, seven);
  EXPECT_THAT(rig->read<std::int32_t>(x), ElementsAre(0, 1, 9, 7, 9, 5));
}

TEST(View, WrittenFirstGivesTheWholeTensorMemory) {
  Rig rig;
  const Tensor x = rig->empty(shape_of(kib(64)), "parts");
  const Tensor part = x.rows(16, 16);
  EXPECT_THAT(message_of<UsageError>([&] { (void)rig->read(part); }), HasSubstr("parts"));
  rig->submit("fill", {.writes = {part}}, fill(3));
  EXPECT_EQ(rig.pool.statistics().allocated.current, kib(64));
  rig->submit("fill", {.writes = {x.rows(0, 16)}}, fill(2));
  EXPECT_EQ(rig.pool.statistics().allocated.current, kib(64));
  EXPECT_EQ(rig->read(x)[15], 2);
  EXPECT_EQ(rig->read(x)[16], 3);
}

TEST(View, OutlivesTheHandleOfItsTensor) {
  Rig rig;
  std::optional<Tensor> view;
  {
    const Tensor x = rig.filled(kib(64), 5);
    view = x.rows(100, 2).rows(1, 1);
  }
  EXPECT_EQ(rig.pool.statistics().allocated.current, kib(64));
  const Tensor other = rig.filled(kib(64), 6);
  EXPECT_THAT(rig->read(*view), ElementsAre(5));
  view.reset();
  EXPECT_EQ(rig.pool.statistics().allocated.current, kib(64)) << "the other's";
}

TEST(View, OutlivesItsScheduler) {
  Tensor view;
  {
    Rig rig;
    view = rig.filled(kib(64), 5).rows(1, 7);
  }
  EXPECT_EQ(view.rows(3, 2).shape(), Shape{2});
}

TEST(View, AndItsTensorMayBeInOneOperation) {
  Rig rig;
  const std::vector<float> host{1, 2, 3, 4};
  const Tensor x = rig->copy_in(host, {2, 2});
  rig->submit("move", {.reads = {x.rows(0, 1), x}, .writes = {x.rows(1, 1)}},
              [](Stream&, Inputs in, Outputs out) {
                std::ranges::copy(in[0], out[0].begin());
                EXPECT_EQ(in[1].size(), 4U);
                EXPECT_EQ(in[1].data() + 2, out[0].data());
              });
  EXPECT_THAT(rig->read(x), ElementsAre(1, 2, 1, 2));
}

TEST(View, OutsideItsTensorIsRefused) {
  Rig rig;
  const Tensor x = rig->empty({4, 3}, DType::kInt32);
  const Tensor part = x.rows(1, 2);
  EXPECT_EQ(message_of<UsageError>([&] { (void)part.rows(1, 2); }),
            "rows: 2 from row 1 on, of a tensor of 2x3: at least one, and all of them in the "
            "tensor");
  EXPECT_THROW((void)x.rows(2, 0), UsageError);
  EXPECT_THROW((void)x.rows(SIZE_MAX, 2), UsageError);
  EXPECT_THROW((void)x.rows(2, SIZE_MAX), UsageError);
  EXPECT_THAT(message_of<UsageError>([&] {
                (void)x.reshape({5, 2});
              }),
              HasSubstr("12 elements, and 5x2 are 10"));
  EXPECT_THROW((void)x.reshape({}), UsageError);
  EXPECT_EQ(message_of<UsageError>([&] { (void)part.view({20}, {2}, DType::kInt32); }),
            "view: 2 of int32 from byte 20 on are 8 bytes, of 24");
  EXPECT_THROW((void)part.view({SIZE_MAX - 3}, {1}, DType::kInt32), UsageError);
  EXPECT_THROW((void)part.view({}, {SIZE_MAX / 8}, DType::kInt64), UsageError);
  EXPECT_THROW((void)part.view({}, {}, DType::kInt64), UsageError);
  for (const auto& call : std::vector<std::function<void()>>{
           [] { (void)Tensor().rows(0, 1); }, [] { (void)Tensor().reshape({1}); },
           [] { (void)Tensor().view({}, {1}, DType::kUInt8); },
           [] { (void)Tensor().as_bytes(); }}) {
    EXPECT_THAT(message_of<UsageError>(call), HasSubstr("empty tensor handle"));
  }
  EXPECT_EQ(x.handles(), 2U) << "no refusal kept a handle";
}

TEST(View, ThatIsMisalignedIsRefused) {
  Rig rig;
  const Tensor bytes = rig->empty({64}, DType::kUInt8);
  EXPECT_EQ(message_of<UsageError>([&] { (void)bytes.rows(6, 20).view({4}, {2}, DType::kInt32); }),
            "view: 2 of int32 from byte 4 on begins at byte 10 of its tensor: allowed is a "
            "multiple of 4");
  EXPECT_EQ(bytes.rows(6, 20).view({2}, {2}, DType::kInt32), bytes.view({8}, {2}, DType::kInt32))
      << "the tensor's bytes count, not the view's";
  EXPECT_THROW((void)bytes.view({4}, {1}, DType::kInt64), UsageError);
}

TEST(View, SharesTheErrorOfItsTensorUntilAllOfItIsWritten) {
  Rig rig;
  const Tensor x = rig.filled(kib(4), 1);
  rig->submit("break", {.writes = {x.rows(0, 8)}}, broken("lost"));
  EXPECT_THAT(message_of<Error>([&] { (void)rig->read(x.rows(100, 1)); }), HasSubstr("lost"));
  rig->submit("fill a part", {.writes = {x.rows(0, 8)}}, [](Stream&, Inputs, Outputs) {
    ADD_FAILURE() << "a part of what is lost was written";
  });
  EXPECT_THAT(message_of<Error>([&] { rig->wait(x); }), HasSubstr("lost"));
  rig->submit("fill", {.writes = {x.as_bytes().view({}, x.shape(), x.dtype())}}, fill(2));
  EXPECT_THAT(rig->read(x.rows(0, 8)), Each(2)) << "all of it, though by a view";
  settle(rig);
}

// Operations on random parts of one tensor on random streams, against one array.
TEST(View, RandomReadsAndWritesOnAllStreamsMatchAModel) {
  constexpr std::size_t kRows = 24;
  constexpr std::size_t kColumns = 4;
  Rig rig;
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t end) { return random() % end; };
  const Tensor x = counting(rig, {kRows, kColumns});
  std::vector<std::int32_t> model = rig->read<std::int32_t>(x);
  std::vector<std::pair<Tensor, std::vector<std::int32_t>>> copies;
  for (std::int32_t i = 0; i < 400; ++i) {
    const std::size_t outer = below(kRows);
    const std::size_t outer_rows = 1 + below(kRows - outer);
    const std::size_t inner = below(outer_rows);
    const std::size_t rows = 1 + below(outer_rows - inner);
    const Tensor part = x.rows(outer, outer_rows).rows(inner, rows);
    const auto first = model.begin() + std::ptrdiff_t((outer + inner) * kColumns);
    const auto last = first + std::ptrdiff_t(rows * kColumns);
    const StreamRole role = kAllRoles.at(below(kStreamRoles));
    if (below(3) == 0) {
      Tensor copy = rig->empty(part.shape(), DType::kInt32);
      rig->submit("copy", {.reads = {part}, .writes = {copy}, .stream = role},
                  [](Stream& stream, Inputs in, Outputs out) {
                    stream.copy(out.bytes(0).data(), in.bytes(0).data(), {in.bytes(0).size()});
                  });
      copies.emplace_back(std::move(copy), std::vector<std::int32_t>(first, last));
    } else {
      rig->submit("fill", {.writes = {part}, .stream = role}, [i](Stream&, Inputs, Outputs out) {
        std::ranges::fill(out.as<std::int32_t>(0), i);
      });
      std::fill(first, last, i);
    }
  }
  for (const auto& [copy, expected] : copies) EXPECT_EQ(rig->read<std::int32_t>(copy), expected);
  EXPECT_EQ(rig->read<std::int32_t>(x), model);
}

}  // namespace
}  // namespace weir
