// Measures what a timeline costs the recording thread: one event, by one thread and by two at once,
// and with a name and the thread's call site. The recorder's thread reads the events meanwhile.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <span>

#include "allocator/timeline/sink.hpp"
#include "bench/shared/table.hpp"
#include "tools/timeline/recorder/recorder.hpp"

namespace weir::bench {
namespace {

using timeline::Recorder;

/// Discards its input, because the speed of formats is measured elsewhere.
class NoWriter final : public timeline::Writer {
 public:
  void begin(const timeline::ProcessInfo& /*info*/) override {}
  void write(std::span<const TimelineRecord> /*records*/,
             const timeline::Names& /*names*/) override {}
  void flush() override {}
  void finish(std::uint64_t /*lost*/) override {}
};

Recorder* recorder = nullptr;

/// The buffer has room for all of these, so none is lost.
constexpr int kEvents = 500'000;

void begin(const benchmark::State& /*state*/) {
  recorder = &Recorder::make({}, {.file = nullptr, .writer = std::make_unique<NoWriter>()},
                             {.buffer = mib(256)});
  // Reuses memory, as in a program that runs for more than a second.
  for (int i = 0; i < 2 * kEvents; ++i) recorder->write({.kind = TimelineKind::kFree});
  (void)recorder->flush_now();
}
void end(const benchmark::State& /*state*/) { (void)recorder->finish(); }

void event(benchmark::State& state) {
  std::uint64_t sequence = 0;
  for ([[maybe_unused]] auto _ : state) {
    recorder->write({.id = ++sequence,
                     .bytes = 4096,
                     .stream = 1,
                     .sequence = sequence,
                     .source = 1,
                     .kind = TimelineKind::kFree});
  }
}

void named_event(benchmark::State& state) {
  const TimelineScope scope(7, "loop.py", 88);
  std::uint64_t sequence = 0;
  for ([[maybe_unused]] auto _ : state) {
    recorder->write({.id = ++sequence,
                     .bytes = 4096,
                     .stream = 1,
                     .sequence = sequence,
                     .name = recorder->name("layer3.weight"),
                     .source = 1,
                     .kind = TimelineKind::kAllocate});
  }
}

}  // namespace

void add_timeline(Table& table) {
  const auto add = [&table](const char* figure, void (*run)(benchmark::State&), int threads) {
    benchmark::RegisterBenchmark(figure, run)
        ->Setup(begin)
        ->Teardown(end)
        ->Threads(threads)
        ->Iterations(kEvents)
        ->UseRealTime();
    table.add({.figure = figure, .most_ns = 50});
  };
  add("timeline/event", event, 1);
  add("timeline/two_threads", event, 2);
  add("timeline/named_event", named_event, 1);
}

}  // namespace weir::bench
