#pragma once

// Diagnostics on standard error, one line each, at the level that WEIR_LOG sets. Thread-safe.

#include <cstdint>
#include <string_view>

#include "allocator/setting.hpp"

namespace weir {

enum class LogLevel : std::uint8_t { kError, kWarn, kInfo, kDebug };

/// `error`, `warn`, `info` or `debug`; UsageError otherwise.
[[nodiscard]] LogLevel parse_log_level(std::string_view name, std::string_view text);
/// WEIR_LOG, or `warn`.
[[nodiscard]] LogLevel log_level_from_environment(
    const Environment& environment = process_environment());
void set_log_level(LogLevel level) noexcept;
[[nodiscard]] LogLevel log_level() noexcept;

/// Writes `weir: text` if the level in force lets it through.
void log(LogLevel level, std::string_view text) noexcept;

/// Where lines go instead of standard error; null is standard error. For tests and for programs
/// that draw on the terminal. The sink must stay valid and be thread-safe.
using LogSink = void (*)(LogLevel level, std::string_view text);
void set_log_sink(LogSink sink) noexcept;

}  // namespace weir
