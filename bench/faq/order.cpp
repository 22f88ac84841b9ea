#include "bench/faq/order.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/pool.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "scheduler/scheduler.hpp"

namespace weir::bench {
namespace {

constexpr std::size_t kProducers = 2;
constexpr std::size_t kHostBatches = 16;
constexpr std::uint64_t kSharedEvery = 8;  // batches; the streams wait for each other there

/// In which order operations were submitted, and in which they ran.
class Orders {
 public:
  explicit Orders(std::size_t operations) : ran_(operations), tensor_(operations) {}

  /// Calls `submit(number)`, alone. It must not allocate: others would wait for its memory.
  template <typename Submit>
  void submit(std::size_t tensor, const Submit& submit) {
    const std::scoped_lock lock(mutex_);
    tensor_[count_] = tensor;
    submit(count_++);
  }
  /// On the device's threads.
  void run(std::size_t number) { ran_[number] = ran_count_.fetch_add(1); }

  /// After all have run.
  void count(OrderFigures& figures) const {
    std::array<std::uint64_t, kProducers + 1> last{};
    for (std::size_t i = 0; i < count_; ++i) {
      std::uint64_t& of_tensor = last.at(tensor_[i]);
      if (ran_[i] < of_tensor) ++figures.late;
      of_tensor = std::max(of_tensor, ran_[i]);
    }
    std::uint64_t earliest = UINT64_MAX;
    for (std::size_t i = count_; i-- > 0; earliest = std::min(earliest, ran_[i])) {
      if (earliest < ran_[i]) ++figures.overtaken;
    }
    figures.operations = count_;
  }

 private:
  std::mutex mutex_;
  std::size_t count_ = 0;
  std::vector<std::uint64_t> ran_;   ///< when, by number
  std::vector<std::size_t> tensor_;  ///< which one it writes, by number
  std::atomic<std::uint64_t> ran_count_{0};
};

/// FNV-1a.
void add_to(std::uint64_t& hash, const std::vector<float>& values) {
  for (const float value : values) {
    std::array<unsigned char, sizeof(float)> bytes{};
    std::memcpy(bytes.data(), &value, sizeof(float));
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3U;
  }
}

class OrderRun {
 public:
  OrderRun(Policy policy, std::uint64_t batches)
      : batches_(batches),
        orders_(kProducers * (batches + batches / kSharedEvery + 1)),
        scheduler_(device_, pool_, {.budget = mib(512), .policy = policy}) {}

  OrderFigures run() {
    shared_ = make(1, "shared");
    for (std::size_t i = 0; i < kProducers; ++i) {
      own_.at(i) = make(size(i), "own");
      for (std::size_t at = 0; at < kHostBatches; ++at) {
        // They differ, so that another order would have another result.
        hosts_.at(i).emplace_back(size(i), 0.1F * static_cast<float>(at + 1));
      }
    }
    std::atomic<std::uint64_t> added{0};
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < kProducers; ++i) {
        threads.emplace_back([this, i, &added] {
          begin_.arrive_and_wait();
          added += produce(i);
        });
      }
    }
    scheduler_.wait_all();
    OrderFigures figures{.hash = 0xcbf29ce484222325U};
    orders_.count(figures);
    figures.lost = added - static_cast<std::uint64_t>(scheduler_.read(shared_).front());
    for (const Tensor& tensor : own_) add_to(figures.hash, scheduler_.read(tensor));
    return figures;
  }

 private:
  /// One thread's operations are long and the other's short, so that these overtake.
  static std::size_t size(std::size_t producer) { return producer == 0 ? 32768 : 64; }

  Tensor make(std::size_t elements, std::string_view label) {
    Tensor tensor = scheduler_.empty({elements}, label);
    scheduler_.submit("begin", {.writes = {tensor}},
                      [](Stream&, Inputs, Outputs out) { fill(out[0], 0); });
    return tensor;
  }

  /// Returns how often it added to the shared sum.
  std::uint64_t produce(std::size_t producer) {
    const StreamRole stream = producer == 0 ? StreamRole::kCompute : StreamRole::kCompute2;
    const Tensor own = own_.at(producer);
    const Tensor shared = shared_;
    std::uint64_t added = 0;
    for (std::uint64_t i = 0; i < batches_; ++i) {
      const Batch batch = scheduler_.begin_batch(producer == 0 ? "long" : "short");
      const std::vector<float>& host = hosts_.at(producer).at(i % kHostBatches);
      const Tensor x = scheduler_.copy_in(borrowed(host), {host.size()}, "inputs");
      orders_.submit(producer, [&](std::size_t number) {
        scheduler_.submit("own", {.reads = {x, own}, .writes = {own}, .stream = stream},
                          [this, number](Stream&, Inputs in, Outputs out) {
                            orders_.run(number);
                            scale(0.99F, out[0]);
                            add(in[0], out[0]);
                          });
      });
      if (i % kSharedEvery != 0) continue;
      ++added;
      orders_.submit(kProducers, [&](std::size_t number) {
        scheduler_.submit("shared", {.reads = {shared}, .writes = {shared}, .stream = stream},
                          [this, number](Stream&, Inputs, Outputs out) {
                            orders_.run(number);
                            out[0].front() += 1;
                          });
      });
    }
    return added;
  }

  const std::uint64_t batches_;
  std::latch begin_{kProducers};
  Orders orders_;                                                  ///< outlives the scheduler
  std::array<std::vector<std::vector<float>>, kProducers> hosts_;  ///< the same
  Device device_{std::make_unique<CpuDevice>(gib(1))};
  Pool pool_{device_.memory()};
  Scheduler scheduler_;
  std::array<Tensor, kProducers> own_;
  Tensor shared_;
};

}  // namespace

OrderFigures run_order(Policy policy, std::uint64_t batches) {
  return OrderRun(policy, batches).run();
}

}  // namespace weir::bench
