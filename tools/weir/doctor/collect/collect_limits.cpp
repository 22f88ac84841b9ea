// Limits of this process and of the system, and the folders that Weir writes to.

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "allocator/base/error.hpp"
#include "tools/timeline/live/folder.hpp"
#include "tools/weir/doctor/collect/bounded.hpp"
#include "tools/weir/doctor/collect/collect.hpp"

namespace weir::cli::doctor {
namespace {

namespace fs = std::filesystem;

std::string message_of(int error) { return std::generic_category().message(error); }

/// Reads a file that holds a number; nothing if it holds something else, such as `max`.
std::optional<std::uint64_t> number_in(const std::string& path) {
  const auto text = read_small(path);
  std::uint64_t number = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  return error == std::errc{} && end != text->data() ? std::optional(number) : std::nullopt;
}

std::optional<int> small_number_in(const std::string& path) {
  const auto number = number_in(path);
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

Limit limit_of(rlim_t value) {
  return value == RLIM_INFINITY ? Limit{} : Limit{static_cast<std::uint64_t>(value)};
}

void take_limits(LimitsFacts& facts) {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) facts.locked_memory = limit_of(limit.rlim_cur);
  if (getrlimit(RLIMIT_AS, &limit) == 0) facts.addresses = limit_of(limit.rlim_cur);
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0) facts.file_size = limit_of(limit.rlim_cur);
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    facts.open_files = limit_of(limit.rlim_cur);
    facts.open_files_at_most = limit_of(limit.rlim_max);
  }
}

/// Returns the part of the line of /proc/self/cgroup behind `begin`, a path.
std::string group_of(const std::string& groups, std::string_view begin) {
  for (std::size_t at = 0; at < groups.size();) {
    const std::size_t end = std::min(groups.find('\n', at), groups.size());
    const std::string_view line(groups.data() + at, end - at);
    at = end + 1;
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && line.substr(colon).starts_with(begin)) {
      return std::string(line.substr(colon + begin.size()));
    }
  }
  return {};
}

/// The least limit of a group and of those around it. A container may see its own group as the
/// root.
std::optional<std::uint64_t> least_limit(const fs::path& hierarchy, fs::path group,
                                         const char* file) {
  std::optional<std::uint64_t> least;
  for (;;) {
    const auto limit = number_in((hierarchy / group.relative_path() / file).string());
    if (limit && (!least || *limit < *least)) least = limit;
    if (!group.has_relative_path()) return least;
    group = group.parent_path();
  }
}

std::optional<Bytes> cgroup_memory_in(const std::string& root) {
  const std::string groups = read_small(root + "/proc/self/cgroup").value_or("");
  const fs::path mounted = root + "/sys/fs/cgroup";
  // Version 2 has one hierarchy, version 1 one for each resource.
  auto limit = least_limit(mounted, group_of(groups, "::"), "memory.max");
  if (!limit) {
    limit = least_limit(mounted / "memory", group_of(groups, ":memory:"), "memory.limit_in_bytes");
  }
  return limit ? std::optional(Bytes{*limit}) : std::nullopt;
}

/// Whether one process may take files out of another: Linux has the call, and no filter forbids it.
bool takes_files(std::chrono::milliseconds limit) {
  const Bounded ran = run_function(
      [] {
        const long self = syscall(SYS_pidfd_open, getpid(), 0);
        const long file = self < 0 ? -1 : syscall(SYS_pidfd_getfd, self, STDERR_FILENO, 0);
        return std::string(file < 0 ? "no" : "yes");
      },
      limit);
  return ran.out == "yes";
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
    std::error_code error;
    const bool was_there = fs::exists(folder.path, error);
    errno = 0;
    const timeline::OpenFolder opened = timeline::open_own(folder);
    const int why = errno;
    if (opened.is_open()) {
      facts.live_folder = folder.path;
      if (!was_there) (void)rmdir(folder.path.c_str());
      return;
    }
    facts.live_problem = folder.path + " (" + message_of(why) + ")";
  }
}

void take_temporary_folder(LimitsFacts& facts) {
  const char* const named = std::getenv("TMPDIR");
  facts.temporary = named != nullptr && *named != '\0' ? named : "/tmp";
  std::string folder = facts.temporary + "/weir-doctor.XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    facts.temporary_problem = message_of(errno);
    return;
  }
  (void)rmdir(folder.c_str());
}

void take_shared_memory(LimitsFacts& facts, const std::string& folder) {
  struct statvfs mounted {};
  if (statvfs(folder.c_str(), &mounted) != 0) return;
  facts.shared_memory = Bytes{std::uint64_t{mounted.f_blocks} * mounted.f_frsize};
  facts.shared_memory_writable = access(folder.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

LimitsFacts collect_limits(const CollectOptions& options) {
  const std::string& root = options.root;
  LimitsFacts facts;
  facts.max_mappings = number_in(root + "/proc/sys/vm/max_map_count");
  facts.overcommit = small_number_in(root + "/proc/sys/vm/overcommit_memory");
  facts.ptrace_scope = small_number_in(root + "/proc/sys/kernel/yama/ptrace_scope");
  facts.cgroup_memory = cgroup_memory_in(root);
  facts.takes_files = takes_files(options.library_limit);
  take_limits(facts);
  take_shared_memory(facts, root + "/dev/shm");
  take_live_folder(facts);
  take_temporary_folder(facts);
  return facts;
}

}  // namespace weir::cli::doctor
