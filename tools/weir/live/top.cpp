#include "tools/weir/live/top.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "allocator/base/pressure.hpp"
#include "allocator/base/version.hpp"
#include "tools/program/json_text.hpp"

namespace weir::cli {
namespace {

using Json = nlohmann::json;

TopRow row_of(const timeline::LiveProgram& program, std::uint64_t now_ns) {
  TopRow row{.pid = program.pid,
             .user = {},
             .program = program.program,
             .devices = program.devices,
             .last = {},
             .rates = {},
             .silent = true};
  if (program.samples.empty()) return row;
  row.last = program.samples.back();
  row.silent = is_silent(program, now_ns);
  if (!row.silent) row.rates = timeline::rates_of(program.samples);
  for (const timeline::LiveSample& sample : program.samples) {
    row.allocated.push_back(sample.allocated);
  }
  return row;
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json row_json(const TopRow& row) {
  return {{"pid", row.pid},
          {"user", row.user},
          {"program", row.program},
          {"devices", row.devices},
          {"silent", row.silent},
          {"budget_bytes", row.last.budget},
          {"requested_bytes", row.last.requested},
          {"allocated_bytes", row.last.allocated},
          {"awaiting_bytes", row.last.awaiting},
          {"cached_bytes", row.last.cached},
          {"reserved_bytes", row.last.reserved},
          {"peak_reserved_bytes", row.last.peak},
          {"failures", row.last.failures},
          {"open_batches", row.last.open},
          {"submitted_batches", row.last.submitted},
          {"settled_batches", row.last.settled},
          {"stalls", row.last.stalls},
          {"stalled_ns", row.last.stalled_ns},
          {"busy_ns", row.last.knows_busy != 0 ? Json(row.last.busy_ns) : Json(nullptr)},
          {"pressure", to_string(static_cast<PressureLevel>(row.last.pressure))},
          {"at_soft_ns", row.last.soft_ns},
          {"at_hard_ns", row.last.hard_ns},
          {"batches_per_second", or_null(row.rates.batches)},
          {"stalls_per_second", or_null(row.rates.stalls)},
          {"stalled_share", or_null(row.rates.stalled)},
          {"idle_share", or_null(row.rates.idle)},
          {"allocated_bytes_history", row.allocated}};
}

}  // namespace

bool is_silent(const timeline::LiveProgram& program, std::uint64_t now_ns) noexcept {
  // On a busy machine the sampling thread may miss some samples.
  constexpr std::uint64_t kSilence = 16 * timeline::kLivePeriodNs;
  if (program.samples.empty()) return true;
  const std::uint64_t last = program.samples.back().time_ns;
  return last < now_ns && now_ns - last > kSilence;
}

Top top_of(const timeline::LiveSurvey& survey, std::uint64_t now_ns,
           const std::function<std::string(std::uint32_t uid)>& user_of) {
  Top top{.rows = {}, .unreadable = survey.unreadable};
  for (const timeline::LiveProgram& program : survey.programs) {
    top.rows.push_back(row_of(program, now_ns));
    top.rows.back().user = user_of(program.uid);
  }
  std::ranges::stable_sort(top.rows, std::greater<>(),
                           [](const TopRow& row) { return row.last.reserved; });
  return top;
}

std::string top_json(const Top& top) {
  Json json{{"weir", kVersion}, {"programs", Json::array()}, {"unreadable", top.unreadable}};
  for (const TopRow& row : top.rows) json["programs"].push_back(row_json(row));
  return json_text(json);
}

}  // namespace weir::cli
