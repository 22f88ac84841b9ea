#pragma once

// What `weir run` advises once a program has ended. Pure.

#include <string>

#include "tools/preload/summary/summary.hpp"

namespace weir::cli {

/// Whether memory that was freed, but that the device had not passed, made the device's reserved
/// memory clearly larger.
[[nodiscard]] bool awaiting_matters(const preload::DeviceSummary& device);

/// Returns the most memory that was freed before the device had passed it.
[[nodiscard]] Bytes queued(const preload::DeviceSummary& device);

/// Returns what to try on that device and why, such as `try FLAGS: REASON`; empty if nothing.
[[nodiscard]] std::string advice(const preload::Summary& summary,
                                 const preload::DeviceSummary& device);

/// Says which setting held nothing back, since the program marked no batch; empty if none.
[[nodiscard]] std::string without_effect(const preload::Summary& summary);

}  // namespace weir::cli
