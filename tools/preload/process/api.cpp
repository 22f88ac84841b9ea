#include "tools/preload/process/api.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/log.hpp"
#include "tools/preload/context/captures.hpp"
#include "tools/preload/driver/call.hpp"
#include "tools/preload/process/process.hpp"
#include "tools/preload/process/publishing.hpp"
#include "tools/timeline/begin.hpp"

namespace weir::preload {
namespace {

// A graph runs anywhere at any time. So a captured allocation must not get memory that other work
// still touches. The graph uses the memory at each launch, even after its free, and nobody reports
// its end. Other streams allocate as always meanwhile; the legacy stream is never captured.
bool may_be_captured(const Process& process, CUstream stream) noexcept {
  const bool legacy = stream == nullptr || stream == CU_STREAM_LEGACY;
  return !legacy && is_captured(process.driver(), stream);
}

Arena* arena_of(int device) noexcept {
  Process* const process = Process::get_if_any();
  return process != nullptr ? process->contexts().primary(device) : nullptr;
}

/// The same, but creates the device's primary context if needed and retains it to the end, as
/// CUDA's runtime does for a first cudaMalloc.
Arena* open_arena_of(Process& process, int device) noexcept {
  Arena* const arena = process.contexts().primary(device);
  if (arena != nullptr) return arena;
  // Fails if there is no such device.
  if (process.contexts().primaries().is_active(device) != std::optional(false)) return nullptr;
  CUcontext context = nullptr;
  // By the hook, which counts what the context takes, as a separate call.
  {
    const Call::InDriver outside;
    if (cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) return nullptr;
  }
  return process.contexts().primary(device);
}

/// A forked child does not own its parent's batches.
void forget_batch() noexcept {
  this_thread.batch = nullptr;
  this_thread.joined = 0;
}

/// The arena of the calling thread's device. As in CUDA's runtime, a thread without a context is on
/// device 0.
Arena* current_arena(Process& process) noexcept {
  Arena* const arena = process.contexts().current();
  if (arena != nullptr || process.contexts().current_context() != nullptr) return arena;
  return process.contexts().primary(0);
}

}  // namespace

bool begin_batch(std::string_view kind) noexcept {
  Call call;
  if (call.nested()) return false;
  if (Process::get_if_any() == nullptr) forget_batch();
  if (this_thread.batch != nullptr) {
    ++this_thread.joined;
    return true;
  }
  Process* const process = Process::get();
  Arena* const arena = process != nullptr ? current_arena(*process) : nullptr;
  if (arena == nullptr) return false;
  if (!arena->batches().begin(call, kind)) return false;
  this_thread.batch = arena;
  return true;
}

void end_batch() noexcept {
  Call call;
  if (call.nested()) return;
  if (Process::get_if_any() == nullptr) forget_batch();
  if (this_thread.joined != 0) {
    --this_thread.joined;
    return;
  }
  Arena* const arena = std::exchange(this_thread.batch, nullptr);
  if (arena != nullptr) arena->batches().end(call);
}

bool memory_info(int device, MemoryInfo& info) noexcept {
  const Call call;
  Arena* const arena = arena_of(device);
  if (arena == nullptr) return false;
  return attempt(LogLevel::kDebug, "no memory info", false, [&]() -> bool {
    arena->pool().poll();
    const Statistics now = arena->pool().statistics();
    const PoolSums::RecentPeaks peaks = arena->pool().sums().recent_peaks();
    info = {.total = arena->account().total(),
            .budget = arena->account().budget(),
            .allocated = now.allocated.current,
            .awaiting = now.awaiting.current,
            .cached = now.cached.current,
            .reserved = now.reserved.current,
            .passed = arena->account().passed(),
            .allocated_peak = peaks.allocated,
            .reserved_peak = peaks.reserved};
    return true;
  });
}

Bytes trim(int device) noexcept {
  Call call;
  Process* const process = Process::get_if_any();
  if (process == nullptr) return {};
  return attempt<Bytes>(LogLevel::kDebug, "nothing was trimmed", {}, [&]() -> Bytes {
    Bytes sum;
    for (Arena* const arena : process->contexts().all()) {
      if (device < 0 || arena->device().number() == device) sum += arena->trim(call);
    }
    return sum;
  });
}

bool set_budget(int device, Bytes budget) noexcept {
  const Call call;
  Process* const process = Process::get_if_any();
  if (process == nullptr) return false;
  return attempt(LogLevel::kError, "a budget was not set", false, [&]() -> bool {
    std::vector<Device*> devices = process->devices().in_use();
    if (device >= 0) devices = {process->devices().without_attaching(device)};
    const auto may_have = [budget](const Device* each) {
      return each != nullptr && timeline::is_in_range(budget, each->account().total());
    };
    if (devices.empty() || !std::ranges::all_of(devices, may_have)) return false;
    for (Device* const each : devices) (void)each->set_budget(budget, "weir_set_budget");
    return true;
  });
}

bool set_fraction(int device, double fraction) noexcept {
  const Call call;
  Process* const process = Process::get_if_any();
  if (process == nullptr) return false;
  Device* const its = process->devices().without_attaching(device);
  return its != nullptr &&
         its->set_fraction(fraction, "weir_set_fraction").code == timeline::BudgetCode::kTaken;
}

bool reset_peaks(int device) noexcept {
  const Call call;
  Arena* const arena = arena_of(device);
  if (arena == nullptr) return false;
  return attempt(LogLevel::kDebug, "peaks were not reset", false, [&]() -> bool {
    arena->pool().sums().reset_recent_peaks();
    return true;
  });
}

std::vector<MemoryBlock> memory_blocks(int device) noexcept {
  const Call call;
  Arena* const arena = arena_of(device);
  if (arena == nullptr) return {};
  return attempt<std::vector<MemoryBlock>>(
      LogLevel::kDebug, "no blocks are listed", {}, [&]() -> std::vector<MemoryBlock> {
        arena->pool().poll();
        const std::vector<PoolBlock> found = arena->pool().blocks();
        std::vector<MemoryBlock> blocks;
        blocks.reserve(found.size());
        std::size_t first = 0;  // of the segment
        for (const PoolBlock& block : found) {
          if (block.begins_segment) first = blocks.size();
          blocks.push_back({.block = block,
                            .segment = found[first].begin,
                            .segment_size = {},
                            .stream = arena->fences().handle(block.home)});
          blocks[first].segment_size += block.size;
        }
        for (MemoryBlock& each : blocks) {
          if (each.block.begins_segment) first = static_cast<std::size_t>(&each - blocks.data());
          each.segment_size = blocks[first].segment_size;
        }
        return blocks;
      });
}

std::string settings_text() noexcept {
  const Call call;
  const Process* const process = Process::get_if_any();
  if (process == nullptr) return {};
  try {
    std::string text;
    for (const SettingLine& line : describe(process->settings())) {
      if (!text.empty()) text += '\n';
      text += std::string(line.name) + "=" + line.shown() + " (" + line.source + ")";
    }
    return text;
  } catch (const std::exception&) {
    return {};
  }
}

bool start_timeline(std::string_view file) noexcept {
  const NoCancel no_cancel;
  const Inside inside;
  constexpr const char* kSource = "weir_timeline_start";
  try {
    if (Process::is_forked_child()) {  // the parent may have held a pool's lock
      log(LogLevel::kError, std::string(kSource) + ": a child after a fork records nothing");
      return false;
    }
    auto settings = timeline::TimelineSettings::from_environment();
    if (!file.empty()) settings.file = {timeline::parse_timeline_file(kSource, file), kSource};
    timeline::Recorder* const recorder = begin_process_recording(settings);
    if (recorder == nullptr && settings.file.value.empty()) {
      log(LogLevel::kError, std::string(kSource) + ": no file is named here or by WEIR_TIMELINE");
    }
    if (recorder == nullptr) return false;  // if a file was named, the reason has been logged
    recorder->start();
    return recorder->is_recording();
  } catch (const std::exception& error) {
    log(LogLevel::kError, error.what());
    return false;
  }
}

void stop_timeline() noexcept {
  const Inside inside;
  timeline::Recorder* const recorder = timeline::recording();
  if (recorder != nullptr) recorder->stop();
}

void* allocate_on(int device, std::size_t bytes, CUstream stream) noexcept {
  Call call;
  Process* const process = Process::get();
  if (process == nullptr || bytes == 0) return nullptr;
  Arena* const arena = open_arena_of(*process, device);
  if (arena == nullptr) return nullptr;
  return attempt<void*>(LogLevel::kError, "an allocation failed", nullptr, [&]() -> void* {
    Fences& fences = arena->fences();
    // The first costs one load. A capture of `stream` was announced before it began.
    const bool captured =
        CapturesUnderWay::any() && fences.capturing() && may_be_captured(*process, stream);
    CUdeviceptr pointer = 0;
    const CUresult code = process->allocate(call, *arena, pointer, bytes,
                                            captured ? fences.sync() : fences.find(stream, false));
    if (code != CUDA_SUCCESS) return nullptr;
    if (captured) arena->keep(pointer);
    return reinterpret_cast<void*>(pointer);
  });
}

void free_on(int device, void* pointer, CUstream stream) noexcept {
  const Call call;
  Arena* const arena = arena_of(device);
  if (arena == nullptr || pointer == nullptr) return;
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);
  if (arena->is_kept(address)) return;
  attempt(LogLevel::kError, "a free failed", [&] {
    Process* const process = Process::get_if_any();
    const auto freed = arena->free(address, arena->fences().find(stream, false));
    if (process == nullptr) return;
    // May be host memory, whose use on other streams is unknown.
    if (!freed) (void)process->ownership().free(address, {.arena = arena, .stream = {}});
    arena->device().keep_budget();
  });
}

void record_use_on(int device, void* pointer, CUstream stream) noexcept {
  const Call call;
  Process* const process = Process::get_if_any();
  if (process == nullptr || pointer == nullptr) return;
  attempt(LogLevel::kError, "a use is not recorded", [&] {
    for (Arena* const arena : process->contexts().all()) {
      if (device >= 0 && arena->device().number() != device) continue;
      if (!arena->pool().find(pointer)) continue;
      arena->pool().record_use(pointer, arena->fences().find(stream, false));
      return;
    }
  });
}

}  // namespace weir::preload
