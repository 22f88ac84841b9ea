#include "tools/weir/live/top_screen.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "allocator/base/pressure.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/printable.hpp"
#include "tools/program/report_table.hpp"
#include "tools/program/units.hpp"

namespace weir::cli {
namespace {

constexpr std::size_t kLeastProgram = 12;
constexpr std::size_t kFairProgram = 20;
constexpr std::size_t kMostProgram = 48;
constexpr std::size_t kMostHistory = timeline::kLiveHistory / 2;

/// A column and its text for each row. `width` may grow if there is room.
struct Column {
  std::string heading;
  std::string meaning;  ///< for the legend
  std::size_t width;
  Align align;
  std::function<std::string(std::size_t row, std::size_t width, bool utf8)> cell;
};

std::string rate_cell(const std::optional<double>& rate) {
  return rate ? format_number(*rate, *rate < 1000 ? 1 : 0) : "-";
}

std::string share_cell(const std::optional<double>& share) {
  constexpr double kMost = 99.99;  // of 9999%: nobody has more frontends
  return share ? format_number(100 * std::min(*share, kMost), *share < 1 ? 1 : 0) + "%" : "-";
}

std::string program_cell(const TopRow& row, std::size_t width, bool utf8) {
  // A prefix, since a long command line is cut at its end. If room is short, the name comes first.
  constexpr std::string_view kSilent = "(silent) ";
  const bool says = row.silent && width >= kSilent.size() + kLeastProgram / 2;
  return printable((says ? std::string(kSilent) : "") + row.program, utf8);
}

double share_reserved(const TopRow& row) {
  if (row.last.budget == 0) return 0;
  return static_cast<double>(row.last.reserved) / static_cast<double>(row.last.budget);
}

template <typename Text>
Column column(const Top& top, std::string heading, std::string meaning, std::size_t width,
              Align align, Text text) {
  return {std::move(heading), std::move(meaning), width, align,
          [&top, text](std::size_t row, std::size_t, bool) { return text(top.rows[row]); }};
}

using Size = std::uint64_t timeline::LiveSample::*;

/// A column of sizes, whose unit ends the heading: the same as that of the other sizes, which a
/// reader compares.
Column bytes_column(const Top& top, const std::string& heading, std::string meaning, Size shown) {
  using Sample = timeline::LiveSample;
  constexpr std::array<Size, 4> kCompared{&Sample::budget, &Sample::allocated, &Sample::awaiting,
                                          &Sample::reserved};
  std::vector<std::vector<std::optional<double>>> compared;
  compared.reserve(kCompared.size());
  for (const Size size : kCompared) {
    compared.push_back(cells_of(top.rows, [size](const TopRow& row) {
      return std::optional(static_cast<double>(row.last.*size));
    }));
  }
  const auto at = static_cast<std::size_t>(std::ranges::find(kCompared, shown) - kCompared.begin());
  const Scale scale = scales_of(Measure::kBytes, compared).at(at);
  std::vector<std::string> cells =
      cells_of(compared.at(at), [&scale](const auto& value) { return scale.format(value); });
  Column column{heading + " " + scale.unit, std::move(meaning), 0, Align::kRight, {}};
  column.width = columns_of(column.heading);
  for (const std::string& cell : cells) column.width = std::max(column.width, cell.size());
  column.cell = [cells = std::move(cells)](std::size_t row, std::size_t, bool) {
    return cells[row];
  };
  return column;
}

/// In display order.
enum Place : std::uint8_t {
  kPid,
  kUser,
  kProgram,
  kBudget,
  kAllocated,
  kAwaiting,
  kReserved,
  kBar,
  kPressure,
  kBatches,
  kStalls,
  kStalled,
  kIdle,
  kHistory,
  kPlaces
};

std::size_t pid_width(const Top& top) {
  std::size_t width = 3;
  for (const TopRow& row : top.rows) width = std::max(width, std::to_string(row.pid).size());
  return width;
}

Column column_at(const Top& top, Place place) {
  using Sample = timeline::LiveSample;
  const auto right = Align::kRight;
  const auto left = Align::kLeft;
  switch (place) {
    case kPid:
      return column(top, "pid", "process", pid_width(top), right,
                    [](const TopRow& row) { return std::to_string(row.pid); });
    case kUser:
      return {"user", "its owner", 8, left, [&top](std::size_t row, std::size_t, bool utf8) {
                return printable(top.rows[row].user, utf8);
              }};
    case kProgram:
      return {"program", "command line", kLeastProgram, left,
              [&top](std::size_t row, std::size_t width, bool utf8) {
                return program_cell(top.rows[row], width, utf8);
              }};
    case kBudget:
      return bytes_column(top, "budget", "most that may be taken", &Sample::budget);
    case kAllocated:
      return bytes_column(top, "allocated", "in use", &Sample::allocated);
    case kAwaiting:
      return bytes_column(top, "awaiting", "freed, still used by the device", &Sample::awaiting);
    case kReserved:
      return bytes_column(top, "reserved", "memory taken", &Sample::reserved);
    case kBar:
      return {"of budget", "what is reserved of it", 10, left,
              [&top](std::size_t row, std::size_t width, bool utf8) {
                return bar(share_reserved(top.rows[row]), width, utf8);
              }};
    case kPressure:
      return column(top, "pressure", "of held memory: soft from 75% of the budget, hard from 95%",
                    8, left, [](const TopRow& row) {
                      return std::string(to_string(static_cast<PressureLevel>(row.last.pressure)));
                    });
    case kBatches:
      return column(top, "batches/s", "begun in a second", 9, right,
                    [](const TopRow& row) { return rate_cell(row.rates.batches); });
    case kStalls:
      return column(top, "stalls/s", "times held back in a second", 8, right,
                    [](const TopRow& row) { return rate_cell(row.rates.stalls); });
    case kStalled:
      return column(top, "stalled", "time held back", 7, right,
                    [](const TopRow& row) { return share_cell(row.rates.stalled); });
    case kIdle:
      return column(top, "idle", "time without work for the device", 6, right,
                    [](const TopRow& row) { return share_cell(row.rates.idle); });
    case kHistory:
    case kPlaces:
      break;
  }
  return {"history", "allocated, newest on the right", 12, left,
          [&top](std::size_t row, std::size_t width, bool utf8) {
            return sparkline(top.rows[row].allocated, width, utf8);
          }};
}

/// Most important first.
constexpr std::array<Place, kPlaces> kByImportance{
    kPid,  kProgram,   kReserved, kUser,     kBudget,   kStalled, kBatches,
    kIdle, kAllocated, kBar,      kPressure, kAwaiting, kStalls,  kHistory};
constexpr std::size_t kImportant = 8;  ///< for further columns no command line is cut short

/// Shows users only if there are several.
bool shows_users(const Top& top) {
  return std::ranges::any_of(
      top.rows, [&top](const TopRow& row) { return row.user != top.rows.front().user; });
}

/// Widens a column up to `most`, within the screen's remaining `room`.
void widen(Column& wide, std::size_t most, std::size_t& room) {
  if (wide.width >= most) return;
  const std::size_t more = std::min(room, most - wide.width);
  wide.width += more;
  room -= more;
}

/// Returns the columns that fit, with a space between them.
std::vector<Column> columns_for(const Top& top, std::size_t width) {
  std::array<bool, kPlaces> shown{};
  std::size_t used = 0;
  for (std::size_t i = 0; i < kByImportance.size(); ++i) {
    const Place place = kByImportance.at(i);
    if (place == kUser && !shows_users(top)) continue;
    const std::size_t more = column_at(top, place).width + (used == 0 ? 0 : 1);
    const std::size_t kept = i < kImportant ? 0 : kFairProgram - kLeastProgram;
    if (used + more + kept > width) break;
    used += more;
    shown[place] = true;
  }
  std::vector<Column> columns;
  std::size_t room = width - used;
  for (std::uint8_t place = 0; place < kPlaces; ++place) {
    if (!shown[place]) continue;
    columns.push_back(column_at(top, static_cast<Place>(place)));
    if (place == kProgram) widen(columns.back(), kMostProgram, room);
    if (place == kHistory) widen(columns.back(), kMostHistory, room);
  }
  return columns;
}

std::string without_end(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string heading_line(const std::vector<Column>& columns) {
  std::string line;
  for (const Column& each : columns) {
    line += (line.empty() ? "" : " ") + fitted(each.heading, each.width, each.align);
  }
  return without_end(line) + "\n";
}

std::string row_line(std::size_t row, const std::vector<Column>& columns, bool utf8) {
  std::string line;
  for (const Column& each : columns) {
    line += (line.empty() ? "" : " ") +
            fitted(each.cell(row, each.width, utf8), each.width, each.align);
  }
  return without_end(line) + "\n";
}

std::string totals(const Top& top) {
  Bytes allocated;
  Bytes awaiting;
  Bytes reserved;
  for (const TopRow& row : top.rows) {
    allocated += {row.last.allocated};
    awaiting += {row.last.awaiting};
    reserved += {row.last.reserved};
  }
  return format_count(top.rows.size(), "program") + ": " + format_bytes(reserved) + " reserved, " +
         format_bytes(allocated) + " allocated, " + format_bytes(awaiting) + " awaiting";
}

std::string fitted_line(const std::string& text, std::size_t width) {
  return without_end(fitted(text, width, Align::kLeft)) + "\n";
}

/// Returns what the columns mean, in lines of the screen's width.
std::string legend(const std::vector<Column>& columns, std::size_t width) {
  std::string text;
  for (const Column& each : columns) {
    text += (text.empty() ? "" : "; ") + each.heading + ": " + each.meaning;
  }
  std::istringstream lines(wrapped("  " + text + ".", 2, width));
  std::string fitting;
  for (std::string line; std::getline(lines, line);) fitting += fitted_line(line, width);
  return fitting;
}

/// Returns the first `most` lines; 0: all.
std::string first_lines(std::string text, std::size_t most) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < most && end < text.size(); ++i) end = text.find('\n', end) + 1;
  if (most != 0) text.resize(end);
  return text;
}

}  // namespace

