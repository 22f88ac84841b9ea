// Memory that the pool serves, and its frees.

#include <algorithm>
#include <optional>
#include <string>

#include "allocator/base/log.hpp"
#include "tools/preload/hooks/pass.hpp"
#include "tools/preload/process/process.hpp"

namespace weir::preload {
namespace {

using Bytes = weir::Bytes;

/// Counts an allocation that the driver answered; later, if a signal handler made it.
CUresult note_passed(const Call& call, CUresult code, const CUdeviceptr* pointer,
                     std::size_t bytes) noexcept {
  if (call.nested() && code == CUDA_SUCCESS && pointer != nullptr) {
    call.count_later(*pointer, bytes);
  }
  return code;
}

/// Whether to postpone a free: in a signal handler, if the pointer may be ours. After fork a child
/// has nothing of ours or the driver's.
bool is_for_later(const Call& call, CUdeviceptr pointer) noexcept {
  return call.nested() && pointer != 0 && !Process::is_forked_child() && !Call::take_back(pointer);
}

/// Returns the code of a free in a signal handler; `left`: postponed.
CUresult freed_later(bool left) noexcept { return left ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY; }

/// Whether work on `stream` is being captured now, by a capture of any context.
bool captured(const Process& process, CUstream stream, bool per_thread) noexcept {
  return CapturesUnderWay::any() && is_captured(process.driver(), named_stream(stream, per_thread));
}

/// Returns the driver's answer to a free, on a captured stream, of memory that no graph allocated.
CUresult refusal_in_capture(const Process& process, CUstream stream, bool per_thread) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult code =
      process.driver().cuStreamIsCapturing(named_stream(stream, per_thread), &status);
  return code == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : code;
}

/// Allocates in stream order: from the `pool` that the call names, or else the device's current
/// one.
template <typename F, typename... OfPool>
CUresult allocate_async(F Driver::*real, bool per_thread, CUdeviceptr* pointer, std::size_t bytes,
                        CUstream stream, OfPool... pool) noexcept {
  Call call;
  Process* const process = pointer != nullptr && bytes != 0 ? Process::get() : nullptr;
  const Located here =
      process != nullptr ? process->contexts().locate(stream, per_thread) : Located{};
  Arena* const arena = here.arena;
  const auto by_driver = [&] { return pass(real, pointer, bytes, pool..., stream); };
  if (arena == nullptr) return note_passed(call, by_driver(), pointer, bytes);
  Device* device = &arena->device();
  Wanted wanted{.kind = Kind::kGraphs, .bytes = {bytes}, .context = arena->context()};
  if (captured(*process, stream, per_thread)) {
    device->own().use_graphs();
    return obtain(call, process, device, wanted, by_driver, pointer);
  }
  if constexpr (sizeof...(pool) != 0) {
    const bool is_default = device->own().is_default(pool...);
    wanted.pool = is_default ? nullptr : (pool, ...);
  } else {
    wanted.pool = device->own().current();
  }
  if (wanted.pool == nullptr) {
    return process->allocate(call, *arena, *pointer, bytes, here.stream);
  }
  wanted.kind = Kind::kPools;
  Device* const its = process->device_of(wanted.pool);
  if (its != nullptr) device = its;
  // A pool whose creation nobody saw is taken for the stream's device's.
  return attempt<CUresult>(LogLevel::kError, "an own pool is not counted", CUDA_ERROR_OUT_OF_MEMORY,
                           [&] {
                             device->own().add(wanted.pool);
                             return obtain(call, process, device, wanted, by_driver, pointer);
                           });
}

/// Frees what no arena has allocated: the driver's memory, perhaps counted. An address inside an
/// arena's memory is a double free or not the start of a block. The driver would take back the
/// whole segment with all its blocks, so it must not be asked.
template <typename Call>
CUresult free_passed(Process* process, CUdeviceptr pointer, const Call& call) noexcept {
  if (process == nullptr) return call();
  if (process->ownership().serves(pointer)) return CUDA_ERROR_INVALID_VALUE;
  const auto entry = process->passed().take(Kind::kDirect, pointer);
  const CUresult code = call();
  process->passed().settle(pointer, entry, code == CUDA_SUCCESS);
  return code;
}

template <typename F>
CUresult free_async(F Driver::*real, bool per_thread, CUdeviceptr pointer,
                    CUstream stream) noexcept {
  Call call;
  if (is_for_later(call, pointer)) {
    return freed_later(Call::free_later(pointer, stream, per_thread));
  }
  Process* const process = pointer != 0 ? Process::get() : nullptr;
  const Located here =
      process != nullptr ? process->contexts().locate(stream, per_thread) : Located{};
  const auto by_driver = [&] { return pass(real, pointer, stream); };
  if (here.arena != nullptr) {
    if (captured(*process, stream, per_thread)) {
      // A graph frees only what a graph allocated, and arenas serve none of that.
      return process->ownership().serves(pointer) ? refusal_in_capture(*process, stream, per_thread)
                                                  : by_driver();
    }
    if (const auto code = process->ownership().free(pointer, here)) return *code;
  }
  return free_passed(process, pointer, by_driver);
}

constexpr const char* kInOrder =
    "stream-ordered memory is reused before another process can know; share memory of cuMemAlloc";

/// Takes cuMemAlloc memory, which the driver gave at `base`, out of the pool permanently. Returns
/// null, or why it must not be shared.
const char* disown(Process& process, CUdeviceptr base) noexcept {
  constexpr const char* kPart =
      "a block of this pool is part of a driver allocation, and a handle would share all of it; "
      "set WEIR_POOL=naive";
  try {
    for (Arena* const arena : process.contexts().all()) {
      Bytes given;
      switch (arena->share(base, given)) {
        case Arena::Shared::kNotOurs:
          continue;
        case Arena::Shared::kInOrder:
          return kInOrder;
        case Arena::Shared::kPart:
          return kPart;
        case Arena::Shared::kGiven:
          process.count(arena->account(), Kind::kShared, given, base, arena->context());
          return nullptr;
      }
    }
    return nullptr;
  } catch (const std::exception&) {
    return "host memory is full";
  }
}

bool is_paged(Process& process, CUdeviceptr pointer) noexcept {
  try {
    const auto arenas = process.contexts().all();
    return std::ranges::any_of(
        arenas, [pointer](Arena* arena) { return arena->upstream().is_paged(pointer); });
  } catch (const std::exception&) {
    return false;
  }
}

CUresult refuse_handle(const char* why) noexcept {
  try {
    log(LogLevel::kWarn, std::string("cuIpcGetMemHandle refused: ") + why);
  } catch (const std::exception&) {
    log(LogLevel::kWarn, why);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

/// The row alignment of cuMemAllocPitch, the same as cuMemAlloc's.
constexpr std::size_t kPitch = 512;

/// Returns the bytes of a row of `width` bytes; 0 if `height` rows (not zero) exceed all memory.
constexpr std::size_t row_of(std::size_t width, std::size_t height) noexcept {
  constexpr std::size_t kMostInAll = SIZE_MAX / 2;
  if (width > kMostInAll) return 0;
  const std::size_t row = (width + kPitch - 1) / kPitch * kPitch;
  return row <= kMostInAll / height ? row : 0;
}

}  // namespace
}  // namespace weir::preload

using namespace weir::preload;

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
  Call call;
  Process* const process = pointer != nullptr && bytes != 0 ? Process::get() : nullptr;
  Arena* const arena = process != nullptr ? process->contexts().current() : nullptr;
  if (arena == nullptr) {
    return note_passed(call, pass(&Driver::cuMemAlloc_v2, pointer, bytes), pointer, bytes);
  }
  const CurrentContext current(arena->context());
  return process->allocate(call, *arena, *pointer, bytes, arena->fences().sync());
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, std::size_t* pitch, std::size_t width,
                            std::size_t height, unsigned int element) {
  Call call;
  const bool good = pointer != nullptr && pitch != nullptr && width != 0 && height != 0 &&
                    (element == 4 || element == 8 || element == 16);
  const std::size_t row = good ? row_of(width, height) : 0;
  Process* const process = row != 0 ? Process::get() : nullptr;
  Arena* const arena = process != nullptr ? process->contexts().current() : nullptr;
  if (arena == nullptr) {
    const CUresult code = pass(&Driver::cuMemAllocPitch_v2, pointer, pitch, width, height, element);
    const bool served = code == CUDA_SUCCESS && pitch != nullptr;
    return note_passed(call, code, pointer, served ? *pitch * height : 0);
  }
  const CUresult code =
      process->allocate(call, *arena, *pointer, row * height, arena->fences().sync());
  if (code == CUDA_SUCCESS) *pitch = row;
  return code;
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  Call call;
  if (is_for_later(call, pointer)) return freed_later(Call::free_later(pointer));
  Process* const process = pointer != 0 ? Process::get() : nullptr;
  Arena* const arena = process != nullptr ? process->contexts().current() : nullptr;
  if (process != nullptr && process->settings().sync_free.value && arena != nullptr &&
      !arena->fences().capturing()) {
    const Inside inside;
    const CUresult code = process->driver().cuCtxSynchronize();
    if (code != CUDA_SUCCESS) return code;
  }
  if (process != nullptr) {
    if (const auto code = process->ownership().free(pointer, {.arena = arena})) return *code;
  }
  return free_passed(process, pointer, [&] { return pass(&Driver::cuMemFree_v2, pointer); });
}

CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return allocate_async(&Driver::cuMemAllocAsync, false, pointer, bytes, stream);
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return allocate_async(&Driver::cuMemAllocAsync_ptsz, true, pointer, bytes, stream);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return allocate_async(&Driver::cuMemAllocFromPoolAsync, false, pointer, bytes, stream, pool);
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                                      CUstream stream) {
  return allocate_async(&Driver::cuMemAllocFromPoolAsync_ptsz, true, pointer, bytes, stream, pool);
}
CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  return free_async(&Driver::cuMemFreeAsync, false, pointer, stream);
}
CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  return free_async(&Driver::cuMemFreeAsync_ptsz, true, pointer, stream);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  Call call;
  Process* const process = Process::get();
  if (process != nullptr && is_paged(*process, pointer)) {
    // With `auto` only memory in stream order is paged, and no pool has handles to that.
    return refuse_handle(process->settings().auto_pools.value
                             ? kInOrder
                             : "the driver has no handles for memory that this pool maps; set "
                               "WEIR_POOL=naive");
  }
  if (process != nullptr && process->spilled().has(pointer)) {
    return refuse_handle(
        "it is host memory, allocated because the budget was used up, and the driver has no "
        "handles for it; set WEIR_SPILL=off");
  }
  CUdeviceptr base = 0;
  std::size_t size = 0;
  if (process == nullptr ||
      process->driver().cuMemGetAddressRange_v2(&base, &size, pointer) != CUDA_SUCCESS) {
    return pass(&Driver::cuIpcGetMemHandle, handle, pointer);
  }
  if (const char* const why = disown(*process, base)) return refuse_handle(why);
  return pass(&Driver::cuIpcGetMemHandle, handle, pointer);
}

}  // extern "C"
