#include "tools/timeline/page/tables.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "allocator/base/utf8.hpp"

namespace weir::timeline {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostRows = 100;  // of barriers and of tasks each

[[nodiscard]] std::string shown(std::string_view text) { return shorten(text, kLongestName); }

[[nodiscard]] Json holding_json(const Holding& holding, std::string_view by) {
  Json holders = Json::array();
  std::uint64_t awaiting = 0;
  for (const Holder& holder : holding.holders) {
    const std::string key = shown(holder.key);
    if (holder.blocks != 0) {
      holders.push_back({{"key", key}, {"bytes", holder.bytes}, {"blocks", holder.blocks}});
    }
    if (holder.awaiting != 0) {
      holders.push_back({{"key", key + " (freed, awaiting the device)"},
                         {"bytes", holder.awaiting},
                         {"blocks", ""}});
      awaiting += holder.awaiting;
    }
  }
  const auto larger = [](const Json& a, const Json& b) { return a["bytes"] > b["bytes"]; };
  std::stable_sort(holders.begin(), holders.end(), larger);
  if (holding.others.blocks != 0) {
    holders.push_back({{"key", "all others"},
                       {"bytes", holding.others.bytes},
                       {"blocks", holding.others.blocks},
                       {"rest", true}});
  }
  if (holding.counts.awaiting > awaiting) {
    holders.push_back({{"key", "others (freed, awaiting the device)"},
                       {"bytes", holding.counts.awaiting - awaiting},
                       {"blocks", ""},
                       {"rest", true}});
  }
  return Json{{"by", by}, {"holders", std::move(holders)}};
}

[[nodiscard]] std::string failure_title(const Failure& failure) {
  std::string title = "Out of memory at " + format_time(failure.at) + ": " +
                      format_amount(failure.bytes) + " for " +
                      (failure.label.empty() ? "a block without a label" : shown(failure.label));
  if (!failure.site.empty()) {
    title += ", asked for at " + shown(failure.site);
  }
  if (failure.batch != 0) {
    title += ", in batch " + std::to_string(failure.batch);
  }
  return title;
}

[[nodiscard]] Json peaks_json(const ReportFigures& figures) {
  Json peaks = Json::array();
  for (const PoolFigures& pool : figures.pools) {
    const PoolCounts& counts = pool.by_label.counts;
    const std::uint64_t held = add_capped(counts.allocated, counts.awaiting);
    if (held == 0) {
      continue;
    }
    Json holdings = Json::array();
    const auto add = [&holdings](const Holding& holding, GroupBy by, std::string_view what) {
      if (has_names(holding, by)) holdings.push_back(holding_json(holding, what));
    };
    add(pool.by_label, GroupBy::kLabel, "Label");
    add(pool.by_kind, GroupBy::kKind, "Batch kind");
    add(pool.by_site, GroupBy::kSite, "Call site");
    peaks.push_back(
        Json{{"title", "Peak of " + shown(pool.peaks.name) + ": " + format_amount(held) + " at " +
                           format_time(pool.peaks.peak_at)},
             {"holdings", std::move(holdings)},
             {"words", missing_names(pool.by_label, pool.by_kind, pool.by_site)}});
  }
  for (const Failure& failure : figures.failures) {
    peaks.push_back(Json{{"title", failure_title(failure)},
                         {"holdings", Json::array({holding_json(failure.holding, "Label")})}});
  }
  if (figures.summary.stalls.failures > figures.failures.size()) {
    const std::uint64_t more = figures.summary.stalls.failures - figures.failures.size();
    peaks.push_back(Json{{"title", "Out of memory: " + std::to_string(more) + " more"},
                         {"holdings", Json::array()}});
  }
  return peaks;
}

[[nodiscard]] Json failures_json(const ReportFigures& figures) {
  Json out = Json::array();
  for (const Failure& failure : figures.failures) {
    out.push_back(Json{{"at", failure.at}, {"source", failure.source}});
  }
  return out;
}

[[nodiscard]] Json idle_json(const ReportFigures& figures) {
  Json out = Json::array();
  for (const DeviceIdle& device : figures.devices) {
    Json causes = Json::array();
    for (std::size_t k = 0; k < kIdleCauses; ++k) {
      const auto cause = static_cast<IdleCause>(k);
      causes.push_back(Json{{"cause", to_string(cause)},
                            {"explanation", explain(cause)},
                            {"count", device.causes[k].count},
                            {"total", device.causes[k].total}});
    }
    out.push_back(Json{{"device", shown(device.name)},
                       {"recorded", device.recorded},
                       {"idle", device.idle},
                       {"causes", std::move(causes)}});
  }
  return out;
}

/// Describes the costliest barrier in a sentence; empty if the device was never idle after one.
[[nodiscard]] std::string first_barrier(const ReportFigures& figures) {
  if (figures.barriers.empty() || figures.barriers.front().idle_after == 0) {
    return {};
  }
  return describe(figures.barriers.front());
}

[[nodiscard]] Json barriers_json(const ReportFigures& figures) {
  Json out = Json::array();
  for (const BarrierSite& site : figures.barriers) {
    if (out.size() == kMostRows) {
      break;
    }
    out.push_back(Json{{"site", shown(site.site)},
                       {"call", shown(site.call)},
                       {"count", site.count},
                       {"waited", site.waited},
                       {"longest", site.longest},
                       {"idle_in", site.idle_in},
                       {"idle_after", site.idle_after}});
  }
  return out;
}

[[nodiscard]] std::string_view word_of(TaskGroup group) {
  constexpr std::array<std::string_view, 5> kWords{"operation", "copy", "set", "allocator",
                                                   "frontend waits"};
  return kWords.at(static_cast<std::size_t>(group));
}

[[nodiscard]] bool on_streams(TaskGroup group) {
  return group == TaskGroup::kOperation || group == TaskGroup::kCopy || group == TaskGroup::kSet;
}

[[nodiscard]] Json task_row(const TaskRow& row) {
  return Json{{"name", shown(row.name)},
              {"group", word_of(row.group)},
              {"count", row.count},
              {"total", row.total},
              {"timed", row.group != TaskGroup::kAllocator},
              {"share", row.share},
              {"bytes", row.bytes},
              {"rate", row.bytes_per_second}};
}

// Sums the rows beyond the limit, so that the shown rows still add up to the total.
[[nodiscard]] Json task_rest(const TaskTable& table, const std::vector<bool>& kept) {
  TaskRow rest;
  std::size_t rows = 0;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (!kept[i] && on_streams(table.rows[i].group)) {
      ++rows;
      rest.count += table.rows[i].count;
      rest.total += table.rows[i].total;
      rest.share += table.rows[i].share;
      rest.bytes = add_capped(rest.bytes, table.rows[i].bytes);
    }
  }
  rest.name = std::to_string(rows) + " more operations";
  return rows == 0 ? Json() : task_row(rest);
}

