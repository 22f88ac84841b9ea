#include <algorithm>
#include <array>

#include "bench/simulate/report.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/picture/plot.hpp"

namespace weir::simulate {
namespace {

using picture::Axis;
using picture::draw_key;
using picture::kPlotLeft;
using picture::Plot;
using picture::Point;
using picture::Svg;

constexpr std::array kColours{picture::kOrange, picture::kBlue,   picture::kGreen,
                              picture::kPink,   picture::kYellow, picture::kSky};
constexpr std::string_view kOfTarget = picture::kOrange;
constexpr std::string_view kOfMemory = picture::kGreen;

double bytes_of_sample(const Sample& sample) { return static_cast<double>(sample.used.count); }
double ns(Time time) { return static_cast<double>(time.count()); }

std::string throughput(const Outcome& outcome) {
  return "throughput " + format_number(100 * outcome.of_unbounded, 1) + "%";
}

template <typename ValueOf>
Plot::Columns columns(const Plot& plot, const std::vector<Sample>& series,
                      const ValueOf& value_of) {
  std::vector<Point> points;
  points.reserve(series.size());
  for (const Sample& sample : series) points.push_back({ns(sample.time), value_of(sample)});
  return plot.columns(points);
}

/// Returns the time until the end of the series.
Axis time_axis(const std::vector<Sample>& series) {
  return picture::duration_axis(series.empty() ? 1 : std::max(ns(series.back().time), 1.0), 8);
}

/// Returns the axis of memory for the largest peak.
Axis memory_axis(const std::vector<Outcome>& outcomes, int count) {
  Bytes most{1};
  for (const Outcome& outcome : outcomes) most = std::max(most, outcome.run.peak);
  return picture::bytes_axis(1.06 * static_cast<double>(most.count), count);
}

void draw_memory(Plot& plot, const Outcome& outcome, std::string_view colour) {
  const Plot::Columns memory = columns(plot, outcome.run.series, bytes_of_sample);
  plot.area(memory, {}, colour, 0.12);
  plot.line(memory, colour);
}

}  // namespace

std::string picture_svg(const std::vector<Outcome>& outcomes) {
  constexpr int kTop = 84;
  constexpr int kPlotHeight = 284;
  const Outcome& longest = *std::ranges::max_element(outcomes, {}, [](const Outcome& outcome) {
    return outcome.run.series.empty() ? Time{} : outcome.run.series.back().time;
  });
  Svg svg =
      picture::titled(kTop + kPlotHeight + 52,
                      "Device memory over time: " + std::string(outcomes.front().workload->about));
  Plot plot(svg, kTop, kPlotHeight, time_axis(longest.run.series), memory_axis(outcomes, 5));
  plot.axes("memory in use", true);
  plot.mark(static_cast<double>(outcomes.front().budget_bytes.count), "budget");
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const std::string_view colour = kColours.at(i % kColours.size());
    const std::string words = std::string(outcomes[i].policy->name) + ": peak " +
                              format_bytes(outcomes[i].run.peak) + ", " + throughput(outcomes[i]);
    svg.begin_group(words);
    draw_memory(plot, outcomes[i], colour);
    draw_key(svg, picture::key_place(i, 48), colour, words);
    svg.end_group();
  }
  return svg.finish();
}

std::string target_picture_svg(const Outcome& outcome) {
  constexpr int kTop = 72;
  constexpr int kPlotHeight = 176;
  constexpr int kSecond = kTop + kPlotHeight + 52;
  const std::vector<Sample>& series = outcome.run.series;
  const auto target_of = [](const Sample& sample) { return ns(sample.target); };
  double most = 1;
  for (const Sample& sample : series) most = std::max(most, target_of(sample));
  const Axis time = time_axis(series);
  Svg svg = picture::titled(kSecond + kPlotHeight + 52,
                            "The target of " + std::string(outcome.policy->name) +
                                " over time: " + std::string(outcome.workload->about));

  Plot times(svg, kTop, kPlotHeight, time, picture::duration_axis(1.06 * most, 4));
  const Plot::Columns target = columns(times, series, target_of);
  times.axes("run-ahead target", false);
  times.area(target, {}, kOfTarget, 0.3);
  times.line(target, kOfTarget);
  const Axis peak = picture::duration_axis(most, 1);
  draw_key(svg, {kPlotLeft, 50}, kOfTarget,
           "target, once the first window of batches has ended: at most " +
               format_number(most / peak.unit, 2) + " " + peak.name);

  Plot memory(svg, kSecond, kPlotHeight, time, memory_axis({outcome}, 4));
  memory.axes("memory in use", true);
  memory.mark(static_cast<double>(outcome.budget_bytes.count), "budget");
  draw_memory(memory, outcome, kOfMemory);
  draw_key(svg, {kPlotLeft, kSecond - 14}, kOfMemory,
           "memory: peak " + format_bytes(outcome.run.peak) + "; " + throughput(outcome) +
               " of that without a limit");
  return svg.finish();
}

}  // namespace weir::simulate
