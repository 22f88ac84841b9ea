// What copy_in and write do with the caller's memory: copy it, take it over, or leave it lent.

#include "scheduler/host_data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <future>
#include <memory_resource>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rig.hpp"

namespace weir {
namespace {

using ::testing::Each;
using testing::Gate;
using testing::Rig;
using testing::RigOptions;

template <typename Range>
concept Lendable = requires(Range&& range) {
  borrowed(std::forward<Range>(range));
};
static_assert(Lendable<std::vector<float>&> && Lendable<const std::vector<float>&>);
static_assert(Lendable<std::span<const float>> && Lendable<std::array<float, 2>&>);
static_assert(!Lendable<std::vector<float>> && !Lendable<std::array<float, 2>>);
static_assert(!Lendable<HostData>);

constexpr std::size_t kFloats = 4096;

enum class Call : std::uint8_t { kCopyIn, kWrite };

/// Both calls, with the copies held back on the device.
class HostMemory : public ::testing::TestWithParam<Call> {
 protected:
  explicit HostMemory(const RigOptions& options = {})
      : rig(options), gate(rig.hold(StreamRole::kCopyIn)) {}

  [[nodiscard]] Tensor copy(const HostData& host) {
    if (GetParam() == Call::kCopyIn) return rig->copy_in(host, {host.size()});
    Tensor tensor = rig->empty({host.size()}, host.dtype());
    rig->write(tensor, 0, host);
    return tensor;
  }
  /// Returns the bytes of the host upstream that copies keep.
  [[nodiscard]] Bytes staging() {
    return dynamic_cast<HostMemoryUpstream&>(rig.backend.host_upstream()).used();
  }

  Rig rig;
  Gate& gate;
};

TEST_P(HostMemory, MayBeATemporaryOfAnyKind) {
  const Tensor vector = copy(std::vector<float>(kFloats, 1));
  const Tensor array = copy(std::array<float, 3>{2, 2, 2});
  std::vector<float> under_a_view(kFloats, 3);
  const Tensor view = copy(std::span<const float>(under_a_view));
  under_a_view.assign(kFloats, -1);
  gate.open();
  EXPECT_THAT(rig->read(vector), Each(1));
  EXPECT_THAT(rig->read(array), Each(2));
  EXPECT_THAT(rig->read(view), Each(3));
}

TEST_P(HostMemory, OfAMovedVectorIsTakenOverAndNotCopied) {
  std::vector<float> host(kFloats, 1);
  float* const elements = host.data();
  const Tensor tensor = copy(std::move(host));
  EXPECT_TRUE(host.empty());  // NOLINT(bugprone-use-after-move): it is documented
  EXPECT_EQ(staging(), Bytes{});
  std::fill_n(elements, kFloats, 2.0F);
  gate.open();
  EXPECT_THAT(rig->read(tensor), Each(2));
}

TEST_P(HostMemory, OfAMovedVectorWhoseAllocatorMayEndFirstIsCopied) {
  Tensor tensor;
  {
    std::pmr::monotonic_buffer_resource arena;
    std::pmr::vector<float> host(kFloats, 1.0F, &arena);
    tensor = copy(std::move(host));
  }
  gate.open();
  EXPECT_THAT(rig->read(tensor), Each(1));
}

TEST_P(HostMemory, ThatIsBorrowedIsReadWhenTheDeviceComesToIt) {
  std::vector<float> host(kFloats, 1);
  const Tensor tensor = copy(borrowed(host));
  EXPECT_EQ(staging(), Bytes{});
  host.assign(kFloats, 2);
  gate.open();
  EXPECT_THAT(rig->read(tensor), Each(2));
}

TEST_P(HostMemory, IsCopiedBeforehandWhereTheDeviceCannotCopyLate) {
  rig.backend.stages_copies = true;
  std::vector<float> lent(kFloats, 1);
  const Tensor first = copy(borrowed(lent));
  lent.assign(kFloats, -1);
  const Tensor second = copy(std::vector<float>(kFloats, 2));
  gate.open();
  EXPECT_THAT(rig->read(first), Each(1));
  EXPECT_THAT(rig->read(second), Each(2));
}

INSTANTIATE_TEST_SUITE_P(Of, HostMemory, ::testing::Values(Call::kCopyIn, Call::kWrite),
                         [](const auto& call) {
                           return std::string(call.param == Call::kCopyIn ? "CopyIn" : "Write");
                         });

TEST(HostData, OfAVectorThatIsMovedInTheSameCallHasItsSizeStill) {
  Rig rig;
  std::vector<float> host(kFloats, 1);
  // NOLINTNEXTLINE(bugprone-use-after-move): the call takes it, not the conversion
  const Tensor tensor = rig->copy_in(std::move(host), {host.size()});
  EXPECT_THAT(rig->read(tensor), Each(1));
}

TEST(HostData, OfAMovedVectorServesOneCall) {
  Rig rig;
  std::vector<float> host(kFloats, 1);
  const HostData moved(std::move(host));
  const Tensor tensor = rig->copy_in(moved, {kFloats});
  EXPECT_THROW((void)rig->copy_in(moved, {kFloats}), UsageError);
  EXPECT_THAT(rig->read(tensor), Each(1));
}

/// A device whose host memory is scarce. Copies may have half of it.
class ScarceHostMemory : public ::testing::Test {
 protected:
  static constexpr Bytes kHost = mib(2);

  /// Returns what `call` returns, which waits for the device while copies are held back.
  template <typename Function>
  auto held_back(const Function& call) {
    const std::uint64_t before = rig.backend.waits();
    std::atomic<bool> returned = false;
    auto result = std::async(std::launch::async, [&] {
      auto got = call();
      returned = true;
      rig.backend.nudge();
      return got;
    });
    EXPECT_TRUE(rig.backend.await_waits(before + 1, &returned)) << "it did not wait";
    gate.open();
    return result.get();
  }
  [[nodiscard]] Tensor copy(float value, Bytes bytes) {
    const std::vector<float> local(bytes.count / sizeof(float), value);
    return rig->copy_in(local, {local.size()});
  }

  Rig rig{{.host_memory = kHost}};
  Gate& gate = rig.hold(StreamRole::kCopyIn);
};

TEST_F(ScarceHostMemory, MakesACopyWaitAndNotFail) {
  const Tensor first = copy(1, mib(1));
  const Tensor second = held_back([&] { return copy(2, mib(1)); });
  const Tensor larger_than_all = copy(3, mib(8));
  EXPECT_THAT(rig->read(first.rows(0, kFloats)), Each(1));
  EXPECT_THAT(rig->read(second), Each(2));
  EXPECT_THAT(rig->read(larger_than_all.rows(0, kFloats)), Each(3));
}

TEST_F(ScarceHostMemory, MakesAReadWaitForCopiesAndNotFail) {
  const Tensor copied = copy(1, mib(1));
  const Tensor whole = rig.filled(kHost, 4);
  EXPECT_THAT(held_back([&] { return rig->read(whole); }), Each(4));
  EXPECT_THROW((void)rig->read(rig.filled(kHost * 2, 5)), OutOfMemory);
}

}  // namespace
}  // namespace weir
