#include "tools/preload/context/spill.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <exception>
#include <iterator>
#include <string>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/log.hpp"

namespace weir::preload {
namespace {

using Text = std::array<char, 4096>;

std::string_view read_some(const char* path, Text& text) noexcept {
  const NoCancel no_cancel;
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

std::optional<std::uint64_t> number_in(const char* root, std::string_view group,
                                       const char* file) noexcept {
  std::array<char, 4352> path{};
  const int length = std::snprintf(path.data(), path.size(), "%s%.*s/%s", root,
                                   static_cast<int>(group.size()), group.data(), file);
  if (length < 0 || static_cast<std::size_t>(length) >= path.size()) return std::nullopt;
  Text text{};
  const std::string_view found = read_some(path.data(), text);
  constexpr std::string_view kFiles = "\ninactive_file ";  // a line of memory.stat
  const auto line = found.find(kFiles);
  return leading_number(line == std::string_view::npos ? found
                                                       : found.substr(line + kFiles.size()));
}

/// Returns nothing if the group has no limit or cannot be read.
std::optional<Bytes> available_in(const char* root, std::string_view group) noexcept {
  const auto most = number_in(root, group, "memory.max");
  const auto current = number_in(root, group, "memory.current");
  if (!most || !current) return std::nullopt;
  const Bytes files{number_in(root, group, "memory.stat").value_or(0)};
  return minus_or_zero({*most}, minus_or_zero({*current}, files));
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

std::optional<Bytes> group_available(const char* root, std::string_view cgroup) noexcept {
  const auto at = cgroup.find("0::");
  if (at == std::string_view::npos || (at != 0 && cgroup[at - 1] != '\n')) return std::nullopt;
  std::string_view group = cgroup.substr(at + 3, cgroup.find('\n', at) - at - 3);
  std::optional<Bytes> least;
  for (;;) {
    if (const auto its = available_in(root, group)) least = std::min(*its, least.value_or(*its));
    const auto above = group.rfind('/');
    if (above == std::string_view::npos) return least;
    group = group.substr(0, above);
  }
}

Bytes host_available() noexcept {
  Text text{};
  const Bytes system = parse_available(read_some("/proc/meminfo", text));
  const auto groups = group_available("/sys/fs/cgroup", read_some("/proc/self/cgroup", text));
  return std::min(system, groups.value_or(system));
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
                               ": it cannot use managed memory while the host does; allocations "
                               "beyond the budget fail as without it");
    } catch (const std::exception&) {
      log(LogLevel::kWarn, "WEIR_SPILL=host has no effect");
    }
  }
  return possible;
}

void Spilled::note_served() noexcept { this_thread.refused = 0; }

bool Spilled::may_serve(Arena& arena, Bytes bytes, const WaitLimit& limit) {
  for (;;) {
    const SpillDecision decision = decide_spill({.asked = bytes,
                                                 .budget = arena.account().budget(),
                                                 .spilled = {bytes_.load()},
                                                 .host_available = host_available(),
                                                 .refused = {this_thread.refused}});
    switch (decision) {
      case SpillDecision::kServe:
        return true;
      case SpillDecision::kTooLarge:
      case SpillDecision::kProbe:
        this_thread.refused = bytes.count;
        return false;
      case SpillDecision::kHostFull:
        // While a stream is captured nothing goes back, however far the device has come.
        if (!wait_for_one(arena, limit) || !arena.upstream().settle(limit)) return false;
        if (!release(limit.until, &arena)) return false;
    }
  }
}

bool Spilled::allocate(Call& call, Arena& arena, CUdeviceptr& pointer, Bytes bytes) noexcept {
  // A graph's memory must not move, and a thread that serves the device may not call the driver.
  if (arena.fences().capturing() || InCallback::now()) return false;
  return attempt(LogLevel::kDebug, "no host memory was allocated", false, [&]() -> bool {
    if (!is_possible(arena.account().device())) return false;
    (void)release();
    const auto most = arena.device().settings().max_wait.value;
    if (!may_serve(arena, bytes, {.until = call.until(most)})) return false;
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
  });
}

CUdeviceptr Spilled::take(const Arena& arena, Bytes bytes) const noexcept {
  const NoCancel no_cancel;
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

/// Keeps it on the host for the device to read there, instead of migrating pages. Only advice:
/// without it access is slower.
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
            " are allocated in host memory (WEIR_SPILL=host). Access goes over PCIe or NVLink and "
            "can be 10 to 100 times slower. Printed once; the summary has the total as `spilled`");
  } catch (const std::exception&) {
    log(LogLevel::kWarn, "memory is allocated on the host (WEIR_SPILL=host)");
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

bool Spilled::wait_for_one(Arena& arena, const WaitLimit& limit) const {
  for (const Waiting& each : waiting()) {
    if (each.block.arena == &arena) return arena.fences().wait(*each.block.point, limit);
  }
  return false;
}

bool Spilled::release(Clock::time_point until, const Arena* settled) noexcept {
  if (freed_.load(std::memory_order_relaxed) == 0) return true;
  return attempt(LogLevel::kDebug, "host memory is released later", false, [&]() -> bool {
    const ContextGate::Turn turn(gate_, until);
    if (turn.granted()) release_passed(settled);
    return turn.granted();
  });
}

void Spilled::release_passed(const Arena* settled) {
  const Arena* busy = nullptr;
  for (const Waiting& each : waiting()) {
    Arena* const arena = each.block.arena;
    Fences& fences = arena->fences();
    if (arena == busy || fences.capturing()) continue;
    if (fences.passed(each.block.point->stream) < each.block.point->sequence) continue;
    // Asked once for an arena's blocks, of which most are next to each other.
    if (arena != settled) (arena->upstream().may_release() ? settled : busy) = arena;
    if (arena == settled) return_to_driver(each.pointer, each.block.point);
  }
}

void Spilled::return_to_driver(CUdeviceptr pointer, std::optional<Point> point) noexcept {
  decltype(returning_)::iterator returning;
  {
    // Before the driver can reuse the address. Moves a node, so it cannot fail.
    const Lock lock(mutex_);
    const auto found = given_.find(pointer);
    if (found == given_.end() || found->second.point != point) return;  // its context has ended
    found->second.point.reset();
    returning = returning_.insert(given_.extract(found));
    freed_.fetch_sub(1);
  }
  CUresult code = CUDA_ERROR_INVALID_CONTEXT;
  {
    const NoCancel no_cancel;
    const Inside inside;
    const ContextScope scope(driver_, returning->second.arena->context());
    if (scope.good()) code = driver_.cuMemFree_v2(pointer);
  }
  {
    const Lock lock(mutex_);
    auto node = returning_.extract(returning);
    if (code == CUDA_SUCCESS) {
      discount(node.mapped());
    } else {
      given_.insert(std::move(node));  // freed for the program, but never returned
    }
  }
  returned_.notify_all();
  if (code != CUDA_SUCCESS) {
    log(LogLevel::kError, "host memory cannot be released: cuMemFree failed (" +
                              std::to_string(static_cast<int>(code)) + ")");
  }
}

void Spilled::discount(const Block& block) noexcept {
  bytes_.fetch_sub(block.bytes.count);
  blocks_.fetch_sub(1);
  block.arena->account().remove_passed(Kind::kSpilled, block.bytes);
}

namespace {

template <typename Blocks>
bool lies_in(const Blocks& blocks, CUdeviceptr address) {
  const auto after = blocks.upper_bound(address);
  return after != blocks.begin() &&
         address - std::prev(after)->first < std::prev(after)->second.bytes.count;
}

}  // namespace

void Spilled::await_return(Lock& lock, CUdeviceptr address) const {
  const NoCancel no_cancel;
  returned_.wait_for(lock, kMostOfAReturn,
                     [&]() WEIR_REQUIRES(mutex_) { return !lies_in(returning_, address); });
}

bool Spilled::has(CUdeviceptr address) const noexcept {
  if (blocks_.load(std::memory_order_relaxed) == 0) return false;
  Lock lock(mutex_);
  await_return(lock, address);
  return lies_in(given_, address);
}

void Spilled::forget(CUcontext context) noexcept {
  const Lock lock(mutex_);
  for (auto each = given_.begin(); each != given_.end();) {
    const Block& block = each->second;
    if (block.arena->context() != context) {
      ++each;
      continue;
    }
    if (block.point) freed_.fetch_sub(1);
    discount(block);
    each = given_.erase(each);
  }
}

}  // namespace weir::preload
