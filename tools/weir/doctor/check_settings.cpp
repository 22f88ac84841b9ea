// The variables of Weir, those of MXNet that Weir reads, limits of the system, and what else
// changes how a GPU program works.

#include <algorithm>
#include <set>
#include <string_view>

#include "allocator/base/error.hpp"
#include "allocator/base/variables.hpp"
#include "allocator/pool_options.hpp"
#include "tools/preload/settings/settings.hpp"
#include "tools/program/split.hpp"
#include "tools/weir/doctor/checks.hpp"
#include "tools/weir/run/framework_allocator.hpp"

namespace weir::cli::doctor {
namespace {

std::string correct(const std::string& what, const Facts& facts) {
  return what + " (" + page(facts, "environment.md") + ")";
}

/// Reads every setting as `weir run`, the library and weir-train do. Throws UsageError.
void read_all(const Environment& environment) {
  (void)preload::Settings::from_environment(environment);
  (void)PoolOptions::from_environment(MxnetContext::kCpu, environment);
  (void)torch_way(allocator_mode(environment), environment);
  Setting<Bytes> bucket;  // weir-train alone reads it
  read_setting(bucket, environment, {"MXNET_KVSTORE_REDUCE_BUCKET_SIZE"}, parse_some_bytes);
}

/// Returns the names that Weir asks the environment for.
std::set<std::string> names_read() {
  std::set<std::string> names;
  read_all([&names](const char* name) -> const char* {
    names.insert(name);
    return nullptr;
  });
  return names;
}

/// Returns why reading these fails; empty if it does not.
std::string problem_of(const Environment& environment) {
  try {
    read_all(environment);
    return {};
  } catch (const UsageError& error) {
    return error.what();
  }
}

std::string problem_of(const std::string& name, const std::string& value) {
  return problem_of(
      [&](const char* asked) -> const char* { return asked == name ? value.c_str() : nullptr; });
}

bool is_ours(std::string_view name) { return name.starts_with("WEIR_"); }

/// Returns the warning of a name that Weir does not know; empty for one that it knows.
std::string unknown(const std::string& name) {
  const std::string line = name + "=";
  const char* const lines[] = {line.c_str(), nullptr};
  const std::vector<std::string> warnings = unknown_variables(lines);
  return warnings.empty() ? "" : warnings.front();
}

void add_unknown_variables(const Facts& facts, Findings& found) {
  for (const auto& [name, value] : facts.variables) {
    const std::string warning = is_ours(name) ? unknown(name) : "";
    if (!warning.empty()) found.warn(warning, "set the name that you meant, and unset " + name);
  }
}

/// Each value alone. Of two that name a file, the checks `library` and `cupti` say how it is.
void add_variables(const Facts& facts, Findings& found) {
  const std::set<std::string> read = names_read();
  bool is_any = false;
  for (const auto& [name, value] : facts.variables) {
    const bool is_known =
        is_ours(name) ? unknown(name).empty() : name.starts_with("MXNET_") && read.contains(name);
    is_any = is_any || is_ours(name) || is_known;
    if (!is_known || name == "WEIR_LIBRARY" || name == "WEIR_CUPTI") continue;
    if (value.empty()) {
      found.ok(name + " is empty, which counts as not set");
    } else if (const std::string problem = problem_of(name, value); !problem.empty()) {
      found.fails(problem, correct("correct " + name + ", or unset it", facts));
      if (name.starts_with("WEIR_SHARE")) found.breaks(Use::kShare);
    } else {
      found.ok(std::string(name).append("=").append(value));
    }
  }
  if (!is_any) found.ok("no variable of Weir or MXNet is set: the defaults hold");
}

void add_together(const Facts& facts, Findings& found) {
  const Variables& variables = facts.variables;
  const std::string problem = problem_of(environment_of(variables));
  const bool is_known = std::ranges::any_of(variables, [&](const auto& variable) {
    return problem_of(variable.first, variable.second) == problem;
  });
  if (problem.empty() || is_known) return;
  found.fails("the settings do not fit together: " + problem,
              correct("change or unset one of them", facts));
}

void add_open_files(const Facts& facts, Findings& found) {
  constexpr std::uint64_t kEnough = 4096;
  constexpr Bytes kPage = mib(2);  // of the pool `paged`, on every GPU so far
  const LimitsFacts& limits = facts.limits;
  if (!limits.open_files) return found.ok("open files (ulimit -n): unlimited");
  const std::uint64_t files = *limits.open_files;
  const std::string text = "open files (ulimit -n): " + std::to_string(files);
  if (files >= kEnough) return found.ok(text);
  const bool at_most = limits.open_files_at_most && *limits.open_files_at_most <= files;
  const std::string raise =
      at_most
          ? "let root raise the hard limit (limits.conf, or a container's --ulimit nofile)"
          : "ulimit -n " + (limits.open_files_at_most ? std::to_string(*limits.open_files_at_most)
                                                      : std::string("unlimited"));
  found.warn(text + "; of tensors in pages, " + format_bytes(kPage * files) +
                 " can be shared with other processes, a file for each 2 MiB",
             "if you share tensors: " + raise + ", or WEIR_POOL=best_fit");
}

void add_shared_memory(const Facts& facts, Findings& found) {
  const LimitsFacts& limits = facts.limits;
  if (!limits.shared_memory) {
    found.fails("there is no /dev/shm: WEIR_SHARE keeps its files there",
                "mount a tmpfs at /dev/shm");
  } else if (!limits.shared_memory_writable) {
    found.fails("this user may not write to /dev/shm: WEIR_SHARE keeps its files there",
                "chmod 1777 /dev/shm as root, or mount it writable");
  } else {
    const bool is_small = *limits.shared_memory < mib(128);
    found.ok("/dev/shm is writable, " + format_bytes(*limits.shared_memory) +
             (is_small ? "; workers of PyTorch may need more (--shm-size)" : ""));
  }
}

std::string value_of(const Facts& facts, const char* name) {
  const char* const value = environment_of(facts.variables)(name);
  return value != nullptr ? value : "";
}

/// Whether a preloaded file is a copy of libweir.so.
bool is_weir(std::string_view path) { return path.substr(path.rfind('/') + 1) == "libweir.so"; }

void add_preloaded(const Facts& facts, Findings& found) {
  const std::string preload = value_of(facts, "LD_PRELOAD");
  const std::vector<std::string_view> files = split(preload, ": ");
  const auto weir = std::ranges::find_if(files, is_weir);
  const std::string text = "LD_PRELOAD='" + preload + "'";
  if (preload.find("libasan") != std::string::npos ||
      preload.find("libtsan") != std::string::npos) {
    found.warn(text +
                   " has a sanitizer, which must be the first library; weir run puts "
                   "libweir.so before it",
               "ASAN_OPTIONS=verify_asan_link_order=0, or no sanitizer under Weir");
  } else if (weir != files.end() && weir != files.begin()) {
    found.warn(text +
                   " has libweir.so behind another library, whose CUDA functions would hide "
                   "Weir's",
               "name libweir.so first, or use weir run, which does");
  } else if (weir != files.end()) {
    found.ok(text + ": Weir is in this process too, so a GPU's memory is the budget");
  } else if (!files.empty()) {
    found.ok(text + "; weir run puts libweir.so first");
  }
}

void add_launch_blocking(const Facts& facts, Findings& found) {
  const std::string blocking = value_of(facts, "CUDA_LAUNCH_BLOCKING");
  if (blocking.empty() || blocking == "0") return;
  found.warn("CUDA_LAUNCH_BLOCKING=" + blocking +
                 ": each launch waits for the device, and nothing runs ahead",
             "unset CUDA_LAUNCH_BLOCKING");
}

void add_nvtx(const Facts& facts, Findings& found) {
  const std::string nvtx = value_of(facts, "NVTX_INJECTION64_PATH");
  if (nvtx.empty() || is_weir(nvtx) || value_of(facts, "WEIR_BATCH_RANGE").empty()) return;
  found.warn(
      "NVTX_INJECTION64_PATH names another library, " + nvtx + ": WEIR_BATCH_RANGE sees no range",
      "unset NVTX_INJECTION64_PATH");
}

}  // namespace

std::vector<Check> settings_checks() {
  const std::vector<Use> settings{Use::kRun, Use::kPlug, Use::kTrainGpu, Use::kTrainCpu};
  return {{Group::kSettings, "unknown-variable", {}, add_unknown_variables},
          {Group::kSettings, "variable", settings, add_variables},
          {Group::kSettings, "settings", settings, add_together},
          {Group::kLimits, "open-files", {}, add_open_files},
          {Group::kLimits, "shared-memory", {Use::kShare}, add_shared_memory},
          {Group::kEnvironment, "preloaded", {Use::kRun}, add_preloaded},
          {Group::kEnvironment, "launch-blocking", {}, add_launch_blocking},
          {Group::kEnvironment, "nvtx", {}, add_nvtx}};
}

}  // namespace weir::cli::doctor
