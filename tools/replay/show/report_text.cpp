// Replay results as tables for people.

#include <algorithm>
#include <array>
#include <optional>

#include "tools/program/numbers.hpp"
#include "tools/program/report_table.hpp"
#include "tools/program/units.hpp"
#include "tools/replay/show/report.hpp"

namespace weir::replay {
namespace {

std::string percent(std::optional<double> share) {
  return share ? format_number(100 * *share, 1) : "-";
}

/// Returns the trace's file name without folder and format suffixes.
std::string short_name(const std::string& name) {
  const std::string file = name.substr(name.rfind('/') + 1);  // the whole name if there is no
                                                              // folder
  return file.substr(0, file.find('.'));
}

/// Shortens a name that heads a narrow column.
std::string shortened(const std::string& name, bool wide) {
  constexpr std::size_t kMost = 24;
  return wide || name.size() <= kMost ? name : name.substr(0, kMost - 3) + "...";
}

/// Formats bytes as a multiple of the trace's peak: `1.034`.
std::string times(Bytes bytes, Bytes peak) {
  return peak.count == 0
             ? "-"
             : format_number(static_cast<double>(bytes.count) / static_cast<double>(peak.count), 3);
}

constexpr std::uint64_t kManyPeaks = 16;

/// Returns whether the subject took the whole device, whatever the trace needs. Some subjects take
/// all memory in a few units of their own size.
bool is_all(Bytes reserved, Bytes peak, Bytes capacity) {
  return reserved.count >= capacity.count / 16 * 15 && capacity.count / kManyPeaks >= peak.count;
}

/// Returns what a reader must know about the trace, one remark per line.
std::string remarks(const Trace& trace) {
  std::string text;
  if (!trace.cut.empty()) text += wrapped("  cut short: " + trace.cut, 4);
  for (const std::string& note : trace.notes) text += wrapped("  " + note, 4);
  return text;
}

std::string heading(const TraceResults& result) {
  const Trace& trace = *result.trace;
  return wrapped(trace.name + ": " + format_count(trace.operations.size(), "operation") + ", " +
                     format_count(trace.buffers, "buffer") + ", " +
                     format_count(trace.streams, "stream") + ", peak requested " +
                     format_bytes(result.peak_requested),
                 2) +
         remarks(trace);
}

/// Returns where a pool ran out of memory, and what there was; empty if it did not.
std::string outcome(const Measured& measured) {
  if (!measured.figures.refusal) return "";
  const Refusal& refusal = *measured.figures.refusal;
  return measured.subject + ": out of memory at operation " + std::to_string(refusal.operation) +
         ": asked " + format_bytes(refusal.asked) + " with " + format_bytes(refusal.requested) +
         " requested, " + format_bytes(refusal.footprint.allocated) + " allocated, " +
         format_bytes(refusal.footprint.reserved) + " reserved, largest free block " +
         format_bytes(refusal.footprint.largest_free);
}

/// The table of one trace.
class TraceTable {
 public:
  TraceTable(const TraceResults& result, Bytes capacity)
      : rows_(result.measured), peak_(result.peak_requested), capacity_(capacity) {}

  [[nodiscard]] std::string format(bool wide) const {
    ReportTable table;
    add_memory(table);
    add_cost(table);
    add_details(table);
    table.words({"outcome", "in the whole capacity"}, cells_of(rows_, [](const Measured& m) {
                  return std::string(m.figures.refusal ? "out of memory" : "completed");
                }));
    return table.format(wide);
  }

 private:
  template <typename Size>
  [[nodiscard]] std::vector<std::optional<Bytes>> sizes(const Size& size) const {
    return cells_of(rows_, [&](const Measured& m) { return std::optional<Bytes>(size(m)); });
  }
  template <typename Text>
  [[nodiscard]] std::vector<std::string> texts(const Text& text) const {
    return cells_of(rows_, [&](const Measured& m) -> std::string { return text(m); });
  }
  [[nodiscard]] bool takes_all(const Measured& m) const {
    return is_all(m.figures.peak_reserved, peak_, capacity_);
  }
  [[nodiscard]] bool any_takes_all() const {
    return std::ranges::any_of(rows_, [this](const Measured& m) { return takes_all(m); });
  }
  /// Some subjects do not report what they hand out.
  static bool counts(const Measured& m) { return m.figures.peak_allocated.count != 0; }

  void add_memory(ReportTable& table) const {
    table
        .words({"pool", "the allocator"}, texts([](const Measured& m) { return m.subject; }),
               Long::kCut)
        .numbers({"x peak", std::string("reserved over the peak requested") +
                                (any_takes_all() ? " (all: takes the whole device)" : "")},
                 texts([&](const Measured& m) {
                   return takes_all(m) ? "all" : times(m.figures.peak_reserved, peak_);
                 }))
        .bytes({"reserved", "most memory taken"}, sizes([&](const Measured& m) {
                 return takes_all(m) ? std::nullopt : std::optional(m.figures.peak_reserved);
               }));
    add_least(table);
    table.numbers({"frag %", "1 - allocated / reserved, at their peaks"},
                  texts([](const Measured& m) { return percent(m.figures.fragmentation()); }));
  }

