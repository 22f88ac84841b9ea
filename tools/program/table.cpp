#include "tools/program/table.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "allocator/base/setting.hpp"
#include "tools/program/printable.hpp"

namespace weir {

namespace {

bool is_right(std::string_view alignment, std::size_t column, std::size_t columns) {
  if (alignment.empty()) return column > 0 && column + 1 < columns;
  return column < alignment.size() && alignment[column] == 'r';
}

}  // namespace

std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         std::string_view alignment) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], columns_of(row[c]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - columns_of(row[c]), ' ');
      if (c > 0) line += "  ";
      line += is_right(alignment, c, row.size()) ? padding + row[c] : row[c] + padding;
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

bool shows_progress(bool terminal, const char* kind) {
  return terminal && kind != nullptr && *kind != '\0' && std::string_view(kind) != "dumb";
}

// At the start of a program, before it has threads that change the environment.
ProgressBar::ProgressBar()
    : terminal_(shows_progress(isatty(STDERR_FILENO) != 0, process_environment()("TERM"))) {}

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
