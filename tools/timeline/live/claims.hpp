#pragma once

// Which of the files that name a program is believed. Pure.

#include <cstdint>
#include <span>
#include <vector>

namespace weir::timeline {

/// Whether the process that holds a file's lock is the one that the file names.
enum class Holder : std::uint8_t {
  kNamed,
  kAnother,
  kUnseen,  ///< the kernel does not tell here who it is
};

/// What a file says of whose it is.
struct Claim {
  std::uint32_t pid = 0;
  std::uint64_t started = 0;
  std::uint64_t pid_namespace = 0;
  Holder holder = Holder::kUnseen;
};

/// For each claim whether it is believed. One whose process holds the lock always is. One of which
/// that is not known is, unless another claims the same process: where that one's process does hold
/// the lock, or where nothing tells the two apart.
[[nodiscard]] std::vector<bool> believed(std::span<const Claim> claims);

}  // namespace weir::timeline
