#include "tools/program/report_table.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "tools/program/printable.hpp"
#include "tools/program/table.hpp"
#include "tools/program/units.hpp"

namespace weir {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastText = 12;  ///< long text is not cut shorter

/// Returns the lines of a text that is broken at spaces.
std::vector<std::string> lines_of(std::string_view text, std::size_t first, std::size_t others) {
  std::vector<std::string> lines(1);
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t width = columns_of(word);
    const std::size_t room = lines.size() == 1 ? first : others;
    if (used != 0 && used + 1 + width > room) {
      lines.emplace_back();
      used = 0;
    }
    if (used != 0) lines.back() += ' ';
    lines.back() += word;
    used += width + (used != 0 ? 1 : 0);
  }
  return lines;
}

std::string cut(const std::string& text, std::size_t width) {
  if (columns_of(text) <= width) return text;
  std::string shorter = fitted(text, width - 3, Align::kLeft);
  shorter.erase(shorter.find_last_not_of(' ') + 1);
  return shorter + "...";
}

std::size_t width_of(const std::vector<std::string>& cells, const std::string& heading) {
  std::size_t width = columns_of(heading);
  for (const std::string& cell : cells) width = std::max(width, columns_of(cell));
  return width;
}

std::size_t sum_of(std::span<const std::size_t> widths) {
  return std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t indent, std::size_t most) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  std::string result;
  std::size_t before = begin;
  for (const std::string& line : lines_of(text.substr(begin), most - std::min(begin, most - 1),
                                          most - std::min(indent, most - 1))) {
    result += std::string(before, ' ') + line + "\n";
    before = indent;
  }
  return result;
}

std::string format_facts(const std::vector<Fact>& facts, std::size_t most) {
  std::size_t width = 0;
  for (const Fact& fact : facts) width = std::max(width, columns_of(fact.label));
  std::string text;
  for (const Fact& fact : facts) {
    const std::size_t begin = width + kGap;
    text += fitted(fact.label, begin, Align::kLeft);
    const std::size_t room = most > begin + kLeastText ? most - begin : kLeastText;
    bool first = true;
    for (const std::string& line : lines_of(fact.value, room, room)) {
      text += (first ? "" : std::string(begin, ' ')) + line + "\n";
      first = false;
    }
  }
  return text;
}

void ReportTable::add(Column column) { columns_.push_back(std::move(column)); }

ReportTable& ReportTable::words(Name name, std::vector<std::string> cells, Long text) {
  add({.name = std::move(name), .cells = std::move(cells), .text = text});
  return *this;
}

ReportTable& ReportTable::numbers(Name name, std::vector<std::string> cells) {
  add({.name = std::move(name), .cells = std::move(cells), .right = true});
  return *this;
}

ReportTable& ReportTable::bytes(Name name, const std::vector<std::optional<Bytes>>& cells) {
  UnitColumn column = in_one_unit(cells);
  if (!column.unit.empty()) name.heading += " " + column.unit;
  return numbers(std::move(name), std::move(column.cells));
}

ReportTable& ReportTable::rates(Name name, const std::vector<std::optional<Bytes>>& cells) {
  UnitColumn column = in_one_unit(cells);
  if (!column.unit.empty()) name.heading += " " + column.unit + "/s";
  return numbers(std::move(name), std::move(column.cells));
}

ReportTable& ReportTable::times(Name name, const std::vector<std::optional<double>>& nanoseconds) {
  UnitColumn column = times_in_one_unit(nanoseconds);
  if (!column.unit.empty()) name.heading += " " + column.unit;
  return numbers(std::move(name), std::move(column.cells));
}

std::vector<ReportTable::Column> ReportTable::shown(bool wide) const {
  std::vector<Column> columns;
  for (const Column& column : columns_) {
    if (wide || column.name.shown == Shown::kAlways) columns.push_back(column);
  }
  return columns;
}

std::string ReportTable::legend(bool wide, std::size_t most) const {
  // Stands for the spaces of a heading, which is not broken.
  constexpr char kJoined = '\x1f';
  std::string text;
  for (const Column& column : shown(wide)) {
    if (column.name.meaning.empty()) continue;
    std::string heading = column.name.heading;
    std::ranges::replace(heading, ' ', kJoined);
    text += (text.empty() ? "  " : "; ") + heading + ": " + column.name.meaning;
  }
  if (text.empty()) return text;
  text = wrapped(text + ".", 2, most);
  std::ranges::replace(text, kJoined, ' ');
  return text;
}

