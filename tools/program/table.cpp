#include "tools/program/table.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace weir {

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - row[c].size(), ' ');
      const bool last = c + 1 == row.size();
      text += c == 0 ? row[c] + padding : (last ? row[c] : padding + row[c]);
      text += last ? "\n" : "  ";
    }
  }
  return text;
}

std::string format_number(double value, int digits) {
  if (std::isnan(value)) return "nan";
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string format_count(std::uint64_t count, const std::string& thing, const std::string& plural) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : plural);
}

ProgressBar::ProgressBar() : terminal_(isatty(STDERR_FILENO) != 0) {}

void ProgressBar::show(const std::string& label, std::uint64_t done, std::uint64_t all) {
  if (!terminal_ || all == 0) return;
  const int percent = static_cast<int>(100 * done / all);
  if (percent == last_percent_ && label == last_label_) return;
  last_percent_ = percent;
  last_label_ = label;
  constexpr int kWidth = 30;
  const std::string filled(static_cast<std::size_t>(percent * kWidth / 100), '#');
  std::fprintf(stderr, "\r\033[K[%-*s] %3d%% %s", kWidth, filled.c_str(), percent, label.c_str());
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (last_percent_ < 0) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  last_percent_ = -1;
}

}  // namespace weir
