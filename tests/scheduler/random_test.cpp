// Random programs of several producers against a model that runs each as plain sequential code.
// Each producer has its own tensors and reads some shared ones, so its results depend neither on
// the others nor on the random schedule.

#include <gtest/gtest.h>

#include <array>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "rig.hpp"
#include "support/log_capture.hpp"
#include "support/random_seed.hpp"
#include "support/sanitized.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite

constexpr std::size_t kOperationsPerProducer = WEIR_TEST_SANITIZED != 0 ? 400 : 3000;
constexpr std::size_t kProducers = 3;
constexpr std::size_t kSlots = 8;
constexpr std::size_t kShared = 4;
constexpr std::size_t kSharedElements = 500;

/// A tensor and its contents by the model.
struct Slot {
  Tensor tensor;
  std::size_t elements = 0;
  std::vector<float> contents;
  bool written = false;
  bool failed = false;
};

using Contents = std::vector<std::vector<float>>;

/// out[i] = k + sum of in[j][i mod its size] / 2: exact to the bit, because model and device add in
/// the same order.
template <typename Out, typename In>
void combine(Out&& out, const std::vector<In>& in, float k) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    float sum = k;
    for (const In& input : in) sum += input[i % input.size()] * 0.5F;
    out[i] = sum;
  }
}

class Producer {
 public:
  Producer(Rig& rig, const std::vector<Tensor>& shared, const Contents& shared_contents,
           std::uint64_t seed)
      : rig_(rig), shared_(shared), shared_contents_(shared_contents), random_(seed) {
    for (auto& host : staging_) {
      for (float& element : host) element = static_cast<float>(random_() % 64);
    }
  }

  /// Runs batches of random steps, or steps outside any batch, until all are done.
  void run() {
    while (steps_ < kOperationsPerProducer) {
      if (chance(5)) {
        stretch();
        continue;
      }
      Batch batch = rig_->begin_batch(chance(2) ? "even" : "odd");
      if (chance(4)) {
        const Batch inner = rig_->begin_batch("inner");
        EXPECT_TRUE(inner.joined());
        stretch();
      }
      stretch();
      if (chance(10)) batch.abandon();
    }
    for (Slot& slot : slots_) check(slot);
  }
  [[nodiscard]] std::size_t out_of_memory() const { return out_of_memory_; }
  [[nodiscard]] std::size_t steps() const { return steps_; }

 private:
  bool chance(std::uint64_t one_in) { return random_() % one_in == 0; }
  Slot& any() { return slots_.at(random_() % kSlots); }
  StreamRole role() { return kAllRoles.at(random_() % kStreamRoles); }

  void stretch() {
    for (std::uint64_t n = 1 + random_() % 12; n > 0 && steps_ < kOperationsPerProducer; --n) {
      ++steps_;
      step();
    }
  }

  void step() {
    switch (random_() % 20) {
      case 0:
        any() = {};
        break;
      case 1:
      case 2:
        copy_in(any());
        break;
      case 3:
        write(any(), true);
        break;
      case 4:
        check(any());
        break;
      case 5:
        wait(any());
        break;
      case 6:
        expect_statistics_agree(rig_);
        break;
      default:
        write(any(), false);
    }
  }

  /// A call that fails for lack of memory changes nothing, so the model does not change either.
  template <typename Call>
  bool fits(const Call& call) {
    try {
      call();
      return true;
    } catch (const OutOfMemory&) {
      ++out_of_memory_;
      return false;
    }
  }

  std::size_t random_elements() {
    switch (random_() % 8) {
      case 0:
        return 1024 + random_() % 3072;  // 4 to 16 KiB
      case 1:
      case 2:
        return 256 + random_() % 768;
      default:
        return 1 + random_() % 256;  // a slot of a shared block
    }
  }

  void copy_in(Slot& slot) {
    const auto& lent = staging_.at(random_() % staging_.size());
    std::vector<float> own(lent.begin(), lent.end());
    Tensor tensor;
    const bool fit = fits([&] {
      switch (random_() % 3) {
        case 0:
          tensor = rig_->copy_in(borrowed(lent), {lent.size()});
          break;
        case 1:
          tensor = rig_->copy_in(std::move(own), {lent.size()});
          break;
        default:
          tensor = rig_->copy_in(own, {lent.size()});
      }
    });
    if (!fit) return;
    slot = {.tensor = std::move(tensor),
            .elements = lent.size(),
            .contents = {lent.begin(), lent.end()},
            .written = true};
  }

  void write(Slot& out, bool throws) {
    if (!out.tensor) {
      out.elements = random_elements();
      out.tensor = rig_->empty({out.elements});
    }
    std::vector<Tensor> reads;
    Contents inputs;
    bool failed = throws;
    const auto read = [&](const Slot& slot) {
      reads.push_back(slot.tensor);
      inputs.push_back(slot.contents);
      failed = failed || slot.failed;
    };
    const bool in_place = out.written && chance(4);
    if (in_place) read(out);
    for (std::uint64_t n = random_() % 3; n > 0; --n) {
      const Slot& slot = any();
      if (&slot != &out && slot.written) read(slot);
    }
    if (chance(3)) {
      const std::size_t i = random_() % kShared;
      reads.push_back(shared_.at(i));
      inputs.push_back(shared_contents_.at(i));
    }
    const auto k = static_cast<float>(random_() % 16);
    const std::vector<Tensor> writes{out.tensor};
    const Uses uses{.reads = reads, .writes = writes, .stream = role()};
    const auto kernel = [k, throws](Stream&, Inputs in, Outputs to) {
      if (throws) throw Broken("at random");
      std::vector<std::span<const float>> spans;
      for (std::size_t i = 0; i < in.size(); ++i) spans.push_back(in[i]);
      combine(to[0], spans, k);
    };
    if (!fits([&] { rig_->submit("op", uses, kernel); })) return;
    out.contents.assign(out.elements, 0);
    if (!failed) combine(out.contents, inputs, k);
    out.written = true;
    out.failed = failed;
  }

