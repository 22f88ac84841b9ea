#include "tools/preload/process/entry.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <string>

#include "allocator/base/log.hpp"
#include "tools/preload/process/process.hpp"

namespace weir::preload {

namespace {

enum class What : std::uint8_t { kNothing, kCount, kFree, kFreeInOrder, kDestroy, kFollow };
struct Call {
  CUdeviceptr pointer = 0;
  std::size_t bytes = 0;
  CUstream stream = nullptr;
  bool per_thread = false;
};
struct Left {
  std::atomic<What> what{What::kNothing};
  Call call;
};
constexpr std::size_t kMost = 32;
/// Calls postponed by this thread's signal handlers: the first `Entry::left_here`. Atomic because
/// handlers interrupt each other; no other thread looks.
constinit thread_local std::array<Left, kMost> calls{};

void count(CUdeviceptr pointer, std::size_t bytes) noexcept {
  const Entry entry;
  Process* const process = Process::get();
  Account* const account = process != nullptr ? process->current_account() : nullptr;
  if (account == nullptr) return;
  account->charge({bytes});
  process->count(*account, Kind::kDirect, {bytes}, pointer, process->current_context());
}

void say_refused(const char* what, CUresult code) noexcept {
  if (code == CUDA_SUCCESS) return;
  try {
    log(LogLevel::kWarn, std::string(what) + " in a signal handler failed (" +
                             std::to_string(static_cast<int>(code)) + ")");
  } catch (const std::exception&) {
    log(LogLevel::kWarn, what);
  }
}

void make(What what, const Call& call) noexcept {
  switch (what) {
    case What::kNothing:
      return;
    case What::kCount:
      return count(call.pointer, call.bytes);
    case What::kFree:
      return say_refused("cuMemFree", cuMemFree_v2(call.pointer));
    case What::kFreeInOrder:
      return say_refused("cuMemFreeAsync", call.per_thread
                                               ? cuMemFreeAsync_ptsz(call.pointer, call.stream)
                                               : cuMemFreeAsync(call.pointer, call.stream));
    case What::kDestroy:
      return say_refused("cuStreamDestroy", cuStreamDestroy_v2(call.stream));
    case What::kFollow: {
      const Entry entry;
      if (Process* const process = Process::get()) (void)process->locate(call.stream, false);
      return;
    }
  }
}

}  // namespace

void Entry::catch_up() noexcept {
  // A hook called here may be interrupted too, and then runs the postponed calls itself.
  for (std::size_t i = 0; i < std::min(left_here.load(), kMost); ++i) {
    make(calls[i].what.exchange(What::kNothing), calls[i].call);
  }
  left_here.store(0);
}

namespace {

bool leave(std::atomic<std::size_t>& left, What what, const Call& call) noexcept {
  const std::size_t at = left.fetch_add(1);
  if (at >= kMost) {
    left.fetch_sub(1);
    return false;
  }
  calls[at].call = call;
  calls[at].what.store(what);
  return true;
}

}  // namespace

void Entry::count_later(CUdeviceptr pointer, std::size_t bytes) const noexcept {
  if (interrupts_) (void)leave(left_here, What::kCount, {.pointer = pointer, .bytes = bytes});
}

bool Entry::take_back(CUdeviceptr pointer) noexcept {
  for (std::size_t i = 0; i < std::min(left_here.load(), kMost); ++i) {
    What counted = What::kCount;
    if (calls[i].call.pointer == pointer &&
        calls[i].what.compare_exchange_strong(counted, What::kNothing)) {
      return true;
    }
  }
  return false;
}

bool Entry::free_later(CUdeviceptr pointer) noexcept {
  return leave(left_here, What::kFree, {.pointer = pointer});
}

bool Entry::free_later(CUdeviceptr pointer, CUstream stream, bool per_thread) noexcept {
  return leave(left_here, What::kFreeInOrder,
               {.pointer = pointer, .stream = stream, .per_thread = per_thread});
}

bool Entry::destroy_later(CUstream stream) noexcept {
  return leave(left_here, What::kDestroy, {.stream = stream});
}

void Entry::follow_later(CUstream stream) noexcept {
  (void)leave(left_here, What::kFollow, {.stream = stream});
}

}  // namespace weir::preload
