#pragma once

// Tables on standard output and the progress bar on standard error.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/program/numbers.hpp"

namespace weir {

/// Rows of cells, the first row the heading; columns as wide as their widest cell, two spaces
/// apart. `alignment` has an `l` (left) or `r` (right) for each column, and columns beyond it are
/// left. Without it the first column and the last cell of a row are left and the others right.
[[nodiscard]] std::string format_table(const std::vector<std::vector<std::string>>& rows,
                                       std::string_view alignment = {});

/// One line on standard error, drawn over again, and only when that is a terminal.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(const std::string& label, std::uint64_t done, std::uint64_t all);
  void clear();

 private:
  const bool terminal_;
  int last_percent_ = -1;
  std::string last_label_;
};

}  // namespace weir
