#include "tools/preload/spill.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <iterator>
#include <string>

#include "allocator/log.hpp"

namespace weir::preload {
namespace {

/// The thread's last request that was too large, or a step down from one.
constinit thread_local std::uint64_t last_refused = 0;

std::string_view read_some(const char* path, std::array<char, 4096>& text) noexcept {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t length = read(file, text.data(), text.size());
  close(file);
  return length > 0 ? std::string_view(text.data(), static_cast<std::size_t>(length))
                    : std::string_view();
}

std::optional<std::uint64_t> leading_number(std::string_view text) noexcept {
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data() + begin, text.data() + text.size(), number);
  return read.ec == std::errc{} ? std::optional(number) : std::nullopt;
}

}  // namespace

SpillDecision decide_spill(const SpillRequest& request) noexcept {
  const std::uint64_t asked = request.asked.count;
  if (asked > request.budget.count / 2) return SpillDecision::kTooLarge;
  if (request.refused.count != 0 && asked >= request.refused.count / 2) {
    return SpillDecision::kProbe;
  }
  const std::uint64_t most = request.host_available.count / 2;
  if (request.spilled.count > most || asked > most - request.spilled.count) {
    return SpillDecision::kHostFull;
  }
  return SpillDecision::kServe;
}

Bytes parse_available(std::string_view meminfo) noexcept {
  constexpr std::string_view kName = "MemAvailable:";
  const auto at = meminfo.find(kName);
  if (at == std::string_view::npos) return {};
  return {leading_number(meminfo.substr(at + kName.size())).value_or(0) << 10U};
}

Bytes host_available() noexcept {
  std::array<char, 4096> text{};
  const Bytes system = parse_available(read_some("/proc/meminfo", text));
  const auto most = leading_number(read_some("/sys/fs/cgroup/memory.max", text));
  const auto current = leading_number(read_some("/sys/fs/cgroup/memory.current", text));
  return most && current ? std::min(system, minus_or_zero({*most}, {*current})) : system;
}

bool Spilled::is_possible(int device) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << (static_cast<unsigned>(device) % 64U);
  if ((asked_.load(std::memory_order_acquire) & bit) != 0) return (possible_.load() & bit) != 0;
  const auto has_it = [&](CUdevice_attribute attribute) {
    int value = 0;
    return driver_.cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS && value != 0;
  };
  const bool possible = driver_.cuDeviceGetAttribute != nullptr &&
                        driver_.cuMemAllocManaged != nullptr &&
                        has_it(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) &&
                        has_it(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
  if (possible) possible_.fetch_or(bit);
  const bool first = (asked_.fetch_or(bit, std::memory_order_release) & bit) == 0;
  if (first && !possible) {
    try {
      log(LogLevel::kWarn, "WEIR_SPILL=host has no effect on GPU " + std::to_string(device) +
                               ": it cannot use managed memory at once with the host; what does "
                               "not fit in the budget fails as without");
    } catch (const std::exception&) {
      log(LogLevel::kWarn, "WEIR_SPILL=host has no effect");
    }
  }
  return possible;
}

void Spilled::note_served() noexcept { last_refused = 0; }

bool Spilled::may_serve(Arena& arena, Bytes bytes) {
  for (;;) {
    const SpillDecision decision = decide_spill({.asked = bytes,
                                                 .budget = arena.account().budget(),
                                                 .spilled = {bytes_.load()},
                                                 .host_available = host_available(),
                                                 .refused = {last_refused}});
    switch (decision) {
      case SpillDecision::kServe:
        return true;
      case SpillDecision::kTooLarge:
      case SpillDecision::kProbe:
        last_refused = bytes.count;
        return false;
      case SpillDecision::kHostFull:
        if (!wait_for_one(arena)) return false;
        give_back();
    }
  }
}

bool Spilled::allocate(Arena& arena, CUdeviceptr& pointer, Bytes bytes) noexcept {
  // What a graph has must stay where it is, and a thread that serves the device calls no driver.
  if (arena.fences().capturing() || InCallback::now()) return false;
  try {
    if (!is_possible(arena.account().device())) return false;
    give_back();
    if (!may_serve(arena, bytes)) return false;
    const CUdeviceptr taken = take(arena, bytes);
    if (taken == 0) return false;
    {
      const Lock lock(mutex_);
      given_.insert_or_assign(taken, Block{bytes, &arena, false, std::nullopt});
    }
    bytes_.fetch_add(bytes.count);
    blocks_.fetch_add(1);
    arena.account().add_passed(Kind::kSpilled, bytes);
    say_first(arena.account(), bytes);
    pointer = taken;
    return true;
  } catch (const std::exception& error) {
    log(LogLevel::kDebug, std::string("nothing was taken from the host: ") + error.what());
    return false;
  }
}

