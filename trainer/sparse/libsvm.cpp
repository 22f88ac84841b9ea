#include "trainer/sparse/libsvm.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "allocator/base/error.hpp"
#include "tools/program/printable.hpp"
#include "trainer/data/input_file.hpp"

namespace weir {
namespace {

constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

const char* skip_blanks(const char* at, const char* end) {
  while (at != end && is_blank(*at)) ++at;
  return at;
}

/// Returns the limit that is in force: `given`, or if that is 0, `otherwise`.
std::uint64_t limit_of(std::size_t given, std::uint64_t otherwise) {
  return given == 0 ? otherwise : given;
}

class LibsvmParser {
 public:
  LibsvmParser(TextLines& lines, SparseWidths widths)
      : lines_(lines),
        widths_(widths),
        columns_(limit_of(widths.columns, kMostSparse)),
        classes_(limit_of(widths.classes, kMostSparse)) {}

  [[nodiscard]] SparseRows parse() {
    while (const auto line = lines_.next()) {
      begin_ = line->data();
      end_ = begin_ + line->size();
      if (lines_.number() == 1) refuse_packed(*line);
      if (lines_.number() == 1 && read_header()) continue;
      const char* const comment = std::find(begin_, end_, '#');
      const bool skipped = comment != end_ || declared_rows_ == 0;
      end_ = comment;
      if (skipped && skip_blanks(begin_, end_) == end_) continue;
      read_row();
    }
    finish();
    return std::move(rows_);
  }

 private:
  [[noreturn]] void refuse_at(const char* at, std::string_view expected) const {
    constexpr std::ptrdiff_t kMostShown = 24;
    const char* const stop = std::find_if(at, end_, is_blank);
    const std::string_view found(at, static_cast<std::size_t>(std::min(stop - at, kMostShown)));
    refuse_at(at, expected,
              at == end_ ? "the end of the line" : "'" + printable(found, false) + "'");
  }
  [[noreturn]] void refuse_at(const char* at, std::string_view expected,
                              std::string_view found) const {
    lines_.refuse(static_cast<std::size_t>(at - begin_) + 1, expected, found);
  }

  void refuse_packed(std::string_view line) const {
    using Kind = std::pair<std::string_view, std::string_view>;
    constexpr std::array kKinds{Kind{"\x1f\x8b", "gzip"}, Kind{"BZh", "bzip2"},
                                Kind{"\xfd"
                                     "7zXZ",
                                     "xz"}};
    for (const auto& [magic, name] : kKinds) {
      if (!line.starts_with(magic)) continue;
      refuse_at(begin_, "text (unpack it first)", std::string(name) + " data");
    }
  }

  /// Reads `ROWS FEATURES LABELS`. Returns false if the line is not of that form.
  bool read_header() {
    std::array<std::uint64_t, 3> numbers{};
    const char* at = begin_;
    for (std::uint64_t& number : numbers) {
      const auto [after, error] = std::from_chars(skip_blanks(at, end_), end_, number);
      if (error != std::errc() || (after != end_ && !is_blank(*after))) return false;
      at = after;
    }
    if (skip_blanks(at, end_) != end_) return false;
    const auto [rows, columns, classes] = numbers;
    if (std::ranges::min(numbers) == 0 || std::ranges::max(numbers) > kMostSparse) {
      refuse_at(
          begin_, "ROWS FEATURES LABELS, each from 1 to 4294967295",
          std::to_string(rows) + " " + std::to_string(columns) + " " + std::to_string(classes));
    }
    if (columns > columns_) refuse_width(columns_, "features", columns);
    if (classes > classes_) refuse_width(classes_, "labels", classes);
    declared_rows_ = rows;
    columns_ = columns;
    classes_ = classes;
    first_index_ = 0;
    if (widths_.columns == 0) widths_.columns = columns;
    if (widths_.classes == 0) widths_.classes = classes;
    return true;
  }
  [[noreturn]] void refuse_width(std::uint64_t most, const std::string& what,
                                 std::uint64_t found) const {
    refuse_at(begin_, "at most " + std::to_string(most) + " " + what, std::to_string(found));
  }

  void read_row() {
    if (const std::uint64_t most = limit_of(declared_rows_, kMostSparse); rows_.rows() == most) {
      refuse_at(begin_, "the end of the file after " + std::to_string(most) + " rows",
                "another row");
    }
    read_entries(read_labels());
    rows_.end_row();
  }

