// Weir's variables, and whether the files that they name can be written.

#include <unistd.h>

#include "allocator/base/error.hpp"
#include "tools/program/output_file.hpp"
#include "tools/timeline/recorder/settings.hpp"
#include "tools/weir/doctor/collect/collect.hpp"
#include "tools/weir/run/summary_output.hpp"

namespace weir::cli::doctor {
namespace {

/// Returns the file that this process would write; empty if that takes a rank (%r), which it has
/// only in a job.
std::string file_of(const std::string& name, const std::string& value) {
  if (name != "WEIR_TIMELINE") return with_process(value, static_cast<std::uint64_t>(getpid()));
  const bool takes_rank = value.find("%r") != std::string::npos;
  if (takes_rank && !timeline::find_rank(process_environment())) return {};
  return timeline::expand_name({value, name}, process_environment());
}

}  // namespace

SettingsFacts collect_settings(const Variables& variables) {
  SettingsFacts facts{.variables = variables, .outputs = {}, .devices = {}};
  for (const char* name : {"WEIR_ALLOC_LOG", "WEIR_SUMMARY", "WEIR_TIMELINE"}) {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) continue;
    OutputPlace place{.variable = name, .problem = {}};
    try {
      const std::string file = file_of(name, found->second);
      if (file.empty()) continue;
      const OutputFile writable(name, file);
    } catch (const UsageError& error) {
      place.problem = error.what();
    }
    facts.outputs.push_back(std::move(place));
  }
  return facts;
}

}  // namespace weir::cli::doctor
