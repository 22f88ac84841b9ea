#include "tools/preload/process/contexts.hpp"

#include <algorithm>
#include <exception>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/log.hpp"
#include "tools/preload/context/last_found.hpp"
#include "tools/preload/process/publishing.hpp"

namespace weir::preload {

CUcontext Contexts::current_context() const noexcept {
  CUcontext context = nullptr;
  return driver_.cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : nullptr;
}

Arena* Contexts::current() noexcept {
  const CUcontext context = current_context();
  if (context == nullptr) return nullptr;
  const std::uint64_t generation = generation_.load(std::memory_order_acquire);
  if (last_found.context == context && last_found.generation == generation) {
    return last_found.arena;
  }
  Arena* const arena = find_or_make(context);
  last_found.context = context;
  last_found.generation = generation;
  last_found.arena = arena;
  return arena;
}

Arena* Contexts::primary(int device) noexcept {
  const std::uint64_t generation = generation_.load(std::memory_order_acquire);
  if (last_found.primary_of == device && last_found.primary_generation == generation &&
      last_found.primary != nullptr) {
    return last_found.primary;
  }
  const Inside inside;
  CUcontext context = nullptr;
  {
    const Lock lock(primaries_.of(device));
    context = primaries_.find(device);
  }
  if (context == nullptr) return nullptr;
  const ContextScope scope(driver_, context);
  if (!scope.good()) return nullptr;
  last_found.primary_of = device;
  last_found.primary_generation = generation;
  return last_found.primary = find_or_make(context);
}

Located Contexts::locate(CUstream stream, bool per_thread) noexcept {
  return attempt<Located>(LogLevel::kError, "a stream is not followed", {}, [&]() -> Located {
    Arena* const here = current();
    if (here != nullptr) {
      if (const auto known = here->fences().find_known(stream, per_thread)) return {here, *known};
    }
    CUcontext context = nullptr;
    if (driver_.cuStreamGetCtx == nullptr ||
        driver_.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS || context == nullptr) {
      return {};
    }
    Arena* arena = here;
    if (here == nullptr || here->context() != context) {
      const Inside inside;
      const ContextScope scope(driver_, context);
      arena = scope.good() ? find_or_make(context) : nullptr;
    }
    if (arena == nullptr) return {};
    return {arena, arena->fences().find(stream, per_thread)};
  });
}

std::vector<Arena*> Contexts::all() const {
  const Lock lock(mutex_);
  std::vector<Arena*> all;
  for (const auto& arena : arenas_) all.push_back(arena.get());
  return all;
}

Arena* Contexts::made_for(CUcontext context) const noexcept {
  const Lock lock(mutex_);
  for (const auto& known : arenas_) {
    if (known->context() == context) return known.get();
  }
  return nullptr;
}

Arena* Contexts::find_or_make(CUcontext context) noexcept {
  if (Arena* const known = made_for(context)) return known;
  const NoCancel no_cancel;
  const Inside inside;
  Device* const device = devices_.current();
  if (device == nullptr) return nullptr;
  bool first = false;
  Arena* arena = nullptr;
  try {
    // Outside the lock: it may begin an allocation log, which has its own locks.
    auto made = std::make_unique<Arena>(driver_, context, *device, settings_);
    for (Arena* const other : all()) other->fences().await_calls();
    const Lock lock(mutex_);
    for (const auto& known : arenas_) {
      if (known->context() == context) return known.get();  // another thread was faster
    }
    first = arenas_.empty() && ended_.empty();
    arenas_.push_back(std::move(made));
    arena = arenas_.back().get();
  } catch (const std::exception& error) {
    refuse_to_go_on(error.what());
  }
  begin(*arena, first);
  return arena;
}

void Contexts::begin(Arena& arena, bool first) noexcept {
  Device& device = arena.device();
  const Account& account = device.account();
  try {
    const BudgetRequest& asked = settings_.pool.budget.value;
    if (asked.percent <= 0 && asked.bytes > account.total()) {
      log(LogLevel::kWarn, "budget (" + settings_.pool.budget.source + ") " + format_budget(asked) +
                               " is more than GPU " + std::to_string(device.number()) +
                               " has: " + format_bytes(account.total()) + " is the budget there");
    }
    device.add(arena);
    if (settings_.spill.value == SpillTo::kHost) (void)spilled_.is_possible(device.number());
    if (first) say_active(account);
    publish_device(settings_, "GPU " + std::to_string(device.number()));
    std::vector<std::pair<int, int>> grants;
    std::vector<std::pair<CUcontext, int>> page_peers;
    {
      const Lock lock(mutex_);
      grants = grants_;
      page_peers = page_peers_;
    }
    for (const auto& [owner, accessor] : grants) {
      if (owner == device.number()) let_in(arena, accessor);
    }
    for (const auto& [owner, accessor] : page_peers) {
      if (owner == arena.context()) arena.upstream().allow(accessor);
    }
  } catch (const std::exception& error) {
    refuse_to_go_on(error.what());
  }
}

void Contexts::say_active(const Account& account) const {
  std::string text = "active";
  for (const SettingLine& line : describe(settings_)) {
    if (line.name == "pool" || line.name == "policy" || line.name == "run-ahead") {
      text += ", " + std::string(line.name) + " " + line.value;
    }
  }
  log(LogLevel::kInfo, text + ", budget " + format_bytes(account.budget()) + " of " +
                           format_bytes(account.total()) + " (" + settings_.pool.budget.source +
                           ")");
}

Arena* Contexts::remove(CUcontext context) noexcept {
  Arena* ended = nullptr;
  {
    const Lock lock(mutex_);
    const auto found = std::find_if(arenas_.begin(), arenas_.end(),
                                    [&](const auto& arena) { return arena->context() == context; });
    if (found != arenas_.end()) {
      ended = found->get();
      ended_.push_back(std::move(*found));
      arenas_.erase(found);
      generation_.fetch_add(1);
    }
    std::erase_if(page_peers_, [&](const auto& each) { return each.first == context; });
  }
  if (ended != nullptr) ended->device().remove(*ended);
  return ended;
}

void Contexts::grant(int owner, int device) noexcept {
  use_peers();
  attempt(LogLevel::kError, "an access was not granted", [&] {
    {
      const Lock lock(mutex_);
      grants_.emplace_back(owner, device);
    }
    for (Arena* const arena : all()) {
      if (arena->device().number() == owner) let_in(*arena, device);
    }
  });
}

void Contexts::let_into_pages(CUcontext owner) noexcept {
  CUdevice device = 0;
  if (driver_.cuCtxGetDevice(&device) != CUDA_SUCCESS) return;
  attempt(LogLevel::kError, "an access was not granted", [&] {
    {
      const Lock lock(mutex_);
      page_peers_.emplace_back(owner, device);
    }
    if (Arena* const arena = made_for(owner)) arena->upstream().allow(device);
  });
}

void Contexts::let_in(Arena& arena, int device) noexcept {
  const Inside inside;
  if (device == arena.device().number()) return;
  CUresult code = CUDA_ERROR_INVALID_CONTEXT;
  {
    const Lock lock(primaries_.of(device));
    CUcontext peer = nullptr;
    if (driver_.cuDevicePrimaryCtxRetain(&peer, device) != CUDA_SUCCESS) return;
    {
      const ContextScope scope(driver_, peer);
      if (scope.good()) code = driver_.cuCtxEnablePeerAccess(arena.context(), 0);
    }
    (void)driver_.cuDevicePrimaryCtxRelease_v2(device);
  }
  if (code == CUDA_SUCCESS || code == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
    arena.upstream().allow(device);
    return;
  }
  log(LogLevel::kWarn, "GPU " + std::to_string(device) + " gets no access to memory of GPU " +
                           std::to_string(arena.device().number()) + " (" +
                           std::to_string(static_cast<int>(code)) + ")");
}

}  // namespace weir::preload
