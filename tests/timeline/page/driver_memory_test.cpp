// Driver memory in the page: over time, and by library.

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "timeline/support/counted_processes.hpp"
#include "tools/timeline/page/memory.hpp"

namespace weir::timeline {
namespace {

using testing::driver_memory_process;
using testing::kMiB;
using testing::kStep;

class DriverPicture : public ::testing::Test {
 protected:
  [[nodiscard]] MemoryPicture picture(const std::string& name) const {
    for (const PoolRecords& pool : pools_of(process_)) {
      if (pool.name == name) {
        return picture_of(process_, pool, batch_kinds(process_), 7 * kStep, {});
      }
    }
    ADD_FAILURE() << "no picture of " << name;
    return {};
  }
  /// The bytes of a library in each row; none if the picture has no such layer.
  [[nodiscard]] std::vector<std::uint64_t> layer(const MemoryPicture& drawn,
                                                 const std::string& library) const {
    const auto& keys = drawn.keys[static_cast<std::size_t>(Keying::kLabel)];
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (process_.name(keys[i]) == library) {
        return column(drawn, kStackColumn + i);
      }
    }
    return {};
  }
  [[nodiscard]] static std::vector<std::uint64_t> column(const MemoryPicture& drawn,
                                                         std::size_t column) {
    std::vector<std::uint64_t> values;
    for (std::size_t i = 0; i < drawn.series.rows(); ++i) {
      values.push_back(static_cast<std::uint64_t>(drawn.series.row(i)[column]));
    }
    return values;
  }

  Process process_ = driver_memory_process();
};

using Bytes = std::vector<std::uint64_t>;

TEST_F(DriverPicture, DrawsDeviceMemoryOverTimeAndByLibrary) {
  const MemoryPicture drawn = picture("Device memory from the driver");
  EXPECT_TRUE(drawn.driver);
  EXPECT_FALSE(drawn.host);
  constexpr std::uint64_t kMs = kStep;
  EXPECT_EQ(column(drawn, kTimeColumn), (Bytes{kMs, 2 * kMs, 4 * kMs, 5 * kMs, 6 * kMs, 7 * kMs}));
  EXPECT_EQ(column(drawn, kHeldColumn),
            (Bytes{kMiB, 9 * kMiB, 13 * kMiB, 5 * kMiB, 4 * kMiB, 4 * kMiB}));
  EXPECT_EQ(layer(drawn, "libnccl.so.2"), (Bytes{kMiB, kMiB, kMiB, kMiB, 0, 0}));
  EXPECT_EQ(layer(drawn, "libcublas.so.13"),
            (Bytes{0, 8 * kMiB, 12 * kMiB, 4 * kMiB, 4 * kMiB, 4 * kMiB}));
  EXPECT_EQ(drawn.peak, 13 * kMiB);
  EXPECT_EQ(drawn.peak_time, 4 * kMs);
}

TEST_F(DriverPicture, ListsTheBlocksOfAMomentWithTheirLibraries) {
  const MemoryPicture drawn = picture("Device memory from the driver");
  std::vector<std::tuple<std::string, std::uint64_t>> held;
  for (const BlockLife* life : alive_at(drawn.lives, 4 * kStep, SIZE_MAX)) {
    held.emplace_back(process_.name(life->block.name), life->block.bytes);
  }
  using Held = std::vector<std::tuple<std::string, std::uint64_t>>;
  EXPECT_EQ(
      held,
      (Held{{"libcublas.so.13", 8 * kMiB}, {"libcublas.so.13", 4 * kMiB}, {"libnccl.so.2", kMiB}}));
}

TEST_F(DriverPicture, PinnedMemoryIsAPictureOfItsOwn) {
  const MemoryPicture drawn = picture("Pinned memory from the driver");
  EXPECT_TRUE(drawn.host);
  EXPECT_EQ(layer(drawn, "libnccl.so.2"), (Bytes{kMiB / 16}));
}

TEST_F(DriverPicture, DrawsWhatTheDriversOwnPoolsUseAndReserve) {
  const MemoryPicture drawn = picture("The driver's own pools");
  EXPECT_TRUE(drawn.driver);
  EXPECT_EQ(column(drawn, kTimeColumn), (Bytes{kStep, 3 * kStep, 5 * kStep}));
  EXPECT_EQ(column(drawn, kHeldColumn), (Bytes{0, 2 * kMiB, 2 * kMiB}));
  EXPECT_EQ(column(drawn, kReservedColumn), (Bytes{32 * kMiB, 32 * kMiB, 4 * kMiB}));
  EXPECT_EQ(column(drawn, kRequestedColumn), column(drawn, kAllocatedColumn)) << "none is rounded";
}

TEST_F(DriverPicture, APoolThatIsDestroyedHoldsNothing) {
  process_.records.push_back(
      {.begin = 6 * kStep, .sequence = 0xA, .kind = TimelineKind::kDriverPool, .detail = 2});
  const MemoryPicture drawn = picture("The driver's own pools");
  EXPECT_EQ(column(drawn, kReservedColumn).back(), 0U);
}

}  // namespace
}  // namespace weir::timeline
