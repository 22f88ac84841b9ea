#pragma once

// What the error says when there is no memory.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace weir::torch_plug {

/// Returns a size as PyTorch prints it (format_size in c10/core/CachingDeviceAllocator.h).
[[nodiscard]] inline std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 4> kUnits{"bytes", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  double value = static_cast<double>(bytes);
  for (; value > 1024.0 && unit + 1 < kUnits.size(); ++unit) value /= 1024.0;
  std::array<char, 64> text{};
  (void)std::snprintf(text.data(), text.size(), "%.*f %s", unit == 0 ? 0 : 2, value, kUnits[unit]);
  return text.data();
}

/// The figures of a failed request, all in bytes.
struct Shortage {
  int device = 0;
  std::uint64_t requested = 0;
  std::uint64_t total = 0;      ///< of the device
  std::uint64_t free = 0;       ///< of the device, as the driver tells the program
  std::uint64_t allocated = 0;  ///< by tensors, those of private pools among them
  std::uint64_t in_private_pools = 0;
  std::uint64_t reserved = 0;  ///< for tensors
  std::uint64_t budget = 0;    ///< Weir's, for the program
  std::uint64_t awaiting = 0;  ///< freed, with the device not known to be done
  std::uint64_t cached = 0;    ///< free, kept by Weir
  std::uint64_t passed = 0;    ///< served by the driver itself
};

/// Returns the text: PyTorch's sentences, which people's scripts search, and Weir's report instead
/// of the advice, which does not hold here.
[[nodiscard]] inline std::string shortage_text(const Shortage& of) {
  std::string text = "CUDA out of memory. Tried to allocate " + size_text(of.requested) + ". GPU " +
                     std::to_string(of.device) + " has a total capacity of " + size_text(of.total) +
                     " of which " + size_text(of.free) + " is free. Of the allocated memory " +
                     size_text(of.allocated) + " is allocated by PyTorch, ";
  if (of.in_private_pools > 0) {
    text += "with " + size_text(of.in_private_pools) +
            " allocated in private pools (e.g., CUDA Graphs), ";
  }
  const std::uint64_t unallocated = of.reserved > of.allocated ? of.reserved - of.allocated : 0;
  return text + "and " + size_text(unallocated) +
         " is reserved by PyTorch but unallocated. Weir: a budget of " + size_text(of.budget) +
         ", " + size_text(of.awaiting) + " freed but still in use by the device, " +
         size_text(of.cached) + " cached, " + size_text(of.passed) +
         " served by the driver itself.";
}

}  // namespace weir::torch_plug
