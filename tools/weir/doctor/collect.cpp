// All groups of facts, each on its own, and those that files and limits of this process tell.

#include "tools/weir/doctor/collect.hpp"

#include <gnu/libc-version.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>

#include "tools/preload/torch/plug_file.hpp"
#include "tools/program/further_reading.hpp"
#include "tools/program/is_there.hpp"
#include "tools/program/split.hpp"

namespace weir::cli::doctor {
namespace {

namespace fs = std::filesystem;

/// Throws std::system_error if this process may not open as many more files as the groups open at a
/// time. A reader would take what it cannot open for missing.
void require_files() {
  constexpr int kMost = 8;
  std::vector<int> open;
  int error = 0;
  for (int i = 0; i < kMost && error == 0; ++i) {
    const int file = dup(STDERR_FILENO);
    error = file < 0 ? errno : 0;
    if (file >= 0) open.push_back(file);
  }
  for (const int file : open) close(file);
  if (error != EMFILE && error != ENFILE) return;
  throw std::system_error(error, std::generic_category(),
                          "weir doctor takes " + std::to_string(kMost) + " more open files, and " +
                              std::to_string(open.size()) + " may be opened (ulimit -n)");
}

/// Returns the name in a file such as /etc/os-release.
std::string system_in(const std::string& release) {
  constexpr std::string_view kName = "PRETTY_NAME=";
  for (std::string_view line : split(release)) {
    if (!line.starts_with(kName)) continue;
    std::string name(line.substr(kName.size()));
    std::erase(name, '"');
    return name;
  }
  return "an unnamed system";
}

/// A file that only containers of a kind have.
struct ContainerMark {
  const char* path;
  const char* kind;
};
constexpr std::array kContainers{ContainerMark{"/.dockerenv", "Docker"},
                                 ContainerMark{"/run/.containerenv", "Podman"},
                                 ContainerMark{"/run/systemd/container", "of systemd's kinds"},
                                 ContainerMark{"/var/run/secrets/kubernetes.io", "Kubernetes"},
                                 ContainerMark{"/.singularity.d", "Apptainer"}};

Limit limit_of(rlim_t value) {
  return value == RLIM_INFINITY ? Limit{} : Limit{static_cast<std::uint64_t>(value)};
}

}  // namespace

std::optional<std::string> read_small(const std::string& path) {
  constexpr std::size_t kMost = 65536;
  return preload::read_beginning(path, kMost);
}

std::string last_line(const std::string& text) {
  constexpr std::string_view kBlanks = " \t\r";
  std::string_view last;
  for (const std::string_view line : split(text, "\n")) {
    const std::size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) continue;
    last = line.substr(begin, line.find_last_not_of(kBlanks) + 1 - begin);
  }
  return std::string(last);
}

Variables collect_variables(const char* const* environment) {
  constexpr std::array<std::string_view, 8> kBeginnings{
      "WEIR_", "MXNET_", "PYTORCH_", "XLA_", "TF_", "CUDA_", "NVTX_", "LD_PRELOAD="};
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
  (void)uname(&name);  // its nodename is nobody's business
  facts.name = system_in(read_small(options.root + "/etc/os-release").value_or("")) + ", " +
               name.sysname + " " + name.release + ", glibc " + gnu_get_libc_version() + ", " +
               name.machine;
  for (const ContainerMark& mark : kContainers) {
    if (facts.container.empty() && is_there(options.root + mark.path)) facts.container = mark.kind;
  }
  facts.cpus = std::thread::hardware_concurrency();
  facts.memory = {static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                  static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))};
  return facts;
}

LimitsFacts collect_limits(const CollectOptions& options) {
  LimitsFacts facts;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    facts.open_files = limit_of(limit.rlim_cur);
    facts.open_files_at_most = limit_of(limit.rlim_max);
  }
  struct statvfs mounted {};
  const std::string folder = options.root + "/dev/shm";
  if (statvfs(folder.c_str(), &mounted) == 0) {
    facts.shared_memory = Bytes{std::uint64_t{mounted.f_blocks} * mounted.f_frsize};
    facts.shared_memory_writable = access(folder.c_str(), W_OK | X_OK) == 0;
  }
  return facts;
}

std::string find_pages(const std::string& program) {
  return find_page("docs/doctor.md", fs::path(program).parent_path()).file.parent_path().string();
}

Facts collect(const CollectOptions& options) {
  require_files();
  Facts facts;
  facts.pages = find_pages((folder_of_program() / "weir").string());
  facts.system = collect_system(options);
  facts.library = collect_library();
  const std::string library = facts.library.problem.empty() ? facts.library.path : "";
  facts.python = collect_python(options, library);
  facts.driver = collect_driver(options, facts.python.runtimes);
  facts.variables = collect_variables(environ);
  facts.limits = collect_limits(options);
  return facts;
}

}  // namespace weir::cli::doctor
