#pragma once

// How a hook passes a call to the driver, and obtains memory that the driver serves.

#include "tools/preload/context/room.hpp"
#include "tools/preload/driver/call.hpp"
#include "tools/preload/driver/driver.hpp"
#include "tools/preload/process/process.hpp"

namespace weir::preload {

/// Calls the driver's own function and returns its code: "not initialized" without a driver, "not
/// supported" if it is too old. Outside any Call.
template <typename F, typename... Args>
CUresult jump(F Driver::*function, Args... args) noexcept {
  const Driver* const d = driver();
  if (d == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return d->*function != nullptr ? (d->*function)(args...) : CUDA_ERROR_NOT_SUPPORTED;
}

/// The same in a hook's Call.
template <typename F, typename... Args>
CUresult pass(F Driver::*function, Args... args) noexcept {
  const Call::InDriver in_driver;
  return jump(function, args...);
}

[[nodiscard]] inline std::uint64_t number(const void* handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle);
}
[[nodiscard]] inline std::uint64_t number(std::uint64_t handle) noexcept { return handle; }

/// Memory that the driver serves.
struct Wanted {
  Kind kind = Kind::kDirect;
  Bytes bytes{};                ///< as asked; zero: not known before
  CUcontext context = nullptr;  ///< with which it ends; null: none
  CUmemoryPool pool = nullptr;  ///< the program's
};

/// The report of a request that found no memory.
void report_refusal(Process& process, Device& device, const Wanted& wanted, Refusal refusal,
                    const Room& room) noexcept;

/// Has `by_driver()` serve what is wanted of a device, makes room where that is refused, and counts
/// it by what it takes (kinds.hpp), under the handle in `made` if there is one. `device` may be
/// null: then nothing is done but the call.
template <typename ByDriver, typename Handle>
CUresult obtain(Call& call, Process* process, Device* device, const Wanted& wanted,
                const ByDriver& by_driver, const Handle* made) noexcept {
  if (device == nullptr) return by_driver();
  const KindRow& row = row_of(wanted.kind);
  Account& account = device->account();
  OwnMemory& own = device->own();
  std::optional<OwnMemory::Asking> asking;
  if (wanted.pool != nullptr) asking.emplace(own, wanted.pool, wanted.bytes);
  CUresult code = CUDA_ERROR_OUT_OF_MEMORY;
  const auto ask = [&]() -> Lack {
    const Bytes claimed = asking ? asking->lacks() : wanted.bytes;
    // What a pool lacks may be more than this request's part, for a moment: see Asking.
    const Bytes whole = asking ? std::min(claimed, OwnMemory::in_pieces(wanted.bytes)) : claimed;
    Account::Claim claim(account, 1, row.counts ? claimed : Bytes{});
    code = claim.count() != 0 ? by_driver() : CUDA_ERROR_OUT_OF_MEMORY;
    if (claim.count() == 0) return {Refusal::kBudget, claimed, whole};
    if (code == CUDA_ERROR_OUT_OF_MEMORY && row.needs_room) {
      return {Refusal::kDevice, claimed, whole};
    }
    if (code != CUDA_SUCCESS) return {Refusal::kOther};
    if (row.sizing == Sizing::kAsked) claim.keep(1);
    if (made != nullptr && (row.sizing == Sizing::kAsked || asking)) {
      process->count(account, wanted.kind, wanted.bytes, number(*made), wanted.context, wanted.pool,
                     asking ? &own : nullptr);
    }
    if (row.sizing == Sizing::kReserved) (void)own.refresh();
    asking.reset();  // before the claim, at whose end others ask again
    return {};
  };
  Room room(*device, call.until(process->settings().max_wait.value));
  const Refusal refusal = obtain(room, ask);
  if (refusal == Refusal::kBudget || refusal == Refusal::kDevice) {
    report_refusal(*process, *device, wanted, refusal, room);
  }
  return code;
}

}  // namespace weir::preload
