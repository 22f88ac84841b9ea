#include "tests/timeline/perfetto/recordings.hpp"

#include <algorithm>
#include <deque>
#include <random>
#include <span>

#include "tests/timeline/chrome/random_process.hpp"
#include "tools/timeline/files/formats.hpp"

namespace weir::testing {
namespace {

using timeline::Process;

/// Makes the records of a training run.
class Trainer {
 public:
  explicit Trainer(std::uint64_t seed) : random_(seed) {
    process_.info = {.pid = 4242,
                     .rank = {},
                     .program = "weir-train",
                     .host = "machine",
                     .boot = "f7c2",
                     .monotonic_ns = 12'345'678'901,
                     .unix_ns = 1'700'000'000'000'000'000};
    name("train");
    for (int layer = 0; layer < 24; ++layer) {
      for (const char* what : {"conv", "relu", "pool", "grad"}) {
        const std::uint32_t number = name(what + std::to_string(layer));
        operations_.push_back({.name = number,
                               .site = name("trainer/layer.cpp:" + std::to_string(10 + layer)),
                               .bytes = 512 * (1 + random_() % 4000),
                               .takes = 5'000 + random_() % 90'000});
      }
    }
    add({.bytes = kBudget, .name = name("device 0"), .source = 1, .kind = TimelineKind::kPool});
    add({.stream = 1, .name = name("compute"), .kind = TimelineKind::kStream});
    add({.name = name("frontend"), .thread = 1, .kind = TimelineKind::kThread});
  }

  Process run(std::size_t operations) {
    for (std::size_t i = 0; i < operations; ++i) step(i);
    close_batch();
    process_.complete = true;
    std::ranges::stable_sort(process_.records, timeline::comes_before);
    return std::move(process_);
  }

 private:
  static constexpr std::uint64_t kBudget = 6ULL << 30U;
  static constexpr std::uint64_t kSegment = 64U << 20U;
  static constexpr std::uint64_t kPlace = 4U << 20U;  ///< of a block; none is larger
  struct Known {
    std::uint32_t name, site;
    std::uint64_t bytes, takes;
  };

  std::uint32_t name(const std::string& text) {
    const auto found = std::find(process_.names.begin(), process_.names.end(), text);
    if (found != process_.names.end()) {
      return static_cast<std::uint32_t>(found - process_.names.begin());
    }
    process_.names.push_back(text);
    return static_cast<std::uint32_t>(process_.names.size() - 1);
  }
  void add(TimelineRecord record) {
    if (record.begin == 0) record.begin = now_;
    record.end = std::max(record.begin, record.end);
    if (record.source == 1) {
      record.sequence = ++sequence_;
      record.allocated = allocated_;
      record.awaiting = 0;
      record.cached = reserved_ - allocated_;
    }
    process_.records.push_back(record);
  }
  void close_batch() {
    if (batch_ == 0) return;
    add({.bytes = allocated_,
         .batch = batch_,
         .name = 1,
         .source = 2,
         .kind = TimelineKind::kClose});
    add({.begin = std::max(now_, device_),
         .batch = batch_,
         .name = 1,
         .source = 2,
         .kind = TimelineKind::kSettle});
  }
  void allocate(const Known& known) {
    now_ += 150 + random_() % 300;
    // A quarter has a new size each time.
    const std::uint64_t requested = random_() % 4 == 0 ? 1 + random_() % (1U << 20U) : known.bytes;
    const std::uint64_t block = (requested + 511) / 512 * 512;
    if (free_places_.empty()) {
      const std::uint64_t segment = 0x7F0000000000 + reserved_;
      reserved_ += kSegment;
      for (std::uint64_t at = kSegment; at > 0; at -= kPlace) {
        free_places_.push_back(segment + at - kPlace);
      }
      add({.id = segment, .bytes = kSegment, .source = 1, .kind = TimelineKind::kReserve});
    }
    allocated_ += block;
    const std::uint64_t address = free_places_.back();
    free_places_.pop_back();
    live_.push_back({address, block, requested});
    add({.id = address,
         .bytes = block,
         .requested = requested,
         .stream = 1,
         .batch = batch_,
         .name = known.name,
         .site = known.site,
         .thread = 1,
         .source = 1,
         .kind = TimelineKind::kAllocate});
  }
  void free_oldest() {
    now_ += 100 + random_() % 200;
    const auto [address, block, requested] = live_.front();
    live_.pop_front();
    allocated_ -= block;
    free_places_.push_back(address);
    add({.id = address,
         .bytes = block,
         .requested = requested,
         .stream = 1,
         .batch = batch_,
         .thread = 1,
         .source = 1,
         .kind = TimelineKind::kFree});
  }
  /// The program reads a result after every fourth batch, and waits for admission after each.
  void hold_back() {
    if (batch_ != 0 && batch_ % 4 == 0) {
      const std::uint64_t begin = now_;
      now_ = std::max(now_, device_) + 5'000;
      add({.begin = begin,
           .end = now_,
           .batch = batch_,
           .name = name("read"),
           .site = name("trainer/loop.cpp:88"),
           .thread = 1,
           .kind = TimelineKind::kBarrier});
    }
    const std::uint64_t begin = now_;
    now_ += 20'000 + random_() % 10'000;
    add({.begin = begin,
         .end = now_,
         .bytes = 1U << 30U,
         .batch = batch_ + 1,
         .name = 1,
         .site = name("trainer/loop.cpp:80"),
         .thread = 1,
         .source = 2,
         .kind = TimelineKind::kStall,
         .detail = static_cast<std::uint8_t>(TimelineStall::kRunAhead)});
  }
  void step(std::size_t i) {
    if (i % operations_.size() == 0) {
      close_batch();
      hold_back();
      ++batch_;
      add({.bytes = 1U << 30U,
           .batch = batch_,
           .name = 1,
           .source = 2,
           .kind = TimelineKind::kAdmit});
    }
    const Known& known = operations_[i % operations_.size()];
    now_ += 2'000 + random_() % 3'000;
    for (std::size_t n = 0; n < 1 + i % 2; ++n) allocate(known);
    const std::uint64_t begin = now_;
    now_ += 1'000 + random_() % 2'000;
    add({.begin = begin,
         .end = now_,
         .id = i + 1,
         .stream = 1,
         .batch = batch_,
         .name = known.name,
         .site = known.site,
         .thread = 1,
         .kind = TimelineKind::kSubmit});
    const std::uint64_t start = std::max(device_, now_ + 500);
    device_ = start + known.takes + random_() % 2'000;
    add({.begin = start,
         .end = device_,
         .id = i + 1,
         .bytes = known.bytes,
         .stream = 1,
         .batch = batch_,
         .name = known.name,
         .site = known.site,
         .kind = TimelineKind::kExecute});
    for (std::size_t n = 0; n < 1 + i % 2 && live_.size() > 60; ++n) free_oldest();
    // The frontend is blocked while the device has much work.
    now_ = std::max(now_, device_ - std::min<std::uint64_t>(device_, 2'000'000));
  }

