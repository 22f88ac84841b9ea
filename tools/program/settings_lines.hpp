#pragma once

// The settings in force, as programs print them before they begin.

#include <cstddef>
#include <span>
#include <string>

#include "allocator/base/setting.hpp"
#include "tools/program/report_table.hpp"

namespace weir {

/// Returns settings_text in lines of at most `most` columns, each ending in a newline; those after
/// the first are indented by two spaces. A line breaks between settings; only a setting that is
/// longer than a line is broken itself.
[[nodiscard]] std::string settings_lines(std::span<const SettingLine> lines,
                                         std::size_t most = report_columns());

}  // namespace weir
