#include "tools/timeline/live/folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
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

}  // namespace weir::timeline
