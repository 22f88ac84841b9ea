#pragma once

// Tables on standard output and the progress bar on standard error.

#include <cstdint>
#include <string>
#include <vector>

namespace weir {

/// Rows of cells, the first row the heading; columns as wide as their widest cell, the first and
/// last aligned left and the others right, two spaces apart.
[[nodiscard]] std::string format_table(const std::vector<std::vector<std::string>>& rows);

/// `value` with `digits` after the point; `nan` whatever its sign.
[[nodiscard]] std::string format_number(double value, int digits);

/// `1 batch`, `3 batches`: the thing, and what is added to it for more than one.
[[nodiscard]] std::string format_count(std::uint64_t count, const std::string& thing,
                                       const std::string& plural = "s");

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
