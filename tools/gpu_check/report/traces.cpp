#include "tools/gpu_check/report/traces.hpp"

#include <filesystem>

#include "tools/gpu_check/report/judging.hpp"
#include "tools/gpu_check/report/page.hpp"
#include "tools/gpu_check/report/text.hpp"

namespace weir::gpu_check {

using nlohmann::json;
namespace {

/// What `paged` may reserve at its peak (docs/fragmentation.md): this times what is requested at
/// the peak, and two pages for the one stream of each trace.
constexpr double kMostReserved = 1.03;
constexpr double kTwoPages = 4.0 * 1024 * 1024;

std::string name_of(const json& trace) {
  const std::string path = trace.at("trace");
  const std::string file = std::filesystem::path(path).filename();
  return file.substr(0, file.find('.'));
}

double over_peak(const json& pool, const json& trace) {
  return pool.at("peak_reserved_bytes").get<double>() /
         trace.at("peak_requested_bytes").get<double>();
}

bool is_within(const json& pool, const json& trace) {
  return pool.at("peak_reserved_bytes").get<double>() <=
         kMostReserved * trace.at("peak_requested_bytes").get<double>() + kTwoPages;
}

}  // namespace

void judge_traces(const json& evidence, std::vector<Verdict>& verdicts) {
  const std::string completes = "every trace completes on the device";
  const std::string reserves = "paged reserves at most " + number(kMostReserved, 2) +
                               " of the peak requested there, and two pages";
  judge_figures({completes, reserves}, evidence, kTracesStep, verdicts,
                [&](const json& figures, const Step& step) {
                  std::string out_of_memory;
                  std::string found;
                  bool within = true;
                  for (const json& trace : figures.at("traces")) {
                    for (const json& pool : trace.at("pools")) {
                      const std::string name = pool.at("pool");
                      if (!pool.at("completed").get<bool>()) {
                        out_of_memory +=
                            (out_of_memory.empty() ? "" : ", ") + name_of(trace) + " with " + name;
                      }
                      if (name != "paged") continue;
                      within = within && pool.at("completed").get<bool>() && is_within(pool, trace);
                      found += (found.empty() ? "" : ", ") + name_of(trace) + " " +
                               number(over_peak(pool, trace), 3);
                    }
                  }
                  const std::string run = step.ok() ? "" : "; the step " + describe(step);
                  std::string which = step.ok() ? "all of them" : "all that were replayed";
                  if (found.empty()) which = "nothing was replayed";
                  if (!out_of_memory.empty()) which = "out of memory: " + out_of_memory;
                  const bool all = out_of_memory.empty() && !found.empty() && step.ok();
                  return std::vector{Verdict{completes, met_if(all), which + run},
                                     Verdict{reserves, met_if(within && !found.empty()),
                                             found.empty() ? "nothing was replayed" : found}};
                });
}

std::string traces_section(const json& figures) {
  std::vector<std::vector<std::string>> rows{
      {"trace", "pool", "reserved / peak requested", "driver calls", "maps", "ns per operation"}};
  for (const json& trace : figures.at("traces")) {
    for (const json& pool : trace.at("pools")) {
      const json& ns = pool.at("ns_per_operation");
      rows.push_back({name_of(trace), pool.at("pool"),
                      pool.at("completed").get<bool>() ? number(over_peak(pool, trace), 3)
                                                       : std::string("out of memory"),
                      pool.at("driver_calls").dump(), pool.at("mapped_pages").dump(),
                      ns.is_null() ? "-" : number(ns.get<double>(), 0)});
    }
  }
  return markdown_table(rows) + "\n";
}

}  // namespace weir::gpu_check
