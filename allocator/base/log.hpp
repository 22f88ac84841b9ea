#pragma once

/// @file
/// Diagnostics on standard error, one line each, at the level that WEIR_LOG sets. Thread-safe.

#include <cstdint>
#include <string_view>

#include "allocator/base/names.hpp"
#include "allocator/base/setting.hpp"

namespace weir {

/// From the fewest, most important lines to all lines.
enum class LogLevel : std::uint8_t {
  kError,  ///< something is lost or wrong
  kWarn,   ///< continues, but not as asked
  kInfo,   ///< the settings in force
  kDebug,  ///< for finding faults
};

/// The names in WEIR_LOG.
[[nodiscard]] constexpr auto names_of(LogLevel /*of*/) noexcept {
  return name_table("error", "warn", "info", "debug");
}
/// Returns the level of WEIR_LOG, or `warn`.
[[nodiscard]] LogLevel log_level_from_environment(
    const Environment& environment = process_environment());
/// Sets the process's level; `warn` until then. WEIR_LOG is not read automatically.
void set_log_level(LogLevel level) noexcept;
/// Returns the level in force.
[[nodiscard]] LogLevel log_level() noexcept;

/// Writes `weir: text` if the level allows it.
void log(LogLevel level, std::string_view text) noexcept;

/// Receives lines in place of standard error; null: standard error. For tests and programs that
/// draw on the terminal. Must stay valid and be thread-safe.
using LogSink = void (*)(LogLevel level, std::string_view text);
/// Sets the sink for the whole process.
void set_log_sink(LogSink sink) noexcept;

}  // namespace weir
