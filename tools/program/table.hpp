#pragma once

// Tables on standard output, and a progress bar on standard error.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/program/numbers.hpp"

namespace weir {

/// Formats rows of cells, the first as heading. Columns are as wide as their widest cell, two
/// spaces apart. `alignment` has `l` or `r` per column; further columns are left-aligned. Without
/// it the first column and a row's last cell are left-aligned, the others right-aligned.
[[nodiscard]] std::string format_table(const std::vector<std::vector<std::string>>& rows,
                                       std::string_view alignment = {});

/// Whether a line can be redrawn on a stream: on a terminal whose kind (TERM) knows how. Progress
/// is no colour, so NO_COLOR does not matter.
[[nodiscard]] bool shows_progress(bool terminal, const char* kind);

/// Redraws one line on standard error, only if that is such a terminal.
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
