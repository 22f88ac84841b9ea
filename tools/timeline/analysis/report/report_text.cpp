// The report as tables of plain text.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include "tools/program/printable.hpp"
#include "tools/program/report_table.hpp"
#include "tools/timeline/analysis/report/report_figures.hpp"

namespace weir::timeline {
namespace {

/// Indents every line by two spaces.
std::string indented(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) result += "  " + line + "\n";
  return result;
}

/// Makes the tables of a report as wide as asked for.
class Tables {
 public:
  explicit Tables(const ReportOptions& options) : options_(options) {}

  [[nodiscard]] std::size_t most_rows() const { return options_.most_rows; }

  /// Returns a heading and its table; empty if the table has no row.
  [[nodiscard]] std::string rows(const std::string& heading, const ReportTable& table,
                                 std::size_t left_out = 0) const {
    const std::string rows = table.rows(options_.wide, kWidth);
    if (rows.empty()) return {};
    std::string text = "\n" + wrapped(heading, 2) + indented(rows);
    if (left_out != 0) text += "  and " + std::to_string(left_out) + " more\n";
    return text;
  }
  /// Returns the same and what the columns mean.
  [[nodiscard]] std::string section(const std::string& heading, const ReportTable& table,
                                    std::size_t left_out = 0) const {
    const std::string text = rows(heading, table, left_out);
    return text.empty() ? text : text + legend(table);
  }
  [[nodiscard]] std::string legend(const ReportTable& table) const {
    return indented(table.legend(options_.wide, kWidth));
  }
  [[nodiscard]] static std::string facts(const std::vector<Fact>& facts) {
    return indented(format_facts(facts, kWidth));
  }

 private:
  static constexpr std::size_t kWidth = kMostColumns - 2;

  const ReportOptions& options_;
};

/// Shortens a name for a sentence.
std::string cell(std::string_view name) {
  constexpr std::size_t kMost = 60;
  std::string text = printable(name.substr(0, 4 * kMost));
  if (columns_of(text) <= kMost) return text;
  text = fitted(text, kMost - 3, Align::kLeft);
  return text + "...";
}

/// A name in a table, which cuts it where it must.
std::string whole(std::string_view name) {
  constexpr std::size_t kMost = 4096;
  return printable(name.substr(0, kMost));
}

std::string percent_of(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return format_share(static_cast<double>(part) / static_cast<double>(whole));
}

std::optional<Bytes> or_nothing(std::uint64_t bytes) {
  return bytes == 0 ? std::nullopt : std::optional(Bytes{bytes});
}

std::optional<double> time_of(std::uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds);
}

ReportTable holders(const Holding& holding) {
  std::vector<Holder> rows = holding.holders;
  if (holding.others.blocks != 0 || holding.others.awaiting != 0) rows.push_back(holding.others);
  ReportTable table;
  table
      .words({"held by", "what is named above"},
             cells_of(rows, [](const Holder& h) { return whole(h.key); }), Long::kCut)
      .bytes({"held", "memory in use"},
             cells_of(rows, [](const Holder& h) { return std::optional(Bytes{h.bytes}); }))
      .bytes({"asked for", "of it, before rounding"},
             cells_of(rows, [](const Holder& h) { return std::optional(Bytes{h.requested}); }))
      .numbers({"blocks", "how many"},
               cells_of(rows, [](const Holder& h) { return std::to_string(h.blocks); }))
      .bytes({"awaiting", "freed, still used by the device"},
             cells_of(rows, [](const Holder& h) { return or_nothing(h.awaiting); }))
      .bytes({"from before", "held since before the recording", Shown::kWide},
             cells_of(rows, [](const Holder& h) { return or_nothing(h.from_before); }));
  return table;
}

std::string heading_of(const std::string& heading, const Holding& holding) {
  return heading + (holding.known ? "" : " (events are missing: a part is not known)");
}

