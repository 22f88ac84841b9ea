// With several streams held at once. Not for a GPU: a gate there is a host function, and CUDA may
// run host functions of all streams one after the other.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "scheduler/device/kit.hpp"
#include "scheduler/scheduler.hpp"
#include "support/gate.hpp"
#include "support/held.hpp"
#include "support/print.hpp"

namespace weir {
namespace {

using testing::Gate;
using testing::kit;

class AllWhileHeld : public ::testing::Test {
 protected:
  AllWhileHeld() {
    testing::expect_named_while_held();
    for (const StreamRole role : kAllRoles) {
      Gate& gate = gates[index_of(role)];
      scheduler.submit("hold", {.stream = role}, [&gate](Stream& stream, Inputs, Outputs) {
        kit().step(stream, [&gate] { gate.pass(); });
      });
    }
  }
  ~AllWhileHeld() override { open(); }
  void open() {
    for (Gate& gate : gates) gate.open();
  }

  std::array<Gate, kStreamRoles> gates;  // operations wait at them: outlives the scheduler
  Device device{kit().open(mib(8))};
  Pool pool{device.memory()};
  Scheduler scheduler{device, pool};
};

TEST_F(AllWhileHeld, StreamsRunSideBySide) {
  for (Gate& gate : gates) gate.await_arrival();  // all stand at theirs at once
}

TEST_F(AllWhileHeld, NothingBlocksInSubmission) {
  const Shape shape{4096};
  Upstream& host = device.backend().host_upstream();
  auto* const values = static_cast<float*>(host.allocate(shape.bytes()));
  ASSERT_NE(values, nullptr);
  std::fill_n(values, shape.elements(), 1.0F);
  const auto copy = [](Stream& stream, Inputs in, Outputs out) {
    stream.copy(out[0].data(), in[0].data(), {in[0].size_bytes()});
  };
  // A call that waited for the device would never return.
  Tensor x = scheduler.copy_in(borrowed(std::span(values, shape.elements())), shape);
  Tensor y = scheduler.empty(shape);
  scheduler.submit("copy", {.reads = {x}, .writes = {y}}, copy);
  x = {};
  const Tensor z = scheduler.empty(shape);
  scheduler.submit("copy", {.reads = {y}, .writes = {z}, .stream = StreamRole::kCompute2}, copy);
  y = {};
  EXPECT_FALSE(scheduler.reached(scheduler.written(z)));
  EXPECT_EQ(pool.statistics().waits, 0U);
  open();
  EXPECT_EQ(scheduler.read(z), std::vector<float>(shape.elements(), 1.0F));
  host.deallocate(values, shape.bytes());
}

}  // namespace
}  // namespace weir
