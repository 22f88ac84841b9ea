#pragma once

// What the parts of the text report share: tables of its width, and names and figures as cells.

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tools/program/printable.hpp"
#include "tools/program/report_table.hpp"
#include "tools/timeline/analysis/report/report.hpp"
#include "tools/timeline/analysis/report/report_figures.hpp"

namespace weir::timeline::parts {

/// Returns the limits of a report's lists.
inline FigureLimits limits_of(const ReportOptions& options) {
  return {.rows = options.most_rows, .failures = options.most_rows, .gaps = options.most_rows};
}

/// Indents every line by two spaces.
inline std::string indented(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) result += "  " + line + "\n";
  return result;
}

/// Makes the tables of a report as wide as asked for.
class Tables {
 public:
  explicit Tables(const ReportOptions& options) : options_(options) {}

  [[nodiscard]] std::size_t most_rows() const { return options_.most_rows; }

  /// Returns a heading and its table; empty if the table has no row.
  [[nodiscard]] std::string rows(const std::string& heading, const ReportTable& table,
                                 std::size_t left_out = 0) const {
    const std::string rows = table.rows(options_.wide, width());
    if (rows.empty()) return {};
    std::string text = "\n" + wrapped(heading, 2) + indented(rows);
    if (left_out != 0) text += "  and " + std::to_string(left_out) + " more\n";
    return text;
  }
  /// Returns the same and what the columns mean.
  [[nodiscard]] std::string section(const std::string& heading, const ReportTable& table,
                                    std::size_t left_out = 0) const {
    const std::string text = rows(heading, table, left_out);
    return text.empty() ? text : text + legend(table);
  }
  [[nodiscard]] std::string legend(const ReportTable& table) const {
    return indented(table.legend(options_.wide, width()));
  }
  [[nodiscard]] static std::string facts(const std::vector<Fact>& facts) {
    return indented(format_facts(facts, width()));
  }

 private:
  /// They are indented.
  static std::size_t width() { return report_columns() - 2; }

  const ReportOptions& options_;
};

/// Shortens a name for a sentence.
inline std::string cell(std::string_view name) {
  constexpr std::size_t kMost = 60;
  std::string text = printable(name.substr(0, 4 * kMost));
  if (columns_of(text) <= kMost) return text;
  text = fitted(text, kMost - 3, Align::kLeft);
  return text + "...";
}

/// A name in a table, which cuts it where it must.
inline std::string whole(std::string_view name) {
  constexpr std::size_t kMost = 4096;
  return printable(name.substr(0, kMost));
}

inline std::string percent_of(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return format_share(static_cast<double>(part) / static_cast<double>(whole));
}

inline std::optional<Bytes> or_nothing(std::uint64_t bytes) {
  return bytes == 0 ? std::nullopt : std::optional(Bytes{bytes});
}

inline std::optional<double> time_of(std::uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds);
}

/// Returns the memory of a pool: its peaks and their holders.
[[nodiscard]] std::string pool_text(const Tables& tables, const PoolFigures& pool);
/// Returns the memory that the driver gave to libraries, and its own pools.
[[nodiscard]] std::string driver_text(const Tables& tables, const DriverMemoryFigures& driver);
/// Returns one failed request, and what held the memory then.
[[nodiscard]] std::string failure_text(const Tables& tables, const Failure& failure);

}  // namespace weir::timeline::parts
