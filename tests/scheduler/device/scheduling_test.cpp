// The scheduler and the pool on the device in this program's kit: each test holds one stream and
// would see wrong bytes, or a free that came too early, if an order between two streams were lost.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <deque>
#include <memory>
#include <numeric>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/base/error.hpp"
#include "scheduler/device/kit.hpp"
#include "scheduler/scheduler.hpp"
#include "support/gate.hpp"
#include "support/held.hpp"
#include "support/options_of.hpp"
#include "support/print.hpp"

namespace weir {
namespace {

using testing::Gate;
using testing::kit;

constexpr std::size_t kElements = 4096;
constexpr Bytes kTensor{kElements * sizeof(float)};

/// The float whose bytes are all `byte`.
float value_of(unsigned char byte) {
  const std::uint32_t word = 0x01010101U * byte;
  return std::bit_cast<float>(word);
}

auto set_all(unsigned char byte) {
  return [byte](Stream& stream, Inputs, Outputs out) {
    kit().set_bytes(stream, out[0].data(), byte, {out[0].size_bytes()});
  };
}

void copy_first(Stream& stream, Inputs in, Outputs out) {
  stream.copy(out[0].data(), in[0].data(), {in[0].size_bytes()});
}

/// Whoever fails to wait goes on first.
void open_late(Gate& gate) {
  testing::give_others_a_chance();
  gate.open();
}

class SchedulingTest : public ::testing::Test {
 protected:
  SchedulingTest() { start(mib(1)); }
  ~SchedulingTest() override {
    for (Gate& gate : gates_) gate.open();
  }

  void start(Bytes budget, Policy policy = Policy::kThrottled) {
    scheduler.reset();
    pool.reset();
    pool = std::make_unique<Pool>(device.memory(), testing::options_of(budget));
    scheduler = std::make_unique<Scheduler>(device, *pool, SchedulerOptions{.policy = policy});
  }

  /// The stream is at the gate when this returns.
  Gate& hold(StreamRole role) {
    testing::expect_named_while_held();
    Gate& gate = gates_.emplace_back();
    scheduler->submit("hold", {.stream = role}, [&gate](Stream& stream, Inputs, Outputs) {
      kit().step(stream, [&gate] { gate.pass(); });
    });
    gate.await_arrival();
    return gate;
  }
  [[nodiscard]] Tensor written(unsigned char byte, StreamRole role = StreamRole::kCompute) {
    Tensor tensor = scheduler->empty({kElements}, "written");
    scheduler->submit("set", {.writes = {tensor}, .stream = role}, set_all(byte));
    return tensor;
  }
  [[nodiscard]] Tensor copied(const Tensor& from, StreamRole role) {
    Tensor tensor = scheduler->empty({kElements}, "copied");
    scheduler->submit("copy", {.reads = {from}, .writes = {tensor}, .stream = role}, copy_first);
    return tensor;
  }
  void expect_all(const Tensor& tensor, unsigned char byte) {
    const std::vector<float> values = scheduler->read(tensor);
    ASSERT_EQ(values.size(), tensor.shape().elements());
    EXPECT_EQ(std::ranges::count(values, value_of(byte)), std::ssize(values));
  }

 private:
  std::deque<Gate> gates_;  // operations wait at them: outlives the scheduler

