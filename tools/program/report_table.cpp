#include "tools/program/report_table.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "allocator/base/utf8.hpp"
#include "tools/program/printable.hpp"
#include "tools/program/table.hpp"
#include "tools/program/units.hpp"

namespace weir {
namespace {

std::size_t columns_of_reports = kMostColumns;

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

/// Keeps the end of a text.
std::string tail(std::string_view text, std::size_t width) {
  if (columns_of(text) <= width) return std::string(text);
  while (columns_of(text) + 3 > width) {
    // A character of several bytes goes as a whole.
    do text.remove_prefix(1);
    while (!text.empty() && continues_character(text.front()));
  }
  return "..." + std::string(text);
}

std::string fit(const std::string& text, std::size_t width, Long how) {
  if (how == Long::kCut) return cut(text, width);
  return how == Long::kTail ? tail(text, width) : text;
}

std::size_t width_of(const std::vector<std::string>& cells, const std::string& heading) {
  std::size_t width = columns_of(heading);
  for (const std::string& cell : cells) width = std::max(width, columns_of(cell));
  return width;
}

std::vector<std::optional<double>> counts(const std::vector<std::optional<Bytes>>& sizes) {
  std::vector<std::optional<double>> values;
  values.reserve(sizes.size());
  for (const std::optional<Bytes>& size : sizes) {
    values.push_back(size ? std::optional(static_cast<double>(size->count)) : std::nullopt);
  }
  return values;
}

/// Returns whether no row has anything in this column.
bool is_empty(const std::vector<std::string>& cells) {
  return std::ranges::all_of(cells, [](const auto& cell) { return cell.empty() || cell == "-"; });
}

std::size_t sum_of(std::span<const std::size_t> widths) {
  return std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
}

}  // namespace

std::size_t report_columns() noexcept { return columns_of_reports; }

void fit_reports_to(std::size_t columns) noexcept {
  columns_of_reports = std::clamp(columns, kLeastColumns, kMostColumns);
}

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

ReportTable& ReportTable::add(Column column) {
  columns_.push_back(std::move(column));
  return *this;
}

ReportTable& ReportTable::words(Name name, std::vector<std::string> cells, Long text) {
  return add({.name = std::move(name), .cells = std::move(cells), .text = text});
}

ReportTable& ReportTable::numbers(Name name, std::vector<std::string> cells) {
  return add({.name = std::move(name), .cells = std::move(cells), .right = true});
}

ReportTable& ReportTable::bytes(Name name, const std::vector<std::optional<Bytes>>& cells) {
  return add(
      {.name = std::move(name), .right = true, .kind = Kind::kBytes, .values = counts(cells)});
}

ReportTable& ReportTable::rates(Name name, const std::vector<std::optional<Bytes>>& cells) {
  return add(
      {.name = std::move(name), .right = true, .kind = Kind::kRate, .values = counts(cells)});
}

ReportTable& ReportTable::times(Name name, const std::vector<std::optional<double>>& nanoseconds) {
  return add({.name = std::move(name), .right = true, .kind = Kind::kTime, .values = nanoseconds});
}

void ReportTable::use_same_units(std::span<ReportTable> tables) {
  for (ReportTable& table : tables) {
    table.compared_.clear();
    for (const ReportTable& other : tables) {
      if (&other == &table) continue;
      table.compared_.insert(table.compared_.end(), other.columns_.begin(), other.columns_.end());
    }
  }
}

/// Writes the cells of the columns of one kind, and their unit into their headings.
void ReportTable::write(std::vector<Column>& columns, Kind kind, bool wide) const {
  std::vector<std::string> headings;
  std::vector<std::vector<std::optional<double>>> values;
  const auto gather = [&](const Column& column) {
    if (column.kind != kind || (!wide && column.name.shown == Shown::kWide)) return;
    const auto found = std::ranges::find(headings, column.name.heading);
    const auto at = static_cast<std::size_t>(found - headings.begin());
    if (found == headings.end()) {
      headings.push_back(column.name.heading);
      values.emplace_back();
    }
    values[at].insert(values[at].end(), column.values.begin(), column.values.end());
  };
  for (const Column& column : columns) gather(column);
  for (const Column& column : compared_) gather(column);
  const std::vector<Scale> scales =
      scales_of(kind == Kind::kTime ? Measure::kNanoseconds : Measure::kBytes, values);
  for (Column& column : columns) {
    if (column.kind != kind) continue;
    const auto found = std::ranges::find(headings, column.name.heading);
    const Scale& scale = scales.at(static_cast<std::size_t>(found - headings.begin()));
    for (const auto& value : column.values) column.cells.push_back(scale.format(value));
    if (scale.unit.empty()) continue;
    column.name.heading += " " + scale.unit + (kind == Kind::kRate ? "/s" : "");
  }
}

std::vector<ReportTable::Column> ReportTable::shown(bool wide) const {
  std::vector<Column> columns;
  for (const Column& column : columns_) {
    if (wide || column.name.shown == Shown::kAlways) columns.push_back(column);
  }
  for (const Kind kind : {Kind::kBytes, Kind::kRate, Kind::kTime}) write(columns, kind, wide);
  const Column* first = columns.empty() ? nullptr : &columns.front();
  std::vector<Column> kept;
  for (Column& column : columns) {
    const bool kept_empty = &column == first || column.name.meaning.empty();
    if (kept_empty || !is_empty(column.cells)) kept.push_back(std::move(column));
  }
  return kept;
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

/// The columns of each table that is printed.
using Folds = std::vector<std::vector<std::size_t>>;

/// Fills each table before the next is begun.
Folds filled(const Laid& laid, std::size_t most) {
  Folds all{{0}};
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

/// Returns as few tables as fit, of about the same width: one if all columns fit.
Folds folds(const Laid& laid, std::size_t most) {
  Folds best = filled(laid, most);
  if (best.size() == 1) return best;
  for (std::size_t narrower = most - 1; narrower > 0; --narrower) {
    Folds other = filled(laid, narrower);
    if (other.size() > best.size()) break;
    best = std::move(other);
  }
  return best;
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
      cells.push_back(wide ? cell : fit(cell, laid.widths[c], texts[c]));
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