std::string bar(double share, std::size_t width, bool utf8) {
  constexpr std::array<std::string_view, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double filled = std::clamp(share, 0.0, 1.0) * static_cast<double>(width);
  const auto whole = static_cast<std::size_t>(filled);
  std::string text;
  if (!utf8) {
    const auto rounded = static_cast<std::size_t>(std::lround(filled));
    return std::string(rounded, '#') + std::string(width - rounded, '.');
  }
  for (std::size_t i = 0; i < whole; ++i) text += "█";
  const auto eighths = static_cast<std::size_t>((filled - static_cast<double>(whole)) * 8);
  const std::size_t part = whole < width && eighths > 0 ? 1 : 0;
  if (part != 0) text += kEighths[eighths];
  for (std::size_t i = whole + part; i < width; ++i) text += "░";
  return text;
}

std::string sparkline(const std::vector<std::uint64_t>& values, std::size_t width, bool utf8) {
  constexpr std::array<std::string_view, 9> kBlocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::array<std::string_view, 9> kAscii{" ", "_", ".", "-", "=", "+", "*", "%", "#"};
  constexpr std::size_t kSlots = timeline::kLiveHistory;
  if (width == 0) return {};
  std::vector<std::uint64_t> highest(width, 0);
  const std::size_t count = std::min(values.size(), kSlots);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t& column = highest[(kSlots - count + i) * width / kSlots];
    column = std::max(column, values[values.size() - count + i]);
  }
  const auto most = static_cast<double>(*std::ranges::max_element(highest));
  std::string text;
  for (const std::uint64_t each : highest) {
    const double share = most == 0 ? 0 : static_cast<double>(each) / most;
    // Any value above zero is visible.
    const auto level = static_cast<std::size_t>(std::ceil(share * 8));
    text += (utf8 ? kBlocks : kAscii)[level];
  }
  return text;
}