  void add_least(ReportTable& table) const {
    const auto least = sizes([](const Measured& m) {
      return m.least ? std::optional(m.least->capacity) : std::nullopt;
    });
    const bool searched = std::ranges::any_of(least, [](const auto& l) { return l.has_value(); });
    if (!searched) return;
    table
        .numbers({"x least", "least memory in which it completes, over the peak requested"},
                 texts([&](const Measured& m) {
                   return m.least ? times(m.least->capacity, peak_) : "-";
                 }))
        .bytes({"least", "that memory"}, least);
  }

  void add_cost(ReportTable& table) const {
    table
        .numbers({"ns/op", "time of an operation"}, texts([](const Measured& m) {
                   return m.ns_per_operation > 0 ? format_number(m.ns_per_operation, 0) : "-";
                 }))
        .numbers({"calls", "driver calls"},
                 texts([](const Measured& m) { return std::to_string(m.figures.driver_calls); }));
  }

  void add_details(ReportTable& table) const {
    const auto wide = Shown::kWide;
    table
        .numbers({"maps", "how often it mapped a page", wide},
                 texts([](const Measured& m) { return std::to_string(m.figures.mapped_pages); }))
        .numbers({"waits", "how often it waited for the device", wide},
                 texts([](const Measured& m) { return std::to_string(m.figures.waits); }))
        .bytes({"allocated", "most that it handed out", wide}, sizes([](const Measured& m) {
                 return counts(m) ? std::optional(m.figures.peak_allocated) : std::nullopt;
               }))
        .bytes({"waste", "of it, lost to rounding", wide}, sizes([](const Measured& m) {
                 return counts(m) ? std::optional(m.figures.waste) : std::nullopt;
               }))
        .numbers({"largest free %", "largest free block at the peak, of all free bytes", wide},
                 texts([](const Measured& m) { return percent(m.figures.largest_free_share()); }))
        .bytes({"reserved there", "most that it took in the least memory", wide},
               sizes([](const Measured& m) {
                 return m.at_least ? std::optional(m.at_least->peak_reserved) : std::nullopt;
               }));
  }

