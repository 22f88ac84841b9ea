#pragma once

/// @file
/// Diagnostics on standard error, one line each, at the level that WEIR_LOG sets. Thread-safe.

#include <cstdint>
#include <string_view>

#include "allocator/base/setting.hpp"

namespace weir {

/// From the few lines that matter most to all of them.
enum class LogLevel : std::uint8_t {
  kError,  ///< something was lost or is wrong
  kWarn,   ///< it goes on, but not as asked for
  kInfo,   ///< what is in force
  kDebug,  ///< for whoever looks for a fault
};

/// `error`, `warn`, `info` or `debug`; UsageError otherwise.
[[nodiscard]] LogLevel parse_log_level(std::string_view name, std::string_view text);
/// As parse_log_level reads it.
[[nodiscard]] std::string_view to_string(LogLevel level) noexcept;
/// WEIR_LOG, or `warn`.
[[nodiscard]] LogLevel log_level_from_environment(
    const Environment& environment = process_environment());
/// Sets the level in force for the whole process; `warn` until then. WEIR_LOG is not read by
/// itself.
void set_log_level(LogLevel level) noexcept;
/// The level in force.
[[nodiscard]] LogLevel log_level() noexcept;

/// Writes `weir: text` if the level in force lets it through.
void log(LogLevel level, std::string_view text) noexcept;

/// Where lines go instead of standard error; null is standard error. For tests and for programs
/// that draw on the terminal. The sink must stay valid and be thread-safe.
using LogSink = void (*)(LogLevel level, std::string_view text);
/// Sets the sink for the whole process.
void set_log_sink(LogSink sink) noexcept;

}  // namespace weir
