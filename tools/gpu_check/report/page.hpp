#pragma once

// The page of a run, for people.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/gpu_check/report/verdicts.hpp"

namespace weir::gpu_check {

/// What the files of the page are called, without their endings: `gpu-DEVICE-DATE`, with the call's
/// name after it where it was not a whole one, and of a rehearsal `rehearsal-...`.
[[nodiscard]] std::string page_name(const nlohmann::json& evidence);

/// Markdown. `json_name`: the file beside it that has the same figures.
[[nodiscard]] std::string page(const nlohmann::json& evidence, const std::vector<Verdict>& verdicts,
                               const std::string& json_name);

/// One line each: the verdict, the condition, the figure.
[[nodiscard]] std::string verdict_lines(const std::vector<Verdict>& verdicts);

/// A table of Markdown; the first row is the heading. What would end a cell is escaped.
[[nodiscard]] std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace weir::gpu_check
