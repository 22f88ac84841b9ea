#pragma once

// Decides which of the files that name a program to trust. Pure.

#include <cstdint>
#include <span>
#include <vector>

namespace weir::timeline {

/// Whether the process that a file names holds the file's lock.
enum class LockHolder : std::uint8_t {
  kNamed,
  kAnother,
  kUnseen,  ///< the kernel does not reveal the holder here
};

/// The process that a file names.
struct Claim {
  std::uint32_t pid = 0;
  std::uint64_t started = 0;
  std::uint64_t pid_namespace = 0;
  LockHolder holder = LockHolder::kUnseen;
};

/// Returns for each claim whether to trust it. Trusts a claim whose process holds the lock. Trusts
/// a claim with an unknown holder, unless another claim names the same process and either its
/// process holds the lock, or nothing distinguishes the two.
[[nodiscard]] std::vector<bool> believed(std::span<const Claim> claims);

}  // namespace weir::timeline