[[nodiscard]] Json task_json(const TaskTable& table, std::string_view device) {
  Json rows = Json::array();
  std::vector<bool> kept(table.rows.size());
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    // Rows of a group are sorted by total, so the first ones matter most.
    kept[i] = rows.size() < kMostRows || !on_streams(table.rows[i].group);
    if (kept[i] && rows.size() < 2 * kMostRows) {
      rows.push_back(task_row(table.rows[i]));
    }
  }
  Json rest = task_rest(table, kept);
  if (!rest.is_null()) {
    rows.push_back(std::move(rest));
  }
  if (table.busy != 0) {
    TaskRow total;
    total.name = "Totals";
    total.count = table.count;
    total.total = table.busy;
    total.share = 1;
    rows.push_back(task_row(total));
    rows.back()["group"] = "streams";
    rows.back()["total_row"] = true;
  }
  return Json{{"device", device}, {"rows", std::move(rows)}};
}

[[nodiscard]] Json tasks_json(const ReportFigures& figures) {
  Json out = Json::array();
  for (const TaskTable& table : figures.tables) {
    if (!table.rows.empty()) {
      out.push_back(task_json(
          table, table.busy != 0 ? shown(table.name) : "Allocator and waits of the program"));
    }
  }
  return out;
}

}  // namespace

std::string shorten(std::string_view text, std::size_t most) {
  if (text.size() <= most) {
    return std::string(text);
  }
  return std::string(cut_between_characters(text, most - std::min<std::size_t>(most, 3))) +
         "\u2026";
}

nlohmann::ordered_json tables_of(const ReportFigures& figures) {
  Json out;
  out["name"] = shown(figures.summary.process);
  Json notes = Json::array();
  for (const std::string& note : figures.notes) {
    notes.push_back(shown(note));
  }
  out["notes"] = std::move(notes);
  out["summary"] = shorten(in_words(figures.summary), 4 * kLongestName);
  out["alarm"] = !figures.summary.complete || figures.summary.lost != 0;
  out["failures"] = failures_json(figures);
  out["peaks"] = peaks_json(figures);
  out["idle"] = idle_json(figures);
  out["barriers"] = barriers_json(figures);
  out["first_barrier"] = shorten(first_barrier(figures), 4 * kLongestName);
  out["tasks"] = tasks_json(figures);
  return out;
}

}  // namespace weir::timeline