  struct Live {
    std::uint64_t address, block, requested;
  };
  std::mt19937_64 random_;
  Process process_;
  std::vector<Known> operations_;
  std::deque<Live> live_;
  std::vector<std::uint64_t> free_places_;
  std::uint64_t now_ = 1'000, device_ = 0, sequence_ = 0, allocated_ = 0, reserved_ = 0;
  std::uint32_t batch_ = 0;
};

}  // namespace

std::vector<Process> random_processes(std::uint64_t seed, std::size_t records) {
  std::mt19937_64 random(seed);
  std::vector<Process> processes(1 + random() % 3);
  for (Process& process : processes) {
    process = timeline::testing::random_process(random, {.records = records});
  }
  return processes;
}

Process training_run(std::uint64_t seed, std::size_t operations) {
  return Trainer(seed).run(operations);
}

Process profiled_run() {
  Process process;
  process.names = {"", "launch", "graph", "query", "gemm", "copy", "relu", "lost", "dense"};
  process.complete = true;
  const auto add = [&](TimelineKind kind, std::uint64_t begin, std::uint64_t end, std::uint64_t id,
                       std::uint32_t name) {
    const bool on_thread = kind == TimelineKind::kCall || kind == TimelineKind::kSubmit;
    process.records.push_back({.begin = begin,
                               .end = end,
                               .id = id,
                               .stream = on_thread ? 0U : 7U,
                               .name = name,
                               .thread = on_thread ? 1U : 0U,
                               .device = static_cast<std::uint16_t>(on_thread ? 0 : 1),
                               .kind = kind});
  };
  // A millisecond apart, since counters have one sample in 100 us.
  constexpr std::uint64_t kMs = 1'000'000;
  add(TimelineKind::kCall, 1 * kMs, 2 * kMs, 1, 1);
  add(TimelineKind::kCall, 3 * kMs, 4 * kMs, 2, 1);
  add(TimelineKind::kCall, 5 * kMs, 6 * kMs, 3, 3);
  add(TimelineKind::kCall, 7 * kMs, 8 * kMs, 4, 2);
  add(TimelineKind::kSubmit, 9 * kMs, 10 * kMs, 1, 8);
  add(TimelineKind::kKernel, 11 * kMs, 21 * kMs, 1, 4);
  add(TimelineKind::kCopy, 21 * kMs, 26 * kMs, 2, 5);
  add(TimelineKind::kKernel, 26 * kMs, 28 * kMs, 4, 4);
  add(TimelineKind::kKernel, 28 * kMs, 29 * kMs, 4, 6);
  add(TimelineKind::kKernel, 29 * kMs, 30 * kMs, 5, 7);
  add(TimelineKind::kStop, 31 * kMs, 31 * kMs, 0, 0);
  add(TimelineKind::kStart, 40 * kMs, 40 * kMs, 0, 0);
  add(TimelineKind::kCall, 41 * kMs, 42 * kMs, 1, 1);
  add(TimelineKind::kKernel, 43 * kMs, 44 * kMs, 1, 6);
  add(TimelineKind::kKernel, 44 * kMs, 45 * kMs, 3, 7);
  return process;
}

void write_all(const std::vector<Process>& processes, timeline::Writer& writer) {
  for (const Process& process : processes) {
    writer.begin(process.info);
    const timeline::ProcessNames names(process);
    constexpr std::size_t kOfAFlush = 100;
    for (std::span<const TimelineRecord> rest(process.records); !rest.empty();) {
      const std::size_t count = std::min(kOfAFlush, rest.size());
      writer.write(rest.first(count), names);
      writer.flush();
      rest = rest.subspan(count);
    }
    writer.end_process(
        process.complete ? timeline::Writer::End::kComplete : timeline::Writer::End::kCut,
        process.lost);
  }
  writer.finish(0);
}

}  // namespace weir::testing
