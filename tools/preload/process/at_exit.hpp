#pragma once

// The summary at a program's end.

#include <chrono>
#include <functional>
#include <string>

#include "tools/preload/context/arena.hpp"
#include "tools/preload/report/summary.hpp"

namespace weir::preload {

/// The path of the program that this process runs; empty where the system does not say.
[[nodiscard]] std::string program_path();
/// Adds what one context of it did.
void add(DeviceSummary& device, const Arena& arena);
/// Whether a summary goes anywhere.
[[nodiscard]] bool is_summary_wanted(const Settings& settings) noexcept;
/// Runs `work` on a thread of its own and waits for its end, `most` at the longest. False: it still
/// runs, and what it uses must stay. Without a thread to be had it runs on this one.
[[nodiscard]] bool finish_within(std::chrono::nanoseconds most, std::function<void()> work);
/// To the file of WEIR_SUMMARY, or else, at WEIR_LOG=info, to standard error; nothing of a process
/// that took no memory. A file that cannot be written is one line.
void write_summary(const Summary& summary, const Settings& settings);

}  // namespace weir::preload
