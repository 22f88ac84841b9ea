#pragma once

// Text files of sparse rows in the format of LIBSVM (www.csie.ntu.edu.tw/~cjlin/libsvm), with any
// number of labels in a row:
//
//   LABEL[,LABEL...] INDEX:VALUE INDEX:VALUE ...
//
// - Labels are classes, from 0, in any order. A row without labels begins with a blank or with its
//   first entry. A row may have no entries.
// - Indices ascend, and count from 1. They count from 0 if the first line is `ROWS FEATURES
// LABELS`,
//   as in the extreme classification repository (manikvarma.org/downloads/XC).
// - A comment begins with # and ends with the line. Lines with nothing but a comment are skipped.
//   Empty lines are skipped too, unless the first line gives the number of rows: then each is a row
//   without labels and entries.
// - Each line, also the last, ends with a line break.
//
// Everything in a file is checked; a fault throws a UsageError of one line: the option, the file,
// the line and column, what was expected and what was found.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/sparse/packed.hpp"
#include "trainer/sparse/sparse_source.hpp"

namespace weir {

/// Copies the next bytes of a file, at least one unless the file has ended. Returns how many.
using ReadBytes = std::function<std::size_t(std::span<char> to)>;

/// The lines of a text file, read block by block, and the common format of the messages about them.
class TextLines {
 public:
  static constexpr std::size_t kBlock = std::size_t{1} << 16U;
  /// Bounds the memory that a file without line breaks takes.
  static constexpr std::size_t kLongestLine = std::size_t{1} << 26U;

  /// `option` and `path` are for messages.
  TextLines(std::string option, std::string path, ReadBytes read);

  /// Returns the next line without its line break (\n or \r\n), valid until the next call; nothing
  /// at the end. Throws UsageError if a line is too long, or if the last has no line break: it may
  /// be cut, and a cut number would be read as another one. (libsvm's checkdata.py demands the
  /// same.)
  [[nodiscard]] std::optional<std::string_view> next();

  /// `option: path: line …, column …: expected …, found …`, for the last line, or for the line
  /// after it once `next` has returned nothing. Columns are bytes, from 1.
  [[noreturn]] void refuse(std::size_t column, std::string_view expected,
                           std::string_view found) const;
  /// Returns the number of that line, from 1.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

 private:
  bool fill();

  const std::string option_;
  const std::string path_;
  const ReadBytes read_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  ///< of what is not handed out yet
  std::size_t end_ = 0;
  std::uint64_t number_ = 0;
};

/// Reads a file. The rows have the columns and classes of `widths`, and a file with more is
/// refused; a width of 0 is that of the file: as its first line says, or what its rows need.
/// Messages begin with `option`.
[[nodiscard]] SparseRows read_libsvm(const std::string& option, const std::string& path,
                                     SparseWidths widths);
/// The same for lines from anywhere.
[[nodiscard]] SparseRows parse_libsvm(TextLines& lines, SparseWidths widths);

/// Appends row `row` as a line with indices from 0, for a file whose first line is
/// `ROWS FEATURES LABELS`. Reading it gives the same values, bit by bit.
void append_libsvm(const SparseRows& rows, std::size_t row, std::string& text);

}  // namespace weir
