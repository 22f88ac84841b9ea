#include "tools/timeline/live/folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace weir::timeline {
namespace {

constexpr std::string_view kSharedMemory = "/dev/shm";
constexpr std::string_view kRuntimes = "/run/user";

PublishSetting parse_publish(std::string_view name, std::string_view text) {
  if (text == "0") return {.on = false, .folder = {}};
  if (text == "1") return {};
  if (text.starts_with('/')) return {.on = true, .folder = std::string(text)};
  refuse(name, text, "0, 1, or the absolute path of a folder");
}

std::string parse_text(std::string_view /*name*/, std::string_view text) {
  return std::string(text);
}

LiveFolder in_runtime(const std::string& runtime) { return {runtime + "/weir", runtime}; }

/// Returns the names of the folder's entries; none if it cannot be read.
std::vector<std::string> entries_of(std::string_view path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  return names;
}

}  // namespace

Setting<PublishSetting> publish_setting(const Environment& environment) {
  auto setting = Setting<PublishSetting>::by_default({});
  read_setting(setting, environment, {"WEIR_PUBLISH"}, parse_publish);
  return setting;
}

std::vector<LiveFolder> live_folders(const PublishSetting& setting, const Environment& environment,
                                     std::uint32_t uid) {
  if (!setting.folder.empty()) return {{setting.folder, {}}};
  std::vector<LiveFolder> folders;
  Setting<std::string> runtime;
  read_setting(runtime, environment, {"XDG_RUNTIME_DIR"}, parse_text);
  if (runtime.value.starts_with('/')) folders.push_back(in_runtime(runtime.value));
  const std::string user = std::to_string(uid);
  const std::string usual = std::string(kRuntimes) + "/" + user;
  if (runtime.value != usual) folders.push_back(in_runtime(usual));
  folders.push_back({std::string(kSharedMemory) + "/weir-" + user, {}});
  return folders;
}

std::vector<LiveFolder> live_folders_of_all() {
  std::vector<LiveFolder> folders;
  for (const std::string& user : entries_of(kRuntimes)) {
    folders.push_back(in_runtime(std::string(kRuntimes) + "/" + user));
  }
  for (const std::string& name : entries_of(kSharedMemory)) {
    if (name.starts_with("weir-")) {
      folders.push_back({std::string(kSharedMemory) + "/" + name, {}});
    }
  }
  return folders;
}

OpenFolder::~OpenFolder() {
  if (descriptor_ >= 0) close(descriptor_);
}

OpenFolder::OpenFolder(OpenFolder&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

OpenFolder open_own(const LiveFolder& folder) noexcept {
  struct stat found {};
  if (!folder.parent.empty()) {
    if (stat(folder.parent.c_str(), &found) != 0) return OpenFolder(-1);
    if (found.st_uid != geteuid()) {
      errno = EPERM;
      return OpenFolder(-1);
    }
  }
  if (mkdir(folder.path.c_str(), 0700) != 0 && errno != EEXIST) return OpenFolder(-1);
  OpenFolder own = open_to_read(folder);
  if (!own.is_open() || fstat(own.descriptor(), &found) != 0) return OpenFolder(-1);
  if (found.st_uid != geteuid() || (found.st_mode & 077U) != 0) {
    errno = EPERM;
    return OpenFolder(-1);
  }
  return own;
}

OpenFolder open_to_read(const LiveFolder& folder) noexcept {
  return OpenFolder(open(folder.path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

namespace {

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Field 22 of /proc/PID/stat. The second field is a name with arbitrary characters, so fields are
/// counted from its end.
std::optional<std::uint64_t> started_of(const std::string& stat) {
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int number = 3; number < 22; ++number) fields >> field;
  std::uint64_t started = 0;
  if (!(fields >> started)) return std::nullopt;
  return started;
}

std::optional<std::uint32_t> effective_uid_of(const std::string& status) {
  const std::size_t line = status.find("\nUid:");
  if (line == std::string::npos) return std::nullopt;
  std::istringstream fields(status.substr(line + 5));
  std::uint32_t real = 0;
  std::uint32_t effective = 0;
  if (!(fields >> real >> effective)) return std::nullopt;
  return effective;
}

}  // namespace

std::optional<ProcessState> find_process(std::uint32_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto started = started_of(contents_of(folder + "/stat"));
  const auto uid = effective_uid_of(contents_of(folder + "/status"));
  if (!started || !uid) return std::nullopt;
  return ProcessState{*started, *uid};
}

// The line has a number for each namespace, the process's own last. A kernel without namespaces has
// no such line.
std::optional<std::uint32_t> own_number(std::uint32_t pid) {
  const std::string status = contents_of("/proc/" + std::to_string(pid) + "/status");
  if (status.empty()) return std::nullopt;
  constexpr std::string_view kLine = "\nNSpid:";
  const std::size_t line = status.find(kLine);
  if (line == std::string::npos) return pid;
  const std::size_t first = line + kLine.size();
  std::istringstream numbers(status.substr(first, status.find('\n', first) - first));
  std::optional<std::uint32_t> last;
  for (std::uint32_t number = 0; numbers >> number;) last = number;
  return last;
}

bool is_stopped(std::uint32_t pid) {
  const std::string stat = contents_of("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = stat.rfind(')');
  const bool known = name_end != std::string::npos && name_end + 2 < stat.size();
  const char state = known ? stat[name_end + 2] : ' ';
  return state == 'T' || state == 't';
}

std::optional<std::string> variable_of(std::uint32_t pid, const std::string& name) {
  const std::string all = contents_of("/proc/" + std::to_string(pid) + "/environ");
  for (std::size_t at = 0; at < all.size(); at = all.find('\0', at) + 1) {
    const std::string each = all.substr(at, all.find('\0', at) - at);
    if (each.starts_with(name + "=")) return each.substr(name.size() + 1);
    if (all.find('\0', at) == std::string::npos) break;
  }
  return std::nullopt;
}

std::uint64_t pid_namespace() noexcept {
  struct stat found {};
  return stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

std::string command_line() {
  std::string words = contents_of("/proc/self/cmdline");
  while (!words.empty() && words.back() == '\0') words.pop_back();
  const std::size_t program_end = std::min(words.find('\0'), words.size());
  const std::size_t folder_end = words.rfind('/', program_end);
  if (folder_end != std::string::npos && folder_end < program_end) words.erase(0, folder_end + 1);
  std::ranges::replace(words, '\0', ' ');
  return words;
}

}  // namespace weir::timeline
