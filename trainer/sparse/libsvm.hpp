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

#include <string>

#include "kernels/sparse/packed.hpp"
#include "trainer/sparse/sparse_rows.hpp"
#include "trainer/sparse/text_lines.hpp"

namespace weir {

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
