#pragma once

// A CSV file a line at a time, and how a bad line of it is refused.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/replay/read/source.hpp"
#include "tools/replay/read/trace.hpp"

namespace weir::replay {

/// A whole number in `text`, decimal. Throws Malformed, naming it `what`.
[[nodiscard]] std::uint64_t number_in(std::string_view text, std::string_view what);
/// The same, hexadecimal; `0x` before it or not, and `(nil)` is 0.
[[nodiscard]] std::uint64_t hexadecimal_in(std::string_view text, std::string_view what);

/// The beginning of `text` in quotes, what cannot be printed as `?`; `nothing` where it is empty.
[[nodiscard]] std::string shown_text(std::string_view text);

/// Fields have no quotes and no commas in them. Lines end with LF or CRLF; empty ones, and comments
/// that begin with #, are passed over. A last line that does not end is not read: it may be a part.
class Csv {
 public:
  /// Reads the header. `source` must outlive this.
  explicit Csv(const Source& source);

  /// The column of that name, whatever its case; nothing when there is none.
  [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;
  /// The column of one of these names.
  [[nodiscard]] std::optional<std::size_t> column(
      std::initializer_list<std::string_view> names) const;
  /// Bytes of the whole file.
  [[nodiscard]] std::size_t size() const noexcept { return source_.bytes.size(); }
  /// The header's line.
  [[nodiscard]] std::string_view header() const noexcept { return header_; }

  /// Calls `take(fields)` for each line after the header; what it throws as Malformed, and a line
  /// that has not as many fields as the header, becomes a UsageError with the file and the line.
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
  /// Why the file ends early, once all lines are read; empty when it does not.
  [[nodiscard]] std::string cut() const;

 private:
  /// The next line's fields; false at the end.
  [[nodiscard]] bool next();
  void check_count() const;
  [[noreturn]] void refuse(std::string_view what) const;

  const Source& source_;
  std::size_t at_ = 0;    ///< where the next line begins
  std::size_t line_ = 0;  ///< of the line read last, from 1
  std::string_view header_;
  std::vector<std::string_view> names_;
  std::vector<std::string_view> fields_;
};

}  // namespace weir::replay