  void wait(Slot& slot) {
    if (!slot.tensor) return;
    if (slot.failed) {
      EXPECT_THROW(rig_->wait(slot.tensor), OperationError);
    } else {
      EXPECT_NO_THROW(rig_->wait(slot.tensor));
    }
  }

  void check(Slot& slot) {
    if (!slot.tensor) return;
    if (!slot.written) {
      EXPECT_THROW((void)rig_->read(slot.tensor), UsageError);
    } else if (slot.failed) {
      EXPECT_THROW((void)rig_->read(slot.tensor), OperationError);
    } else {
      EXPECT_EQ(rig_->read(slot.tensor), slot.contents);
    }
  }

  Rig& rig_;
  const std::vector<Tensor> shared_;  // handles of its own
  const Contents& shared_contents_;
  std::mt19937_64 random_;
  std::array<Slot, kSlots> slots_;
  std::array<std::array<float, 300>, 4> staging_{};
  std::size_t steps_ = 0;
  std::size_t out_of_memory_ = 0;
};

/// Producers' totals of one run.
struct Totals {
  std::size_t steps = 0;
  std::size_t out_of_memory = 0;
  std::uint64_t waits = 0;  ///< of the pool: on the host, and handovers behind a wait on the device
};

Totals run_schedule(const RigOptions& options, std::uint64_t seed) {
  Rig rig(options);
  std::vector<Tensor> shared;
  Contents contents;
  for (std::size_t i = 0; i < kShared; ++i) {
    contents.emplace_back(kSharedElements, static_cast<float>(i + 1));
    shared.push_back(rig->copy_in(contents.back(), {kSharedElements}));
  }
  Totals totals;
  {
    std::vector<std::unique_ptr<Producer>> producers;
    std::vector<std::future<void>> running;
    for (std::size_t p = 0; p < kProducers; ++p) {
      producers.push_back(std::make_unique<Producer>(rig, shared, contents, seed + p * 1'000'003));
      running.push_back(std::async(std::launch::async, [&own = *producers.back()] { own.run(); }));
    }
    for (auto& producer : running) producer.get();
    settle(rig);  // the staging buffers are the producers'
    for (const auto& producer : producers) {
      totals.steps += producer->steps();
      totals.out_of_memory += producer->out_of_memory();
    }
  }
  const Statistics statistics = rig.pool.statistics();
  totals.waits = statistics.waits + statistics.handovers;
  shared.clear();
  expect_idle(rig);
  EXPECT_EQ(rig->memory_info().allocated.count % SlabAllocator::kSlab.count, 0U)
      << "nothing but slabs of small tensors is left";
  return totals;
}

/// Room for everything live at once and for every slab that a small tensor can hold.
constexpr Bytes kEnough = kib(kProducers * (kSlots + 2) * 16) + SlabAllocator::kSlab * 12 +
                          SlabAllocator::kSlab * (kProducers * kSlots + kShared);

TEST(RandomSchedules, GiveTheResultsOfTheSequentialModel) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed_message(seed));
  std::size_t steps = 0;
  for (const Policy policy : kAllPolicies) {
    for (const PoolKind kind : kAllPoolKinds) {
      SCOPED_TRACE(std::string(to_string(policy)) + " " + std::string(to_string(kind)));
      const Totals totals =
          run_schedule({.budget = policy == Policy::kUnbounded ? mib(64) : kEnough,
                        .kind = kind,
                        .policy = policy,
                        .run_ahead = {.batches = 3, .time = std::chrono::nanoseconds(-1)}},
                       seed + steps);
      EXPECT_EQ(totals.out_of_memory, 0U) << "all that was live fitted";
      steps += totals.steps;
      if (HasFailure()) return;
    }
  }
  EXPECT_EQ(steps,
            kOperationsPerProducer * kProducers * kAllPolicies.size() * kAllPoolKinds.size());
}

TEST(RandomSchedules, InABudgetThatIsTooSmallFailOperationsAndNothingElse) {
  const std::uint64_t seed = random_seed() + 1;
  SCOPED_TRACE(seed_message(seed - 1));
  const LogCapture log;  // it warns of what is done here on purpose
  Totals totals;
  for (const Policy policy : {Policy::kThrottled, Policy::kBackstop, Policy::kBarrier}) {
    for (const PoolKind kind : kAllPoolKinds) {
      SCOPED_TRACE(std::string(to_string(policy)) + " " + std::string(to_string(kind)));
      const Totals run = run_schedule({.budget = kib(384),
                                       .kind = kind,
                                       .policy = policy,
                                       .run_ahead = {.batches = std::nullopt},
                                       .grace = std::chrono::microseconds(100)},
                                      seed + totals.steps);
      totals.steps += run.steps;
      totals.out_of_memory += run.out_of_memory;
      totals.waits += run.waits;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(totals.out_of_memory, 0U) << "the budget was not tight";
  EXPECT_GT(totals.waits, 0U);
  EXPECT_LT(totals.out_of_memory, totals.steps / 2) << "most operations still work";
}

}  // namespace
}  // namespace weir