std::string top_text(const Top& top, const Screen& screen) {
  std::string note;
  if (top.unreadable != 0) {
    note = fitted_line(format_count(top.unreadable, "program") +
                           " not shown: they run under another version of Weir",
                       screen.width);
  }
  if (top.rows.empty())
    return first_lines(fitted_line("no program runs under Weir", screen.width) + note,
                       screen.height);
  const std::vector<Column> columns = columns_for(top, screen.width);
  std::string text = fitted_line(totals(top), screen.width) + note + heading_line(columns);
  const std::size_t head = note.empty() ? 2 : 3;
  std::size_t shown = top.rows.size();
  if (screen.height != 0 && head + shown > screen.height) {
    shown = std::max(screen.height, head + 2) - head - 1;
  }
  for (std::size_t i = 0; i < shown; ++i) text += row_line(i, columns, screen.utf8);
  if (shown < top.rows.size()) {
    text += fitted_line("and " + std::to_string(top.rows.size() - shown) + " more", screen.width);
  }
  const std::string means = legend(columns, screen.width);
  const auto lines = static_cast<std::size_t>(std::ranges::count(means, '\n'));
  if (screen.height == 0 || head + shown + lines <= screen.height) text += means;
  return first_lines(std::move(text), screen.height);
}

}  // namespace weir::cli
