#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <string>

#include "allocator/base/log.hpp"
#include "tools/preload/driver/call.hpp"
#include "tools/preload/process/process.hpp"

namespace weir::preload {

namespace {

using What = Postponed::What;

void count(CUdeviceptr pointer, std::size_t bytes) noexcept {
  const Call here;
  Process* const process = Process::get();
  Device* const device = process != nullptr ? process->devices().current() : nullptr;
  if (device == nullptr) return;
  device->account().charge({bytes});
  process->count(device->account(), Kind::kDirect, {bytes}, pointer,
                 process->contexts().current_context());
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

void make(What what, const Postponed& call) noexcept {
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
      const Call here;
      if (Process* const process = Process::get())
        (void)process->contexts().locate(call.stream, false);
      return;
    }
  }
}

std::size_t count_left() noexcept {
  return std::min(this_thread.postponed.load(), ThisThread::kMostPostponed);
}

bool leave(What what, CUdeviceptr pointer, std::size_t bytes, CUstream stream,
           bool per_thread) noexcept {
  const std::size_t at = this_thread.postponed.fetch_add(1);
  if (at >= ThisThread::kMostPostponed) {
    this_thread.postponed.fetch_sub(1);
    return false;
  }
  Postponed& call = this_thread.calls[at];
  call.pointer = pointer;
  call.bytes = bytes;
  call.stream = stream;
  call.per_thread = per_thread;
  call.what.store(what);
  return true;
}

}  // namespace

void Call::catch_up() noexcept {
  // A hook called here may be interrupted too, and then runs the postponed calls itself.
  for (std::size_t i = 0; i < count_left(); ++i) {
    Postponed& call = this_thread.calls[i];
    make(call.what.exchange(What::kNothing), call);
  }
  this_thread.postponed.store(0);
}

void Call::count_later(CUdeviceptr pointer, std::size_t bytes) const noexcept {
  if (interrupts_) (void)leave(What::kCount, pointer, bytes, nullptr, false);
}

bool Call::take_back(CUdeviceptr pointer) noexcept {
  for (std::size_t i = 0; i < count_left(); ++i) {
    What counted = What::kCount;
    Postponed& call = this_thread.calls[i];
    if (call.pointer == pointer && call.what.compare_exchange_strong(counted, What::kNothing)) {
      return true;
    }
  }
  return false;
}

bool Call::free_later(CUdeviceptr pointer) noexcept {
  return leave(What::kFree, pointer, 0, nullptr, false);
}

bool Call::free_later(CUdeviceptr pointer, CUstream stream, bool per_thread) noexcept {
  return leave(What::kFreeInOrder, pointer, 0, stream, per_thread);
}

bool Call::destroy_later(CUstream stream) noexcept {
  return leave(What::kDestroy, 0, 0, stream, false);
}

void Call::follow_later(CUstream stream) noexcept {
  (void)leave(What::kFollow, 0, 0, stream, false);
}

}  // namespace weir::preload