 protected:
  Device device{kit().open(mib(8))};
  std::unique_ptr<Pool> pool;
  std::unique_ptr<Scheduler> scheduler;
};

using SchedulingWhileHeld = SchedulingTest;

TEST_F(SchedulingWhileHeld, AReadWaitsForTheWriteOnAnotherStream) {
  Gate& gate = hold(StreamRole::kCompute);
  const Tensor x = written(0x11);
  const Tensor y = copied(x, StreamRole::kCompute2);
  open_late(gate);
  expect_all(y, 0x11);
}

TEST_F(SchedulingWhileHeld, AWriteWaitsForTheReadOnAnotherStream) {
  const Tensor x = written(0x11);
  Gate& gate = hold(StreamRole::kCompute2);
  const Tensor y = copied(x, StreamRole::kCompute2);
  scheduler->submit("set", {.writes = {x}}, set_all(0x22));
  open_late(gate);
  expect_all(y, 0x11);
  expect_all(x, 0x22);
}

TEST_F(SchedulingWhileHeld, AWriteWaitsForTheWriteOnAnotherStream) {
  Gate& gate = hold(StreamRole::kCompute);
  const Tensor x = written(0x11);
  scheduler->submit("set", {.writes = {x}, .stream = StreamRole::kCompute2}, set_all(0x22));
  open_late(gate);
  expect_all(x, 0x22);
}

TEST_F(SchedulingWhileHeld, AResultIsReadBackAfterItsWrite) {
  Gate& gate = hold(StreamRole::kCompute);
  const Tensor x = written(0x33);
  const std::jthread opener([&] { open_late(gate); });
  expect_all(x, 0x33);
}

TEST_F(SchedulingTest, ATensorIsWrittenAndReadInPieces) {
  std::vector<float> values(kElements);
  std::iota(values.begin(), values.end(), 1.0F);
  const Tensor x = scheduler->empty({kElements});
  constexpr std::size_t kPiece = 777;
  for (std::size_t first = 0; first < kElements; first += kPiece) {
    const std::size_t count = std::min(kPiece, kElements - first);
    scheduler->write(x, first, std::span(values).subspan(first, count));
  }
  EXPECT_EQ(scheduler->read(x), values);
  std::vector<float> read(kElements);
  for (std::size_t first = 0; first < kElements; first += kPiece) {
    scheduler->read(x, first, std::span(read).subspan(first, std::min(kPiece, kElements - first)));
  }
  EXPECT_EQ(read, values);
}

TEST_F(SchedulingWhileHeld, HostMemoryArrivesBeforeItIsUsed) {
  Upstream& host = device.backend().host_upstream();
  auto* const values = static_cast<float*>(host.allocate(kTensor));
  ASSERT_NE(values, nullptr);
  std::fill_n(values, kElements, 2.5F);
  Gate& gate = hold(StreamRole::kCopyIn);
  const Tensor x = scheduler->copy_in(borrowed(std::span(values, kElements)), {kElements});
  const Tensor y = copied(x, StreamRole::kCompute);
  open_late(gate);
  const std::vector<float> got = scheduler->read(y);
  EXPECT_EQ(std::ranges::count(got, 2.5F), std::ssize(got));
  host.deallocate(values, kTensor);
}

TEST_F(SchedulingWhileHeld, HostMemoryMayChangeAndEndOnceTheCallHasReturned) {
  Gate& gate = hold(StreamRole::kCopyIn);
  std::vector<float> local(kElements, value_of(0x11));
  const Tensor x = scheduler->copy_in(local, {kElements});
  local.assign(kElements, value_of(0x22));
  const Tensor y = scheduler->copy_in(std::move(local), {kElements});
  const Tensor z = scheduler->empty({kElements});
  scheduler->write(z, 0, std::vector<float>(kElements, value_of(0x33)));
  open_late(gate);
  expect_all(x, 0x11);
  expect_all(y, 0x22);
  expect_all(z, 0x33);
}

TEST_F(SchedulingWhileHeld, APieceIsWrittenBehindWhoReadsTheTensorAndReadBehindWhoWritesIt) {
  const std::vector<float> piece(100, value_of(0x22));
  const Tensor x = written(0x11);
  Gate& readers = hold(StreamRole::kCompute2);
  const Tensor y = copied(x, StreamRole::kCompute2);
  scheduler->write(x, 50, piece);
  open_late(readers);
  expect_all(y, 0x11);

  Gate& writers = hold(StreamRole::kCompute);
  scheduler->submit("add", {.reads = {x}, .writes = {x}}, set_all(0x33));
  const std::jthread opener([&] { open_late(writers); });
  std::vector<float> read(100);
  scheduler->read(x, 50, read);
  EXPECT_EQ(std::ranges::count(read, value_of(0x33)), 100);
}

TEST_F(SchedulingWhileHeld, AViewIsWrittenBehindWhoReadsTheTensor) {
  const Tensor x = written(0x11);
  Gate& gate = hold(StreamRole::kCompute2);
  const Tensor y = copied(x, StreamRole::kCompute2);
  scheduler->submit("set", {.writes = {x.rows(kElements / 2, kElements / 2)}}, set_all(0x22));
  open_late(gate);
  expect_all(y, 0x11);
  expect_all(x.rows(0, kElements / 2), 0x11);
  expect_all(x.rows(kElements / 2, kElements / 2), 0x22);
}

TEST_F(SchedulingTest, HalvesAreCopiedInByViewsAndWithinTheDevice) {
  std::vector<BFloat16> halves(2 * kElements);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = {static_cast<std::uint16_t>(i)};
  const Tensor x = scheduler->empty({2, kElements}, DType::kBFloat16);
  scheduler->write(x.rows(1, 1), 0, std::span(halves).last(kElements));
  scheduler->write(x.rows(0, 1), 0, std::span(halves).first(kElements));
  const Tensor y = scheduler->empty({kElements}, DType::kBFloat16);
  scheduler->submit("copy",
                    {.reads = {x.rows(1, 1)}, .writes = {y}, .stream = StreamRole::kCompute2},
                    [](Stream& stream, Inputs in, Outputs out) {
                      const auto from = in.as<BFloat16>(0);
                      stream.copy(out.as<BFloat16>(0).data(), from.data(), {from.size_bytes()});
                    });
  EXPECT_EQ(scheduler->read<BFloat16>(x), halves);
  const std::vector<BFloat16> second(halves.begin() + kElements, halves.end());
  EXPECT_EQ(scheduler->read<BFloat16>(y), second);
}

TEST_F(SchedulingWhileHeld, AReaderThatWaitsKeepsNobodyElseFromSubmitting) {
  const Tensor x = written(0x11);
  Gate& gate = hold(StreamRole::kCopyOut);
  std::atomic<bool> begun = false;
  std::thread reader([&] {
    begun = true;
    expect_all(x, 0x11);
  });
  while (!begun) std::this_thread::yield();
  testing::give_others_a_chance();
  scheduler->wait(written(0x22));  // submits and waits, with the copies out held
  gate.open();
  reader.join();
}

TEST_F(SchedulingWhileHeld, MemoryUsedOnASecondStreamIsNotReusedBeforeThatHasPassed) {
  Tensor x = written(0x11);
  Gate& gate = hold(StreamRole::kCompute2);
  const Tensor y = copied(x, StreamRole::kCompute2);
  x = {};
  EXPECT_EQ(scheduler->memory_info().awaiting, kTensor);
  const Tensor z = written(0x77);  // its home is the freed block's own stream
  scheduler->wait(z);
  gate.open();
  expect_all(y, 0x11);
  expect_all(z, 0x77);
  scheduler->wait_all();
  EXPECT_EQ(scheduler->memory_info().awaiting, Bytes{});
}

TEST_F(SchedulingWhileHeld, AFreedBlockIsHandedOverBehindItsOldStreamsWork) {
  start({2 * kTensor.count}, Policy::kBackstop);
  Gate& gate = hold(StreamRole::kCompute);
  Tensor x = written(0x11);
  Tensor y = copied(x, StreamRole::kCompute);
  x = {};  // freed, with its work behind the gate
  const Tensor z = written(0x77, StreamRole::kCompute2);
  EXPECT_EQ(pool->statistics().handovers, 1U);
  EXPECT_EQ(pool->statistics().waits, 0U);
  open_late(gate);
  expect_all(y, 0x11);
  expect_all(z, 0x77);
}

TEST_F(SchedulingWhileHeld, ABlockHandedOverAndFreedUnusedIsStillBehindTheFirstStream) {
  start({2 * kTensor.count}, Policy::kBackstop);
  Gate& gate = hold(StreamRole::kCompute);
  Tensor x = written(0x11);
  const Tensor y = copied(x, StreamRole::kCompute);
  x = {};
  const StreamId second = device.backend().stream(StreamRole::kCompute2);
  void* const block = pool->allocate(kTensor, second, "unused");
  EXPECT_EQ(pool->statistics().handovers, 1U);
  pool->deallocate(block, second);
  pool->poll();
  EXPECT_EQ(pool->trim(), Bytes{}) << "the first stream has not passed its work with the block";
  const Tensor z = written(0x77, StreamRole::kCopyIn);
  open_late(gate);
  expect_all(y, 0x11);
  expect_all(z, 0x77);
}

TEST_F(SchedulingWhileHeld, AWaitForMemoryEndsWhenTheDeviceHasPassedIt) {
  start({2 * kTensor.count}, Policy::kBackstop);
  Tensor x = written(0x11);
  Gate& gate = hold(StreamRole::kCompute2);
  const Tensor y = copied(x, StreamRole::kCompute2);
  x = {};  // awaits the second stream: nobody may have it
  std::thread opener([&] {
    while (pool->statistics().waits == 0) std::this_thread::yield();
    gate.open();
  });
  const Tensor z = written(0x77);
  opener.join();
  EXPECT_EQ(pool->statistics().waits, 1U);
  expect_all(y, 0x11);
  expect_all(z, 0x77);
}

/// Forty batches, each with an input that is copied on one stream and used on another.
std::uint64_t run_ahead(Scheduler& scheduler, std::span<const float> host) {
  std::uint64_t done = 0;
  for (; done < 40; ++done) {
    const Batch batch = scheduler.begin_batch("train");
    const Tensor x = scheduler.copy_in(host, {host.size()});
    const Tensor y = scheduler.empty({host.size()}, "y");
    scheduler.submit("copy", {.reads = {x}, .writes = {y}}, copy_first);
  }
  return done;
}

TEST_F(SchedulingWhileHeld, ThrottledStaysWithinABudgetThatUnboundedRunAheadBreaks) {
  Upstream& host = device.backend().host_upstream();
  auto* const values = static_cast<float*>(host.allocate(kTensor));
  ASSERT_NE(values, nullptr);
  std::fill_n(values, kElements, 1.0F);
  const Bytes budget{6 * kTensor.count};

  start(budget, Policy::kUnbounded);
  Gate& gate = hold(StreamRole::kCompute);
  EXPECT_THROW((void)run_ahead(*scheduler, {values, kElements}), OutOfMemory);
  gate.open();
  scheduler->wait_all();

  start(budget, Policy::kThrottled);
  EXPECT_EQ(run_ahead(*scheduler, {values, kElements}), 40U);
  scheduler->wait_all();
  EXPECT_LE(pool->statistics().reserved.peak, budget);
  EXPECT_EQ(pool->statistics().failures, 0U);
  EXPECT_EQ(scheduler->admission().charged, Bytes{});
  host.deallocate(values, kTensor);
}

TEST_F(SchedulingTest, AnOperationThatThrowsMarksWhatItWouldHaveWritten) {
  const Tensor x = scheduler->empty({kElements}, "x");
  scheduler->submit("broken", {.writes = {x}},
                    [](Stream&, Inputs, Outputs) { throw Error("on purpose"); });
  const Tensor y = copied(x, StreamRole::kCompute2);
  EXPECT_THROW(scheduler->wait(x), OperationError);
  EXPECT_THROW((void)scheduler->read(y), OperationError);
  EXPECT_THROW(scheduler->wait_all(), OperationError);
  scheduler->submit("set", {.writes = {x}}, set_all(0x44));
  expect_all(x, 0x44);
}

TEST_F(SchedulingTest, ProducersOnFourThreadsGetTheirOwnResults) {
  std::vector<std::thread> producers;
  for (unsigned char p = 1; p <= 4; ++p) {
    producers.emplace_back([this, p] {
      for (int i = 0; i < 25; ++i) {
        const Batch batch = scheduler->begin_batch("producer");
        const Tensor x = written(p, StreamRole::kCopyIn);
        const Tensor y = copied(x, StreamRole::kCompute);
        expect_all(copied(y, StreamRole::kCompute2), p);
      }
    });
  }
  for (auto& producer : producers) producer.join();
  scheduler->wait_all();
  EXPECT_EQ(scheduler->memory_info().allocated, Bytes{});
}

}  // namespace
}  // namespace weir