std::string pool_text(const Tables& tables, const PoolFigures& pool) {
  const PoolSeries& series = pool.series;
  const std::string name = cell(series.name) + (series.host ? " (host memory)" : "");
  std::string text = "\nMemory of " + name + "\n";
  text += Tables::facts(
      {{"peak allocated and awaiting", format_amount(series.peak_held)},
       {"peak allocated", format_amount(series.peak_allocated)},
       {"peak reserved", format_amount(series.peak_reserved)},
       {"fragmentation at the peaks", format_share(pool.fragmentation.at_peak)},
       {"reserved but not allocated, over time", format_share(pool.fragmentation.mean)},
       {"lost to rounding, over time", format_share(pool.fragmentation.waste)}});
  const std::string at = " at the peak, " + format_time(series.peak_at);
  std::string legend;
  const auto add = [&](const std::string& by, const Holding& holding) {
    const ReportTable table = holders(holding);
    const std::string rows = tables.rows(heading_of("Holders by " + by + at, holding), table);
    if (!rows.empty()) legend = tables.legend(table);
    text += rows;
  };
  add("label", pool.by_label);
  add("kind of batch", pool.by_kind);
  add("call site", pool.by_site);
  return text + legend;
}

/// Describes the memory that the driver gave to libraries, and its own pools.
std::string driver_text(const Tables& tables, const DriverMemoryFigures& driver) {
  if (!driver.told) return {};
  std::string text = "\nMemory from the driver\n";
  text +=
      Tables::facts({{"peak of device memory", format_amount(driver.device_peak)},
                     {"peak of pinned memory", format_amount(driver.pinned_peak)},
                     {"peak used of the driver's own pools", format_amount(driver.pools_used_peak)},
                     {"peak reserved by them", format_amount(driver.pools_reserved_peak)}});
  ReportTable table;
  table
      .words({"library", "that asked for it"},
             cells_of(driver.at_peak,
                      [](const LibraryMemory& one) {
                        return one.library.empty() ? std::string("no library") : whole(one.library);
                      }),
             Long::kCut)
      .bytes({"held", "memory in use"},
             cells_of(driver.at_peak,
                      [](const LibraryMemory& one) { return std::optional(Bytes{one.bytes}); }))
      .numbers({"blocks", "how many"}, cells_of(driver.at_peak, [](const LibraryMemory& one) {
                 return std::to_string(one.blocks);
               }));
  return text + tables.section("Device memory from the driver by library at the peak, " +
                                   format_time(driver.peak_at),
                               table);
}

std::string failure_text(const Tables& tables, const Failure& failure) {
  std::string heading = "Out of memory at " + format_time(failure.at) + ": " +
                        format_amount(failure.requested) + " for " +
                        (failure.label.empty() ? "no label" : cell(failure.label));
  if (failure.batch != 0) heading += ", batch " + std::to_string(failure.batch);
  if (!failure.kind.empty()) heading += " (" + cell(failure.kind) + ")";
  if (!failure.site.empty()) heading += ", " + cell(failure.site);
  const Holding& then = failure.holding;
  const std::string memory =
      "  reserved " + format_amount(then.counts.reserved()) + " = allocated " +
      format_amount(then.counts.allocated) + " + awaiting " + format_amount(then.counts.awaiting) +
      " + cached " + format_amount(then.counts.cached) + "; budget " + format_amount(then.budget);
  const std::string table =
      tables.section(heading_of("Holders by label then", then), holders(then));
  if (table.empty()) return {};
  return "\n" + wrapped(heading, 2) + wrapped(memory, 4) + table.substr(1);
}

std::string stall_text(const Tables& tables, const ReportFigures& figures) {
  const StallFigures& stalls = figures.summary.stalls;
  std::vector<std::pair<std::string, Waits>> rows;
  const auto add = [&](std::string_view name, const Waits& waits) {
    if (waits.count != 0) rows.emplace_back(name, waits);
  };
  for (std::size_t i = 0; i < kStallReasons; ++i)
    add(to_string(static_cast<TimelineStall>(i)), stalls.admission.at(i));
  add("allocations that waited", stalls.memory);
  add("launches held back", stalls.pace);
  ReportTable table;
  table
      .words({"cause", "what it waited for"},
             cells_of(rows, [](const auto& row) { return row.first; }))
      .numbers({"share", "of the recorded time"},
               cells_of(rows,
                        [&](const auto& row) {
                          return percent_of(row.second.total, figures.summary.duration);
                        }))
      .times({"total", "all together"},
             cells_of(rows, [](const auto& row) { return time_of(row.second.total); }))
      .numbers({"count", "how often"},
               cells_of(rows, [](const auto& row) { return std::to_string(row.second.count); }));
  return tables.section("What held the frontend back", table);
}

