#pragma once

// What the page shows of unmodified programs and of facts.

#include <nlohmann/json.hpp>
#include <string>

namespace weir::gpu_check {

[[nodiscard]] std::string programs_section(const nlohmann::json& figures);
[[nodiscard]] std::string facts_section(const nlohmann::json& figures);

}  // namespace weir::gpu_check
