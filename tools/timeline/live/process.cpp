#include "tools/timeline/live/process.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace weir::timeline {
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
