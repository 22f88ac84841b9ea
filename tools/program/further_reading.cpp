#include "tools/program/further_reading.hpp"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

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

bool has_manual(const std::string& name, const fs::path& folder) {
  return std::ranges::any_of(kShares, [&](const char* share) {
    const fs::path page = folder / share / "man/man1" / (name + ".1");
    return is_there(page) || is_there(page.string() + ".gz");
  });
}

}  // namespace

fs::path folder_of_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

FoundPage find_page(const std::string& page, const fs::path& folder) {
  for (const char* const share : kShares) {
    fs::path file = (folder / share / "doc/weir" / page).lexically_normal();
    if (is_there(file)) return {std::move(file), false};
  }
  for (fs::path tree = folder; tree.has_relative_path(); tree = tree.parent_path()) {
    // Another project may have pages of our names.
    if (is_there(tree / "tools/weir/CMakeLists.txt") && is_there(tree / page)) {
      return {tree / page, true};
    }
  }
  return {};
}

std::string further_reading(const CommandText& command, const fs::path& folder) {
  if (command.page.empty()) return "";
  const std::string manual = manual_name(command);
  std::string text = has_manual(manual, folder) ? "man " + manual : "";
  const FoundPage page = find_page(command.page, folder);
  if (page.file.empty()) return text;
  return text.append(text.empty() ? "" : ", ")
      .append(page.in_source_tree ? command.page + " in the source tree" : page.file.string());
}

}  // namespace weir
