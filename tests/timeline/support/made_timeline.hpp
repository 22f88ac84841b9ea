#pragma once

// Timelines that were not recorded: a simulated trainer with a frontend, a pool and two streams,
// whose figures are known, and meaningless records.

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline::testing {

/// A text for each number, as a recorder keeps them.
class MadeNames {
 public:
  explicit MadeNames(Process& process) : process_(process) {}
  std::uint32_t operator()(const std::string& text) {
    if (text.empty()) return 0;
    const auto [place, fresh] =
        numbers_.try_emplace(text, static_cast<std::uint32_t>(process_.names.size()));
    if (fresh) process_.names.push_back(text);
    return place->second;
  }

 private:
  Process& process_;
  std::map<std::string, std::uint32_t> numbers_;
};

/// In the order of Process::records.
inline void sort_records(Process& process) {
  std::ranges::stable_sort(process.records, [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.sequence < b.sequence;
  });
}

struct MadeOptions {
  std::uint64_t seed = 1;
  std::uint32_t batches = 40;
  std::uint32_t layers = 4;
  std::uint32_t run_ahead = 2;      ///< batches in flight at most; 0: no limit
  std::uint32_t barrier_every = 0;  ///< a read after so many batches; 0: never
  std::uint64_t load_ns = 300'000;  ///< the loader's time for a batch
  /// Batches (from 1) before which the loader takes longer, and by how much.
  std::map<std::uint32_t, std::uint64_t> slow_loads{};
  std::uint64_t operation_ns = 500'000;  ///< on the compute stream
  std::uint64_t copy_ns = 400'000;
  std::uint64_t host_ns = 10'000;   ///< the frontend's time for an operation
  std::uint64_t launch_ns = 5'000;  ///< from a submission to its begin, at least
  std::uint64_t wake_ns =
      2'000;            ///< from the end of an awaited operation until the thread continues
  double jitter = 0.1;  ///< of each time
  std::uint64_t tensor_bytes = 1U << 20U;
  std::uint64_t weight_bytes = 16U << 20U;
  std::uint64_t budget = 1U << 30U;
  std::uint32_t fails_in = 0;  ///< a batch that runs out of memory; 0: none
  std::uint32_t rank = 0;
};

/// A simulated trainer. Stream 1 computes, stream 2 copies in; source 1 is the device, 2 the pool,
/// 3 admission; thread 1 is the frontend, 2 and 3 serve the streams.
class MadeTrainer {
 public:
  explicit MadeTrainer(const MadeOptions& options)
      : options_(options), random_(options.seed), name_(process_) {}

  Process run() {
    process_.info = {.pid = 4000 + options_.rank,
                     .rank = options_.rank,
                     .program = "made-train",
                     .host = "made",
                     .boot = "made",
                     .monotonic_ns = 1'000'000'000,
                     .unix_ns = 1'700'000'000'000'000'000};
    note(TimelineKind::kStart, {});
    note(TimelineKind::kThread, {.name = name_("frontend"), .thread = 1});
    note(TimelineKind::kThread, {.name = name_("compute worker"), .thread = 2});
    note(TimelineKind::kThread, {.name = name_("copy worker"), .thread = 3});
    note(TimelineKind::kStream, {.stream = 1, .name = name_("compute"), .source = 1});
    note(TimelineKind::kStream, {.stream = 2, .name = name_("copy-in"), .source = 1});
    memory(TimelineKind::kPool, {.bytes = options_.budget, .name = name_("device")});
    for (std::uint32_t layer = 0; layer < options_.layers; ++layer)
      (void)allocate(options_.weight_bytes, "weights", 0, 1);
    for (batch_ = 1; batch_ <= options_.batches; ++batch_) run_batch();
    now_ = std::max({now_, compute_free_, copy_free_}) + 1000;
    settle_passed();
    process_.complete = true;
    sort_records(process_);
    return std::move(process_);
  }

 private:
  struct Block {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t requested = 0;
  };
  struct InFlight {
    std::uint32_t batch = 0;
    std::uint64_t done = 0;
    std::vector<Block> awaiting{};
  };

  std::uint64_t about(std::uint64_t ns) {
    if (options_.jitter <= 0) return ns;
    std::uniform_real_distribution<double> factor(1 - options_.jitter, 1 + options_.jitter);
    return static_cast<std::uint64_t>(static_cast<double>(ns) * factor(random_));
  }
  void note(TimelineKind kind, TimelineRecord record) {
    record.kind = kind;
    if (record.begin == 0) record.begin = now_;
    if (record.end == 0) record.end = record.begin;
    if (record.thread == 0) record.thread = 1;
    process_.records.push_back(record);
  }
  void memory(TimelineKind kind, TimelineRecord record) {
    record.sequence = ++sequence_;
    record.source = 2;
    record.allocated = allocated_;
    record.awaiting = awaiting_;
    record.cached = cached_;
    note(kind, record);
  }
  Block allocate(std::uint64_t requested, const std::string& label, std::uint32_t batch,
                 std::uint64_t stream) {
    const std::uint64_t bytes = (requested + 511) / 512 * 512;
    TimelineServed served = TimelineServed::kOwn;
    auto& cache = cached_blocks_[bytes];
    std::uint64_t address = 0;
    if (cache.empty()) {
      served = TimelineServed::kGrown;
      address = next_address_;
      next_address_ += bytes;
      cached_ += bytes;
      memory(TimelineKind::kReserve, {.id = address, .bytes = bytes});
    } else {
      address = cache.back();
      cache.pop_back();
    }
    cached_ -= bytes;
    allocated_ += bytes;
    now_ += 200;
    memory(TimelineKind::kAllocate, {.id = address,
                                     .bytes = bytes,
                                     .requested = requested,
                                     .stream = stream,
                                     .batch = batch,
                                     .name = name_(label),
                                     .site = name_("model.py:" + std::to_string(10 + label.size())),
                                     .detail = static_cast<std::uint8_t>(served)});
    return {address, bytes, requested};
  }
  void free(const Block& block, bool awaits) {
    allocated_ -= block.bytes;
    (awaits ? awaiting_ : cached_) += block.bytes;
    now_ += 150;
    memory(TimelineKind::kFree, {.id = block.address,
                                 .bytes = block.bytes,
                                 .requested = block.requested,
                                 .stream = awaits ? 2U : 1U,
                                 .batch = batch_,
                                 .detail = static_cast<std::uint8_t>(awaits ? 1 : 0)});
    if (!awaits) cached_blocks_[block.bytes].push_back(block.address);
  }
  void settle_passed() {
    while (!in_flight_.empty() && in_flight_.front().done <= now_) {
      const InFlight batch = in_flight_.front();
      in_flight_.erase(in_flight_.begin());
      std::uint64_t bytes = 0;
      for (const Block& block : batch.awaiting) {
        bytes += block.bytes;
        cached_blocks_[block.bytes].push_back(block.address);
      }
      awaiting_ -= bytes;
      cached_ += bytes;
      if (bytes != 0) memory(TimelineKind::kSettled, {.bytes = bytes});
      note(TimelineKind::kSettle, {.batch = batch.batch, .name = name_("train"), .source = 3});
    }
  }
  /// Returns when it ends on its stream.
  std::uint64_t submit(const std::string& name, std::uint64_t stream, std::uint64_t took,
                       std::uint64_t ready, std::uint64_t bytes) {
    const std::uint64_t id = ++operations_;
    const std::uint32_t site = name_("trainer/model.py:" + std::to_string(20 + name.size()));
    const std::uint64_t begin = now_;
    now_ += about(options_.host_ns);
    note(TimelineKind::kSubmit, {.begin = begin,
                                 .end = now_,
                                 .id = id,
                                 .stream = stream,
                                 .batch = batch_,
                                 .name = name_(name),
                                 .site = site,
                                 .source = 1});
    std::uint64_t& is_free = stream == 1 ? compute_free_ : copy_free_;
    const std::uint64_t could = std::max(now_ + options_.launch_ns, is_free);
    const std::uint64_t start = std::max(could, ready);
    if (start > could) {
      note(TimelineKind::kStreamWait, {.begin = could,
                                       .end = start,
                                       .id = 3 - stream,
                                       .stream = stream,
                                       .thread = static_cast<std::uint32_t>(1 + stream),
                                       .source = 1});
    }
    is_free = start + about(took);
    note(TimelineKind::kExecute, {.begin = start,
                                  .end = is_free,
                                  .id = id,
                                  .bytes = bytes,
                                  .stream = stream,
                                  .batch = batch_,
                                  .name = name_(name),
                                  .site = site,
                                  .thread = static_cast<std::uint32_t>(1 + stream),
                                  .source = 1});
    return is_free;
  }
  void admit() {
    settle_passed();
    if (options_.run_ahead != 0 && in_flight_.size() >= options_.run_ahead) {
      const std::uint64_t begin = now_;
      now_ = std::max(now_, in_flight_[in_flight_.size() - options_.run_ahead].done) +
             options_.wake_ns;
      note(TimelineKind::kStall, {.begin = begin,
                                  .end = now_,
                                  .bytes = 8 * options_.tensor_bytes,
                                  .batch = batch_,
                                  .name = name_("train"),
                                  .site = name_("trainer/loop.py:80"),
                                  .source = 3,
                                  .detail = static_cast<std::uint8_t>(TimelineStall::kRunAhead)});
      settle_passed();
    }
    note(TimelineKind::kAdmit, {.bytes = 8 * options_.tensor_bytes,
                                .batch = batch_,
                                .name = name_("train"),
                                .site = name_("trainer/loop.py:80"),
                                .source = 3});
  }
  void run_batch() {
    now_ += about(options_.load_ns);
    if (const auto slow = options_.slow_loads.find(batch_); slow != options_.slow_loads.end())
      now_ += slow->second;
    admit();
    InFlight mine{.batch = batch_};
    const Block inputs = allocate(options_.tensor_bytes - 100, "inputs", batch_, 2);
    const std::uint64_t ready =
        submit("inputs", 2, options_.copy_ns, 0, options_.tensor_bytes - 100);
    std::vector<Block> blocks;
    for (std::uint32_t layer = 0; layer < options_.layers; ++layer) {
      blocks.push_back(
          allocate(options_.tensor_bytes, "layer " + std::to_string(layer), batch_, 1));
      (void)submit("forward", 1, options_.operation_ns, ready, options_.tensor_bytes);
    }
    if (batch_ == options_.fails_in) {
      memory(TimelineKind::kFailure, {.bytes = options_.budget,
                                      .requested = options_.budget - 7,
                                      .stream = 1,
                                      .batch = batch_,
                                      .name = name_("too large"),
                                      .site = name_("model.py:99")});
    }
    for (; !blocks.empty(); blocks.pop_back()) {
      mine.done = submit("backward", 1, options_.operation_ns, ready, options_.tensor_bytes);
      free(blocks.back(), false);
    }
    free(inputs, true);
    mine.awaiting.push_back(inputs);
    note(TimelineKind::kClose, {.bytes = (options_.layers + 1) * options_.tensor_bytes,
                                .batch = batch_,
                                .name = name_("train"),
                                .source = 3});
    in_flight_.push_back(mine);
    if (options_.barrier_every != 0 && batch_ % options_.barrier_every == 0) {
      const std::uint64_t begin = now_;
      now_ = std::max(now_, mine.done) + options_.wake_ns;
      note(TimelineKind::kBarrier, {.begin = begin,
                                    .end = now_,
                                    .batch = batch_,
                                    .name = name_("read"),
                                    .site = name_("trainer/loop.py:88"),
                                    .source = 1});
    }
  }

  const MadeOptions options_;
  std::mt19937_64 random_;
  Process process_;
  MadeNames name_;
  std::uint64_t now_ = 1000;
  std::uint64_t compute_free_ = 0;
  std::uint64_t copy_free_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t operations_ = 0;
  std::uint64_t allocated_ = 0;
  std::uint64_t awaiting_ = 0;
  std::uint64_t cached_ = 0;
  std::uint64_t next_address_ = 0x7000'0000'0000;
  std::uint32_t batch_ = 0;
  std::vector<InFlight> in_flight_;
  std::map<std::uint64_t, std::vector<std::uint64_t>> cached_blocks_;
};

/// One process of a simulated trainer.
[[nodiscard]] inline Process made_process(const MadeOptions& options = {}) {
  return MadeTrainer(options).run();
}
[[nodiscard]] inline Timeline made_timeline(const MadeOptions& options = {}) {
  Timeline timeline;
  timeline.processes.push_back(made_process(options));
  return timeline;
}

/// `count` meaningless records: ends before begins, numbers of any size, unknown kinds, names and
/// streams. In the order of Process::records.
[[nodiscard]] inline Process nonsense(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  const auto below = [&random](std::uint64_t most) { return random() % most; };
  // Mostly small, so that records meet, and sometimes as large as possible.
  const auto number = [&](std::uint64_t most) -> std::uint64_t {
    switch (below(16)) {
      case 0:
        return UINT64_MAX - below(3);
      case 1:
        return random();
      default:
        return below(most);
    }
  };
  Process process;
  process.lost = below(2) * number(10);
  for (const char* name : {"a", "</script>", "compute", "copy-in", "\xff\x01", "x.py:1"})
    process.names.emplace_back(name);
  for (std::size_t i = 0; i < count; ++i) {
    TimelineRecord record{.begin = number(1000 * count),
                          .id = number(20),
                          .bytes = number(5000),
                          .requested = number(5000),
                          .stream = number(4),
                          .sequence = number(2 * count),
                          .allocated = number(5000),
                          .awaiting = number(5000),
                          .cached = number(5000),
                          .batch = static_cast<std::uint32_t>(number(10)),
                          .name = static_cast<std::uint32_t>(number(8)),
                          .site = static_cast<std::uint32_t>(number(8)),
                          .thread = static_cast<std::uint32_t>(number(4)),
                          .source = static_cast<std::uint16_t>(number(4)),
                          .device = static_cast<std::uint16_t>(number(3)),
                          .kind = static_cast<TimelineKind>(below(kTimelineKinds + 2)),
                          .detail = static_cast<std::uint8_t>(number(5))};
    record.end = below(8) == 0 ? number(1000 * count) : record.begin + number(3000);
    process.records.push_back(record);
  }
  sort_records(process);
  return process;
}

}  // namespace weir::timeline::testing
