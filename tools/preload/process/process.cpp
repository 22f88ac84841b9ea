// What a process shares: contexts, accounts and the grants between them. One long file, because
// these lists change together, under one lock.

#include "tools/preload/process/process.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/variables.hpp"
#include "tools/preload/context/known_streams.hpp"
#include "tools/preload/process/at_exit.hpp"
#include "tools/preload/process/entry.hpp"
#include "tools/timeline/model/background_thread.hpp"

namespace weir::preload {
namespace {

constinit std::atomic<Process*> instance{nullptr};
constinit std::atomic<bool> in_child{false};
constinit pthread_once_t process_once = PTHREAD_ONCE_INIT;

/// What a thread found last.
struct Remembered {
  CUcontext context = nullptr;
  std::uint64_t generation = 0;
  Arena* arena = nullptr;
};
constinit thread_local Remembered remembered{};

/// A forked child has its parent's memory but no threads, locks or device: it passes every call.
void pass_all_in_child() noexcept {
  in_child.store(true);
  instance.store(nullptr);
}

[[noreturn]] void refuse_to_go_on(const char* why) noexcept {
  const NoCancel no_cancel;
  log(LogLevel::kError, why);
  std::fflush(stdout);  // only stdout: another thread may be blocked reading its input
  _exit(2);  // inside a call of the runtime, so its exit handlers could wait for that call
}

}  // namespace

Process* Process::get() noexcept {
  if (Inside::now()) return nullptr;
  Process* const there = instance.load(std::memory_order_acquire);
  if (there != nullptr) return there;
  if (in_child.load(std::memory_order_relaxed) || preload::driver() == nullptr) return nullptr;
  pthread_once(&process_once, &Process::set_up);
  return instance.load(std::memory_order_acquire);
}

Process* Process::get_if_any() noexcept {
  return Inside::now() ? nullptr : instance.load(std::memory_order_acquire);
}

bool Process::is_forked_child() noexcept { return in_child.load(std::memory_order_relaxed); }

void Process::set_up() noexcept {
  const NoCancel no_cancel;
  try {
    Settings settings = Settings::from_environment();
    set_log_level(settings.log.value);
    // `weir run` sets it after warning.
    if (std::getenv("WEIR_CHECKED") == nullptr) warn_of_unknown_variables(environ);
    auto* const made = new Process(*preload::driver(), std::move(settings));
    pthread_atfork(nullptr, nullptr, &pass_all_in_child);
    timeline::set_call_check(&Entry::is_inside);
    std::atexit([] {
      const Process* const ending = instance.load();
      if (ending != nullptr) ending->at_exit();
    });
    show_devices(*made);
    begin_timeline(made->settings().timeline);
    instance.store(made, std::memory_order_release);
    begin_publishing(made->settings());
  } catch (const std::exception& error) {
    refuse_to_go_on(error.what());
  }
}

Process::Process(const Driver& driver, Settings settings)
    : driver_(driver),
      settings_(std::move(settings)),
      primary_contexts_(driver),
      spilled_(driver, give_back_gate_, settings_.max_wait.value) {}

Arena* Process::current() noexcept {
  CUcontext context = nullptr;
  if (driver_.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return nullptr;
  const std::uint64_t generation = generation_.load(std::memory_order_acquire);
  if (remembered.context == context && remembered.generation == generation) {
    return remembered.arena;
  }
  Arena* const arena = find_or_make(context);
  remembered = {context, generation, arena};
  return arena;
}

Arena* Process::made_for(CUcontext context) const noexcept {
  const Lock lock(mutex_);
  for (const auto& known : arenas_) {
    if (known->context() == context) return known.get();
  }
  return nullptr;
}

Arena* Process::find_or_make(CUcontext context) noexcept {
  if (Arena* const known = made_for(context)) return known;
  const NoCancel no_cancel;
  const Inside inside;
  CUdevice device = 0;
  if (driver_.cuCtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  Account* const its = account(device);
  if (its == nullptr) return nullptr;
  bool first = false;
  Arena* arena = nullptr;
  std::vector<std::pair<int, int>> grants;
  std::vector<std::pair<CUcontext, int>> page_peers;
  try {
    // Outside the lock: it may begin an allocation log, which has its own locks.
    auto made = std::make_unique<Arena>(driver_, context, *its, settings_);
    for (Arena* const other : arenas()) other->fences().await_calls();
    const Lock lock(mutex_);
    for (const auto& known : arenas_) {
      if (known->context() == context) return known.get();  // another thread was faster
    }
    first = arenas_.empty() && gone_.empty();
    grants = grants_;
    page_peers = page_peers_;
    arenas_.push_back(std::move(made));
    arena = arenas_.back().get();
  } catch (const std::exception& error) {
    refuse_to_go_on(error.what());
  }
  const BudgetRequest& asked = settings_.pool.budget.value;
  if (asked.percent <= 0 && asked.bytes > its->total()) {
    log(LogLevel::kWarn, "budget (" + settings_.pool.budget.source + ") " + format_budget(asked) +
                             " is more than GPU " + std::to_string(device) +
                             " has: " + format_bytes(its->total()) + " is the budget there");
  }
  follow_budget(*arena);
  if (settings_.spill.value == SpillTo::kHost) (void)spilled_.is_possible(device);
  if (first) say_active(*its);
  publish_device(settings_, "GPU " + std::to_string(device));
  for (const auto& [owner, accessor] : grants) {
    if (owner == device) let_in(*arena, accessor);
  }
  for (const auto& [owner, accessor] : page_peers) {
    if (owner == context) arena->upstream().allow(accessor);
  }
  return arena;
}

Located Process::locate(CUstream stream, bool per_thread) noexcept {
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

void Process::grant(int owner, int device) noexcept {
  use_peers();
  attempt(LogLevel::kError, "an access was not granted", [&] {
    {
      const Lock lock(mutex_);
      grants_.emplace_back(owner, device);
    }
    for (Arena* const arena : arenas()) {
      if (arena->account().device() == owner) let_in(*arena, device);
    }
  });
}

void Process::let_into_pages(CUcontext owner) noexcept {
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

void Process::let_in(Arena& arena, int device) noexcept {
  const Inside inside;
  if (device == arena.account().device()) return;
  CUresult code = CUDA_ERROR_INVALID_CONTEXT;
  {
    const Lock lock(primary_contexts_.of(device));
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
                           std::to_string(arena.account().device()) + " (" +
                           std::to_string(static_cast<int>(code)) + ")");
}

void Process::say_active(const Account& account) const {
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

// Attaching to a share may take seconds. Other threads and devices go on meanwhile; only threads
// that need the same device wait for its end.
Account* Process::account(int device) noexcept {
  try {
    Lock lock(mutex_);
    while (std::ranges::find(becoming_known_, device) != becoming_known_.end()) {
      const NoCancel no_cancel;
      account_made_.wait(lock);
    }
    for (const auto& known : accounts_) {
      if (known->device() == device) return known.get();
    }
    std::size_t total = 0;
    if (driver_.cuDeviceTotalMem_v2(&total, device) != CUDA_SUCCESS) return nullptr;
    becoming_known_.push_back(device);
    lock.unlock();
    const NoCancel no_cancel;
    std::unique_ptr<Account> made = make_account(device, {total});
    lock.lock();
    std::erase(becoming_known_, device);
    accounts_.push_back(std::move(made));
    account_made_.notify_all();
    return accounts_.back().get();
  } catch (const std::exception& error) {
    refuse_to_go_on(error.what());
  }
}

std::unique_ptr<Account> Process::make_account(int device, Bytes total) {
  const Bytes budget = budget_of(total);
  if (settings_.share.is_on()) return make_shared_account(device, total, budget);
  return std::make_unique<Account>(device, total, budget, this);
}

CUcontext Process::current_context() const noexcept {
  CUcontext context = nullptr;
  return driver_.cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : nullptr;
}

Account* Process::current_account() noexcept {
  CUdevice device = 0;
  if (driver_.cuCtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  return account(device);
}

Arena* Process::primary(int device) noexcept {
  static constinit thread_local int last_device = -1;
  static constinit thread_local Remembered last{};
  const std::uint64_t generation = generation_.load(std::memory_order_acquire);
  if (last_device == device && last.generation == generation && last.arena != nullptr) {
    return last.arena;
  }
  const Inside inside;
  CUcontext context = nullptr;
  {
    const Lock lock(primary_contexts_.of(device));
    context = primary_contexts_.find(device);
  }
  if (context == nullptr) return nullptr;
  const ContextScope scope(driver_, context);
  if (!scope.good()) return nullptr;
  last_device = device;
  last = {context, generation, find_or_make(context)};
  return last.arena;
}

std::vector<Arena*> Process::arenas() const {
  const Lock lock(mutex_);
  std::vector<Arena*> all;
  for (const auto& arena : arenas_) all.push_back(arena.get());
  return all;
}

int Process::default_pool_of(CUmemoryPool pool) noexcept {
  const Inside inside;
  int count = 0;
  if (driver_.cuDeviceGetDefaultMemPool == nullptr ||
      driver_.cuDeviceGetCount(&count) != CUDA_SUCCESS) {
    return -1;
  }
  for (int device = 0; device < count; ++device) {
    CUmemoryPool its = nullptr;
    if (driver_.cuDeviceGetDefaultMemPool(&its, device) == CUDA_SUCCESS && its == pool) {
      return device;
    }
  }
  return -1;
}

void Process::set_own_pool(int device, bool own) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << (static_cast<unsigned>(device) % 64U);
  if (own) {
    own_pools_.fetch_or(bit);
  } else {
    own_pools_.fetch_and(~bit);
  }
}

CUresult Process::allocate(Arena& arena, CUdeviceptr& pointer, std::size_t bytes,
                           StreamId stream) noexcept {
  std::string why;
  const CUresult code = arena.allocate(pointer, bytes, stream, why);
  if (settings_.spill.value == SpillTo::kHost) {
    if (code == CUDA_SUCCESS) Spilled::note_served();
    if (code == CUDA_ERROR_OUT_OF_MEMORY && spilled_.allocate(arena, pointer, {bytes})) {
      return CUDA_SUCCESS;
    }
  }
  keep_share(arena.account());
  if (!why.empty()) tell(arena.account(), {bytes}, why);
  return code;
}

std::optional<CUresult> Process::free(CUdeviceptr pointer, const Located& here) noexcept {
  try {
    const bool in_order = here.stream != StreamId{};
    if (here.arena != nullptr) {
      Fences& fences = here.arena->fences();
      if (!in_order && peers_.load(std::memory_order_relaxed) &&
          here.arena->pool().find(reinterpret_cast<void*>(pointer))) {
        if (const auto code = free_behind_peers(*here.arena, pointer, {})) return code;
      }
      const StreamId stream = in_order ? here.stream : fences.everything();
      if (const auto code = here.arena->free(pointer, stream)) {
        keep_budget(here.arena->account());
        (void)spilled_.give_back();
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

std::optional<CUresult> Process::free_elsewhere(CUdeviceptr pointer, const Located& here) {
  for (Arena* const arena : arenas()) {
    if (arena == here.arena || !arena->pool().find(reinterpret_cast<void*>(pointer))) continue;
    if (const auto code = free_behind_peers(*arena, pointer, here)) return code;
  }
  return std::nullopt;
}

std::optional<CUresult> Process::free_behind_peers(Arena& owner, CUdeviceptr pointer,
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
  if (code) keep_budget(owner.account());
  return code;
}

void Process::finish_parked() noexcept {
  if (!parked_.exchange(false)) return;
  bool all = true;
  try {
    for (Arena* const arena : arenas()) {
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

std::optional<CUresult> Process::free_spilled(CUdeviceptr pointer, const Located& here) {
  const auto owner = spilled_.begin_free(pointer);
  if (!owner) return std::nullopt;
  if (owner->freed) return CUDA_ERROR_INVALID_VALUE;
  try {
    const bool at_home = here.arena == owner->arena;
    const bool in_order = at_home && here.stream != StreamId{};
    if (!at_home || (!in_order && peers_.load(std::memory_order_relaxed))) {
      (void)free_behind_peers(*owner->arena, pointer, at_home ? Located{} : here);
    } else {
      Fences& fences = owner->arena->fences();
      spilled_.end_free(pointer, fences.record(in_order ? here.stream : fences.everything()));
    }
  } catch (...) {
    spilled_.end_free(pointer, std::nullopt);
    throw;
  }
  (void)spilled_.give_back();
  return CUDA_SUCCESS;
}

bool Process::serves(CUdeviceptr address) const noexcept {
  if (spilled_.has(address)) return true;
  try {
    return std::ranges::any_of(arenas(),
                               [=](const Arena* arena) { return arena->serves(address); });
  } catch (const std::exception&) {
    return true;  // host memory is full: refuse rather than free before other streams are done
  }
}

std::optional<Allocation> Process::allocation_around(CUdeviceptr address) const noexcept {
  try {
    for (const Arena* const arena : arenas()) {
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

void Process::cover_peers(Arena& owner, const Located& here, std::chrono::nanoseconds most) {
  if (here.arena != nullptr && here.stream != StreamId{}) {
    owner.fences().adopt(here.arena->fences().events_of(here.stream));
    return;
  }
  if (!cover_all_peers(owner, most)) throw CaptureUnderWay("another context ends");
}

bool Process::cover_all_peers(Arena& owner, std::chrono::nanoseconds most) {
  const GiveBackGate::Turn turn(give_back_gate_, most);
  if (!turn.granted()) return false;
  for (Arena* const other : arenas()) {
    if (other == &owner) continue;
    owner.fences().adopt(other->fences().events_of(other->fences().everything()));
  }
  return true;
}

Bytes Process::trim(const Account& account, Bytes need) noexcept {
  if (InCallback::now()) return {};
  const GiveBackGate::Turn turn(give_back_gate_, Fences::left_of_request(settings_.max_wait.value));
  return turn.granted() ? trim_in_turn(account, need) : Bytes{};
}

Bytes Process::trim_in_turn(const Account& account, Bytes need) noexcept {
  Bytes given;
  attempt(LogLevel::kDebug, "nothing could be released", [&] {
    for (Arena* const arena : arenas()) {
      if (given >= need) break;
      if (&arena->account() != &account || arena->fences().capturing()) continue;
      given += arena->pool().give_back(minus_or_zero(need, given));
    }
  });
  return given;
}

Bytes Process::reclaim(const Account& account, Bytes need, bool if_enough) noexcept {
  // The thread is asking for memory of one context, and does not know that another one is ending.
  if (InCallback::now()) return {};
  const GiveBackGate::Turn turn(give_back_gate_, Fences::left_of_request(settings_.max_wait.value));
  if (!turn.granted()) return {};
  Bytes given;
  attempt(LogLevel::kDebug, "nothing could be released", [&] {
    Bytes spare;
    for (Arena* const arena : arenas()) {
      if (&arena->account() != &account || arena->fences().capturing()) continue;
      spare += arena->pool().spare();
    }
    if (!if_enough || spare >= need) given = trim_in_turn(account, need);
  });
  return given;
}

std::optional<Release> Process::oldest_release(const Account& account) const noexcept {
  std::optional<Release> oldest;
  attempt(LogLevel::kDebug, "waiting is not possible", [&] {
    Fences::Clock::time_point recorded;
    for (Arena* const arena : arenas()) {
      if (&arena->account() != &account || arena->fences().capturing()) continue;
      const auto point = arena->pool().oldest_outstanding();
      if (!point) continue;
      const auto its = arena->fences().recorded(*point);
      if (oldest && its >= recorded) continue;
      oldest = {.owner = arena, .point = *point};
      recorded = its;
    }
  });
  return oldest;
}

Bytes Process::not_in_use(const Account& account) const noexcept {
  Bytes sum;
  try {
    for (Arena* const arena : arenas()) {
      if (&arena->account() != &account) continue;
      const Statistics now = arena->pool().statistics();
      sum += minus_or_zero(now.reserved.current, now.allocated.current);
    }
  } catch (const std::exception&) {
    return account.budget();  // nobody is told that it is hopeless
  }
  return sum;
}

std::chrono::nanoseconds Process::patience() const noexcept {
  // A driver's free may wait for the stream that runs the callback.
  if (InCallback::now()) return {};
  return Fences::left_of_request(settings_.max_wait.value);
}

void Process::drain(const Account& account) noexcept {
  if (!running_out(settings_.policy.policy.value).wait) return;
  attempt(LogLevel::kDebug, "waiting was not possible", [&] {
    for (Arena* const arena : arenas()) {
      Fences& fences = arena->fences();
      if (&arena->account() == &account && arena->pool().statistics().reserved.current.count != 0) {
        (void)fences.wait(fences.record(fences.everything()), {});
      }
    }
  });
}

void Process::refresh_graphs(Account& account) noexcept {
  cuuint64_t reserved = 0;
  const auto ask = driver_.cuDeviceGetGraphMemAttribute;
  if (!account.uses_graphs() || ask == nullptr) return;
  if (ask(account.device(), CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) == CUDA_SUCCESS) {
    account.set_passed(Kind::kGraphs, {reserved});
  }
}

bool Process::await_room(Account& account, Bytes bytes) noexcept {
  const auto missing = [&] { return minus_or_zero(account.used() + bytes, account.budget()); };
  (void)trim(account, missing());
  if (account.take(bytes)) return true;
  drain(account);
  (void)trim(account, missing());
  return account.take(bytes);
}

bool Process::make_room(Account& account, Bytes bytes) noexcept {
  Fences::begin_request();
  refresh_graphs(account);
  if (account.take(bytes)) return true;
  BudgetSource* const source = account.source();
  if (source != nullptr && source->make_room_for(bytes) && account.take(bytes)) return true;
  if (!account.is_hopeless(bytes) && await_room(account, bytes)) return true;
  report(account,
         "out of memory: asked " + format_bytes(bytes) + " of the driver, budget " +
             format_bytes(account.budget()) + ", in use " + format_bytes(account.used()) +
             (source == nullptr ? ""
                                : "\n    the budget is this process's part of a shared one, "
                                  "which had no more (WEIR_SHARE_FLOOR: what it always has)"));
  return false;
}

void Process::count(Account& account, Kind kind, Bytes bytes, std::uint64_t handle,
                    CUcontext context) noexcept {
  attempt(LogLevel::kDebug, "counted for ever", [&] {
    account.add_passed(kind, bytes);
    passed_.add(handle, {.account = &account, .context = context, .kind = kind, .bytes = bytes});
  });
}

void Process::note_end_of_captures() noexcept {
  attempt(LogLevel::kDebug, "memory is released later", [&] {
    give_back_held();
    for (Arena* const arena : arenas()) keep_budget(arena->account());
    finish_parked();
  });
}

void Process::give_back_held() {
  std::vector<Arena*> idle = arenas();
  std::erase_if(
      idle, [](Arena* arena) { return !arena->upstream().holds() || arena->fences().capturing(); });
  if (idle.empty()) return;
  const GiveBackGate::Turn turn(give_back_gate_, settings_.max_wait.value);
  if (!turn.granted()) return;  // at the end of the next capture
  for (Arena* const arena : idle) arena->upstream().give_back_held();
}

void Process::forget(CUcontext context) noexcept {
  Arena* gone = nullptr;
  {
    const Lock lock(mutex_);
    const auto found = std::find_if(arenas_.begin(), arenas_.end(),
                                    [&](const auto& arena) { return arena->context() == context; });
    if (found != arenas_.end()) {
      gone = found->get();
      gone_.push_back(std::move(*found));
      arenas_.erase(found);
      generation_.fetch_add(1);
    }
    std::erase_if(page_peers_, [&](const auto& each) { return each.first == context; });
  }
  KnownStreams::clear();
  spilled_.forget(context);
  if (gone != nullptr) gone->forget();
  passed_.forget(context);
}

std::string Process::pools_text(const Account& account) const {
  std::string text;
  std::size_t pools = 0;
  for (Arena* const arena : arenas()) {
    if (&arena->account() != &account) continue;
    for (const Pools::Part& part : arena->pool().parts()) {
      if (part.pool == nullptr) continue;
      ++pools;
      const Statistics now = part.pool->statistics();
      if (now.reserved.current.count == 0) continue;
      text += "\n    pool of " + std::string(part.serves) + " (" +
              std::string(to_string(part.pool->options().kind.value)) + "): reserved " +
              format_bytes(now.reserved.current) + " = allocated " +
              format_bytes(now.allocated.current) + " + awaiting " +
              format_bytes(now.awaiting.current) + " + cached " + format_bytes(now.cached.current);
    }
  }
  return pools > 1 ? text : std::string();
}

void Process::tell(const Account& account, Bytes bytes, const std::string& why) noexcept {
  if (bytes <= account.budget()) return report(account, why);
  // Often a search for the largest block. What the pools hold has nothing to do with it.
  if (told_beyond_.exchange(true)) return;
  try {
    log(LogLevel::kWarn, "GPU " + std::to_string(account.device()) + ": " + format_bytes(bytes) +
                             " were requested, more than the whole budget of " +
                             format_bytes(account.budget()) +
                             "; the program got an out-of-memory error, and this is said once");
  } catch (const std::exception&) {
    return;  // no memory for a remark
  }
}

void Process::report(const Account& account, const std::string& text) noexcept {
  if (reported_.exchange(true)) return;
  try {
    std::string all = "GPU " + std::to_string(account.device()) + ": " + text + pools_text(account);
    for (const Passed& kind : account.passed_kinds()) {
      if (kind.level.current.count == 0) continue;
      all += "\n    passed: " + kind.kind + " " + format_bytes(kind.level.current) +
             (kind.counted ? "" : " (not of the budget)");
    }
    log(LogLevel::kError, all + "\n    printed once; the program got an out-of-memory error");
  } catch (const std::exception&) {
    log(LogLevel::kError, "out of memory, also on the host");
  }
}

Summary Process::summary() const {
  Summary summary{.process = static_cast<std::uint64_t>(getpid()),
                  .program = program_path(),
                  .pool = pool_name(settings_),
                  .policy = std::string(to_string(settings_.policy.policy.value)),
                  .nvml = std::string(to_string(settings_.nvml.value)),
                  .settings = describe(settings_),
                  .devices = {}};
  const Lock lock(mutex_);
  for (const auto& account : accounts_) {
    DeviceSummary device;
    device.device = account->device();
    device.total = account->total();
    device.budget = account->budget();
    device.served_calls = account->served_calls();
    device.served = account->served();
    device.passed = account->passed_kinds();
    for (const auto* list : {&arenas_, &gone_}) {
      for (const auto& arena : *list) {
        if (&arena->account() == account.get()) add(device, *arena);
      }
    }
    summary.devices.push_back(std::move(device));
  }
  return summary;
}

void Process::at_exit() const noexcept {
  if (!is_summary_wanted(settings_)) return;
  const NoCancel no_cancel;
  const FileSizeSignalBlocked blocked;  // the signal would end a program that ended well
  if (timeline::exits_in_call()) {
    timeline::say_unlocked(
        LogLevel::kWarn,
        "no summary: exit() was called in a signal handler, in the middle of a call");
    return;
  }
  // Another thread may be stuck in a call while holding a lock that the summary needs.
  constexpr std::chrono::seconds kPatience{5};
  attempt(LogLevel::kError, "no summary", [&] {
    const bool written = finish_within(kPatience, [this] { write_summary(); });
    if (!written) {
      log(LogLevel::kWarn,
          "no summary: another thread is stuck in a call, or the disk does not answer");
    }
  });
}

void Process::write_summary() const noexcept {
  attempt(LogLevel::kError, "no summary", [&] { preload::write_summary(summary(), settings_); });
}

}  // namespace weir::preload