CUdeviceptr Spilled::take(const Arena& arena, Bytes bytes) const noexcept {
  const Inside inside;
  const ContextScope scope(driver_, arena.context());
  CUdeviceptr pointer = 0;
  if (!scope.good() ||
      driver_.cuMemAllocManaged(&pointer, bytes.count, CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS) {
    return 0;
  }
  CUdevice device = 0;
  if (driver_.cuCtxGetDevice(&device) == CUDA_SUCCESS) advise(pointer, bytes, device);
  return pointer;
}

/// It stays on the host, and the device reads it there instead of moving its pages to and fro.
/// Advice only: what does not take it is slower still.
void Spilled::advise(CUdeviceptr pointer, Bytes bytes, int device) const noexcept {
#if CUDA_VERSION >= 12020
  if (driver_.cuMemAdvise_v2 != nullptr) {
    CUmemLocation host{};
    host.type = CU_MEM_LOCATION_TYPE_HOST;
    CUmemLocation there{};
    there.type = CU_MEM_LOCATION_TYPE_DEVICE;
    there.id = device;
    (void)driver_.cuMemAdvise_v2(pointer, bytes.count, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host);
    (void)driver_.cuMemAdvise_v2(pointer, bytes.count, CU_MEM_ADVISE_SET_ACCESSED_BY, there);
    return;
  }
#endif
  if (driver_.cuMemAdvise == nullptr) return;
  (void)driver_.cuMemAdvise(pointer, bytes.count, CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
                            CU_DEVICE_CPU);
  (void)driver_.cuMemAdvise(pointer, bytes.count, CU_MEM_ADVISE_SET_ACCESSED_BY, device);
}

void Spilled::say_first(const Account& account, Bytes bytes) noexcept {
  if (said_.exchange(true)) return;
  try {
    log(LogLevel::kWarn,
        "GPU " + std::to_string(account.device()) + ": the budget of " +
            format_bytes(account.budget()) + " is used up, and " + format_bytes(bytes) +
            " are taken from the host's memory (WEIR_SPILL=host). Work on them goes over PCIe or "
            "NVLink, and can be 10 to 100 times slower. Said once; the summary has the sum, as "
            "`spilled`");
  } catch (const std::exception&) {
    log(LogLevel::kWarn, "memory is taken from the host (WEIR_SPILL=host)");
  }
}

std::optional<Spilled::Owner> Spilled::begin_free(CUdeviceptr pointer) noexcept {
  if (blocks_.load(std::memory_order_relaxed) == 0) return std::nullopt;
  const Lock lock(mutex_);
  const auto found = given_.find(pointer);
  if (found == given_.end()) return std::nullopt;
  return Owner{found->second.arena, std::exchange(found->second.freed, true)};
}

void Spilled::end_free(CUdeviceptr pointer, std::optional<Point> point) noexcept {
  const Lock lock(mutex_);
  const auto found = given_.find(pointer);
  if (found == given_.end()) return;
  found->second.point = point;
  found->second.freed = point.has_value();
  if (point) freed_.fetch_add(1);
}

std::vector<Spilled::Waiting> Spilled::waiting() const {
  std::vector<Waiting> all;
  const Lock lock(mutex_);
  for (const auto& [pointer, block] : given_) {
    if (block.point) all.push_back({pointer, block});
  }
  return all;
}

bool Spilled::wait_for_one(Arena& arena) {
  for (const Waiting& each : waiting()) {
    if (each.block.arena == &arena) return arena.fences().wait(*each.block.point, {});
  }
  return false;
}

void Spilled::give_back() noexcept {
  if (freed_.load(std::memory_order_relaxed) == 0) return;
  try {
    for (const Waiting& each : waiting()) {
      Fences& fences = each.block.arena->fences();
      if (fences.capturing()) continue;
      if (fences.passed(each.block.point->stream) < each.block.point->sequence) continue;
      {
        const Lock lock(mutex_);
        const auto found = given_.find(each.pointer);
        // Another thread was faster, and the driver may have given the address again.
        if (found == given_.end() || found->second.point != each.block.point) continue;
        given_.erase(found);
        freed_.fetch_sub(1);
      }
      return_to_driver(each.pointer, each.block);
    }
  } catch (const std::exception& error) {
    log(LogLevel::kDebug, std::string("memory of the host is given back later: ") + error.what());
  }
}

void Spilled::return_to_driver(CUdeviceptr pointer, const Block& block) noexcept {
  const Inside inside;
  const ContextScope scope(driver_, block.arena->context());
  const CUresult code = scope.good() ? driver_.cuMemFree_v2(pointer) : CUDA_ERROR_INVALID_CONTEXT;
  if (code != CUDA_SUCCESS) {
    // It stays in the books: it is out for ever.
    log(LogLevel::kError, "memory of the host cannot be given back: cuMemFree failed (" +
                              std::to_string(static_cast<int>(code)) + ")");
    return;
  }
  bytes_.fetch_sub(block.bytes.count);
  blocks_.fetch_sub(1);
  block.arena->account().remove_passed(Kind::kSpilled, block.bytes);
}

bool Spilled::has(CUdeviceptr address) const noexcept {
  if (blocks_.load(std::memory_order_relaxed) == 0) return false;
  const Lock lock(mutex_);
  const auto after = given_.upper_bound(address);
  return after != given_.begin() &&
         address - std::prev(after)->first < std::prev(after)->second.bytes.count;
}

void Spilled::forget(CUcontext context) noexcept {
  const Lock lock(mutex_);
  for (auto each = given_.begin(); each != given_.end();) {
    const Block& block = each->second;
    if (block.arena->context() != context) {
      ++each;
      continue;
    }
    bytes_.fetch_sub(block.bytes.count);
    blocks_.fetch_sub(1);
    if (block.point) freed_.fetch_sub(1);
    block.arena->account().remove_passed(Kind::kSpilled, block.bytes);
    each = given_.erase(each);
  }
}

}  // namespace weir::preload
