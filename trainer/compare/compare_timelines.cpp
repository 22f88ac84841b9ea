#include "trainer/compare/compare_timelines.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/setting.hpp"
#include "scheduler/ledger/batch_timeline.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/temporary_folder.hpp"
#include "tools/timeline/analysis/counters.hpp"
#include "tools/timeline/files/formats.hpp"
#include "tools/timeline/page/page.hpp"
#include "trainer/model/weights.hpp"
#include "trainer/run/recording.hpp"

namespace weir {
namespace {

std::string path_in(const Setting<std::string>& folder, Policy policy, const char* ending) {
  return (std::filesystem::path(folder.value) / (std::string(to_string(policy)) + ending)).string();
}

void make_folder(const Setting<std::string>& folder) {
  std::error_code error;
  (void)std::filesystem::create_directories(folder.value, error);
  if (error || !std::filesystem::is_directory(folder.value, error)) {
    refuse(folder.source, folder.value,
           "a folder, or a name for a new one (" +
               (error ? error.message() : std::string("it is not a folder")) + ")");
  }
}

using picture::Plot;
using picture::Svg;

struct Style {
  std::string_view name;
  std::string_view colour;
};
constexpr std::array<Style, 5> kStyles{{{"reference", picture::kOrange},
                                        {"unbounded", picture::kPink},
                                        {"backstop", picture::kYellow},
                                        {"throttled", picture::kBlue},
                                        {"barrier", picture::kGreen}}};

std::string_view colour_of(std::string_view name) {
  const auto* const style = std::ranges::find(kStyles, name, &Style::name);
  return style == kStyles.end() ? picture::kSky : style->colour;
}

/// The memory of a pool from its first change to its end, or to that of the recording.
std::vector<picture::Point> points_of(const timeline::Index& index,
                                      const timeline::PoolInfo& pool) {
  struct Change {
    std::uint64_t at, value;
  };
  std::vector<Change> changes;
  timeline::PoolReplay replay(index, pool);
  while (replay.next()) {
    const std::uint64_t reserved = replay.counts().reserved();
    if (changes.empty() || changes.back().value != reserved)
      changes.push_back({replay.at(), reserved});
  }
  std::uint64_t end = index.span().end;
  // The pool's end gives everything back, which says nothing about training.
  for (; !changes.empty() && changes.back().value == 0; changes.pop_back()) end = changes.back().at;
  std::vector<picture::Point> points;
  if (changes.empty()) return points;
  const std::uint64_t zero = changes.front().at;
  changes.push_back({std::max(end, changes.back().at), changes.back().value});
  for (const Change& change : changes) {
    points.push_back({static_cast<double>(change.at - zero), static_cast<double>(change.value)});
  }
  return points;
}

/// The recorded memory of the pool that took the most on the device.
std::vector<picture::Point> reserved_in(const timeline::Timeline& recorded) {
  for (const timeline::Process& process : recorded.processes) {
    const timeline::Index index(process);
    std::vector<timeline::PoolPeaks> all;
    for (const timeline::PoolInfo& pool : index.pools()) {
      all.push_back(timeline::pool_peaks(index, pool));
    }
    if (const timeline::PoolPeaks* const pool = timeline::main_pool(all)) {
      return points_of(index, index.pools()[static_cast<std::size_t>(pool - all.data())]);
    }
  }
  return {};
}

const PolicyFigures* figures_of(const Comparison& comparison, std::string_view name) {
  if (name == "reference") return &comparison.reference;
  const auto found = std::ranges::find(comparison.policies, name, &PolicyFigures::name);
  return found == comparison.policies.end() ? nullptr : &*found;
}

double peak_of(const MemoryCurve& curve) {
  double most = 0;
  for (const picture::Point& point : curve.reserved) most = std::max(most, point.value);
  return most;
}

/// Figures are those of the compared runs, as in the table.
std::string words_of(const CompareSettings& settings, const Comparison& comparison,
                     const MemoryCurve& curve) {
  const bool is_reference = curve.name == "reference";
  std::string name = is_reference ? "unbounded, enough memory"
                     : curve.name == to_string(Policy::kUnbounded)
                         ? "unbounded in " + format_budget(settings.train.pool.budget.value)
                         : curve.name;
  const PolicyFigures* const figures = figures_of(comparison, curve.name);
  if (figures == nullptr || figures->runs == 0) return name;
  if (figures->last.outcome != Outcome::kFinished || diverged(figures->last)) {
    return name + ": " + describe_outcome(figures->last);
  }
  std::string text = name + ": peak " + format_bytes(figures->last.pool.reserved.peak);
  if (is_reference) return text;
  if (!(figures->ratio > 0)) return text;
  return text + ", " + format_number(figures->ratio, 2) + " times its speed";
}

bool ran_out(const Comparison& comparison, const std::string& name) {
  const PolicyFigures* const figures = figures_of(comparison, name);
  return figures != nullptr && figures->last.outcome == Outcome::kOutOfMemory;
}

double last_time(const std::vector<MemoryCurve>& curves) {
  double end = 1;
  for (const MemoryCurve& curve : curves) {
    if (!curve.reserved.empty()) end = std::max(end, curve.reserved.back().time);
  }
  return end;
}

double highest_of(const std::vector<MemoryCurve>& curves, bool with_reference) {
  double most = 1;
  for (const MemoryCurve& curve : curves) {
    if (curve.name != "reference" || with_reference) most = std::max(most, peak_of(curve));
  }
  return most;
}

void draw_curve(Svg& svg, Plot& plot, const MemoryCurve& curve, bool cross,
                std::string_view title) {
  const Plot::Columns columns = plot.columns(curve.reserved);
  svg.begin_group(title);
  plot.area(columns, {}, colour_of(curve.name), 0.10);
  plot.line(columns, colour_of(curve.name));
  if (cross) plot.cross(columns, colour_of(curve.name));
  svg.end_group();
}

}  // namespace

std::string record_run(const TrainSettings& settings, const std::string& label,
                       const CompareHooks& hooks) {
  TrainHooks run_hooks{.stop = hooks.stop};
  if (hooks.on_done) {
    run_hooks.on_done = [&](std::uint64_t done, std::uint64_t all) {
      hooks.on_done(label, done, all);
    };
  }
  number_batches_anew();
  Recording recording(settings);
  (void)train(settings, run_hooks);
  return recording.end().value().file;
}

std::vector<NamedPath> timeline_files(const Setting<std::string>& folder) {
  std::vector<NamedPath> files;
  for (const Policy policy : kComparedPolicies) {
    for (const char* ending : {".json", ".html"}) {
      files.push_back({folder.source, path_in(folder, policy, ending)});
    }
  }
  return files;
}

std::vector<std::string> record_policies(const CompareSettings& settings,
                                         const Setting<std::string>& folder,
                                         const CompareHooks& hooks) {
  make_folder(folder);
  std::vector<std::string> pages;
  for (const Policy policy : kComparedPolicies) {
    if (hooks.stop.stop_requested()) break;
    OutputFile page(folder.source, path_in(folder, policy, ".html"));
    TrainSettings one = settings.train;
    one.policy.policy = {policy, "compare"};
    one.timeline.file = {timeline::name_of_path(path_in(folder, policy, ".json")), folder.source};
    const std::string file =
        record_run(one, "timeline of " + std::string(to_string(policy)), hooks);
    page.commit(
        timeline::make_page(timeline::read_timeline(file),
                            {.title = "weir-train, policy " + std::string(to_string(policy))}));
    pages.push_back(path_in(folder, policy, ".html"));
  }
  return pages;
}

std::vector<MemoryCurve> record_curves(const CompareSettings& settings, const CompareHooks& hooks) {
  const TemporaryFolder folder(process_environment(), "weir-compare");
  std::vector<std::pair<std::string, TrainSettings>> runs{
      {"reference", reference_settings(settings.train)}};
  for (const Policy policy : kComparedPolicies) {
    TrainSettings one = settings.train;
    one.policy.policy = {policy, "compare"};
    runs.emplace_back(to_string(policy), std::move(one));
  }
  std::vector<MemoryCurve> curves;
  for (auto& [name, run] : runs) {
    if (hooks.stop.stop_requested()) break;
    run.timeline.file = {folder.path() + "/" + name + ".json", "the temporary folder"};
    const std::string file = record_run(run, "picture of " + name, hooks);
    curves.push_back({.name = name, .reserved = reserved_in(timeline::read_timeline(file))});
  }
  return curves;
}

std::string comparison_svg(const CompareSettings& settings, const Comparison& comparison,
                           const std::vector<MemoryCurve>& curves) {
  constexpr int kHeight = 200;
  const auto rows = static_cast<int>(curves.size() + 1) / 2;
  const int top = 62 + picture::kKeyHeight * rows;
  const int second = top + kHeight + 44;
  const TrainSettings& train = settings.train;
  Svg svg = picture::titled(second + kHeight + 72,
                            "Device memory over time: MLP " + format_widths(train.widths) +
                                ", batches of " + std::to_string(train.batch_size.value));
  const auto budget = static_cast<double>(
      resolve_budget(train.pool.budget.value, train.total_memory(), train.pool.budget.source)
          .count);
  const picture::Axis time = picture::duration_axis(last_time(curves), 8);
  Plot all(svg, top, kHeight, time, picture::bytes_axis(1.06 * highest_of(curves, true), 4));
  Plot near(svg, second, kHeight, time,
            picture::bytes_axis(1.06 * std::max(highest_of(curves, false), budget), 4));
  all.axes("reserved", false);
  near.axes("near the budget", true);
  const auto draw = [&](const MemoryCurve& curve) {
    const std::string words = words_of(settings, comparison, curve);
    const bool cross = ran_out(comparison, curve.name);
    draw_curve(svg, all, curve, cross, words);
    if (curve.name != "reference") draw_curve(svg, near, curve, cross, words);
  };
  // What runs out lies on top: it is as high as others, and ends early.
  for (const bool out : {false, true}) {
    for (const MemoryCurve& curve : curves) {
      if (ran_out(comparison, curve.name) == out) draw(curve);
    }
  }
  for (std::size_t i = 0; i < curves.size(); ++i) {
    picture::draw_key(svg, picture::key_place(i, 50), colour_of(curves[i].name),
                      words_of(settings, comparison, curves[i]));
  }
  all.mark(budget, "budget");
  near.mark(budget, "budget");
  svg.text({picture::kPlotLeft, second + kHeight + 62.0},
           "Each curve is one more run, recorded. The figures are those of the compared runs.",
           R"(font-size="11" fill="#555")");
  return svg.finish();
}

}  // namespace weir
