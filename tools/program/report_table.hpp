#pragma once

// Tables for people: columns in one unit each, no wider than the terminal, with a legend. Pure, but
// for the terminal's width, which a program sets once.

#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/bytes.hpp"

namespace weir {

/// The most columns of a table, unless it is asked to be wide.
inline constexpr std::size_t kMostColumns = 100;
/// Narrower terminals break lines.
inline constexpr std::size_t kLeastColumns = 60;

/// Returns the columns that a table fits: kMostColumns unless fit_reports_to was called.
[[nodiscard]] std::size_t report_columns() noexcept;
/// Sets them to those of a terminal, but no less than kLeastColumns and no more than kMostColumns.
/// Call it before threads are started.
void fit_reports_to(std::size_t columns) noexcept;

/// Whether a column is always there, or only in a wide table.
enum class Shown : std::uint8_t { kAlways, kWide };

/// What happens to long text in a table that would be too wide. A wide table keeps it.
enum class Long : std::uint8_t {
  kKeep,  ///< nothing: the other columns make room
  kCut,   ///< it is cut, and ends in `...`
  kTail,  ///< its end is kept behind `...`: for paths with a line
  kWrap,  ///< it goes on in the next line; for the last column only
};

/// A table of columns, each with its cells. All columns have the same number of cells. Its sizes
/// have one unit, and so have its rates and its times (see scales_of). A column that the legend
/// explains and in which no row has anything is left out.
class ReportTable {
 public:
  /// The heading of a column and its line in the legend.
  struct Name {
    std::string heading;
    std::string meaning;  ///< for the legend; empty: a line of the report says it
    Shown shown = Shown::kAlways;
  };

  /// Adds a left-aligned column of words.
  ReportTable& words(Name name, std::vector<std::string> cells, Long text = Long::kKeep);
  /// Adds a right-aligned column.
  ReportTable& numbers(Name name, std::vector<std::string> cells);
  /// Adds a column of sizes, whose unit ends the heading: `reserved MiB`.
  ReportTable& bytes(Name name, const std::vector<std::optional<Bytes>>& cells);
  /// Adds a column of bytes a second, whose unit ends the heading: `copied MiB/s`.
  ReportTable& rates(Name name, const std::vector<std::optional<Bytes>>& cells);
  /// Adds a column of times in nanoseconds, whose unit ends the heading: `waited ms`.
  ReportTable& times(Name name, const std::vector<std::optional<double>>& nanoseconds);

  /// Returns the table, and below it the legend: `heading: meaning; …`. If it is not `wide`,
  /// columns of wide tables are left out and no line has more than `most` columns: long text is cut
  /// or wrapped, in the first column last, then the columns are folded into tables under each
  /// other, which repeat the first column. Empty if there are no rows.
  [[nodiscard]] std::string format(bool wide, std::size_t most = report_columns()) const;
  /// Returns only the table: for several tables of the same columns.
  [[nodiscard]] std::string rows(bool wide, std::size_t most = report_columns()) const;
  /// Returns only the legend.
  [[nodiscard]] std::string legend(bool wide, std::size_t most = report_columns()) const;

  /// Gives tables of one report the same units, as if their columns were those of one table.
  /// Columns of the same heading have the same unit. Call it once the tables have their columns.
  static void use_same_units(std::span<ReportTable> tables);

 private:
  enum class Kind : std::uint8_t { kText, kBytes, kRate, kTime };
  struct Column {
    Name name;
    std::vector<std::string> cells{};
    bool right = false;
    Long text = Long::kKeep;
    Kind kind = Kind::kText;
    std::vector<std::optional<double>> values{};  ///< bytes or nanoseconds; instead of the cells
  };

  ReportTable& add(Column column);
  [[nodiscard]] std::vector<Column> shown(bool wide) const;
  void write(std::vector<Column>& columns, Kind kind, bool wide) const;

  std::vector<Column> columns_;
  std::vector<Column> compared_;  ///< of the other tables with the same units
};

/// Returns a cell for each row.
template <typename Rows, typename Cell>
[[nodiscard]] auto cells_of(const Rows& rows, const Cell& cell) {
  std::vector<decltype(cell(*rows.begin()))> cells;
  cells.reserve(std::size(rows));
  for (const auto& row : rows) cells.push_back(cell(row));
  return cells;
}

/// Breaks a text at spaces into lines of at most `most` columns. The first line begins with the
/// text's own spaces, the others with `indent`. A word that is longer stays whole. Every line ends
/// with a newline.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t indent,
                                  std::size_t most = report_columns());

/// A label and its value, a line each, with the values under each other and wrapped.
struct Fact {
  std::string label;
  std::string value;
};
[[nodiscard]] std::string format_facts(const std::vector<Fact>& facts,
                                       std::size_t most = report_columns());

}  // namespace weir
