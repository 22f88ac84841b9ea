#pragma once

// Writes the summary at a program's end.

#include <chrono>
#include <functional>
#include <string>

#include "tools/preload/context/arena.hpp"
#include "tools/preload/summary/summary.hpp"

namespace weir::preload {

/// Returns the path of the running program; empty if the system does not say.
[[nodiscard]] std::string program_path();
/// Adds the figures of one of the device's contexts.
void add(DeviceSummary& device, const Arena& arena);
/// Whether a summary is written anywhere.
[[nodiscard]] bool is_summary_wanted(const Settings& settings) noexcept;
/// Runs `work` on a new thread and waits for it for at most `most`. Returns false if it still runs:
/// then what it uses must stay. Runs on this thread if none can be created.
[[nodiscard]] bool finish_within(std::chrono::nanoseconds most, std::function<void()> work);
/// Writes to the file of WEIR_SUMMARY, or else, at WEIR_LOG=info, to standard error; nothing if the
/// process took no memory. An unwritable file costs one line.
void write_summary(const Summary& summary, const Settings& settings);

}  // namespace weir::preload
