// What the fake that other tests rest on finds wrong.

#include "support/manual_progress.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "support/print.hpp"

namespace weir::testing {
namespace {

TEST(ManualProgressTest, NoticesALockAndAWaitForWhatNobodySubmitted) {
  static ManualProgress fake;
  static const StreamId kStream = StreamId::next();
  EXPECT_NONFATAL_FAILURE(
      {
        Mutex mutex(LockRank::kPool);
        const Lock lock(mutex);
        (void)fake.passed(kStream);
      },
      "while a lock is held");
  EXPECT_NONFATAL_FAILURE((void)fake.wait({kStream, 7}, {}), "nobody has submitted");
}

}  // namespace
}  // namespace weir::testing
