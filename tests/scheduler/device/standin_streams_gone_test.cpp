// Streams that a program added to a CudaProgress and removed again cost nothing afterwards.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "allocator/base/error.hpp"
#include "scheduler/device/standin_fixture.hpp"
#include "support/gate.hpp"
#include "support/host_bytes.hpp"
#include "support/sanitized.hpp"

namespace weir {
namespace {

class CudaStreamsThatAreGone : public testing::StandinTest {
 protected:
  /// So many streams come and go, `at_a_time` of them. One handle serves for all: each time it is
  /// added it is another stream.
  void use(std::size_t streams, std::size_t at_a_time) {
    std::vector<StreamId> ids(at_a_time);
    for (std::size_t done = 0; done < streams; done += at_a_time) {
      for (StreamId& id : ids) id = progress.add(stream.get());
      for (const StreamId id : ids) last = progress.record(id);
      for (const StreamId id : ids) progress.remove(id);
    }
  }

  testing::UserStream stream;
  CudaProgress progress{0};
  Point last{};
};

TEST_F(CudaStreamsThatAreGone, KeepNoHostMemory) {
  if (WEIR_TEST_SANITIZED != 0) GTEST_SKIP() << "a sanitizer keeps what is freed";
  use(2000, 1000);
  const std::size_t before = testing::host_bytes();
  use(100'000, 1);
  EXPECT_LE(testing::host_bytes(), before + kib(16).count) << "one after the other";
  use(100'000, 1000);
  EXPECT_LE(testing::host_bytes(), before + kib(16).count) << "a thousand at a time";
}

TEST_F(CudaStreamsThatAreGone, AreNotAmongThoseThatACallLooksAt) {
  const StreamId stays = progress.add(stream.get());
  std::size_t most = 0;
  for (int i = 0; i < 100; ++i) {
    use(100, 1);
    most = std::max(most, progress.streams());
  }
  EXPECT_EQ(most, 1U);
  EXPECT_TRUE(progress.wait(progress.record(stays), {}));
  progress.remove(stays);
}

TEST_F(CudaStreamsThatAreGone, HavePassedEveryPointAndHoldNobodyBack) {
  use(1, 1);
  const StreamId stays = progress.add(stream.get());
  EXPECT_TRUE(progress.reached(last));
  EXPECT_TRUE(progress.reached(progress.record(last.stream))) << "a point that is taken later";
  EXPECT_TRUE(progress.wait(last, {}));
  weir_standin_clear_counters();
  progress.make_wait(stays, last);
  EXPECT_EQ(weir_standin_calls(nullptr), 0U);
  EXPECT_THROW(progress.make_wait(last.stream, progress.record(stays)), UsageError);
  EXPECT_THROW(progress.remove(last.stream), UsageError);
  EXPECT_THROW((void)progress.followed(last.stream), UsageError);
  progress.remove(stays);
}

TEST_F(CudaStreamsThatAreGone, AreToldFromThoseThatWereNeverAdded) {
  use(10'000, 1);
  const StreamId newest{last.stream.value + 1};
  CudaProgress other{0};
  const StreamId foreign = other.add(stream.get());
  for (const StreamId id : {StreamId{}, newest, foreign, StreamId::next()}) {
    EXPECT_THROW((void)progress.passed(id), UsageError) << id.value;
    EXPECT_THROW((void)progress.record(id), UsageError) << id.value;
    EXPECT_THROW((void)progress.wait({id, 1}, {}), UsageError) << id.value;
  }
  use(1, 1);
  EXPECT_TRUE(progress.reached({newest, 1})) << "it came and went just now";
  other.remove(foreign);
}

TEST_F(CudaStreamsThatAreGone, MayGoWhileOthersAskForThem) {
  const StreamId id = progress.add(stream.get());
  std::atomic<bool> over{false};
  std::thread asks([&] {
    for (std::uint64_t before = 0; !over.load();) {
      const std::uint64_t now = progress.passed(id);
      EXPECT_GE(now, before);
      before = now;
    }
  });
  for (int i = 0; i < 100; ++i) (void)progress.record(id);
  progress.remove(id);
  over.store(true);
  asks.join();
  EXPECT_EQ(progress.streams(), 0U);
}

/// Work on `stream` that lasts until `gate` is released.
void enqueue_behind(cudaStream_t gate, cudaStream_t stream, void* memory) {
  weir_standin_hold(gate);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(memory, 1, 1, gate), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, gate), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(CudaStreamsThatAreGone, AreAwaitedWithWhatIsRecordedMeanwhile) {
  testing::UserStream early;
  testing::UserStream late;
  CudaUpstream upstream{0};
  void* const memory = upstream.allocate({512});
  const StreamId id = progress.add(stream.get());
  enqueue_behind(early.get(), stream.get(), memory);
  weir_standin_clear_counters();
  std::atomic<bool> removed{false};
  std::thread removes([&] {
    progress.remove(id);
    removed.store(true);
  });
  while (weir_standin_calls("cuEventQuery") == 0) std::this_thread::yield();  // it waits
  enqueue_behind(late.get(), stream.get(), memory);
  const Point point = progress.record(id);
  weir_standin_release(early.get());
  testing::give_others_a_chance();
  EXPECT_FALSE(removed.load());
  EXPECT_FALSE(progress.reached(point));
  weir_standin_release(late.get());
  removes.join();
  EXPECT_TRUE(progress.reached(point));
  upstream.deallocate(memory, {512});
}

// Like a thread that looked the stream up before it was removed.
TEST_F(CudaStreamsThatAreGone, AreNotAskedByWhoHadThemBefore) {
  FollowedCudaStream followed{StreamId::next(), 0, stream.get(), CudaWork::kUnmarked, nullptr};
  const Point point = followed.record();
  EXPECT_FALSE(followed.try_close()) << "a point is not passed";
  while (followed.passed() < point.sequence) std::this_thread::yield();
  EXPECT_TRUE(followed.try_close());
  weir_standin_clear_counters();
  for (std::uint32_t i = 0; i < FollowedCudaStream::kPointsOfAnEvent; ++i) {
    const Point later = followed.record();
    EXPECT_LE(later.sequence, followed.passed());
  }
  EXPECT_TRUE(followed.try_close());
  EXPECT_EQ(weir_standin_calls(nullptr), 0U);
}

// The stand-in refuses a destroyed handle, which fails the test.
class CudaStreamsThatGo : public CudaStreamsThatAreGone {
 protected:
  /// Removes streams while another thread calls `use` for each of them, until that reports it gone.
  template <typename Use>
  void let_go_meanwhile(const Use& use) {
    for (int i = 0; i < 100; ++i) {
      std::atomic<bool> uses{false};
      std::thread user;
      {
        const testing::UserStream going;
        const StreamId id = progress.add(going.get());
        user = std::thread([&use, &uses, id] {
          while (use(id)) uses.store(true);
        });
        while (!uses.load()) std::this_thread::yield();
        progress.remove(id);
      }  // destroyed at once, though the other thread may be in a call
      user.join();
    }
  }
};

TEST_F(CudaStreamsThatGo, MayGoWhileOthersRecordThere) {
  let_go_meanwhile([&](StreamId id) {
    const Point point = progress.record(id);
    (void)progress.reached(point);
    return point.sequence != 0;
  });
}

TEST_F(CudaStreamsThatGo, MayGoWhileOthersWaitForThem) {
  const StreamId stays = progress.add(stream.get());
  let_go_meanwhile([&](StreamId id) {
    const Point point = progress.record(id);
    progress.make_wait(stays, point);
    return point.sequence != 0;
  });
  progress.remove(stays);
}

TEST_F(CudaStreamsThatGo, MayGoWhileOthersMakeThemWait) {
  const StreamId stays = progress.add(stream.get());
  let_go_meanwhile([&](StreamId id) {
    try {
      progress.make_wait(id, progress.record(stays));
    } catch (const UsageError&) {
      return false;
    }
    return true;
  });
  progress.remove(stays);
}

}  // namespace
}  // namespace weir