  const std::vector<Measured>& rows_;
  const Bytes peak_;
  const Bytes capacity_;
};

std::string why(const Score& score) {
  return wrapped("  reserves " + format_number(score.reserved, 3) + " x the peak requested; " +
                     format_number(score.total_ns(), 0) +
                     " ns an operation: " + format_number(score.ns_per_operation, 0) +
                     " its own, and " + format_number(score.driver_calls, 4) + " driver calls of " +
                     format_number(kDriverCallNs / 1000, 0) + " us",
                 4);
}

/// Returns `1.716 / 1.526`: reserved and least memory over the peak requested.
std::string summary_cell(const Measured& measured, Bytes peak, Bytes capacity) {
  const Bytes reserved = measured.figures.peak_reserved;
  std::string cell = times(reserved, peak);
  if (is_all(reserved, peak, capacity)) cell = "all";
  if (measured.figures.refusal) cell = "-";
  return cell + " / " + (measured.least ? times(measured.least->capacity, peak) : "-");
}

/// A breakdown and whose it is.
struct BreakdownRow {
  std::string trace;
  std::string pool;
  Breakdown breakdown;
  bool takes_all = false;  ///< the whole device, whatever the trace needs
};

struct ShownPart {
  const char* heading;
  const char* meaning;
  Bytes Breakdown::*bytes;
};
constexpr std::array kShownParts{
    ShownPart{"reserved", "all of it", &Breakdown::reserved},
    ShownPart{"requested", "live, as requested", &Breakdown::requested},
    ShownPart{"rounding", "handed out beyond that", &Breakdown::rounding},
    ShownPart{"page ends", "free, beside pages with nothing live", &Breakdown::page_ends},
    ShownPart{"holes", "free, between live blocks", &Breakdown::holes},
    ShownPart{"whole pages", "free, on pages with nothing live", &Breakdown::whole_pages}};

/// Returns the size of a part; nothing for what a row that takes the whole device has of it beyond
/// the trace: that would decide the unit of all rows.
std::optional<Bytes> size_of(const BreakdownRow& row, const ShownPart& part, Bytes capacity) {
  const Bytes bytes = row.breakdown.*part.bytes;
  if (row.takes_all && bytes.count >= capacity.count / kManyPeaks) return std::nullopt;
  return bytes;
}

/// Adds the parts in one unit, because they add up. Returns the unit.
std::string add_parts(ReportTable& table, const std::vector<BreakdownRow>& rows, Bytes capacity,
                      bool wide) {
  std::vector<std::optional<Bytes>> all;
  for (const ShownPart& part : kShownParts) {
    for (const BreakdownRow& row : rows) all.push_back(size_of(row, part, capacity));
  }
  const UnitColumn column = in_one_unit(all);
  const bool any_takes_all = std::ranges::any_of(rows, &BreakdownRow::takes_all);
  std::size_t at = 0;
  for (const ShownPart& part : kShownParts) {
    const bool first = &part == kShownParts.data();
    table.numbers(
        {part.heading,
         std::string(part.meaning) +
             (first && any_takes_all ? " (all: takes the whole device; rest: most of that)" : "")},
        cells_of(rows, [&](const BreakdownRow& row) -> std::string {
          const std::size_t cell = at++;
          if (!all[cell]) return first ? "all" : "rest";
          const auto bytes = static_cast<double>(all[cell]->count);
          const auto page = static_cast<double>(row.breakdown.page.count);
          return column.cells[cell] +
                 (wide ? " / " + format_number(bytes / page, 1) : std::string());
        }));
  }
  return column.unit;
}

/// Returns for which lag the advice holds, and what to pass for a program that runs ahead.
std::string lag_text(std::uint64_t lag) {
  if (lag == 0) {
    return wrapped(
        "for --lag 0: the device is done with memory once it is freed; a program that runs ahead "
        "of "
        "the device holds more: compare with --lag 30 and --lag 200, the allocations and frees "
        "that "
        "the device is behind",
        2);
  }
  return wrapped("for --lag " + std::to_string(lag) +
                     ": the device is so many allocations and frees behind the program",
                 2);
}

}  // namespace

std::string advice_text(const Advice& advice, const Setup& setup) {
  if (!advice.recommendation) return "recommended: none, since no pool completed every trace\n";
  const Recommendation& found = *advice.recommendation;
  std::string text =
      "recommended: " + advice.variables[found.best.candidate] + "\n" + why(found.best);
  std::string equal;
  for (const Score& other : found.equal) {
    equal += (equal.empty() ? "" : "; ") + advice.variables[other.candidate];
  }
  if (!equal.empty()) {
    text += wrapped("  equal, within the difference of two timings: " + equal, 4);
  }
  if (found.second) {
    text += "second best: " + advice.variables[found.second->candidate] + "\n" + why(*found.second);
  }
  return text + lag_text(setup.lag);
}

std::string setup_text(const Setup& setup) {
  return "upstream " + setup.upstream + " of " + format_bytes(setup.capacity) + ", the device " +
         format_count(setup.lag, "operation") + " behind the host";
}

std::string summary_text(std::span<const TraceResults> results, const Setup& setup, bool wide) {
  ReportTable table;
  std::string below;
  if (!results.empty()) {
    table.words({"pool", "the allocator"},
                cells_of(results.front().measured, [](const Measured& m) { return m.subject; }));
  }
  for (const TraceResults& result : results) {
    std::string beside = remarks(*result.trace);
    for (const Measured& measured : result.measured) {
      if (!measured.figures.refusal) continue;
      beside += wrapped("  " + outcome(measured), 4);
    }
    if (!beside.empty()) below += "\n" + result.trace->name + ":\n" + beside;
    table.numbers({shortened(short_name(result.trace->name), wide), ""},
                  cells_of(result.measured, [&](const Measured& measured) {
                    return summary_cell(measured, result.peak_requested, setup.capacity);
                  }));
  }
  return setup_text(setup) + "\n\n" + table.format(wide) +
         wrapped(
             "  of each trace: peak reserved / least memory in which it completes, each over "
             "the peak requested; all: the whole device; -: out of memory, or not searched.",
             2) +
         below;
}

std::string results_text(std::span<const TraceResults> results, const Setup& setup, bool wide) {
  std::string text = setup_text(setup) + "\n";
  for (const TraceResults& result : results) {
    text += "\n" + heading(result) + "\n" + TraceTable(result, setup.capacity).format(wide);
    std::string outcomes;
    for (const Measured& measured : result.measured) {
      if (measured.figures.refusal) outcomes += wrapped(outcome(measured), 2);
    }
    text += outcomes.empty() ? "" : "\n" + outcomes;
  }
  return text;
}

std::string breakdown_text(std::span<const TraceResults> results, const Setup& setup, bool wide) {
  std::vector<BreakdownRow> rows;
  for (const TraceResults& result : results) {
    for (const Measured& measured : result.measured) {
      if (!measured.breakdown) continue;
      const Bytes reserved = measured.breakdown->reserved;
      rows.push_back({.trace = short_name(result.trace->name),
                      .pool = measured.subject,
                      .breakdown = *measured.breakdown,
                      .takes_all = is_all(reserved, result.peak_requested, setup.capacity)});
    }
  }
  if (rows.empty()) return "";
  ReportTable table;
  table.words({"trace", "its file"}, cells_of(rows, [](const auto& row) { return row.trace; }),
              Long::kCut);
  table.words({"pool", "the allocator"}, cells_of(rows, [](const auto& row) { return row.pool; }),
              Long::kCut);
  table.numbers(
      {"operation", "after which it was so", Shown::kWide},
      cells_of(rows, [](const auto& row) { return std::to_string(row.breakdown.operation); }));
  const std::string unit = add_parts(table, rows, setup.capacity, wide);
  const std::string pages = "pages of " + format_bytes(rows.back().breakdown.page);
  return "where the reserved memory was at its peak, in " + unit +
         (wide ? " / in " + pages : ", on " + pages) + "\n\n" + table.format(wide);
}

}  // namespace weir::replay
