#include "tools/torch/books/routes.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace weir::testing {
namespace {

using Routes = torch_plug::Routes<int, int>;

TEST(TorchRoutes, MatchNothingWhileNoPoolIsOpen) {
  const Routes routes;
  EXPECT_FALSE(routes.any());
  EXPECT_FALSE(routes.match(0, 7));
}

TEST(TorchRoutes, MatchByDeviceAndFilter) {
  Routes routes;
  routes.open(1, 10, [](int stream) { return stream == 7; });
  EXPECT_TRUE(routes.match(1, 7));
  EXPECT_FALSE(routes.match(1, 8));
  EXPECT_FALSE(routes.match(0, 7));
}

TEST(TorchRoutes, CloseOnlyTheirPool) {
  Routes routes;
  routes.open(0, 10, [](int stream) { return stream == 7; });
  routes.open(0, 11, [](int stream) { return stream == 8; });
  routes.close(1, 10);  // of another device
  routes.close(0, 12);  // not open
  EXPECT_TRUE(routes.match(0, 7));
  routes.close(0, 10);
  EXPECT_FALSE(routes.match(0, 7));
  EXPECT_TRUE(routes.match(0, 8));
  routes.close(0, 11);
  EXPECT_FALSE(routes.any());
}

TEST(TorchRoutes, AFilterMayUseThem) {
  Routes routes;
  routes.open(0, 10, [&routes](int stream) {
    routes.close(0, 10);
    return stream == 7;
  });
  EXPECT_TRUE(routes.match(0, 7));
  EXPECT_FALSE(routes.any());
}

TEST(TorchRoutes, AFilterGoesWithItsPool) {
  Routes routes;
  const auto kept = std::make_shared<int>(1);
  routes.open(0, 10, [kept](int stream) { return stream == *kept; });
  EXPECT_EQ(kept.use_count(), 2);
  routes.close(0, 10);
  EXPECT_EQ(kept.use_count(), 1);
}

TEST(TorchRoutes, ThreadsMatchWhilePoolsOpenAndClose) {
  Routes routes;
  routes.open(0, 1, [](int stream) { return stream == 1; });
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::thread matching([&] {
    while (!done.load()) {
      if (!routes.match(0, 1) || routes.match(0, 3)) ++wrong;
    }
  });
  for (int i = 0; i < 2000; ++i) {
    routes.open(0, 2, [](int stream) { return stream == 2; });
    routes.close(0, 2);
  }
  done = true;
  matching.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace weir::testing
