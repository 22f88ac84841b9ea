// The report as tables of plain text.

#include <algorithm>
#include <array>
#include <cstdint>

#include "tools/timeline/analysis/report/report_figures.hpp"

namespace weir::timeline {
namespace {

using Table = std::vector<std::vector<std::string>>;

/// Returns the width in characters of valid UTF-8.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

/// Pads columns to their widest cell. The first is left-aligned, the others right-aligned.
std::string lay_out(const Table& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = "  ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width_of(row[i]), ' ');
      line += i == 0 ? row[i] + padding : "  " + padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

/// Returns a heading and its table, or nothing if the table has only a heading row.
std::string section(const std::string& heading, const Table& rows, std::size_t left_out = 0) {
  if (rows.size() < 2) return {};
  std::string text = "\n" + heading + "\n" + lay_out(rows);
  if (left_out != 0) text += "  and " + std::to_string(left_out) + " more\n";
  return text;
}

/// Shortens a name to fit a cell.
std::string cell(std::string_view name) {
  constexpr std::size_t kMost = 60;
  std::string text = printable(name.substr(0, 4 * kMost));
  if (width_of(text) <= kMost) return text;
  std::size_t end = 0;
  for (std::size_t shown = 0; shown < kMost - 3; ++shown) {
    do ++end;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U);
  }
  return text.substr(0, end) + "...";
}

std::string percent_of(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return format_share(static_cast<double>(part) / static_cast<double>(whole));
}

std::string holders(const std::string& heading, const Holding& holding) {
  Table rows{{"", "held", "asked for", "blocks", "from before", "freed, awaiting the device"}};
  const auto or_nothing = [](std::uint64_t bytes) {
    return bytes == 0 ? std::string() : format_amount(bytes);
  };
  const auto add = [&](const Holder& holder) {
    rows.push_back({cell(holder.key), format_amount(holder.bytes), format_amount(holder.requested),
                    std::to_string(holder.blocks), or_nothing(holder.from_before),
                    or_nothing(holder.awaiting)});
  };
  for (const Holder& holder : holding.holders) add(holder);
  if (holding.others.blocks != 0 || holding.others.awaiting != 0) add(holding.others);
  return section(heading + (holding.known ? "" : " (events are missing: a part is not known)"),
                 rows);
}

std::string pool_text(const PoolFigures& pool) {
  const PoolSeries& series = pool.series;
  const std::string name = cell(series.name) + (series.host ? " (host memory)" : "");
  std::string text = "\nMemory of " + name + "\n";
  text += lay_out({{"peak allocated and awaiting", format_amount(series.peak_held)},
                   {"peak allocated", format_amount(series.peak_allocated)},
                   {"peak reserved", format_amount(series.peak_reserved)},
                   {"fragmentation at the peaks", format_share(pool.fragmentation.at_peak)},
                   {"reserved but not allocated, over time", format_share(pool.fragmentation.mean)},
                   {"lost to rounding, over time", format_share(pool.fragmentation.waste)}});
  const std::string at = " at the peak, " + format_time(series.peak_at);
  text += holders("Holders by label" + at, pool.by_label);
  text += holders("Holders by kind of batch" + at, pool.by_kind);
  text += holders("Holders by call site" + at, pool.by_site);
  return text;
}

/// Describes the memory that the driver gave to libraries, and its own pools.
std::string driver_text(const DriverMemoryFigures& driver) {
  if (!driver.told) return {};
  std::string text = "\nMemory from the driver\n";
  text += lay_out({{"peak of device memory", format_amount(driver.device_peak)},
                   {"peak of pinned memory", format_amount(driver.pinned_peak)},
                   {"peak used of the driver's own pools", format_amount(driver.pools_used_peak)},
                   {"peak reserved by them", format_amount(driver.pools_reserved_peak)}});
  Table rows{{"", "held", "blocks"}};
  for (const LibraryMemory& one : driver.at_peak) {
    rows.push_back({one.library.empty() ? "no library" : cell(one.library),
                    format_amount(one.bytes), std::to_string(one.blocks)});
  }
  return text + section("Device memory from the driver by library at the peak, " +
                            format_time(driver.peak_at),
                        rows);
}

std::string failure_text(const Failure& failure) {
  std::string heading = "Out of memory at " + format_time(failure.at) + ": " +
                        format_amount(failure.requested) + " for " +
                        (failure.label.empty() ? "no label" : cell(failure.label));
  if (failure.batch != 0) heading += ", batch " + std::to_string(failure.batch);
  if (!failure.kind.empty()) heading += " (" + cell(failure.kind) + ")";
  if (!failure.site.empty()) heading += ", " + cell(failure.site);
  const Holding& then = failure.holding;
  heading += "\n  reserved " + format_amount(then.counts.reserved()) + " = allocated " +
             format_amount(then.counts.allocated) + " + awaiting " +
             format_amount(then.counts.awaiting) + " + cached " +
             format_amount(then.counts.cached) + "; budget " + format_amount(then.budget);
  return holders(heading + "\nHolders by label then", then);
}

std::string stall_text(const ReportFigures& figures) {
  const StallFigures& stalls = figures.summary.stalls;
  Table rows{{"", "count", "total", "share of the time"}};
  const auto add = [&](std::string_view name, const Waits& waits) {
    if (waits.count == 0) return;
    rows.push_back({std::string(name), std::to_string(waits.count), format_time(waits.total),
                    percent_of(waits.total, figures.summary.duration)});
  };
  for (std::size_t i = 0; i < kStallReasons; ++i)
    add(to_string(static_cast<TimelineStall>(i)), stalls.admission.at(i));
  add("allocations that waited", stalls.memory);
  add("launches held back", stalls.pace);
  return section("What held the frontend back", rows);
}

std::string idle_text(const ReportFigures& figures) {
  std::string text;
  for (const DeviceIdle& device : figures.devices) {
    Table rows{{"", "gaps", "total", "share"}};
    rows.push_back(
        {"busy", "", format_time(device.busy), percent_of(device.busy, device.recorded)});
    for (std::size_t i = 0; i < kIdleCauses; ++i) {
      const IdleSum& sum = device.causes.at(i);
      if (sum.count == 0) continue;
      rows.push_back({"idle: " + std::string(to_string(static_cast<IdleCause>(i))),
                      std::to_string(sum.count), format_time(sum.total),
                      percent_of(sum.total, device.recorded)});
    }
    text += section("Time of " + device.name, rows);
  }
  Table rows{{"", "busy", "share", "pieces of work"}};
  for (std::size_t i = 0; i < figures.streams.size(); ++i) {
    const StreamBusy& stream = figures.streams[i];
    rows.push_back({cell(figures.stream_names[i]), format_time(stream.busy),
                    percent_of(stream.busy, stream.recorded), std::to_string(stream.count)});
  }
  return text + section("Streams", rows);
}

/// Returns the heading of the ranked barriers.
std::string barrier_heading(const std::vector<BarrierSite>& ranked) {
  if (ranked.empty() || ranked.front().idle_after == 0) return "Barriers";
  BarrierSite first = ranked.front();
  first.site = cell(first.site);
  first.call = cell(first.call);
  return "Barriers, the costliest first: " + describe(first);
}

std::string barrier_text(const ReportFigures& figures, std::size_t most) {
  Table rows{{"", "call", "times", "waited", "idle in it", "idle after it"}};
  for (const BarrierSite& site : figures.barriers) {
    if (rows.size() > most) break;
    rows.push_back({cell(site.site), cell(site.call), std::to_string(site.count),
                    format_time(site.waited), format_time(site.idle_in),
                    format_time(site.idle_after)});
  }
  return section(barrier_heading(figures.barriers), rows,
                 figures.barriers.size() - (rows.size() - 1));
}

std::string task_text(const TaskTable& table, bool of_device, std::size_t most) {
  Table rows{{"", "count", "total", "share", "longest", "bytes", "bytes/s"}};
  for (const TaskRow& row : table.rows) {
    if (rows.size() > most) break;
    const bool timed = row.group != TaskGroup::kAllocator;
    rows.push_back({cell(row.name), std::to_string(row.count), timed ? format_time(row.total) : "-",
                    of_device ? format_share(row.share) : "-",
                    timed ? format_time(row.longest) : "-",
                    row.bytes == 0 ? "-" : format_amount(row.bytes),
                    row.bytes_per_second <= 0
                        ? "-"
                        : format_amount(static_cast<std::uint64_t>(row.bytes_per_second)) + "/s"});
  }
  const std::size_t left_out = table.rows.size() - (rows.size() - 1);
  if (of_device) {
    rows.push_back({"Totals", std::to_string(table.count), format_time(table.busy),
                    format_share(table.busy == 0 ? 0 : 1), "", "", ""});
  }
  return section(of_device ? "Tasks of " + table.name : "Allocator and waits", rows, left_out);
}

std::string accounting_text(const AccountingCheck& accounting) {
  if (accounting.differ == 0) return {};
  const Disagreement& first = accounting.first.front();
  return "\nThe pool's own counts differ from its events " + std::to_string(accounting.differ) +
         " times, first at " + format_time(first.at) + ".\n";
}

std::string process_text(const Process& process, const ReportOptions& options) {
  const Index index(process);
  const ReportFigures figures = report_figures(index, options);
  std::string text = printable(figures.summary.process + ": " + in_words(figures.summary)) + "\n";
  for (const std::string& note : figures.notes) text += "Note: " + printable(note) + "\n";
  text += accounting_text(figures.accounting);
  for (const PoolFigures& pool : figures.pools) text += pool_text(pool);
  text += driver_text(figures.driver);
  for (const Failure& failure : figures.failures) text += failure_text(failure);
  if (figures.summary.stalls.failures > figures.failures.size()) {
    text += "\nOut of memory: " +
            std::to_string(figures.summary.stalls.failures - figures.failures.size()) + " more\n";
  }
  text += stall_text(figures);
  text += idle_text(figures);
  text += barrier_text(figures, options.most_rows);
  for (std::size_t i = 0; i < figures.tables.size(); ++i)
    text += task_text(figures.tables[i], i + 1 < figures.tables.size(), options.most_rows);
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
