// Replay results as JSON.

#include "tools/replay/show/report.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "allocator/base/version.hpp"
#include "tools/program/json_text.hpp"

namespace weir::replay {
namespace {

using Json = nlohmann::json;

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

/// The names of `reserved` and its parts.
struct Part {
  const char* name;
  Bytes Breakdown::*bytes;
};
constexpr std::array kParts{
    Part{"reserved", &Breakdown::reserved}, Part{"requested", &Breakdown::requested},
    Part{"rounding", &Breakdown::rounding}, Part{"page_ends", &Breakdown::page_ends},
    Part{"holes", &Breakdown::holes},       Part{"whole_pages", &Breakdown::whole_pages}};

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
  Json json{{"weir", kVersion},           {"settings", settings_json(setup.settings)},
            {"upstream", setup.upstream}, {"capacity_bytes", setup.capacity.count},
            {"lag", setup.lag},           {"traces", std::move(traces)}};
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