namespace {

/// Columns as they are laid out: the headings are the first cells.
struct Laid {
  std::vector<std::vector<std::string>> columns;
  std::vector<std::size_t> widths;
  std::vector<bool> right;
};

/// Narrows the columns with long text, the widest first, until the table fits or they are short.
/// The first column says what a row is about: it is narrowed last.
void narrow(std::vector<std::size_t>& widths, const std::vector<Long>& texts, std::size_t most) {
  const auto may_narrow = [&](std::size_t column) {
    return texts[column] != Long::kKeep && widths[column] > kLeastText;
  };
  while (sum_of(widths) > most) {
    std::size_t widest = 0;
    for (std::size_t c = 1; c < widths.size(); ++c) {
      if (may_narrow(c) && (widest == 0 || widths[c] > widths[widest])) widest = c;
    }
    if (!may_narrow(widest)) return;
    --widths[widest];
  }
}

/// Returns the lines of a row: one, or several if its last cell is wrapped.
std::string row_text(const Laid& laid, std::size_t row, std::span<const std::size_t> shown,
                     bool wraps) {
  std::string line;
  std::size_t begin = 0;
  for (const std::size_t c : shown) {
    if (c != shown.front()) {
      line += std::string(kGap, ' ');
      begin += kGap;
    }
    const std::string& cell = laid.columns[c][row];
    if (wraps && c == shown.back() && columns_of(cell) > laid.widths[c]) {
      std::string text;
      for (const std::string& part : lines_of(cell, laid.widths[c], laid.widths[c])) {
        text += (text.empty() ? line : std::string(begin, ' ')) +
                cut(part, std::max(laid.widths[c], kLeastText)) + "\n";
      }
      return text;
    }
    line += fitted(cell, std::max(laid.widths[c], columns_of(cell)),
                   laid.right[c] ? Align::kRight : Align::kLeft);
    begin += laid.widths[c];
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

/// Returns the columns of each table that is printed: one if all fit.
std::vector<std::vector<std::size_t>> folds(const Laid& laid, std::size_t most) {
  std::vector<std::vector<std::size_t>> all{{0}};
  std::size_t used = laid.widths[0];
  for (std::size_t c = 1; c < laid.widths.size(); ++c) {
    if (used + kGap + laid.widths[c] > most && all.back().size() > 1) {
      all.push_back({0});
      used = laid.widths[0];
    }
    all.back().push_back(c);
    used += kGap + laid.widths[c];
  }
  return all;
}

}  // namespace

std::string ReportTable::format(bool wide, std::size_t most) const {
  const std::string text = rows(wide, most);
  return text.empty() ? text : text + legend(wide, most);
}

std::string ReportTable::rows(bool wide, std::size_t most) const {
  const std::vector<Column> columns = shown(wide);
  if (columns.empty() || columns.front().cells.empty()) return {};
  Laid laid;
  std::vector<Long> texts;
  for (const Column& column : columns) {
    laid.widths.push_back(width_of(column.cells, column.name.heading));
    laid.right.push_back(column.right);
    texts.push_back(column.text);
  }
  if (!wide) narrow(laid.widths, texts, most);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::vector<std::string>& cells = laid.columns.emplace_back();
    cells.push_back(columns[c].name.heading);
    for (const std::string& cell : columns[c].cells) {
      cells.push_back(!wide && texts[c] == Long::kCut ? cut(cell, laid.widths[c]) : cell);
    }
  }
  std::string text;
  const bool wraps = !wide && texts.back() == Long::kWrap;
  const std::size_t room = wide ? SIZE_MAX : most;
  for (const std::vector<std::size_t>& fold : folds(laid, room)) {
    if (!text.empty()) text += "\n";
    for (std::size_t row = 0; row < laid.columns.front().size(); ++row) {
      text += row_text(laid, row, fold, wraps && fold.back() + 1 == columns.size());
    }
  }
  return text;
}

}  // namespace weir
