#pragma once

#include <cstdint>

namespace weir::preload {

/// Whether `name` equals `batch` byte for byte; false for null.
[[nodiscard]] bool is_name(const char* name, const char* batch) noexcept;
/// Whether `name` equals `batch`, which is UTF-8; false for null.
[[nodiscard]] bool is_name(const wchar_t* name, const char* batch) noexcept;

// The calling thread's ranges. `batch` is the kind of batch that a range stands for, or null for a
// plain range, which costs a few instructions. Nothing here allocates.

/// Opens a range in `domain` and returns its level, from 0. The first 15 domains of a process nest
/// separately, all others together.
int push_range(std::uint64_t domain, const char* batch) noexcept;
/// Closes the innermost range of `domain` and returns its level; -1 if none is open.
int pop_range(std::uint64_t domain) noexcept;

/// Begins a range that need not nest. Returns its number; 0 if it is no batch.
std::uint64_t start_range(const char* batch) noexcept;
/// Ends the range. A batch belongs to the thread that began it: another thread only marks it as
/// ended, and its own thread ends it at its next begin. A thread has at most four such batches
/// open; a fifth ends the oldest.
void end_range(std::uint64_t range) noexcept;

}  // namespace weir::preload
