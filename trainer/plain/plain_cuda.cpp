#include <algorithm>
#include <chrono>
#include <deque>
#include <vector>

#include "allocator/base/error_cuda.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/random.hpp"
#include "scheduler/device/device_kind.hpp"
#include "scheduler/device/stream_cuda.hpp"
#include "tools/program/median.hpp"
#include "trainer/data/reader.hpp"
#include "trainer/plain/plain.hpp"
#include "trainer/plain/plain_network_cuda.hpp"

namespace weir {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Inputs and targets of a batch.
struct PlainBatch {
  std::span<float> inputs;
  std::span<float> targets;
};

/// Batches on the device, in places used in turn: filled on one stream, used on another.
class PlainFeed {
 public:
  PlainFeed(PlainMemory& memory, cudaStream_t copies, const TrainSettings& s)
      : copies_(copies), seed_(s.seed.value) {
    const std::size_t inputs = s.batch_size.value * s.widths.front();
    const std::size_t targets = s.batch_size.value * s.widths.back();
    const std::uint64_t places = std::max<std::uint64_t>(s.ring.value, 2);
    for (std::uint64_t i = 0; i < places; ++i) {
      places_.emplace_back().on_device = {memory.on_device(inputs), memory.on_device(targets)};
    }
    if (s.inputs.value != InputKind::kRing) return;
    const BatchSource source = generated_source(seed_);
    for (std::uint64_t i = 0; i < s.ring.value; ++i) {
      const PlainBatch& made =
          ring_.emplace_back(PlainBatch{memory.on_host(inputs), memory.on_host(targets)});
      source(i, made.inputs, made.targets);
    }
  }

  /// Waits until batch number `index` has a place, which bounds how far the host runs ahead.
  void await_place(std::uint64_t index) { place(index).used.wait(); }
  /// Enqueues the work that fills its place, and makes `user` wait for that.
  const PlainBatch& fill(std::uint64_t index, cudaStream_t user) {
    Place& to = place(index);
    if (ring_.empty()) {
      cuda::fill_normal(copies_, seed_, generated_sequence(index), to.on_device.inputs);
      cuda::fill(copies_, to.on_device.targets, kGeneratedTarget);
    } else {
      const PlainBatch& from = ring_[index % ring_.size()];
      copy(to.on_device.inputs, from.inputs);
      copy(to.on_device.targets, from.targets);
    }
    to.filled.record(copies_);
    to.filled.hold_back(user);
    return to.on_device;
  }
  /// Call once all work of `user` on the batch is enqueued.
  void give_back(std::uint64_t index, cudaStream_t user) { place(index).used.record(user); }

 private:
  struct Place {
    PlainBatch on_device;
    PlainEvent filled;
    PlainEvent used;
  };
  [[nodiscard]] Place& place(std::uint64_t index) { return places_[index % places_.size()]; }
  void copy(std::span<float> to, std::span<const float> from) {
    check_cuda(
        cudaMemcpyAsync(to.data(), from.data(), from.size_bytes(), cudaMemcpyHostToDevice, copies_),
        "cudaMemcpyAsync");
  }

  const cudaStream_t copies_;
  const std::uint64_t seed_;
  std::deque<Place> places_;
  std::vector<PlainBatch> ring_;  ///< in host memory; empty if batches are drawn
};

/// Everything of a run. Destroyed after its streams are done.
class PlainRun {
 public:
  PlainRun(int ordinal, const TrainSettings& settings)
      : compute_(ordinal),
        copies_(ordinal),
        feed_(memory_, copies_.get(), settings),
        network_(memory_, compute_.get(), settings) {
    synchronize();
  }
  ~PlainRun() {
    for (const auto* stream : {&copies_, &compute_}) {
      (void)take_cuda_error(cudaStreamSynchronize(stream->get()));
    }
  }
  PlainRun(const PlainRun&) = delete;
  PlainRun& operator=(const PlainRun&) = delete;

  void train(TrainResult& result, std::uint64_t batches, const TrainHooks& hooks) {
    std::vector<double> host;
    host.reserve(batches);
    const Clock::time_point start = Clock::now();
    while (result.batches < batches && !hooks.stop.stop_requested()) {
      feed_.await_place(result.batches);
      const Clock::time_point begin = Clock::now();
      const PlainBatch& batch = feed_.fill(result.batches, compute_.get());
      network_.train(batch.inputs, batch.targets);
      feed_.give_back(result.batches, compute_.get());
      host.push_back(seconds_since(begin));
      ++result.batches;
      if (hooks.on_done) hooks.on_done(result.batches, batches);
    }
    synchronize();
    result.seconds = seconds_since(start);
    result.host_seconds = median(std::move(host));
  }

  /// Stores the result of the run and the memory that it took.
  void collect(TrainResult& result, std::uint64_t batches) {
    result.pool.reserved.peak = memory_.taken();
    result.staging = memory_.pinned();
    if (result.batches != 0) {
      result.mean_loss =
          static_cast<double>(network_.read_loss_total()) / static_cast<double>(result.batches);
    }
    if (result.batches == batches) {
      result.weights = network_.read_parameters();
    } else {
      result.outcome = Outcome::kInterrupted;
    }
  }

 private:
  void synchronize() {
    for (const auto* stream : {&copies_, &compute_}) {
      check_cuda(cudaStreamSynchronize(stream->get()), "cudaStreamSynchronize");
    }
  }

  // Reverse destruction order: users of the memory and the streams are destroyed first.
  OwnedCudaStream compute_;
  OwnedCudaStream copies_;
  PlainMemory memory_;
  PlainFeed feed_;
  PlainNetwork network_;
};

}  // namespace

TrainResult train_plain(const TrainSettings& settings, const TrainHooks& hooks) {
  settings.validate();
  if (const std::string why = why_no_plain_run(settings); !why.empty()) {
    throw UsageError("this job has no run without Weir: " + why);
  }
  TrainResult result;
  try {
    const int ordinal = parse_device_id(settings.device.value).ordinal;
    const CudaScope scope(ordinal);
    PlainRun run(ordinal, settings);
    run.train(result, settings.batches.value, hooks);
    run.collect(result, settings.batches.value);
  } catch (const CudaError& error) {
    if (error.code() != cudaErrorMemoryAllocation) throw;
    result.outcome = Outcome::kOutOfMemory;
    result.report = error.what();
  }
  return result;
}

}  // namespace weir
