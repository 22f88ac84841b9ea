// The memory of the text report: pools, the driver's, and failed requests.

#include <array>
#include <utility>

#include "tools/timeline/analysis/report/report_parts.hpp"

namespace weir::timeline::parts {
namespace {

std::vector<Holder> rows_of(const Holding& holding) {
  std::vector<Holder> rows = holding.holders;
  if (holding.others.blocks != 0 || holding.others.awaiting != 0) rows.push_back(holding.others);
  return rows;
}

ReportTable holders(const std::vector<Holder>& rows, Long text) {
  ReportTable table;
  table
      .words({"held by", "what is named above"},
             cells_of(rows, [](const Holder& h) { return whole(h.key); }), text)
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

/// What holders are summed by.
struct Grouping {
  std::string what;
  const Holding* holding;
  GroupBy by;
};

}  // namespace

std::string pool_text(const Tables& tables, const PoolFigures& pool) {
  const PoolPeaks& peaks = pool.peaks;
  const std::string name = cell(peaks.name) + (peaks.host ? " (host memory)" : "");
  std::string text = "\nMemory of " + name + "\n";
  text += Tables::facts(
      {{"peak allocated and awaiting", format_amount(peaks.peak_held)},
       {"peak allocated", format_amount(peaks.peak_allocated)},
       {"peak reserved", format_amount(peaks.peak_reserved)},
       {"fragmentation at the peaks", format_share(pool.fragmentation.at_peak) + ", " +
                                          format_share(pool.fragmentation.held_at_peak) +
                                          " without what awaited the device"},
       {"reserved but not allocated, over time", format_share(pool.fragmentation.mean)},
       {"lost to rounding, over time", format_share(pool.fragmentation.waste)}});
  const std::string at = " at the peak, " + format_time(peaks.peak_at);
  const std::array<Grouping, 3> by{{{"label", &pool.by_label, GroupBy::kLabel},
                                    {"kind of batch", &pool.by_kind, GroupBy::kKind},
                                    {"call site", &pool.by_site, GroupBy::kSite}}};
  std::vector<ReportTable> all;
  std::vector<Holder> every_row;  // the legend is of all of them
  for (const Grouping& one : by) {
    // A table of unnamed memory alone says nothing: the line below says it.
    const std::vector<Holder> rows =
        has_names(*one.holding, one.by) ? rows_of(*one.holding) : std::vector<Holder>();
    all.push_back(holders(rows, one.by == GroupBy::kSite ? Long::kTail : Long::kCut));
    every_row.insert(every_row.end(), rows.begin(), rows.end());
  }
  all.push_back(holders(every_row, Long::kCut));
  ReportTable::use_same_units(all);
  for (std::size_t i = 0; i < by.size(); ++i) {
    text += tables.rows(heading_of("Holders by " + by.at(i).what + at, *by.at(i).holding), all[i]);
  }
  if (!every_row.empty()) text += tables.legend(all.back());
  const std::string missing = missing_names(pool.by_label, pool.by_kind, pool.by_site);
  return missing.empty() ? text : text + "\n" + wrapped(missing, 2);
}

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
      tables.section(heading_of("Holders by label then", then), holders(rows_of(then), Long::kCut));
  if (table.empty()) return {};
  return "\n" + wrapped(heading, 2) + wrapped(memory, 4) + table.substr(1);
}

}  // namespace weir::timeline::parts
