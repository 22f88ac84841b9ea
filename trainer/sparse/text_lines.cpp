#include "trainer/sparse/text_lines.hpp"

#include <algorithm>
#include <utility>

#include "allocator/base/error.hpp"

namespace weir {

TextLines::TextLines(std::string option, std::string path, ReadBytes read)
    : option_(std::move(option)), path_(std::move(path)), read_(std::move(read)), buffer_(kBlock) {}

std::optional<std::string_view> TextLines::next() {
  ++number_;
  for (std::size_t searched = 0;;) {
    const std::string_view rest(buffer_.data() + begin_, end_ - begin_);
    const std::size_t line_break = rest.find('\n', searched);
    if (line_break != std::string_view::npos) {
      begin_ += line_break + 1;
      const std::string_view line = rest.substr(0, line_break);
      return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
    }
    searched = rest.size();
    if (searched > kLongestLine) refuse(kLongestLine, "a line of at most 64 MiB", "a longer one");
    if (fill()) continue;
    if (searched == 0) return std::nullopt;
    refuse(searched + 1, "a line break (the file may be cut)", "the end of the file");
  }
}

bool TextLines::fill() {
  std::copy(buffer_.data() + begin_, buffer_.data() + end_, buffer_.data());
  end_ -= std::exchange(begin_, 0);
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  const std::size_t count = read_(std::span(buffer_).subspan(end_));
  end_ += count;
  return count != 0;
}

void TextLines::refuse(std::size_t column, std::string_view expected,
                       std::string_view found) const {
  throw UsageError(option_ + ": " + path_ + ": line " + std::to_string(number_) + ", column " +
                   std::to_string(column) + ": expected " + std::string(expected) + ", found " +
                   std::string(found));
}

}  // namespace weir
