#include "bench/simulate/picture.hpp"

#include <algorithm>
#include <array>

#include "bench/simulate/picture_parts.hpp"
#include "tools/program/numbers.hpp"

namespace weir::simulate {
namespace {

/// Colours that people with any colour vision tell apart (Okabe and Ito 2008).
constexpr std::array<std::string_view, 6> kColours{"#d55e00", "#0072b2", "#009e73",
                                                   "#cc79a7", "#e69f00", "#56b4e9"};
constexpr std::string_view kOfLead = kColours[1];
constexpr std::string_view kOfCopy = kColours[3];
constexpr std::string_view kOfMargin = kColours[4];
constexpr std::string_view kOfTarget = kColours[0];
constexpr std::string_view kOfMemory = kColours[2];

double bytes_of_sample(const Sample& sample) { return static_cast<double>(sample.used.count); }
double ns(Time time) { return static_cast<double>(time.count()); }

std::string throughput(const Outcome& outcome) {
  return "throughput " + format_number(100 * outcome.of_unbounded, 1) + "%";
}

/// Returns the axis of memory for the largest peak.
Axis memory_axis(const std::vector<Outcome>& outcomes, int count) {
  Bytes most{1};
  for (const Outcome& outcome : outcomes) most = std::max(most, outcome.run.peak);
  return bytes_axis(1.06 * static_cast<double>(most.count), count);
}

std::string memory_curve(const Plot& plot, const Outcome& outcome, std::string_view colour) {
  const Plot::Columns columns = plot.columns(outcome.run.series, bytes_of_sample);
  return plot.area(columns, {}, colour, 0.12) + plot.line(columns, colour);
}

}  // namespace

std::string picture_svg(const std::vector<Outcome>& outcomes) {
  constexpr int kTop = 84;
  constexpr int kPlotHeight = 284;
  const Outcome& longest = *std::ranges::max_element(outcomes, {}, [](const Outcome& outcome) {
    return outcome.run.series.empty() ? Time{} : outcome.run.series.back().time;
  });
  const Plot plot(kTop, kPlotHeight, time_axis(longest.run.series), memory_axis(outcomes, 5));
  std::string svg = plot.axes("memory in use", true) +
                    plot.mark(static_cast<double>(outcomes.front().budget_bytes.count), "budget");
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const std::string_view colour = kColours.at(i % kColours.size());
    svg += memory_curve(plot, outcomes[i], colour);
    const std::size_t row = i / 2;
    svg += key_at(kPlotLeft + static_cast<double>(i % 2) * kPlotWidth / 2,
                  static_cast<double>(48 + row * 18), colour,
                  std::string(outcomes[i].policy->name) + ": peak " +
                      format_bytes(outcomes[i].run.peak) + ", " + throughput(outcomes[i]));
  }
  return picture_of(kTop + kPlotHeight + 52,
                    "Device memory over time: " + std::string(outcomes.front().workload->about),
                    svg);
}

std::string target_picture_svg(const Outcome& outcome) {
  constexpr int kTop = 72;
  constexpr int kPlotHeight = 176;
  constexpr int kSecond = kTop + kPlotHeight + 52;
  const std::vector<Sample>& series = outcome.run.series;
  const auto lead_of = [](const Sample& sample) { return ns(sample.lead); };
  const auto delivered_of = [](const Sample& sample) { return ns(sample.lead + sample.copy); };
  const auto target_of = [](const Sample& sample) {
    return ns(sample.lead + sample.copy + sample.margin);
  };
  double most = 1;
  for (const Sample& sample : series) most = std::max(most, target_of(sample));
  const Axis time = time_axis(series);
  const Plot times(kTop, kPlotHeight, time, duration_axis(1.06 * most, 4));
  const Plot::Columns lead = times.columns(series, lead_of);
  const Plot::Columns delivered = times.columns(series, delivered_of);
  const Plot::Columns target = times.columns(series, target_of);
  const Plot memory(kSecond, kPlotHeight, time, memory_axis({outcome}, 4));

  std::string svg = times.axes("run-ahead target", false) +
                    times.area(target, delivered, kOfMargin, 0.5) +
                    times.area(delivered, lead, kOfCopy, 0.5) + times.area(lead, {}, kOfLead, 0.4) +
                    times.line(target, kOfTarget);
  const Axis peak = duration_axis(most, 1);
  svg += key_at(kPlotLeft, 50, kOfTarget,
                "target: the sum, at most " + format_number(most / peak.unit, 2) + " " + peak.name);
  svg += key_at(kPlotLeft + kPlotWidth * 0.32, 50, kOfLead, "lead: to deliver a batch");
  svg += key_at(kPlotLeft + kPlotWidth * 0.55, 50, kOfCopy, "its copy");
  svg += key_at(kPlotLeft + kPlotWidth * 0.68, 50, kOfMargin, "margin: for bursts, hiccups");
  svg += memory.axes("memory in use", true) +
         memory.mark(static_cast<double>(outcome.budget_bytes.count), "budget") +
         memory_curve(memory, outcome, kOfMemory);
  svg += key_at(kPlotLeft, kSecond - 14, kOfMemory,
                "memory: peak " + format_bytes(outcome.run.peak) + "; " + throughput(outcome) +
                    " of that without a limit");
  return picture_of(kSecond + kPlotHeight + 52,
                    "The target of " + std::string(outcome.policy->name) +
                        " over time: " + std::string(outcome.workload->about),
                    svg);
}

}  // namespace weir::simulate
