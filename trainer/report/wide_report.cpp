#include "trainer/report/wide_report.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "allocator/base/version.hpp"
#include "scheduler/device/device_kind.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/report_table.hpp"
#include "tools/timeline/files/formats.hpp"
#include "trainer/model/weights.hpp"
#include "trainer/report/run_figures.hpp"

namespace weir {
namespace {

using nlohmann::json;
using run_figures::percent;

/// The legend below the figures of a run; the memory has a table of its own.
constexpr std::string_view kLegend =
    "  host staging: host memory for copies; dispatch stalls: how often the program was held back, "
    "and how long.";

/// Returns `359,125,824`.
std::string with_commas(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t place = text.size(); place > 3;) text.insert(place -= 3, 1, ',');
  return text;
}

std::string network_of(const WideSettings& settings) {
  const std::vector<std::size_t> widths = settings.widths();
  return format_widths(widths) + ", " + with_commas(parameter_count(widths)) + " parameters";
}

std::string per_second(Bytes bytes, double seconds) {
  if (!(seconds > 0)) return "-";
  return format_bytes({static_cast<std::uint64_t>(static_cast<double>(bytes.count) / seconds)}) +
         "/s";
}

std::string copies(const CopyFigures& copied, double seconds) {
  return format_bytes(copied.bytes) + ", " + per_second(copied.bytes, seconds) + " of the run, " +
         per_second(copied.bytes, copied.seconds) + " while copying";
}

std::string nanoseconds(std::uint64_t time) {
  return format_nanoseconds(static_cast<double>(time));
}

double share_of(const timeline::HiddenCopies& copies) {
  return static_cast<double>(copies.hidden) / static_cast<double>(copies.copying);
}

std::string hidden(const timeline::HiddenCopies& copies) {
  return percent(share_of(copies)) + " of " + nanoseconds(copies.copying) +
         " of copying to the device";
}

/// Null if nothing is known of them.
json hidden_json(const timeline::HiddenCopies& copies) {
  if (copies.copying == 0) return nullptr;
  return {{"share", share_of(copies)}, {"copying_ns", copies.copying}};
}

std::string describe(const HostMemoryFigures& memory) {
  return format_bytes(memory.warm_up) + " in the first " +
         format_count(memory.warm_up_batches, "batch", "es") + ", " + format_bytes(memory.later) +
         " later";
}

/// Whether the batches go to a device in host memory. For others they are pinned.
bool on_host(const WideSettings& settings) {
  return settings.is_placed() || kind_of(parse_device_id(settings.train.device.value)).on_host;
}

/// The device of the first layer, where that is another one.
std::string first_device(const WideSettings& settings) {
  return std::string(to_string(settings.first_layer.value));
}

/// The memory of one device of the run.
struct MemoryOfDevice {
  std::string name;
  MemoryInfo now;
  Bytes reserved_peak;
  Bytes held_peak;
};

std::string memory_table(const WideSettings& settings, const WideResult& result, bool wide) {
  std::vector<MemoryOfDevice> devices{{settings.train.device.value, result.memory,
                                       result.run.pool.reserved.peak, result.run.pool.held.peak}};
  if (result.placement) {
    devices.push_back({first_device(settings) + ", first layer", result.placement->memory,
                       result.placement->reserved_peak, result.placement->held_peak});
  }
  const auto sizes = [&](const auto& size) {
    return cells_of(devices,
                    [&](const MemoryOfDevice& d) { return std::optional<Bytes>(size(d)); });
  };
  ReportTable table;
  table
      .words({"memory of", "the device"},
             cells_of(devices, [](const MemoryOfDevice& d) { return d.name; }), Long::kCut)
      .bytes({"peak", "most memory taken from it"},
             sizes([](const auto& d) { return d.reserved_peak; }))
      .bytes({"budget", "most that may be taken"}, sizes([](const auto& d) { return d.now.total; }))
      .bytes({"held", "most in use at one time"}, sizes([](const auto& d) { return d.held_peak; }))
      .bytes({"reserved", "taken at the end", Shown::kWide},
             sizes([](const auto& d) { return d.now.reserved; }))
      .bytes({"allocated", "in use at the end"},
             sizes([](const auto& d) { return d.now.allocated; }))
      .bytes({"awaiting", "freed, but the device still uses it", Shown::kWide},
             sizes([](const auto& d) { return d.now.awaiting; }))
      .bytes({"cached", "kept for the next use", Shown::kWide},
             sizes([](const auto& d) { return d.now.cached; }));
  return table.format(wide);
}

/// Copies between the first layer's device and that of the rest.
void add_placement(std::vector<Fact>& rows, const WideSettings& settings,
                   const WideResult& result) {
  if (!result.placement) return;
  const PlacementFigures& p = *result.placement;
  const std::string first = first_device(settings);
  const std::string& rest = settings.train.device.value;
  rows.push_back({"first layer", "on " + first + ", the rest on " + rest + "; " +
                                     format_bytes(p.staging) + " of host memory between them"});
  rows.push_back({"copied from " + first + " to " + rest, copies(p.to_rest, result.run.seconds)});
  rows.push_back({"copied back to " + first, copies(p.to_first, result.run.seconds)});
}

std::string task_table(const timeline::TaskTable& table, bool wide) {
  using timeline::TaskGroup;
  using timeline::TaskRow;
  std::vector<TaskRow> tasks;
  for (const TaskRow& row : table.rows) {
    if (row.group != TaskGroup::kAllocator && row.group != TaskGroup::kWait) tasks.push_back(row);
  }
  const auto times = [&](const auto& time) {
    return cells_of(
        tasks, [&](const TaskRow& row) { return std::optional(static_cast<double>(time(row))); });
  };
  const auto moved = [&](const auto& bytes) {
    return cells_of(tasks, [&](const TaskRow& row) -> std::optional<Bytes> {
      const auto count = static_cast<std::uint64_t>(bytes(row));
      return row.bytes == 0 || count == 0 ? std::nullopt : std::optional(Bytes{count});
    });
  };
  ReportTable text;
  text.words({"time by task, " + table.name, "what ran there"},
             cells_of(tasks,
                      [](const TaskRow& row) {
                        return row.group == TaskGroup::kCopy ? std::string(to_string(row.direction))
                                                             : row.name;
                      }),
             Long::kCut)
      .numbers(
          {"share %", "of all tasks' time"},
          cells_of(tasks, [](const TaskRow& row) { return format_number(100 * row.share, 1); }))
      .times({"total", "all together"}, times([](const TaskRow& row) { return row.total; }))
      .times({"mean", "each"}, times([](const TaskRow& row) { return row.total / row.count; }))
      .times({"longest", "of them", Shown::kWide},
             times([](const TaskRow& row) { return row.longest; }))
      .numbers({"count", "how many"},
               cells_of(tasks, [](const TaskRow& row) { return std::to_string(row.count); }))
      .bytes({"moved", "copied or written", Shown::kWide},
             moved([](const TaskRow& row) { return row.bytes; }))
      .rates({"rate", "while it ran", Shown::kWide},
             moved([](const TaskRow& row) { return std::min(row.bytes_per_second, 0x1p63); }));
  return text.format(wide);
}

json tasks_json(const std::vector<timeline::TaskTable>& tasks) {
  json all = json::array();
  for (const timeline::TaskTable& table : tasks) {
    json rows = json::array();
    for (const timeline::TaskRow& row : table.rows) {
      rows.push_back({{"name", row.name},
                      {"count", row.count},
                      {"total_ns", row.total},
                      {"longest_ns", row.longest},
                      {"share", row.share},
                      {"bytes", row.bytes},
                      {"bytes_per_second", row.bytes_per_second}});
      if (row.group == timeline::TaskGroup::kCopy) {
        rows.back()["name"] = to_string(row.direction);
      }
    }
    all.push_back({{"device", table.name}, {"busy_ns", table.busy}, {"rows", std::move(rows)}});
  }
  return all;
}

json pace_json(const WideResult& result) {
  json lines = json::array();
  for (const PaceLine& line : result.pace) {
    lines.push_back({{"batch", line.batch},
                     {"seconds", line.seconds},
                     {"mean_loss", line.mean_loss},
                     {"hit_share", line.hit_share},
                     {"increased_bytes", line.increased_bytes}});
  }
  return lines;
}

json copies_json(const CopyFigures& copied, double seconds) {
  const auto rate = [&](double time) {
    return time > 0 ? static_cast<double>(copied.bytes.count) / time : 0;
  };
  return {{"bytes", copied.bytes.count},
          {"copy_seconds", copied.seconds},
          {"bytes_per_second", rate(seconds)},
          {"bytes_per_second_copying", rate(copied.seconds)}};
}

std::string describe(const CheckpointStatistics& c) {
  std::string text = std::to_string(c.written) + " written";
  if (c.last) text += ", the last after batch " + std::to_string(*c.last);
  if (c.failed != 0) text += ", " + std::to_string(c.failed) + " failed";
  if (c.skipped != 0) text += ", " + std::to_string(c.skipped) + " skipped";
  return text + "; held training back for " + run_figures::milliseconds(c.delay) + ", at most " +
         run_figures::milliseconds(c.most_delay) + " at a time";
}

json memory_json(const MemoryInfo& m) {
  return {{"budget_bytes", m.total.count},
          {"reserved_bytes", m.reserved.count},
          {"allocated_bytes", m.allocated.count},
          {"awaiting_bytes", m.awaiting.count},
          {"cached_bytes", m.cached.count}};
}

json placement_json(const WideSettings& settings, const PlacementFigures& p, double seconds) {
  json memory = memory_json(p.memory);
  memory["peak_reserved_bytes"] = p.reserved_peak.count;
  memory["peak_held_bytes"] = p.held_peak.count;
  return {{"device", first_device(settings)},
          {"memory", std::move(memory)},
          {"staging_bytes", p.staging.count},
          {"copied_to_rest", copies_json(p.to_rest, seconds)},
          {"copied_back", copies_json(p.to_first, seconds)}};
}

json checkpoints_json(const CheckpointStatistics& c) {
  using run_figures::seconds_of;
  return {{"written", c.written},
          {"skipped", c.skipped},
          {"failed", c.failed},
          {"held", c.held},
          {"last_batch", c.last ? json(*c.last) : json()},
          {"delay_seconds", seconds_of(c.delay)},
          {"most_delay_seconds", seconds_of(c.most_delay)}};
}

std::string test_hits(const TrainResult& run) {
  return run.test_accuracy
             ? percent(*run.test_accuracy) + " of " + format_count(run.test_images, "test row")
             : "-";
}

/// Returns the bytes that rank 0 sent in a step, on the average.
std::string sent(const RanksFigures& ranks, std::uint64_t batches) {
  const auto each = [batches](std::uint64_t bytes) {
    return with_commas(batches == 0 ? 0 : bytes / batches);
  };
  return each(ranks.sent) + " bytes, by the formula " + each(ranks.by_formula);
}

json ranks_json(const RanksFigures& ranks) {
  return {{"ranks", ranks.ranks},
          {"engine", ranks.engine},
          {"sent_bytes", ranks.sent},
          {"formula_bytes", ranks.by_formula},
          {"step", ranks.step}};
}

/// Returns float32's figures, and how far the run is from them.
std::string in_float32(const PrecisionFigures& other, const TrainResult& run) {
  const auto number = [](const std::optional<double>& value) {
    return value ? format_number(*value, 6) : "-";
  };
  std::string text =
      "mean loss " + number(other.mean_loss) + ", time " + format_number(other.seconds, 3) + " s";
  if (other.test_accuracy && run.test_accuracy) {
    const double difference = 100 * (*run.test_accuracy - *other.test_accuracy);
    text += ", precision@1, test " + percent(*other.test_accuracy) + ": this run has " +
            format_number(std::abs(difference), 1) + " points " +
            (difference < 0 ? "less" : "more");
  }
  return text;
}

}  // namespace

