#pragma once

// One document of several calls of tools/gpu-check. The calls may have been on several machines of
// one kind, and this needs no GPU: their JSON files are enough.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace weir::gpu_check {

/// What a call found: of the folder that its steps wrote to, or of the JSON file beside its page.
/// Error when it is neither.
[[nodiscard]] nlohmann::json read_call(const std::filesystem::path& run, const std::string& date);

/// All calls as one: of each step the last time that it ran, of each program likewise. What no call
/// planned counts as planned, since the page is now of everything. One call alone stays as it is.
/// Error when there is none, and when they are not of one device, driver and commit.
[[nodiscard]] nlohmann::json merge_calls(const std::vector<nlohmann::json>& calls,
                                         const std::string& date);

}  // namespace weir::gpu_check
