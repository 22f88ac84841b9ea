#pragma once

// The summary at a program's end.

#include <string>

#include "tools/preload/arena.hpp"
#include "tools/preload/summary.hpp"

namespace weir::preload {

/// The path of the program that this process runs; empty where the system does not say.
[[nodiscard]] std::string program_path();
/// Adds what one context of it did.
void add(DeviceSummary& device, const Arena& arena);
/// To the file of WEIR_SUMMARY, or else, at WEIR_LOG=info, to standard error; nothing of a process
/// that took no memory. A file that cannot be written is one line.
void write_summary(const Summary& summary, const Settings& settings);

}  // namespace weir::preload
