#include "bench/stress/report.hpp"

#include <optional>

#include "tools/program/report_table.hpp"

namespace weir::bench {

std::string pattern_table(const std::vector<std::string>& allocators,
                          const std::vector<PatternRow>& rows, bool wide) {
  ReportTable table;
  table.words({"pattern", ""}, cells_of(rows, [](const PatternRow& row) { return row.name; }));
  for (std::size_t i = 0; i < allocators.size(); ++i) {
    table.numbers({allocators[i], ""},
                  cells_of(rows, [&](const PatternRow& row) { return row.cells.at(i); }));
  }
  table.words({"what it does", "", Shown::kWide},
              cells_of(rows, [](const PatternRow& row) { return row.what; }));
  return table.rows(wide);
}

std::string pattern_legend(const std::vector<PatternRow>& rows, bool wide) {
  std::string text;
  for (const PatternRow& row : rows) {
    if (!wide) text += wrapped("  " + row.name + ": " + row.what, 4);
  }
  return text;
}

std::string run_ahead_table(const std::vector<RunAheadFigures>& rows, bool wide) {
  ReportTable table;
  table
      .words({"policy", "how the frontend is held back"},
             cells_of(rows, [](const auto& row) { return std::string(to_string(row.policy)); }))
      .bytes({"peak", "most memory taken"},
             cells_of(rows, [](const auto& row) { return std::optional(row.peak_reserved); }))
      .numbers({"batches", "how many were submitted"},
               cells_of(rows, [](const auto& row) { return std::to_string(row.batches); }))
      .numbers({"held back", "how often"},
               cells_of(rows, [](const auto& row) { return std::to_string(row.waits); }))
      .words({"result", "how it ended"}, cells_of(rows, [](const auto& row) -> std::string {
               if (!row.wrong.empty()) return "wrong";
               return row.ran_out ? "out of memory; smaller batches go on" : "finished";
             }));
  return table.format(wide);
}

}  // namespace weir::bench
