#include "tools/program/further_reading.hpp"

#include <algorithm>
#include <array>
#include <system_error>

#include "tools/program/is_there.hpp"

namespace weir {
namespace {

namespace fs = std::filesystem;

// From the folder of the programs to share/: as installed, and in the Python package of a wheel,
// whose share/ is the environment's (ENVIRONMENT/lib/python3/site-packages/weir/bin).
constexpr std::array kShares{WEIR_DATA_FROM_BINDIR, "../../../../../share"};

/// Returns `weir-timeline` for `weir timeline record`: subcommands are on the page of their
/// command.
std::string manual_name(const CommandText& command) {
  const std::size_t second = command.name.find(' ');
  if (second == std::string::npos) return command.name;
  std::string name = command.name.substr(0, command.name.find(' ', second + 1));
  name[second] = '-';
  return name;
}

std::string installed(const CommandText& command, const fs::path& share) {
  std::string text;
  const std::string manual = manual_name(command);
  const fs::path page = share / "man/man1" / (manual + ".1");
  if (is_there(page) || is_there(page.string() + ".gz")) text = "man " + manual;
  const fs::path document = share / "doc/weir" / command.page;
  if (is_there(document)) text += (text.empty() ? "" : ", ") + document.string();
  return text;
}

}  // namespace

fs::path folder_of_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

std::string further_reading(const CommandText& command, const fs::path& folder) {
  if (command.page.empty()) return "";
  for (const char* const share : kShares) {
    std::string text = installed(command, (folder / share).lexically_normal());
    if (!text.empty()) return text;
  }
  for (fs::path tree = folder; tree.has_relative_path(); tree = tree.parent_path()) {
    if (is_there(tree / "CMakeLists.txt") && is_there(tree / command.page)) {
      return command.page + " in the source tree";
    }
  }
  return "";
}

}  // namespace weir