/// A share of a device's time.
struct Spent {
  std::string what;
  std::string gaps;
  std::uint64_t time;
};

std::string device_text(const Tables& tables, const DeviceIdle& device) {
  std::vector<Spent> rows{{"busy", "-", device.busy}};
  for (std::size_t i = 0; i < kIdleCauses; ++i) {
    const IdleSum& sum = device.causes.at(i);
    if (sum.count == 0) continue;
    rows.push_back({"idle: " + std::string(to_string(static_cast<IdleCause>(i))),
                    std::to_string(sum.count), sum.total});
  }
  ReportTable table;
  table
      .words({"state", "what it did, or why nothing"},
             cells_of(rows, [](const Spent& row) { return row.what; }))
      .numbers(
          {"share", "of its time"},
          cells_of(rows, [&](const Spent& row) { return percent_of(row.time, device.recorded); }))
      .times({"total", "all together"},
             cells_of(rows, [](const Spent& row) { return time_of(row.time); }))
      .numbers({"gaps", "how many"}, cells_of(rows, [](const Spent& row) { return row.gaps; }));
  return tables.section("Time of " + device.name, table);
}

std::string idle_text(const Tables& tables, const ReportFigures& figures) {
  std::string text;
  for (const DeviceIdle& device : figures.devices) text += device_text(tables, device);
  const std::vector<StreamBusy>& streams = figures.streams;
  ReportTable table;
  table
      .words({"stream", "its device and number"}, cells_of(figures.stream_names, whole), Long::kCut)
      .numbers(
          {"share", "of the time, it was busy"},
          cells_of(streams, [](const StreamBusy& s) { return percent_of(s.busy, s.recorded); }))
      .times({"busy", "all together"},
             cells_of(streams, [](const StreamBusy& s) { return time_of(s.busy); }))
      .numbers({"pieces", "of work"},
               cells_of(streams, [](const StreamBusy& s) { return std::to_string(s.count); }));
  return text + tables.section("Streams", table);
}

/// Returns the heading of the ranked barriers.
std::string barrier_heading(const std::vector<BarrierSite>& ranked) {
  if (ranked.empty() || ranked.front().idle_after == 0) return "Barriers";
  BarrierSite first = ranked.front();
  first.site = cell(first.site);
  first.call = cell(first.call);
  return "Barriers, the costliest first: " + describe(first);
}

std::string barrier_text(const Tables& tables, const ReportFigures& figures) {
  const std::size_t count = std::min(figures.barriers.size(), tables.most_rows());
  const std::span rows = std::span(figures.barriers).first(count);
  ReportTable table;
  table
      .words({"call site", "where the program waited"},
             cells_of(rows, [](const BarrierSite& site) { return whole(site.site); }), Long::kCut)
      .times({"idle after", "device idle after it"},
             cells_of(rows, [](const BarrierSite& site) { return time_of(site.idle_after); }))
      .words({"call", "how"},
             cells_of(rows, [](const BarrierSite& site) { return whole(site.call); }), Long::kCut)
      .numbers({"times", "how often"},
               cells_of(rows, [](const BarrierSite& site) { return std::to_string(site.count); }))
      .times({"waited", "all together"},
             cells_of(rows, [](const BarrierSite& site) { return time_of(site.waited); }))
      .times({"idle in", "device idle meanwhile"},
             cells_of(rows, [](const BarrierSite& site) { return time_of(site.idle_in); }));
  return tables.section(barrier_heading(figures.barriers), table, figures.barriers.size() - count);
}

/// A line of a table of tasks.
struct TaskLine {
  std::string name;
  std::uint64_t count;
  std::optional<double> total{};
  std::string share;
  std::optional<double> longest{};
  std::optional<Bytes> bytes{};
  std::optional<Bytes> rate{};
};

std::vector<TaskLine> task_lines(const TaskTable& table, bool of_device, std::size_t most) {
  std::vector<TaskLine> lines;
  for (const TaskRow& row : table.rows) {
    if (lines.size() == most) break;
    const bool timed = row.group != TaskGroup::kAllocator;
    lines.push_back(
        {.name = whole(row.name),
         .count = row.count,
         .total = timed ? time_of(row.total) : std::nullopt,
         .share = of_device ? format_share(row.share) : "-",
         .longest = timed ? time_of(row.longest) : std::nullopt,
         .bytes = or_nothing(row.bytes),
         .rate = row.bytes_per_second > 0
                     ? std::optional(Bytes{static_cast<std::uint64_t>(row.bytes_per_second)})
                     : std::nullopt});
  }
  return lines;
}

