#include "tools/preload/torch/torch_version.hpp"

#include <algorithm>
#include <charconv>

namespace weir::preload {
namespace {

constexpr std::string_view kName = "__version__";
/// A longer one is no version, and would make a line nobody reads.
constexpr std::size_t kLongest = 80;

/// Removes a number from the front of `text`. Nothing if there is none of up to four digits.
std::optional<int> take_number(std::string_view& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > 4) return std::nullopt;
  int number = 0;
  (void)std::from_chars(text.data(), text.data() + digits, number);
  text.remove_prefix(digits);
  return number;
}

/// Whether what follows the minor number is of a release: `.0`, `.1rc2`, `.0.post1`, `.0+cu132`.
bool is_of_release(std::string_view rest) {
  while (rest.starts_with('.')) {
    rest.remove_prefix(1);
    if (rest.starts_with("post")) rest.remove_prefix(4);
    if (!take_number(rest)) return false;
  }
  if (rest.starts_with("rc")) {
    rest.remove_prefix(2);
    (void)take_number(rest);
  }
  return rest.empty() || rest.front() == '+';
}

/// Returns the text in quotes that `__version__` is set to on this line; empty if it is not.
std::string_view quoted(std::string_view line) {
  if (!line.starts_with(kName)) return {};
  line.remove_prefix(kName.size());
  // `__version__: str = '…'` is allowed too, a longer name is another.
  const std::size_t begin = line.find_first_of("'\"");
  if (line.find_first_of(" =:") != 0 || begin == std::string_view::npos) return {};
  if (line.substr(0, begin).find('=') == std::string_view::npos) return {};
  const std::size_t end = line.find(line[begin], begin + 1);
  if (end == std::string_view::npos) return {};
  return line.substr(begin + 1, end - begin - 1);
}

/// Whether it can stand in a message: letters, digits and what a version has between them.
bool is_plain(std::string_view text) {
  return text.size() <= kLongest &&
         text.find_first_not_of(
             "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+-_!") ==
             std::string_view::npos;
}

}  // namespace

std::optional<TorchVersion> parse_torch_version(std::string_view version_py) {
  while (!version_py.empty()) {
    const std::size_t end = version_py.find('\n');
    const std::string_view text = quoted(version_py.substr(0, end));
    version_py.remove_prefix(end == std::string_view::npos ? version_py.size() : end + 1);
    if (text.empty()) continue;
    std::string_view rest = text;
    const auto major = take_number(rest);
    if (!major || !rest.starts_with('.') || !is_plain(text)) return std::nullopt;
    rest.remove_prefix(1);
    const auto minor = take_number(rest);
    if (!minor) return std::nullopt;
    return TorchVersion{.major = *major,
                        .minor = *minor,
                        .is_release = is_of_release(rest),
                        .text = std::string(text)};
  }
  return std::nullopt;
}

std::string major_minor(const TorchVersion& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

}  // namespace weir::preload
