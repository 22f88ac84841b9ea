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
#include <functional>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>

#include "allocator/base/error.hpp"
#include "tools/preload/torch/plug_file.hpp"
#include "tools/program/further_reading.hpp"
#include "tools/program/is_there.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/split.hpp"
#include "tools/timeline/live/folder.hpp"
#include "tools/timeline/recorder/settings.hpp"
#include "tools/weir/run/summary_file.hpp"

namespace weir::cli::doctor {
namespace {

namespace fs = std::filesystem;

/// How many more files a group opens at a time, if it reads files, or if it starts processes too.
constexpr int kReading = 1;
constexpr int kStarting = 8;

/// Throws std::system_error if this process may not open so many more files. A reader would take
/// what it cannot open for missing.
void require_files(int count) {
  std::vector<int> open;
  int error = 0;
  for (int i = 0; i < count && error == 0; ++i) {
    const int file = dup(STDERR_FILENO);
    error = file < 0 ? errno : 0;
    if (file >= 0) open.push_back(file);
  }
  for (const int file : open) close(file);
  if (error != EMFILE && error != ENFILE) return;
  throw std::system_error(error, std::generic_category(),
                          "that takes " + std::to_string(count) + " more open files, and " +
                              std::to_string(open.size()) + " may be opened");
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

/// Returns the file that this process would write; empty if that takes a rank (%r), which it has
/// only in a job.
std::string output_of(const std::string& name, const std::string& value) {
  if (name != "WEIR_TIMELINE") return with_process(value, static_cast<std::uint64_t>(getpid()));
  const bool takes_rank = value.find("%r") != std::string::npos;
  if (takes_rank && !timeline::find_rank(process_environment())) return {};
  return timeline::expand_name({value, name}, process_environment());
}

/// Returns why the file that the variable names cannot be written; empty if it can.
std::string problem_of_output(const std::string& name, const std::string& value) {
  try {
    const std::string file = output_of(name, value);
    if (!file.empty()) const OutputFile writable(name, file);
    return {};
  } catch (const UsageError& error) {
    return error.what();
  }
}

Limit limit_of(rlim_t value) {
  return value == RLIM_INFINITY ? Limit{} : Limit{static_cast<std::uint64_t>(value)};
}

/// Finds where a program would publish. Removes what it had to create.
void take_live_folder(LimitsFacts& facts) {
  const Environment environment = process_environment();
  const char* const value = environment("WEIR_PUBLISH");
  facts.publish_is_set = value != nullptr && *value != '\0';
  timeline::PublishSetting setting;
  try {
    setting = timeline::publish_setting(environment).value;
  } catch (const UsageError&) {
    facts.publish_is_wrong = true;  // the group `settings` says how
    return;
  }
  facts.publishes = setting.on;
  if (!setting.on) return;
  for (const timeline::LiveFolder& folder :
       timeline::live_folders(setting, environment, geteuid())) {
    const bool was_there = is_there(folder.path);
    errno = 0;
    const timeline::OpenFolder opened = timeline::open_own(folder);
    const int why = errno;
    if (opened.is_open()) {
      facts.live_folder = folder.path;
      if (!was_there) (void)rmdir(folder.path.c_str());
      return;
    }
    facts.live_problem = folder.path + " (" + std::generic_category().message(why) + ")";
  }
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

SettingsFacts collect_settings(const Variables& variables) {
  SettingsFacts facts{.variables = variables, .outputs = {}};
  for (const char* name : {"WEIR_ALLOC_LOG", "WEIR_SUMMARY", "WEIR_TIMELINE"}) {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) continue;
    std::string problem = problem_of_output(name, found->second);
    if (!problem.empty()) facts.outputs.emplace(name, std::move(problem));
  }
  return facts;
}

LimitsFacts collect_limits(const CollectOptions& options) {
  LimitsFacts facts;
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) facts.locked_memory = limit_of(limit.rlim_cur);
  if (getrlimit(RLIMIT_AS, &limit) == 0) facts.addresses = limit_of(limit.rlim_cur);
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
  take_live_folder(facts);
  return facts;
}

std::vector<std::string> missing_preloads(const Variables& variables) {
  std::vector<std::string> missing;
  const auto preload = variables.find("LD_PRELOAD");
  if (preload == variables.end()) return missing;
  for (const std::string_view path : split(preload->second, ": ")) {
    // A name without a slash is looked up by the loader.
    if (path.find('/') != std::string_view::npos && !is_there(path)) missing.emplace_back(path);
  }
  return missing;
}

std::string find_pages(const std::string& program) {
  return find_page("docs/doctor.md", fs::path(program).parent_path()).file.parent_path().string();
}

std::string remedy_for(const std::exception& error) {
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  const auto is = [system](std::errc code) { return system != nullptr && system->code() == code; };
  const std::string then = "; then weir doctor again";
  if (is(std::errc::too_many_files_open) || is(std::errc::too_many_files_open_in_system)) {
    return "ulimit -n 1024, or a shell that may open more files" + then;
  }
  if (is(std::errc::not_enough_memory) || dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return "ulimit -v unlimited, or a shell that may use more memory" + then;
  }
  if (is(std::errc::resource_unavailable_try_again)) {  // of the calls here only fork says it
    return "ulimit -u unlimited (processes), or end some" + then;
  }
  return "weir doctor again; if this stays, report it with this output";
}

Facts collect(const CollectOptions& options) {
  Facts facts;
  // The other groups are collected all the same.
  const auto attempt = [&facts](Group group, int files,
                                const std::function<void()>& collect_group) {
    try {
      require_files(files);
      collect_group();
    } catch (const std::exception& error) {
      facts.missed.push_back({.group = group, .why = error.what(), .remedy = remedy_for(error)});
    }
  };
  facts.pages = find_pages((folder_of_program() / "weir").string());
  attempt(Group::kSystem, kReading, [&] { facts.system = collect_system(options); });
  attempt(Group::kLibrary, kStarting, [&] { facts.library = collect_library(options); });
  const std::string library = facts.library.problem.empty() ? facts.library.path : "";
  attempt(Group::kPython, kStarting, [&] { facts.python = collect_python(options, library); });
  attempt(Group::kDriver, kStarting,
          [&] { facts.driver = collect_driver(options, facts.python.runtimes); });
  const Variables variables = collect_variables(environ);
  facts.settings.variables = variables;
  attempt(Group::kSettings, kReading, [&] { facts.settings = collect_settings(variables); });
  attempt(Group::kLimits, kReading, [&] { facts.limits = collect_limits(options); });
  attempt(Group::kEnvironment, kReading,
          [&] { facts.missing_preloads = missing_preloads(variables); });
  return facts;
}

}  // namespace weir::cli::doctor
