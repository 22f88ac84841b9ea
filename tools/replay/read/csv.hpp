#pragma once

// Reads a CSV file line by line and reports bad lines.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/replay/read/source.hpp"
#include "tools/replay/read/trace.hpp"

namespace weir::replay {

/// Parses a decimal whole number. Throws Malformed, naming it `what`.
[[nodiscard]] std::uint64_t number_in(std::string_view text, std::string_view what);
/// Parses a hexadecimal number, with or without `0x`; `(nil)` is 0.
[[nodiscard]] std::uint64_t hexadecimal_in(std::string_view text, std::string_view what);

/// Returns the beginning of `text` in quotes, with `?` for unprintable characters, or `nothing` if
/// it is empty.
[[nodiscard]] std::string shown_text(std::string_view text);

/// Fields contain no quotes and no commas. Lines end with LF or CRLF. Empty lines and comments
/// (`#`) are skipped. An unterminated last line is not read, since it may be incomplete.
class Csv {
 public:
  /// Reads the header. `source` must outlive this.
  explicit Csv(const Source& source);

  /// Finds a column by name, ignoring case; nothing if there is none.
  [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;
  /// Finds the column with one of these names.
  [[nodiscard]] std::optional<std::size_t> column(
      std::initializer_list<std::string_view> names) const;
  /// The size of the whole file in bytes.
  [[nodiscard]] std::size_t size() const noexcept { return source_.bytes.size(); }
  /// The header line.
  [[nodiscard]] std::string_view header() const noexcept { return header_; }

  /// Calls `take(fields)` for each line after the header. Turns a Malformed that `take` throws, and
  /// a line with another number of fields than the header, into a UsageError with the file and the
  /// line.
  template <typename Take>
  void for_each(const Take& take) {
    while (next()) {
      try {
        check_count();
        take(fields_);
      } catch (const Malformed& what) {
        refuse(what.what());
      }
    }
  }
  /// After all lines are read, returns why the file ends early; empty if it does not.
  [[nodiscard]] std::string cut() const;

 private:
  /// Reads the next line's fields. Returns false at the end.
  [[nodiscard]] bool next();
  void check_count() const;
  [[noreturn]] void refuse(std::string_view what) const;

  const Source& source_;
  std::size_t at_ = 0;    ///< where the next line begins
  std::size_t line_ = 0;  ///< number of the last line read, from 1
  std::string_view header_;
  std::vector<std::string_view> names_;
  std::vector<std::string_view> fields_;
};

}  // namespace weir::replay
