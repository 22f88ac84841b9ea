// The report as JSON.

#include <array>
#include <nlohmann/json.hpp>

#include "allocator/base/version.hpp"
#include "tools/timeline/analysis/report/report_parts.hpp"

namespace weir::timeline {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const std::vector<std::string>& lines) {
  Json json = Json::array();
  for (const std::string& line : lines) json.push_back(printable(line));
  return json;
}

Json to_json(const Waits& waits) { return {{"count", waits.count}, {"total_ns", waits.total}}; }

Json to_json(const Holder& holder) {
  return {{"key", printable(holder.key)},      {"bytes", holder.bytes},
          {"requested", holder.requested},     {"blocks", holder.blocks},
          {"from_before", holder.from_before}, {"awaiting", holder.awaiting}};
}

Json to_json(const Holding& holding) {
  Json holders = Json::array();
  for (const Holder& holder : holding.holders) holders.push_back(to_json(holder));
  return {{"at_ns", holding.at},
          {"known", holding.known},
          {"allocated", holding.counts.allocated},
          {"awaiting", holding.counts.awaiting},
          {"cached", holding.counts.cached},
          {"budget", holding.budget},
          {"holders", std::move(holders)},
          {"others", to_json(holding.others)}};
}

Json causes(const IdleTimes& times) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kIdleCauses; ++i)
    json[std::string(to_string(static_cast<IdleCause>(i)))] = times.at(i);
  return json;
}

Json to_json(const StallFigures& stalls) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kStallReasons; ++i)
    json[std::string(to_string(static_cast<TimelineStall>(i)))] = to_json(stalls.admission.at(i));
  json["pace"] = to_json(stalls.pace);
  json["all"] = to_json(stalls.stalls());
  return json;
}

Json to_json(const Summary& summary) {
  return {{"words", printable(in_words(summary))},
          {"complete", summary.complete},
          {"began_late", summary.began_late},
          {"lost", summary.lost},
          {"unknown_records", summary.dropped},
          {"events", summary.events},
          {"duration_ns", summary.duration},
          {"pool", printable(summary.pool)},
          {"peak", summary.peak},
          {"peak_at_ns", summary.peak_at},
          {"peak_batch", summary.peak_batch},
          {"peak_reserved", summary.peak_reserved},
          {"budget", summary.budget},
          {"batches", summary.batches},
          {"barriers", summary.barriers},
          {"failures", summary.stalls.failures},
          {"stalls", to_json(summary.stalls)},
          {"stalled_share", summary.stalled_share},
          {"device_time_ns", summary.device_time},
          {"busy_ns", summary.busy},
          {"idle_ns", summary.idle},
          {"idle_share", summary.idle_share()},
          {"idle_by_cause_ns", causes(summary.idle_causes)}};
}

Json to_json(const PoolFigures& pool) {
  return {{"name", printable(pool.peaks.name)},
          {"host", pool.peaks.host},
          {"peak_held", pool.peaks.peak_held},
          {"peak_at_ns", pool.peaks.peak_at},
          {"peak_batch", pool.peaks.peak_batch},
          {"peak_allocated", pool.peaks.peak_allocated},
          {"peak_reserved", pool.peaks.peak_reserved},
          {"fragmentation_at_peak", pool.fragmentation.at_peak},
          {"fragmentation_of_held", pool.fragmentation.held_at_peak},
          {"unused_share", pool.fragmentation.mean},
          {"rounding_share", pool.fragmentation.waste},
          {"most_unused", pool.fragmentation.most_unused},
          {"at_peak_by_label", to_json(pool.by_label)},
          {"at_peak_by_kind", to_json(pool.by_kind)},
          {"at_peak_by_site", to_json(pool.by_site)}};
}

Json to_json(const LibraryMemory& library) {
  return {{"library", printable(library.library)},
          {"bytes", library.bytes},
          {"blocks", library.blocks}};
}

Json to_json(const DriverMemoryFigures& driver) {
  Json libraries = Json::array();
  for (const LibraryMemory& library : driver.at_peak) libraries.push_back(to_json(library));
  return {{"peak", driver.device_peak},
          {"peak_at_ns", driver.peak_at},
          {"at_peak_by_library", std::move(libraries)},
          {"pinned_peak", driver.pinned_peak},
          {"pools_used_peak", driver.pools_used_peak},
          {"pools_reserved_peak", driver.pools_reserved_peak}};
}

Json to_json(const Failure& failure) {
  return {{"at_ns", failure.at},
          {"bytes", failure.bytes},
          {"requested", failure.requested},
          {"label", printable(failure.label)},
          {"site", printable(failure.site)},
          {"batch", failure.batch},
          {"kind", printable(failure.kind)},
          {"held", to_json(failure.holding)}};
}

