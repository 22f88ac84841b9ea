#pragma once

#include <cstdint>

namespace weir::preload {

/// Whether `name` is `batch`, byte for byte; no where it is null.
[[nodiscard]] bool is_name(const char* name, const char* batch) noexcept;
/// Whether `name` is `batch`, which is UTF-8; no where it is null.
[[nodiscard]] bool is_name(const wchar_t* name, const char* batch) noexcept;

// The calling thread's ranges, and the batches that some of them are. `batch` is the kind of the
// batch that the range is, null where it is none. What is none costs a few instructions, and
// nothing here allocates.

/// Opens a range of the thread's own in `domain`; its level there, from 0. The first 15 domains of
/// a process nest each by itself, and all others as one.
int push_range(std::uint64_t domain, const char* batch) noexcept;
/// Closes the innermost of `domain`; its level, -1 where none is open.
int pop_range(std::uint64_t domain) noexcept;

/// Begins a range that need not nest; its number, 0 where it is no batch.
std::uint64_t start_range(const char* batch) noexcept;
/// Ends it. A batch belongs to the thread that began it: on another one this only leaves word, and
/// the batch ends when its own thread begins its next. At most four such batches of a thread are
/// open; a fifth ends the oldest of them.
void end_range(std::uint64_t range) noexcept;

}  // namespace weir::preload