std::string task_text(const Tables& tables, const TaskTable& tasks, bool of_device) {
  std::vector<TaskLine> lines = task_lines(tasks, of_device, tables.most_rows());
  const std::size_t left_out = tasks.rows.size() - lines.size();
  if (of_device) {
    lines.push_back({.name = "Totals",
                     .count = tasks.count,
                     .total = time_of(tasks.busy),
                     .share = format_share(tasks.busy == 0 ? 0 : 1)});
  }
  ReportTable table;
  table
      .words({"task", "what ran"}, cells_of(lines, [](const TaskLine& line) { return line.name; }),
             Long::kCut)
      .numbers({"share", "of the busy time"},
               cells_of(lines, [](const TaskLine& line) { return line.share; }))
      .times({"total", "all together"},
             cells_of(lines, [](const TaskLine& line) { return line.total; }))
      .numbers({"count", "how many"},
               cells_of(lines, [](const TaskLine& line) { return std::to_string(line.count); }))
      .times({"longest", "of them"},
             cells_of(lines, [](const TaskLine& line) { return line.longest; }))
      .bytes({"moved", "copied or handed out"},
             cells_of(lines, [](const TaskLine& line) { return line.bytes; }))
      .rates({"rate", "while it ran"},
             cells_of(lines, [](const TaskLine& line) { return line.rate; }));
  return tables.section(of_device ? "Tasks of " + tasks.name : "Allocator and waits", table,
                        left_out);
}

std::string accounting_text(const AccountingCheck& accounting) {
  if (accounting.differ == 0) return {};
  const Disagreement& first = accounting.first.front();
  return "\nThe pool's own counts differ from its events " + std::to_string(accounting.differ) +
         " times, first at " + format_time(first.at) + ".\n";
}

std::string process_text(const Process& process, const ReportOptions& options) {
  const Tables tables(options);
  const Index index(process);
  const ReportFigures figures = report_figures(index, options);
  std::string text = printable(figures.summary.process + ": " + in_words(figures.summary)) + "\n";
  for (const std::string& note : figures.notes) text += "Note: " + printable(note) + "\n";
  text += accounting_text(figures.accounting);
  for (const PoolFigures& pool : figures.pools) text += pool_text(tables, pool);
  text += driver_text(tables, figures.driver);
  for (const Failure& failure : figures.failures) text += failure_text(tables, failure);
  if (figures.summary.stalls.failures > figures.failures.size()) {
    text += "\nOut of memory: " +
            std::to_string(figures.summary.stalls.failures - figures.failures.size()) + " more\n";
  }
  text += stall_text(tables, figures);
  text += idle_text(tables, figures);
  text += barrier_text(tables, figures);
  for (std::size_t i = 0; i < figures.tables.size(); ++i)
    text += task_text(tables, figures.tables[i], i + 1 < figures.tables.size());
  return text;
}

/// Returns the length of the first character of `text`; 0 if it is invalid UTF-8 or a control
/// character.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t length = first >= 0xf0 ? 4 : (first >= 0xe0 ? 3 : 2);
  if (first < 0xc2 || first > 0xf4) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return 0;
  }
  const unsigned second = byte(1);
  // Refuses overlong forms, surrogates, values beyond the last character, and Latin-1 control
  // characters.
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f) ||
      (first == 0xc2 && second < 0xa0)) {
    return 0;
  }
  return length;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character(text);
    shown += length == 0 ? std::string_view("?") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return shown;
}

std::string report_text(const Timeline& timeline, const ReportOptions& options) {
  if (timeline.processes.empty()) return "The timeline has no process.\n";
  std::string text;
  std::vector<Summary> summaries;
  for (const Process& process : timeline.processes) {
    if (!text.empty()) text += "\n";
    text += process_text(process, options);
    if (timeline.processes.size() > 1) summaries.push_back(summarize(Index(process)));
  }
  if (summaries.size() > 1) text = in_words(summaries).back() + "\n\n" + text;
  return text;
}

}  // namespace weir::timeline