  /// Returns the end of the labels.
  const char* read_labels() {
    const char* const stop =
        std::find_if(begin_, end_, [](char c) { return is_blank(c) || c == ':'; });
    if (stop == begin_ || (stop != end_ && *stop == ':')) return begin_;
    for (const char* at = begin_;;) {
      std::uint32_t label = 0;
      const auto [after, error] = std::from_chars(at, stop, label);
      if (error != std::errc() || label >= classes_ || (after != stop && *after != ',')) {
        refuse_at(at, "a label from 0 to " + std::to_string(classes_ - 1));
      }
      rows_.labels.push_back(label);
      if (after == stop) break;
      at = after + 1;
    }
    const auto row = rows_.labels.begin() + static_cast<std::ptrdiff_t>(rows_.label_starts.back());
    std::sort(row, rows_.labels.end());
    if (std::adjacent_find(row, rows_.labels.end()) != rows_.labels.end()) {
      refuse_at(begin_, "each label once");
    }
    most_label_ = std::max<std::uint64_t>(most_label_, rows_.labels.back() + std::uint64_t{1});
    return stop;
  }

  void read_entries(const char* at) {
    // Counted as in the file: the least is the first that is allowed here.
    for (std::uint64_t least = first_index_;; at = read_entry(at, least)) {
      at = skip_blanks(at, end_);
      if (at == end_) {
        most_column_ = std::max(most_column_, least - first_index_);
        return;
      }
    }
  }

  /// Returns the end of the entry, and raises `least` above its index.
  const char* read_entry(const char* at, std::uint64_t& least) {
    std::uint64_t index = 0;
    const auto [colon, error] = std::from_chars(at, end_, index);
    if (error == std::errc::invalid_argument || colon == end_ || *colon != ':') {
      refuse_at(at, "INDEX:VALUE");
    }
    const std::uint64_t last = columns_ - 1 + first_index_;
    if (error != std::errc() || index > last || index < first_index_) {
      refuse_at(at,
                "an index from " + std::to_string(first_index_) + " to " + std::to_string(last));
    }
    if (index < least) {
      refuse_at(at, "an index above " + std::to_string(least - 1) + ", the one before it");
    }
    float value = 0;
    const auto [after, value_error] = std::from_chars(colon + 1, end_, value);
    if (value_error != std::errc() || !std::isfinite(value) ||
        (after != end_ && !is_blank(*after))) {
      refuse_at(colon + 1, "a finite number that float32 can hold");
    }
    rows_.indices.push_back(static_cast<std::uint32_t>(index - first_index_));
    rows_.values.push_back(value);
    least = index + 1;
    return after;
  }

  void finish() {
    begin_ = end_ = nullptr;
    if (rows_.rows() < std::max<std::uint64_t>(declared_rows_, 1)) {
      refuse_at(end_,
                declared_rows_ == 0
                    ? "at least one row"
                    : std::to_string(declared_rows_) + " rows, as the first line says",
                "the end of the file after " + std::to_string(rows_.rows()));
    }
    if (widths_.columns == 0) widths_.columns = most_column_;
    if (widths_.classes == 0) widths_.classes = most_label_;
    if (widths_.columns == 0) refuse_at(end_, "at least one entry in the file", "none");
    if (widths_.classes == 0) refuse_at(end_, "at least one label in the file", "none");
    rows_.columns = widths_.columns;
    rows_.classes = widths_.classes;
  }

  TextLines& lines_;
  SparseWidths widths_;
  std::uint64_t columns_;  ///< the most that are allowed
  std::uint64_t classes_;
  std::uint64_t declared_rows_ = 0;  ///< 0: the file does not say
  std::uint64_t first_index_ = 1;
  std::uint64_t most_column_ = 0;  ///< columns and classes that the rows so far need
  std::uint64_t most_label_ = 0;
  const char* begin_ = nullptr;  ///< of the line
  const char* end_ = nullptr;
  SparseRows rows_;
};

template <typename T>
void append_number(T value, std::string& text) {
  std::array<char, 24> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  text.append(digits.data(), end);
}

}  // namespace

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

SparseRows parse_libsvm(TextLines& lines, SparseWidths widths) {
  return LibsvmParser(lines, widths).parse();
}

SparseRows read_libsvm(const std::string& option, const std::string& path, SparseWidths widths) {
  const InputFile file(option, path);
  std::size_t done = 0;
  TextLines lines(option, path, [&](std::span<char> to) {
    const std::size_t count = std::min(to.size(), file.size() - done);
    file.read_at(done, std::as_writable_bytes(to.first(count)));
    done += count;
    return count;
  });
  return parse_libsvm(lines, widths);
}

void append_libsvm(const SparseRows& rows, std::size_t row, std::string& text) {
  const std::uint64_t first = rows.label_starts[row];
  for (std::uint64_t i = first; i < rows.label_starts[row + 1]; ++i) {
    if (i != first) text += ',';
    append_number(rows.labels[i], text);
  }
  for (std::uint64_t i = rows.starts[row]; i < rows.starts[row + 1]; ++i) {
    text += ' ';
    append_number(rows.indices[i], text);
    text += ':';
    append_number(rows.values[i], text);
  }
  text += '\n';
}

}  // namespace weir
