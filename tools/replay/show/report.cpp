#include "tools/replay/show/report.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "allocator/base/version.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/table.hpp"

namespace weir::replay {
namespace {

using Json = nlohmann::json;

std::string percent(std::optional<double> share) {
  return share ? format_number(100 * *share, 1) + "%" : "-";
}

/// Returns the trace's file name without folder and format suffixes.
std::string short_name(const std::string& name) {
  const std::string file = name.substr(name.rfind('/') + 1);  // the whole name if there is no
                                                              // folder
  return file.substr(0, file.find('.'));
}

/// Formats bytes as a multiple of the trace's peak: `1.034`.
std::string times(Bytes bytes, Bytes peak) {
  return peak.count == 0
             ? "-"
             : format_number(static_cast<double>(bytes.count) / static_cast<double>(peak.count), 3);
}

/// Returns whether the subject took the whole device, whatever the trace needs. Some subjects take
/// all memory in a few units of their own size.
bool is_all(Bytes reserved, Bytes peak, Bytes capacity) {
  constexpr std::uint64_t kManyPeaks = 16;
  return reserved.count >= capacity.count / 16 * 15 && capacity.count / kManyPeaks >= peak.count;
}

/// Returns what a reader must know about the trace, one remark per line.
std::string remarks(const Trace& trace) {
  std::string text;
  if (!trace.cut.empty()) text += "  cut short: " + trace.cut + "\n";
  for (const std::string& note : trace.notes) text += "  " + note + "\n";
  return text;
}

std::string heading(const TraceResults& result) {
  const Trace& trace = *result.trace;
  const std::string text = trace.name + ": " + format_count(trace.operations.size(), "operation") +
                           ", " + format_count(trace.buffers, "buffer") + ", " +
                           format_count(trace.streams, "stream") + ", peak requested " +
                           format_bytes(result.peak_requested) + "\n";
  return text + remarks(trace);
}

std::string outcome(const Measured& measured) {
  if (!measured.figures.refusal) return "";
  const Refusal& refusal = *measured.figures.refusal;
  return measured.subject + ": out of memory at operation " + std::to_string(refusal.operation) +
         ": asked " + format_bytes(refusal.asked) + " with " + format_bytes(refusal.requested) +
         " requested, " + format_bytes(refusal.footprint.allocated) + " allocated, " +
         format_bytes(refusal.footprint.reserved) + " reserved, largest free block " +
         format_bytes(refusal.footprint.largest_free) + "\n";
}

std::vector<std::string> cells(const Measured& measured, Bytes peak) {
  const Figures& figures = measured.figures;
  const bool counts = figures.peak_allocated.count != 0;
  return {
      measured.subject,
      counts ? format_bytes(figures.peak_allocated) : "-",
      format_bytes(figures.peak_reserved),
      times(figures.peak_reserved, peak),
      percent(figures.fragmentation()),
      counts ? format_bytes(figures.waste) : "-",
      percent(figures.largest_free_share()),
      std::to_string(figures.driver_calls),
      std::to_string(figures.mapped_pages),
      std::to_string(figures.waits),
      measured.ns_per_operation > 0 ? format_number(measured.ns_per_operation, 0) : "-",
      measured.least ? format_bytes(measured.least->capacity) : "-",
      measured.least ? times(measured.least->capacity, peak) : "-",
      measured.at_least ? format_bytes(measured.at_least->peak_reserved) : "-",
      figures.refusal ? "out of memory" : "completed",
  };
}

Json figures_json(const Figures& figures) {
  Json json{{"operations", figures.operations},
            {"completed", !figures.refusal},
            {"peak_requested_bytes", figures.peak_requested.count},
            {"peak_allocated_bytes", figures.peak_allocated.count},
            {"peak_reserved_bytes", figures.peak_reserved.count},
            {"fragmentation", nullptr},
            {"internal_waste_bytes", figures.waste.count},
            {"free_at_peak_bytes", figures.free_at_peak.count},
            {"largest_free_at_peak_bytes", figures.largest_free_at_peak.count},
            {"driver_calls", figures.driver_calls},
            {"mapped_pages", figures.mapped_pages},
            {"waits", figures.waits}};
  if (const auto share = figures.fragmentation()) json["fragmentation"] = *share;
  if (figures.refusal) {
    const Refusal& refusal = *figures.refusal;
    json["out_of_memory"] = {{"operation", refusal.operation},
                             {"asked_bytes", refusal.asked.count},
                             {"requested_bytes", refusal.requested.count},
                             {"allocated_bytes", refusal.footprint.allocated.count},
                             {"reserved_bytes", refusal.footprint.reserved.count},
                             {"largest_free_bytes", refusal.footprint.largest_free.count}};
  }
  return json;
}

/// The names of `reserved` and its parts in a table; JSON appends `_bytes`.
struct Part {
  const char* title;
  const char* name;
  Bytes Breakdown::*bytes;
};
constexpr std::array kParts{Part{"reserved", "reserved", &Breakdown::reserved},
                            Part{"requested", "requested", &Breakdown::requested},
                            Part{"rounding", "rounding", &Breakdown::rounding},
                            Part{"page ends", "page_ends", &Breakdown::page_ends},
                            Part{"holes", "holes", &Breakdown::holes},
                            Part{"whole pages", "whole_pages", &Breakdown::whole_pages}};

/// Formats bytes in MiB and in pages: `93.25 / 46.6`.
std::string in_pages(Bytes bytes, Bytes page) {
  const auto count = static_cast<double>(bytes.count);
  return format_number(count / static_cast<double>(mib(1).count), 2) + " / " +
         format_number(count / static_cast<double>(page.count), 1);
}

Json breakdown_json(const Breakdown& breakdown) {
  Json json{{"operation", breakdown.operation}, {"page_bytes", breakdown.page.count}};
  for (const Part& part : kParts) {
    json[std::string(part.name) + "_bytes"] = (breakdown.*part.bytes).count;
  }
  return json;
}

Json measured_json(const Measured& measured) {
  Json json = figures_json(measured.figures);
  json["pool"] = measured.subject;
  json["ns_per_operation"] =
      measured.ns_per_operation > 0 ? Json(measured.ns_per_operation) : Json(nullptr);
  if (measured.least) {
    json["least_capacity"] = {{"bytes", measured.least->capacity.count},
                              {"failed_bytes", measured.least->failed.count},
                              {"tries", measured.least->tries}};
  }
  if (measured.at_least) json["at_least_capacity"] = figures_json(*measured.at_least);
  if (measured.breakdown) json["breakdown"] = breakdown_json(*measured.breakdown);
  return json;
}

std::string why(const Score& score) {
  return "reserves " + format_number(score.reserved, 3) + " x the peak requested; " +
         format_number(score.total_ns(), 0) +
         " ns an operation: " + format_number(score.ns_per_operation, 0) + " its own, and " +
         format_number(score.driver_calls, 4) + " driver calls of " +
         format_number(kDriverCallNs / 1000, 0) + " us";
}

Json score_json(const Score& score, const std::string& variables) {
  return {{"variables", variables},
          {"reserved_over_peak", score.reserved},
          {"driver_calls_per_operation", score.driver_calls},
          {"ns_per_operation", score.ns_per_operation},
          {"ns_per_operation_with_driver_calls", score.total_ns()}};
}

Json advice_json(const Advice& advice) {
  if (!advice.recommendation) return nullptr;
  const Recommendation& found = *advice.recommendation;
  Json json{{"best", score_json(found.best, advice.variables[found.best.candidate])},
            {"equal", Json::array()},
            {"second", nullptr}};
  for (const Score& other : found.equal) {
    json["equal"].push_back(score_json(other, advice.variables[other.candidate]));
  }
  if (found.second) {
    json["second"] = score_json(*found.second, advice.variables[found.second->candidate]);
  }
  return json;
}

}  // namespace

std::string advice_text(const Advice& advice) {
  if (!advice.recommendation) return "recommended: none, since no pool completed every trace\n";
  const Recommendation& found = *advice.recommendation;
  std::string text =
      "recommended: " + advice.variables[found.best.candidate] + "\n  " + why(found.best) + "\n";
  std::string equal;
  for (const Score& other : found.equal) {
    equal += (equal.empty() ? "" : "; ") + advice.variables[other.candidate];
  }
  if (!equal.empty()) text += "  equal, within the difference of two timings: " + equal + "\n";
  if (found.second) {
    text += "second best: " + advice.variables[found.second->candidate] + "\n  " +
            why(*found.second) + "\n";
  }
  return text;
}

std::string setup_text(const Setup& setup) {
  return "upstream " + setup.upstream + " of " + format_bytes(setup.capacity) + ", the device " +
         format_count(setup.lag, "operation") + " behind the host";
}

std::string summary_text(std::span<const TraceResults> results, const Setup& setup) {
  std::vector<std::vector<std::string>> rows{{"pool"}};
  std::string below;
  for (const TraceResults& result : results) {
    rows.front().push_back(short_name(result.trace->name));
    std::string beside = remarks(*result.trace);
    for (const Measured& measured : result.measured) {
      if (measured.figures.refusal) beside += "  " + outcome(measured);
    }
    if (!beside.empty()) below += "\n" + result.trace->name + ":\n" + beside;
    for (std::size_t i = 0; i < result.measured.size(); ++i) {
      const Measured& measured = result.measured[i];
      if (rows.size() <= i + 1) rows.push_back({measured.subject});
      const Bytes peak = result.peak_requested;
      const Bytes reserved = measured.figures.peak_reserved;
      std::string cell = times(reserved, peak);
      if (is_all(reserved, peak, setup.capacity)) cell = "all";
      if (measured.figures.refusal) cell = "-";
      cell += " / " + (measured.least ? times(measured.least->capacity, peak) : "-");
      rows[i + 1].push_back(std::move(cell));
    }
  }
  return setup_text(setup) +
         "\npeak reserved / least capacity, each divided by the peak of requested bytes\n\n" +
         format_table(rows) + below;
}

std::string results_text(std::span<const TraceResults> results, const Setup& setup) {
  std::string text = setup_text(setup) + "\n";
  for (const TraceResults& result : results) {
    text += "\n" + heading(result) + "\n";
    std::vector<std::vector<std::string>> rows{
        {"pool", "allocated", "reserved", "x peak", "fragmentation", "waste", "largest free",
         "driver calls", "maps", "waits", "ns/op", "least capacity", "x peak", "reserved there",
         "outcome"}};
    std::string outcomes;
    for (const Measured& measured : result.measured) {
      rows.push_back(cells(measured, result.peak_requested));
      outcomes += outcome(measured);
    }
    text += format_table(rows) + (outcomes.empty() ? "" : "\n" + outcomes);
  }
  return text;
}

std::string breakdown_text(std::span<const TraceResults> results) {
  std::vector<std::vector<std::string>> rows{{"trace", "pool", "operation"}};
  for (const Part& part : kParts) rows.front().emplace_back(part.title);
  Bytes page;
  for (const TraceResults& result : results) {
    for (const Measured& measured : result.measured) {
      if (!measured.breakdown) continue;
      page = measured.breakdown->page;
      std::vector<std::string>& row = rows.emplace_back();
      row = {short_name(result.trace->name), measured.subject,
             std::to_string(measured.breakdown->operation)};
      for (const Part& part : kParts) {
        row.push_back(in_pages((*measured.breakdown).*part.bytes, page));
      }
    }
  }
  if (rows.size() == 1) return "";
  return "where the reserved memory was at its peak, in MiB / in pages of " + format_bytes(page) +
         "\n\n" + format_table(rows);
}

std::string results_json(std::span<const TraceResults> results, const Setup& setup,
                         const std::optional<Advice>& advice) {
  Json traces = Json::array();
  for (const TraceResults& result : results) {
    const Trace& trace = *result.trace;
    Json pools = Json::array();
    for (const Measured& measured : result.measured) pools.push_back(measured_json(measured));
    traces.push_back({{"trace", trace.name},
                      {"operations", trace.operations.size()},
                      {"buffers", trace.buffers},
                      {"streams", trace.streams},
                      {"peak_requested_bytes", result.peak_requested.count},
                      {"complete", trace.cut.empty()},
                      {"cut", trace.cut},
                      {"notes", trace.notes},
                      {"pools", std::move(pools)}});
  }
  Json json{{"weir", kVersion},
            {"settings", settings_json(setup.settings)},
            {"upstream", setup.upstream},
            {"capacity_bytes", setup.capacity.count},
            {"lag", setup.lag},
            {"traces", std::move(traces)}};
  if (advice) json["recommendation"] = advice_json(*advice);
  return json_text(json);
}

bool any_refused(std::span<const TraceResults> results) {
  return std::ranges::any_of(results, [](const TraceResults& result) {
    return std::ranges::any_of(result.measured, [](const Measured& measured) {
      return measured.figures.refusal.has_value();
    });
  });
}

}  // namespace weir::replay