WideTimeline read_wide_timeline(const WideResult& result) {
  if (!result.run.recording || result.run.recording->file.empty()) return {};
  const timeline::Timeline read = timeline::read_timeline(result.run.recording->file);
  WideTimeline all;
  for (const timeline::Process& process : read.processes) {
    const timeline::Index index(process);
    const std::uint64_t zero = process.info.monotonic_ns;
    const timeline::Span measured{timeline::less_or_zero(result.run.measured_from, zero),
                                  timeline::less_or_zero(result.run.measured_to, zero)};
    std::vector<timeline::TaskTable> tables = timeline::task_tables(index);
    tables.pop_back();  // of no device
    for (timeline::TaskTable& table : tables) {
      const auto copies = timeline::hidden_copies(index, table.device, measured);
      all.copies.copying += copies.copying;
      all.copies.hidden += copies.hidden;
      all.tasks.push_back(std::move(table));
    }
  }
  return all;
}

std::string format_pace(const PaceLine& line) {
  const double mebibytes = static_cast<double>(line.increased_bytes) / (1 << 20U);
  return "batch " + std::to_string(line.batch) + ", time " + format_number(line.seconds, 3) +
         " s, loss " + format_number(line.mean_loss, 4) + ", precision@1 " +
         percent(line.hit_share) + ", increased memory " + format_number(mebibytes, 1) + " MiB";
}

