// libFuzzer's target: the reader of libsvm files. Whatever the bytes, and however they arrive: rows
// that hold what sparse_source.hpp says and that are the same once written and read again, or a
// refusal of one line.

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>

#include "allocator/base/error.hpp"
#include "fuzz.hpp"
#include "trainer/sparse/libsvm.hpp"

namespace weir::testing {
namespace {

bool is_negative(float value) { return std::signbit(value); }

SparseRows parse(std::string_view text, std::size_t piece, SparseWidths widths) {
  TextLines lines("--data", "f", [text, piece](std::span<char> to) mutable {
    const std::size_t count = std::min({piece, to.size(), text.size()});
    std::copy_n(text.begin(), count, to.begin());
    text.remove_prefix(count);
    return count;
  });
  return parse_libsvm(lines, widths);
}

/// Each row's numbers ascend and are below `limit`.
void check_numbers(const std::vector<std::uint64_t>& starts,
                   const std::vector<std::uint32_t>& numbers, std::size_t limit) {
  require(starts.front() == 0 && starts.back() == numbers.size());
  for (std::size_t row = 0; row + 1 < starts.size(); ++row) {
    require(starts[row] <= starts[row + 1]);
    for (std::uint64_t i = starts[row]; i < starts[row + 1]; ++i) {
      require(numbers[i] < limit);
      require(i == starts[row] || numbers[i - 1] < numbers[i]);
    }
  }
}

void check_rows(const SparseRows& rows) {
  require(rows.rows() > 0 && rows.columns > 0 && rows.classes > 0);
  require(rows.label_starts.size() == rows.starts.size());
  require(rows.values.size() == rows.indices.size());
  check_numbers(rows.starts, rows.indices, rows.columns);
  check_numbers(rows.label_starts, rows.labels, rows.classes);
  require(std::ranges::all_of(rows.values, [](float value) { return std::isfinite(value); }));

  std::string text = std::to_string(rows.rows()) + " " + std::to_string(rows.columns) + " " +
                     std::to_string(rows.classes) + "\n";
  for (std::size_t row = 0; row < rows.rows(); ++row) append_libsvm(rows, row, text);
  const SparseRows again = parse(text, text.size(), {});
  require(again == rows);
  // Also the sign of a zero.
  require(std::ranges::equal(again.values, rows.values, {}, is_negative, is_negative));
}

}  // namespace

void fuzz(std::string_view bytes) {
  if (bytes.size() < 2) return;
  const std::size_t piece = std::size_t{1} + static_cast<unsigned char>(bytes[0]);
  const std::size_t width = static_cast<unsigned char>(bytes[1]);
  try {
    check_rows(parse(bytes.substr(2), piece, {.columns = width & 0xfU, .classes = width >> 4U}));
  } catch (const UsageError& refusal) {
    const std::string_view said = refusal.what();
    require(said.starts_with("--data: f: line ") && said.size() < 1000);
    require(std::ranges::all_of(said, [](char c) { return c >= ' ' && c != '\x7f'; }));
  }
}

}  // namespace weir::testing
