#include "tools/preload/process/ownership.hpp"

#include <algorithm>
#include <exception>

#include "allocator/base/log.hpp"

namespace weir::preload {

std::optional<CUresult> Ownership::free(CUdeviceptr pointer, const Located& here) noexcept {
  try {
    const bool in_order = here.stream != StreamId{};
    if (here.arena != nullptr) {
      Fences& fences = here.arena->fences();
      if (!in_order && contexts_.has_peers() &&
          here.arena->pool().find(reinterpret_cast<void*>(pointer))) {
        if (const auto code = free_behind_peers(*here.arena, pointer, {})) return code;
      }
      const StreamId stream = in_order ? here.stream : fences.everything();
      if (const auto code = here.arena->free(pointer, stream)) {
        here.arena->device().keep_budget();
        (void)spilled_.release();
        return code;
      }
    }
    if (const auto code = free_spilled(pointer, here)) return code;
    return free_elsewhere(pointer, here);
  } catch (const std::exception& error) {
    // It stays allocated: better lost than reused while work may still touch it.
    log(LogLevel::kError, std::string("a free failed: ") + error.what());
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

std::optional<CUresult> Ownership::free_elsewhere(CUdeviceptr pointer, const Located& here) {
  for (Arena* const arena : contexts_.all()) {
    if (arena == here.arena || !arena->pool().find(reinterpret_cast<void*>(pointer))) continue;
    if (const auto code = free_behind_peers(*arena, pointer, here)) return code;
  }
  return std::nullopt;
}

std::optional<CUresult> Ownership::free_behind_peers(Arena& owner, CUdeviceptr pointer,
                                                     const Located& here) {
  Fences& fences = owner.fences();
  bool parked = false;
  try {
    cover_peers(owner, here, settings_.max_wait.value);
  } catch (const CaptureUnderWay&) {
    parked = true;  // a captured stream's position is unknown
  }
  const StreamId stream = parked ? fences.parked() : fences.everything();
  std::optional<CUresult> code = CUDA_SUCCESS;
  if (spilled_.has(pointer)) {
    spilled_.end_free(pointer, fences.record(stream));
  } else {
    code = owner.free(pointer, stream);
  }
  if (parked) {
    parked_.store(true);
    if (!CapturesUnderWay::any()) finish_parked();  // the last capture has ended meanwhile
  }
  if (code) owner.device().keep_budget();
  return code;
}

void Ownership::finish_parked() noexcept {
  if (!parked_.exchange(false)) return;
  bool all = true;
  try {
    for (Arena* const arena : contexts_.all()) {
      const auto last = arena->fences().last_parked();
      if (!last) continue;
      all = cover_all_peers(*arena, {}) && arena->fences().finish_parked(*last) && all;
    }
  } catch (const std::exception& error) {
    all = false;
    log(LogLevel::kDebug, std::string("freed memory is reused later: ") + error.what());
  }
  if (!all) parked_.store(true);
}

std::optional<CUresult> Ownership::free_spilled(CUdeviceptr pointer, const Located& here) {
  const auto owner = spilled_.begin_free(pointer);
  if (!owner) return std::nullopt;
  if (owner->freed) return CUDA_ERROR_INVALID_VALUE;
  try {
    const bool at_home = here.arena == owner->arena;
    const bool in_order = at_home && here.stream != StreamId{};
    if (!at_home || (!in_order && contexts_.has_peers())) {
      (void)free_behind_peers(*owner->arena, pointer, at_home ? Located{} : here);
    } else {
      Fences& fences = owner->arena->fences();
      spilled_.end_free(pointer, fences.record(in_order ? here.stream : fences.everything()));
    }
  } catch (...) {
    spilled_.end_free(pointer, std::nullopt);
    throw;
  }
  (void)spilled_.release();
  return CUDA_SUCCESS;
}

bool Ownership::serves(CUdeviceptr address) const noexcept {
  if (spilled_.has(address)) return true;
  try {
    return std::ranges::any_of(contexts_.all(),
                               [=](const Arena* arena) { return arena->serves(address); });
  } catch (const std::exception&) {
    return true;  // host memory is full: refuse rather than free before other streams are done
  }
}

std::optional<Allocation> Ownership::allocation_around(CUdeviceptr address) const noexcept {
  try {
    for (const Arena* const arena : contexts_.all()) {
      if (!arena->serves(address)) continue;
      const auto found = arena->pool().find_around(reinterpret_cast<void*>(address));
      if (!found) return Allocation{};
      return Allocation{.begin = reinterpret_cast<CUdeviceptr>(found->begin),
                        .bytes = found->requested.count};
    }
    return std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;  // host memory is full
  }
}

void Ownership::cover_peers(Arena& owner, const Located& here, std::chrono::nanoseconds most) {
  if (here.arena != nullptr && here.stream != StreamId{}) {
    owner.fences().adopt(here.arena->fences().events_of(here.stream));
    return;
  }
  if (!cover_all_peers(owner, most)) throw CaptureUnderWay("another context ends");
}

bool Ownership::cover_all_peers(Arena& owner, std::chrono::nanoseconds most) {
  const ContextGate::Turn turn(gate_, time_after_now(most));
  if (!turn.granted()) return false;
  for (Arena* const other : contexts_.all()) {
    if (other == &owner) continue;
    owner.fences().adopt(other->fences().events_of(other->fences().everything()));
  }
  return true;
}

}  // namespace weir::preload
