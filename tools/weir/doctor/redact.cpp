#include "tools/weir/doctor/redact.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace weir::cli::doctor {
namespace {

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

/// Whether a part of a path ends at `at`.
bool ends_at(std::string_view text, std::size_t at) {
  if (at == text.size() || !is_of_name(text[at])) return true;
  // A full stop ends the sentence.
  return text[at] == '.' && (at + 1 == text.size() || text[at + 1] == ' ');
}

/// The place where the path around `at` begins.
std::size_t path_begin(std::string_view text, std::size_t at) {
  while (at != 0 && (is_of_name(text[at - 1]) || text[at - 1] == '/' || text[at - 1] == '~')) --at;
  return at;
}

bool is_systems(std::string_view path) {
  constexpr std::array<std::string_view, 7> kFolders{"/usr/",  "/opt/", "/lib",  "/bin/",
                                                     "/sbin/", "/dev/", "/proc/"};
  return std::ranges::any_of(kFolders, [path](auto folder) { return path.starts_with(folder); });
}

void replace_home(std::string& text, std::string home) {
  while (home.size() > 1 && home.ends_with('/')) home.pop_back();
  if (home.size() < 2 || is_systems(home + "/")) return;  // "/" is everybody's
  for (std::size_t at = 0; (at = text.find(home, at)) != std::string::npos; ++at) {
    const bool begins = at == 0 || !is_of_name(text[at - 1]);
    if (begins && ends_at(text, at + home.size())) text.replace(at, home.size(), "~");
  }
}

void replace_folder(std::string& text, const std::string& name, std::string_view by) {
  if (name.empty()) return;
  const std::string folder = "/" + name;
  for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos; ++at) {
    const std::string_view path = std::string_view(text).substr(path_begin(text, at));
    if (!ends_at(text, at + folder.size()) || is_systems(path)) continue;
    text.replace(at + 1, name.size(), by);
  }
}

}  // namespace

std::string redacted(std::string_view text, const Private& whose) {
  std::string shown(text);
  for (const std::string& home : whose.homes) replace_home(shown, home);
  replace_folder(shown, whose.user, "USER");
  replace_folder(shown, whose.host, "HOST");
  return shown;
}

}  // namespace weir::cli::doctor
