// The system itself: nothing here names the machine or its user.

#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>

#include "allocator/base/variables.hpp"
#include "tools/preload/torch/plug_file.hpp"
#include "tools/weir/doctor/collect/collect.hpp"
#include "tools/weir/run/library.hpp"

namespace weir::cli::doctor {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// Returns the value of a line `NAME="value"`; empty if there is none.
std::string line_of(const std::string& text, std::string_view name) {
  const std::string begin = "\n" + std::string(name) + "=";
  const std::string all = "\n" + text;
  const std::size_t at = all.find(begin);
  if (at == std::string::npos) return {};
  const std::size_t from = at + begin.size();
  std::string value = all.substr(from, all.find('\n', from) - from);
  std::erase(value, '"');
  return value;
}

std::string container_in(const std::string& root) {
  if (exists(root + "/.dockerenv")) return "Docker";
  if (exists(root + "/run/.containerenv")) return "Podman";
  if (const auto kind = read_small(root + "/run/systemd/container")) {
    return kind->substr(0, kind->find('\n'));
  }
  if (exists(root + "/var/run/secrets/kubernetes.io")) return "Kubernetes";
  if (exists(root + "/.singularity.d")) return "Apptainer";
  return {};
}

}  // namespace

std::optional<std::string> read_small(const std::string& path) {
  constexpr std::size_t kMost = 65536;
  return preload::read_beginning(path, kMost);
}

Variables collect_variables(const char* const* environment) {
  constexpr std::array<std::string_view, 13> kBeginnings{
      "WEIR_",         "MXNET_",           "PYTORCH_", "XLA_",        "TF_",
      "CUDA_",         "NVIDIA_",          "NVTX_",    "LD_PRELOAD=", "LD_LIBRARY_PATH=",
      "ASAN_OPTIONS=", "XDG_RUNTIME_DIR=", "TMPDIR="};
  Variables variables;
  for (; *environment != nullptr; ++environment) {
    const std::string_view line = *environment;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    if (!std::ranges::any_of(kBeginnings, [&](auto begin) { return line.starts_with(begin); })) {
      continue;
    }
    variables.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return variables;
}

SystemFacts collect_system(const CollectOptions& options) {
  SystemFacts facts;
  utsname name{};
  if (uname(&name) == 0) {  // its nodename is nobody's business
    facts.kernel = std::string(name.sysname) + " " + name.release;
    facts.machine = name.machine;
  }
  const std::string release = read_small(options.root + "/etc/os-release").value_or("");
  facts.os = line_of(release, "PRETTY_NAME");
  if (facts.os.empty()) facts.os = "an unnamed system";
  facts.libc = std::string("glibc ") + gnu_get_libc_version();
  facts.container = container_in(options.root);
  facts.cpus = std::thread::hardware_concurrency();
  facts.memory = {static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                  static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))};
  return facts;
}

EnvironmentFacts collect_environment(const Variables& variables) {
  EnvironmentFacts facts{.variables = variables, .missing_preloads = {}, .plugs = {}};
  const std::string library = locate_library(named_library(process_environment())).value;
  if (!library.empty()) facts.plugs = plugs_beside(library);
  const auto pipe = variables.find("CUDA_MPS_PIPE_DIRECTORY");
  facts.has_mps_pipe = exists(pipe != variables.end() ? pipe->second : "/tmp/nvidia-mps");
  const auto preload = variables.find("LD_PRELOAD");
  if (preload == variables.end()) return facts;
  std::string_view rest = preload->second;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(": "), rest.size());
    const std::string path(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    // A name without a slash is looked up by the loader.
    if (path.find('/') != std::string::npos && !exists(path))
      facts.missing_preloads.push_back(path);
  }
  return facts;
}

}  // namespace weir::cli::doctor
