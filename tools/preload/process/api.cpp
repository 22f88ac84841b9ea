#include "tools/preload/process/api.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/log.hpp"
#include "tools/preload/context/captures.hpp"
#include "tools/preload/driver/scope.hpp"
#include "tools/preload/process/entry.hpp"
#include "tools/preload/process/process.hpp"
#include "tools/timeline/begin.hpp"

namespace weir::preload {
namespace {

/// The calling thread's batches: the open one and those that joined it.
struct Marks {
  OpenBatch batch;
  std::uint64_t joined = 0;
};
constinit thread_local Marks marks{};

// A graph runs anywhere at any time. So a captured allocation must not get memory that other work
// still touches. The graph uses the memory at each launch, even after its free, and nobody reports
// its end. Other streams allocate as always meanwhile; the legacy stream is never captured.
bool may_be_captured(const Process& process, CUstream stream) noexcept {
  const bool legacy = stream == nullptr || stream == CU_STREAM_LEGACY;
  return !legacy && is_captured(process.driver(), stream);
}

Arena* arena_of(int device) noexcept {
  Process* const process = Process::get_if_any();
  return process != nullptr ? process->primary(device) : nullptr;
}

/// The same, but creates the device's primary context if needed and retains it to the end, as
/// CUDA's runtime does for a first cudaMalloc.
Arena* open_arena_of(Process& process, int device) noexcept {
  Arena* const arena = process.primary(device);
  if (arena != nullptr) return arena;
  // Fails if there is no such device.
  if (process.primary_contexts().is_active(device) != std::optional(false)) return nullptr;
  CUcontext context = nullptr;
  // By the hook, which counts what the context takes, as a separate call.
  {
    const Entry::InDriver outside;
    if (cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) return nullptr;
  }
  return process.primary(device);
}

/// The arena of the calling thread's device. As in CUDA's runtime, a thread without a context is on
/// device 0.
Arena* current_arena(Process& process) noexcept {
  Arena* const arena = process.current();
  if (arena != nullptr || process.current_context() != nullptr) return arena;
  return process.primary(0);
}

}  // namespace

bool begin_batch(std::string_view kind) noexcept {
  const Entry entry;
  if (entry.nested()) return false;
  if (Process::get_if_any() == nullptr) marks = {};  // a child does not own its parent's batches
  if (marks.batch.arena != nullptr) {
    ++marks.joined;
    return true;
  }
  Process* const process = Process::get();
  Arena* const arena = process != nullptr ? current_arena(*process) : nullptr;
  if (arena == nullptr) return false;
  const auto batch = arena->begin_batch(kind);
  if (batch) marks.batch = *batch;
  return batch.has_value();
}

void end_batch() noexcept {
  const Entry entry;
  if (entry.nested()) return;
  if (Process::get_if_any() == nullptr) marks = {};
  if (marks.joined != 0) {
    --marks.joined;
    return;
  }
  if (marks.batch.arena == nullptr) return;
  const OpenBatch batch = marks.batch;
  marks.batch = {};
  batch.arena->end_batch(batch);
}

bool memory_info(int device, MemoryInfo& info) noexcept {
  const Entry entry;
  Arena* const arena = arena_of(device);
  if (arena == nullptr) return false;
  return attempt(LogLevel::kDebug, "no memory info", false, [&]() -> bool {
    if (!arena->fences().capturing()) arena->pool().poll();
    const Statistics now = arena->pool().statistics();
    const Pools::RecentPeaks peaks = arena->pool().recent_peaks();
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
  const Entry entry;
  Process* const process = Process::get_if_any();
  if (process == nullptr) return {};
  return attempt<Bytes>(LogLevel::kDebug, "nothing was trimmed", {}, [&]() -> Bytes {
    Bytes sum;
    const GiveBackGate::Turn turn(process->give_back_gate(), process->settings().max_wait.value);
    if (!turn.granted()) return {};
    for (Arena* const arena : process->arenas()) {
      const bool its = device < 0 || arena->account().device() == device;
      if (its && !arena->fences().capturing()) sum += arena->pool().trim();
    }
    return sum;
  });
}

bool set_budget(int device, Bytes budget) noexcept {
  const Entry entry;
  Process* const process = Process::get_if_any();
  if (process == nullptr) return false;
  return attempt(LogLevel::kError, "a budget was not set", false, [&]() -> bool {
    std::vector<Account*> accounts = process->accounts_in_use();
    if (device >= 0) accounts = {process->account_without_attaching(device)};
    const auto may_have = [budget](const Account* account) {
      return account != nullptr && timeline::is_in_range(budget, account->total());
    };
    if (accounts.empty() || !std::ranges::all_of(accounts, may_have)) return false;
    for (Account* const account : accounts) {
      (void)process->set_budget(*account, budget, "weir_set_budget");
    }
    return true;
  });
}

bool set_fraction(int device, double fraction) noexcept {
  const Entry entry;
  Process* const process = Process::get_if_any();
  if (process == nullptr) return false;
  Account* const account = process->account_without_attaching(device);
  return account != nullptr &&
         process->set_fraction(*account, fraction, "weir_set_fraction").code ==
             timeline::BudgetCode::kTaken;
}

bool reset_peaks(int device) noexcept {
  const Entry entry;
  Arena* const arena = arena_of(device);
  if (arena == nullptr) return false;
  return attempt(LogLevel::kDebug, "peaks were not reset", false, [&]() -> bool {
    arena->pool().reset_recent_peaks();
    return true;
  });
}

std::vector<MemoryBlock> memory_blocks(int device) noexcept {
  const Entry entry;
  Arena* const arena = arena_of(device);
  if (arena == nullptr) return {};
  return attempt<std::vector<MemoryBlock>>(
      LogLevel::kDebug, "no blocks are listed", {}, [&]() -> std::vector<MemoryBlock> {
        if (!arena->fences().capturing()) arena->pool().poll();
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
  const Entry entry;
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
  const Entry entry;
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
    const CUresult code = process->allocate(*arena, pointer, bytes,
                                            captured ? fences.sync() : fences.find(stream, false));
    if (code != CUDA_SUCCESS) return nullptr;
    if (captured) arena->keep(pointer);
    return reinterpret_cast<void*>(pointer);
  });
}

void free_on(int device, void* pointer, CUstream stream) noexcept {
  const Entry entry;
  Arena* const arena = arena_of(device);
  if (arena == nullptr || pointer == nullptr) return;
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);
  if (arena->is_kept(address)) return;
  attempt(LogLevel::kError, "a free failed", [&] {
    Process* const process = Process::get_if_any();
    const auto freed = arena->free(address, arena->fences().find(stream, false));
    if (process == nullptr) return;
    // May be host memory, whose use on other streams is unknown.
    if (!freed) (void)process->free(address, {.arena = arena, .stream = {}});
    process->keep_budget(arena->account());
  });
}

void record_use_on(int device, void* pointer, CUstream stream) noexcept {
  const Entry entry;
  Process* const process = Process::get_if_any();
  if (process == nullptr || pointer == nullptr) return;
  attempt(LogLevel::kError, "a use is not recorded", [&] {
    for (Arena* const arena : process->arenas()) {
      if (device >= 0 && arena->account().device() != device) continue;
      if (!arena->pool().find(pointer)) continue;
      arena->pool().record_use(pointer, arena->fences().find(stream, false));
      return;
    }
  });
}

}  // namespace weir::preload
