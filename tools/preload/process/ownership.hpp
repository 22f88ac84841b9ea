#pragma once

// Whose a pointer is, and how it is freed: by the pool that has it, in whatever context, or as host
// memory that was given for device memory.

#include <atomic>
#include <chrono>
#include <optional>

#include "tools/preload/process/contexts.hpp"

namespace weir::preload {

/// An allocation as the program asked for it.
struct Allocation {
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
};

/// Thread-safe.
class Ownership {
 public:
  Ownership(const Settings& settings, Contexts& contexts, ContextGate& gate,
            Spilled& spilled) noexcept
      : settings_(settings), contexts_(contexts), gate_(gate), spilled_(spilled) {}

  /// Frees in the arena that owns the memory, in the order of `here`, or after all streams if
  /// `here` has none. Returns nothing if no arena owns it.
  [[nodiscard]] std::optional<CUresult> free(CUdeviceptr pointer, const Located& here) noexcept;
  /// Whether `address` lies in memory that Weir serves, allocated or not.
  [[nodiscard]] bool serves(CUdeviceptr address) const noexcept;
  /// Returns the pool allocation around `address`; zero bytes if nothing is allocated there.
  /// Returns nothing if the driver must answer.
  [[nodiscard]] std::optional<Allocation> allocation_around(CUdeviceptr address) const noexcept;
  /// Orders parked memory after all streams of all contexts, if those can be asked.
  void finish_parked() noexcept;

 private:
  [[nodiscard]] std::optional<CUresult> free_elsewhere(CUdeviceptr pointer, const Located& here);
  /// Frees memory of `owner` after its streams and `here`, or after all streams of all contexts. If
  /// one of them is captured, waits for the end of the capture.
  [[nodiscard]] std::optional<CUresult> free_behind_peers(Arena& owner, CUdeviceptr pointer,
                                                          const Located& here);
  [[nodiscard]] std::optional<CUresult> free_spilled(CUdeviceptr pointer, const Located& here);
  /// Makes the next fence on everything of `owner` cover work in other contexts. Throws
  /// CaptureUnderWay if a context is captured, or one is ending for longer than `most`: then they
  /// cannot be asked.
  void cover_peers(Arena& owner, const Located& here, std::chrono::nanoseconds most);
  /// The same for all other contexts; false if one is ending.
  [[nodiscard]] bool cover_all_peers(Arena& owner, std::chrono::nanoseconds most);

  const Settings& settings_;
  Contexts& contexts_;
  ContextGate& gate_;
  Spilled& spilled_;
  std::atomic<bool> parked_{false};  ///< something may be parked (Fences::parked)
};

}  // namespace weir::preload
