#include "tests/preload/borders/fake_api.hpp"

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "tools/preload/process/api.hpp"

namespace weir::preload {
namespace {

std::mutex mutex;
std::condition_variable changed;
int begun = 0;
std::vector<std::string> calls;
char block = 0;

fake::Answers answers = [] {
  const bool yes = std::getenv("WEIR_FAKE_REFUSES") == nullptr;
  return fake::Answers{.begins = yes, .knows = yes, .allocates = yes};
}();

void note(std::string call) {
  const std::lock_guard lock(mutex);
  if (const char* path = std::getenv("WEIR_FAKE_CALLS")) {
    std::ofstream(path, std::ios::app) << call << '\n';
  }
  calls.push_back(std::move(call));
}

std::string on(int device, const void* pointer, CUstream stream) {
  return (pointer == &block ? "block" : "other") + std::string(" on ") + std::to_string(device) +
         " stream " + std::to_string(reinterpret_cast<std::uintptr_t>(stream));
}

}  // namespace

namespace fake {

void answer(Answers given) { answers = given; }
void* memory() { return &block; }
std::vector<std::string> take_calls() {
  const std::lock_guard lock(mutex);
  return std::exchange(calls, {});
}

}  // namespace fake

// A batch of the kind `held` waits until another one begins.
bool begin_batch(std::string_view kind) noexcept {
  note("begin " + std::string(kind));
  std::unique_lock lock(mutex);
  ++begun;
  changed.notify_all();
  if (kind != "held") return answers.begins;
  changed.wait(lock, [before = begun] { return begun > before; });
  return true;
}
void end_batch() noexcept { note("end"); }

bool memory_info(int device, MemoryInfo& info) noexcept {
  note("memory " + std::to_string(device));
  if (!answers.knows) return false;
  info = {.total = {800},
          .budget = {640},
          .allocated = {100},
          .awaiting = {20},
          .cached = {3},
          .reserved = {123},
          .passed = {50},
          .allocated_peak = {400},
          .reserved_peak = {500}};
  return true;
}

bool set_fraction(int device, double fraction) noexcept {
  std::ostringstream text;
  text << "fraction " << device << ' ' << fraction;
  note(text.str());
  return answers.knows;
}

bool reset_peaks(int device) noexcept {
  note("reset peaks " + std::to_string(device));
  return answers.knows;
}

// A segment of two blocks and one of one.
std::vector<MemoryBlock> memory_blocks(int device) noexcept {
  note("blocks " + std::to_string(device));
  if (!answers.knows) return {};
  using State = PoolBlock::State;
  return {
      {.block = {.begin = 4096,
                 .size = {512},
                 .requested = {500},
                 .home = {},
                 .state = State::kAllocated,
                 .begins_segment = true},
       .segment = 4096,
       .segment_size = {1536},
       .stream = reinterpret_cast<CUstream>(std::uintptr_t{7})},
      {.block =
           {.begin = 4608, .size = {1024}, .requested = {}, .home = {}, .state = State::kAwaiting},
       .segment = 4096,
       .segment_size = {1536}},
      {.block = {.begin = 8192,
                 .size = {2048},
                 .requested = {},
                 .home = {},
                 .state = State::kCached,
                 .begins_segment = true},
       .segment = 8192,
       .segment_size = {2048}}};
}

void allow_sharing() noexcept { note("allow sharing"); }

std::optional<SharedMemory> share(void* pointer) noexcept {
  note(pointer == &block ? "share block" : "share other");
  if (!answers.knows) return std::nullopt;
  SharedMemory shared{
      .base = 2048, .size = {6144}, .page = {2048}, .handle = {}, .files = {11, 12, 13}};
  shared.handle.reserved[5] = 'h';
  return shared;
}

Bytes trim(int device) noexcept {
  note("trim " + std::to_string(device));
  return {std::uint64_t{5} << 32U};
}

bool set_budget(int device, Bytes budget) noexcept {
  note("budget " + std::to_string(device) + " " + std::to_string(budget.count));
  return answers.knows;
}

bool start_timeline(std::string_view file) noexcept {
  note("timeline " + std::string(file));
  return answers.begins;
}
void stop_timeline() noexcept { note("timeline stop"); }

std::string settings_text() noexcept {
  note("settings");
  return answers.knows
             ? "budget=80% (WEIR_BUDGET)\nsummary=a (1).json (WEIR_SUMMARY)\npool=round (default)"
             : "";
}

void* allocate_on(int device, std::size_t bytes, CUstream stream) noexcept {
  note("allocate " + std::to_string(bytes) + " " + on(device, &block, stream));
  return answers.allocates ? &block : nullptr;
}
void free_on(int device, void* pointer, CUstream stream) noexcept {
  note("free " + on(device, pointer, stream));
}
void record_use_on(int device, void* pointer, CUstream stream) noexcept {
  note("use " + on(device, pointer, stream));
}

}  // namespace weir::preload
