// The report as tables of plain text.

#include <algorithm>
#include <span>
#include <utility>

#include "allocator/base/utf8.hpp"
#include "tools/timeline/analysis/report/report_parts.hpp"

namespace weir::timeline {
namespace {

using parts::cell;
using parts::or_nothing;
using parts::percent_of;
using parts::Tables;
using parts::time_of;
using parts::whole;

ReportTable stall_table(const ReportFigures& figures) {
  const StallFigures& stalls = figures.summary.stalls;
  std::vector<std::pair<std::string, Waits>> rows;
  const auto add = [&](std::string_view name, const Waits& waits) {
    if (waits.count != 0) rows.emplace_back(name, waits);
  };
  for (std::size_t i = 0; i < kStallReasons; ++i)
    add(to_string(static_cast<TimelineStall>(i)), stalls.admission.at(i));
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
  return table;
}

/// A share of a device's time.
struct Spent {
  std::string what;
  std::string gaps;
  std::uint64_t time;
};

ReportTable device_table(const DeviceIdle& device) {
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
  return table;
}

ReportTable stream_table(const ReportFigures& figures) {
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
  return table;
}

/// Returns where the time of the frontend, the devices and the streams went, in one unit.
std::string time_text(const Tables& tables, const ReportFigures& figures) {
  std::vector<std::string> headings{"What held the frontend back"};
  std::vector<ReportTable> all{stall_table(figures)};
  for (const DeviceIdle& device : figures.devices) {
    headings.push_back("Time of " + cell(device.name));
    all.push_back(device_table(device));
  }
  headings.emplace_back("Streams");
  all.push_back(stream_table(figures));
  ReportTable::use_same_units(all);
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) text += tables.section(headings[i], all[i]);
  return text;
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
             cells_of(rows, [](const BarrierSite& site) { return whole(site.site); }), Long::kTail)
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
    lines.push_back({.name = whole(row.name),
                     .count = row.count,
                     .total = timed ? time_of(row.total) : std::nullopt,
                     .share = of_device ? format_share(row.share) : "-",
                     .longest = timed ? time_of(row.longest) : std::nullopt,
                     .bytes = or_nothing(row.bytes),
                     .rate = row.bytes_per_second > 0
                                 ? std::optional(Bytes{static_cast<std::uint64_t>(
                                       std::min(row.bytes_per_second, 0x1p63))})
                                 : std::nullopt});
  }
  return lines;
}

ReportTable task_table(const TaskTable& tasks, bool of_device, std::size_t most) {
  std::vector<TaskLine> lines = task_lines(tasks, of_device, most);
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
  return table;
}

/// Returns the tasks of each device, in the same units, and the last table: the allocator and
/// waits.
std::string task_text(const Tables& tables, const ReportFigures& figures) {
  std::vector<ReportTable> all;
  for (const TaskTable& tasks : figures.tables) {
    all.push_back(task_table(tasks, &tasks != &figures.tables.back(), tables.most_rows()));
  }
  if (!all.empty()) ReportTable::use_same_units(std::span(all).first(all.size() - 1));
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const TaskTable& tasks = figures.tables[i];
    const std::size_t left_out =
        tasks.rows.size() - std::min(tasks.rows.size(), tables.most_rows());
    text += tables.section(
        i + 1 < all.size() ? "Tasks of " + cell(tasks.name) : std::string("Allocator and waits"),
        all[i], left_out);
  }
  return text;
}

std::string accounting_text(const AccountingCheck& accounting) {
  if (accounting.differ == 0) return {};
  return "\nThe pool's own counts differ from its events " + std::to_string(accounting.differ) +
         " times, first at " + format_time(accounting.first_at) + ".\n";
}

std::string process_text(const Process& process, const ReportOptions& options) {
  const Tables tables(options);
  const Index index(process);
  const ReportFigures figures = report_figures(index, parts::limits_of(options));
  std::string text =
      wrapped(printable(figures.summary.process + ": " + in_words(figures.summary)), 2);
  for (const std::string& note : figures.notes) text += wrapped("Note: " + printable(note), 2);
  text += accounting_text(figures.accounting);
  for (const PoolFigures& pool : figures.pools) {
    if (pool.peaks.peak_reserved != 0) text += parts::pool_text(tables, pool);
  }
  text += parts::driver_text(tables, figures.driver);
  for (const Failure& failure : figures.failures) text += parts::failure_text(tables, failure);
  if (figures.summary.stalls.failures > figures.failures.size()) {
    text += "\nOut of memory: " +
            std::to_string(figures.summary.stalls.failures - figures.failures.size()) + " more\n";
  }
  text += time_text(tables, figures);
  text += barrier_text(tables, figures);
  return text + task_text(tables, figures);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    const bool is_shown = character.is_shown() && (character.code < 0x80 || character.code >= 0xA0);
    shown += is_shown ? text.substr(0, character.bytes) : "?";
    text.remove_prefix(character.bytes);
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
  if (summaries.size() > 1) text = wrapped(in_words(summaries).back(), 2) + "\n" + text;
  return text;
}

}  // namespace weir::timeline