std::string format_network(const WideSettings& settings) {
  return "network " + network_of(settings);
}

std::string format_wide(const WideSettings& settings, const WideResult& result,
                        const WideTimeline& timeline, bool wide) {
  const TrainResult& run = result.run;
  const double rows_per_second =
      run.batches_per_second() * static_cast<double>(settings.train.batch_size.value);
  std::vector<Fact> rows{
      {"policy", std::string(to_string(settings.train.policy.policy.value))},
      {"result", describe_outcome(run)},
      {"network", network_of(settings)},
      {"batches", std::to_string(run.batches)},
      {"time", format_number(run.seconds, 3) + " s"},
      {"batches/s", format_number(run.batches_per_second(), 2)},
      {"rows/s", format_number(rows_per_second, 0)},
      {"device idle", percent(run.idle_share)},
      {result.placement ? "batches copied to " + first_device(settings) : "copied to the device",
       copies(result.to_device, run.seconds)},
      {"copied to the host", copies(result.to_host, run.seconds)}};
  if (timeline.copies.copying != 0) rows.push_back({"copies hidden", hidden(timeline.copies)});
  rows.insert(rows.end(),
              {Fact{"host staging", format_bytes(run.staging)},
               {on_host(settings) ? "host memory obtained" : "host memory pinned",
                describe(result.host_memory)},
               {"most in flight", format_count(run.admission.most_submitted, "batch", "es")}});
  add_placement(rows, settings, result);
  run_figures::add_throttling(rows, settings.train.policy, run);
  if (result.ranks) {
    rows.push_back({"ranks", format_count(static_cast<std::uint64_t>(result.ranks->ranks), "rank") +
                                 " by " + result.ranks->engine + ", --parallel " +
                                 std::string(to_string(*settings.parallel.value))});
    rows.push_back({"sent in a step", sent(*result.ranks, run.batches)});
    rows.push_back({"formula", result.ranks->step});
  }
  if (settings.precision.value == Precision::kFp16) {
    rows.push_back({"loss scale", format_number(result.loss_scale, 0) + " at the end, " +
                                      format_count(result.skipped_steps, "step") +
                                      " skipped after an overflow"});
  }
  if (result.checkpoints) rows.push_back({"checkpoints", describe(*result.checkpoints)});
  if (run.mean_loss) rows.push_back({"mean loss", format_number(*run.mean_loss, 6)});
  if (result.hit_share) rows.push_back({"precision@1, training", percent(*result.hit_share)});
  rows.push_back({"precision@1, test", test_hits(run)});
  if (result.float32) {
    rows.push_back({"the same in float32", in_float32(*result.float32, run)});
  } else if (result.float32_outcome) {
    rows.push_back({"the same in float32", *result.float32_outcome == Outcome::kOutOfMemory
                                               ? "out of memory"
                                               : "interrupted"});
  }
  std::string text =
      format_facts(rows) + wrapped(kLegend, 2) + "\n" + memory_table(settings, result, wide);
  for (const timeline::TaskTable& table : timeline.tasks) text += "\n" + task_table(table, wide);
  return text;
}

