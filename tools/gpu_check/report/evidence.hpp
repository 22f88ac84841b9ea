#pragma once

// Everything that a run left in its folder, in one JSON document: the file that docs/results keeps.
//
//   info.json                      weir-gpu info --json -
//   steps.tsv                      see steps.hpp
//   call.txt                       which call of tools/gpu-check it was; none of a whole first one
//   STEP.json, STEP.log            what a step wrote to its file and printed
//
// Left out are the series `..._per_batch`, which would be most of it. A file that a failed step did
// not come to write is simply missing from the document; one that cannot be read is named in it.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/gpu_check/report/steps.hpp"

namespace weir::gpu_check {

/// Error when the folder has no info.json or steps.tsv: then there is nothing to report on.
[[nodiscard]] nlohmann::json gather(const std::filesystem::path& run, const std::string& date);

/// What `call` is in the document of all calls.
inline constexpr const char* kAllCalls = "all";

/// Why a step is left out of which the run knows nothing.
inline constexpr const char* kNoSuchStep = "no step of this name was run";

/// The step of that name in what `gather` returned; one that is left out where there is none.
[[nodiscard]] Step step_of(const nlohmann::json& evidence, const std::string& name);

/// What the step wrote; null where it wrote nothing.
[[nodiscard]] const nlohmann::json& figures_of(const nlohmann::json& evidence,
                                               const std::string& name);

/// `nvidia-h100-80gb-hbm3` of the first GPU: what the files in docs/results are called after.
[[nodiscard]] std::string device_slug(const nlohmann::json& evidence);

/// The file as it is. Error when it cannot be read.
[[nodiscard]] std::string read_text(const std::filesystem::path& file);

/// What GoogleTest's own JSON says, by the names of the tests.
struct TestCounts {
  std::size_t passed = 0;
  std::vector<std::string> failed;
  std::vector<std::string> skipped;
};
[[nodiscard]] TestCounts count_tests(const nlohmann::json& googletest);

/// The last line of a sanitizer's output with `SUMMARY`; empty when there is none.
[[nodiscard]] std::string sanitizer_summary(const std::string& output);

}  // namespace weir::gpu_check
