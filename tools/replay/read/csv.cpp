#include "tools/replay/read/csv.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

#include "allocator/base/error.hpp"

namespace weir::replay {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

void split(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = line.find(',', begin);
    fields.push_back(trimmed(line.substr(begin, comma - begin)));
    if (comma == std::string_view::npos) return;
    begin = comma + 1;
  }
}

bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::uint64_t whole(std::string_view digits, int base, std::string_view text,
                    std::string_view what) {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
  if (error == std::errc{} && stop == end) return value;
  throw Malformed(std::string(what) + " is " + shown_text(text) + ": a whole " +
                  (base == 16 ? "hexadecimal " : "") + "number below 2^64 is expected");
}

}  // namespace

std::string shown_text(std::string_view text) {
  constexpr std::size_t kMost = 60;
  if (text.empty()) return "nothing";
  std::string shown(text.substr(0, kMost));
  std::ranges::replace_if(
      shown, [](char c) { return std::isprint(static_cast<unsigned char>(c)) == 0; }, '?');
  return "'" + shown + (text.size() > kMost ? "…'" : "'");
}

std::uint64_t number_in(std::string_view text, std::string_view what) {
  return whole(text, 10, text, what);
}

std::uint64_t hexadecimal_in(std::string_view text, std::string_view what) {
  if (text == "(nil)") return 0;
  const bool prefixed = text.starts_with("0x") || text.starts_with("0X");
  return whole(prefixed ? text.substr(2) : text, 16, text, what);
}

Csv::Csv(const Source& source) : source_(source) {
  if (next()) names_ = fields_;
}

std::optional<std::size_t> Csv::column(std::string_view name) const {
  const auto found = std::ranges::find_if(
      names_, [name](std::string_view known) { return same_word(known, name); });
  if (found == names_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names_.begin());
}

std::optional<std::size_t> Csv::column(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    if (const auto found = column(name)) return found;
  }
  return std::nullopt;
}

bool Csv::next() {
  const std::string_view text = source_.bytes;
  while (at_ < text.size()) {
    const std::size_t end = text.find('\n', at_);
    if (end == std::string_view::npos) return false;
    std::string_view line = text.substr(at_, end - at_);
    at_ = end + 1;
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = trimmed(line);
    if (line.empty() || line.starts_with('#')) continue;
    split(line, fields_);
    if (header_.empty()) header_ = line;
    return true;
  }
  return false;
}

std::string Csv::cut() const {
  if (at_ >= source_.bytes.size()) return source_.cut;
  return (source_.cut.empty() ? "" : source_.cut + ", and ") + std::string("line ") +
         std::to_string(line_ + 1) + " is incomplete: it does not end with a newline";
}

void Csv::check_count() const {
  if (fields_.size() == names_.size()) return;
  throw Malformed(std::to_string(fields_.size()) + " fields, and the header has " +
                  std::to_string(names_.size()));
}

void Csv::refuse(std::string_view what) const {
  throw UsageError(source_.name + ": line " + std::to_string(line_) + ": " + std::string(what));
}

}  // namespace weir::replay