std::string wide_json(const WideSettings& settings, const WideResult& result,
                      const WideTimeline& timeline) {
  json figures = run_figures::result_json(result.run);
  figures["parameters"] = result.parameters;
  figures["copied_to_device"] = copies_json(result.to_device, result.run.seconds);
  figures["copied_to_host"] = copies_json(result.to_host, result.run.seconds);
  figures["copies_hidden"] = hidden_json(timeline.copies);
  figures["host_memory"] = {{"pinned", !on_host(settings)},
                            {"warm_up_batches", result.host_memory.warm_up_batches},
                            {"warm_up_bytes", result.host_memory.warm_up.count},
                            {"later_bytes", result.host_memory.later.count}};
  figures["memory"] = memory_json(result.memory);
  if (result.placement) {
    figures["first_layer"] = placement_json(settings, *result.placement, result.run.seconds);
  }
  figures["pace"] = pace_json(result);
  if (result.hit_share) figures["hit_share"] = *result.hit_share;
  figures["skipped_steps"] = result.skipped_steps;
  figures["loss_scale"] = result.loss_scale;
  if (result.float32) {
    figures["float32"] = {{"seconds", result.float32->seconds}};
    if (result.float32->mean_loss) figures["float32"]["mean_loss"] = *result.float32->mean_loss;
    if (result.float32->test_accuracy) {
      figures["float32"]["test_accuracy"] = *result.float32->test_accuracy;
    }
  }
  figures["first_batch"] = result.first;
  if (result.checkpoints) figures["checkpoints"] = checkpoints_json(*result.checkpoints);
  if (result.ranks) figures["ranks"] = ranks_json(*result.ranks);
  const json j{{"weir", kVersion},
               {"settings", settings_json(settings.lines())},
               {"widths", settings.widths()},
               {"policy", std::string(to_string(settings.train.policy.policy.value))},
               {"result", std::move(figures)},
               {"tasks", tasks_json(timeline.tasks)},
               {"timeline", run_figures::timeline_json(result.run)}};
  return json_text(j);
}

}  // namespace weir