Json to_json(const DeviceIdle& device, const Process& process) {
  IdleTimes times{};
  for (std::size_t i = 0; i < kIdleCauses; ++i) times.at(i) = device.causes.at(i).total;
  Json gaps = Json::array();
  for (const Gap& gap : device.gaps) {
    gaps.push_back({{"begin_ns", gap.span.begin},
                    {"end_ns", gap.span.end},
                    {"cause", to_string(gap.cause)},
                    {"site", printable(process.name(gap.site))}});
  }
  return {{"name", device.name},
          {"begin_ns", device.span.begin},
          {"end_ns", device.span.end},
          {"recorded_ns", device.recorded},
          {"busy_ns", device.busy},
          {"idle_ns", device.idle},
          {"gaps", device.gap_count},
          {"idle_by_cause_ns", causes(times)},
          {"longest_gaps", std::move(gaps)}};
}

Json to_json(const BarrierSite& site) {
  return {{"site", printable(site.site)},
          {"call", printable(site.call)},
          {"count", site.count},
          {"waited_ns", site.waited},
          {"longest_ns", site.longest},
          {"idle_in_ns", site.idle_in},
          {"idle_after_ns", site.idle_after}};
}

Json to_json(const StalledBatch& batch, const Process& process) {
  return {{"batch", batch.number},
          {"kind", printable(process.name(batch.kind))},
          {"stalls", batch.stalls},
          {"stalled_ns", batch.stalled},
          {"peak", batch.peak}};
}

Json rows_of(const TaskTable& table) {
  Json rows = Json::array();
  for (const TaskRow& row : table.rows) {
    rows.push_back({{"group", to_string(row.group)},
                    {"name", printable(row.name)},
                    {"count", row.count},
                    {"total_ns", row.total},
                    {"longest_ns", row.longest},
                    {"share", row.share},
                    {"bytes", row.bytes},
                    {"bytes_per_second", row.bytes_per_second}});
  }
  return rows;
}

Json tasks_of(const ReportFigures& figures) {
  Json tables = Json::array();
  for (std::size_t i = 0; i + 1 < figures.tables.size(); ++i) {
    const TaskTable& table = figures.tables[i];
    tables.push_back({{"device", table.name},
                      {"busy_ns", table.busy},
                      {"count", table.count},
                      {"rows", rows_of(table)}});
  }
  return tables;
}

Json to_json(const AccountingCheck& accounting) {
  return {{"compared", accounting.compared},
          {"differ", accounting.differ},
          {"gaps", accounting.gaps},
          {"strays", accounting.strays}};
}

template <typename Items, typename... More>
Json list_of(const Items& items, const More&... more) {
  Json json = Json::array();
  for (const auto& item : items) json.push_back(to_json(item, more...));
  return json;
}

Json streams_of(const ReportFigures& figures) {
  Json json = Json::array();
  for (std::size_t i = 0; i < figures.streams.size(); ++i) {
    const StreamBusy& stream = figures.streams[i];
    json.push_back({{"name", printable(figures.stream_names[i])},
                    {"busy_ns", stream.busy},
                    {"recorded_ns", stream.recorded},
                    {"count", stream.count}});
  }
  return json;
}

Json to_json(const Process& process, const ReportOptions& options) {
  const Index index(process);
  const ReportFigures figures = report_figures(index, parts::limits_of(options));
  Json json{{"program", printable(process.info.program)},
            {"pid", process.info.pid},
            {"rank", nullptr},
            {"host", printable(process.info.host)},
            {"summary", to_json(figures.summary)},
            {"notes", to_json(figures.notes)},
            {"books", to_json(figures.accounting)},
            {"pools", list_of(figures.pools)},
            {"driver_memory", to_json(figures.driver)},
            {"failures", list_of(figures.failures)},
            {"devices", list_of(figures.devices, process)},
            {"streams", streams_of(figures)},
            {"barriers", list_of(figures.barriers)},
            {"most_stalled_batches", list_of(figures.most_stalled, process)},
            {"tasks", tasks_of(figures)},
            {"allocator_and_waits", rows_of(figures.tables.back())}};
  if (process.info.rank) json["rank"] = *process.info.rank;
  return json;
}

}  // namespace

nlohmann::ordered_json report_json(const Timeline& timeline, const ReportOptions& options) {
  Json processes = Json::array();
  std::uint64_t lost = 0;
  for (const Process& process : timeline.processes) {
    processes.push_back(to_json(process, options));
    lost = add_capped(lost, processes.back()["summary"]["lost"].get<std::uint64_t>());
  }
  return {{"weir", kVersion}, {"lost", lost}, {"processes", std::move(processes)}};
}

}  // namespace weir::timeline
