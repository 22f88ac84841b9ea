#include "bench/simulate/picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/program/numbers.hpp"

namespace weir::simulate {
namespace {

constexpr int kWidth = 960;
constexpr int kHeight = 420;
constexpr int kLeft = 84;
constexpr int kRight = 24;
constexpr int kTop = 84;
constexpr int kBottom = 52;
constexpr int kPlotWidth = kWidth - kLeft - kRight;
constexpr int kPlotHeight = kHeight - kTop - kBottom;

/// Colours that people with any colour vision tell apart (Okabe and Ito 2008).
constexpr std::array<std::string_view, 6> kColours{"#d55e00", "#0072b2", "#009e73",
                                                   "#cc79a7", "#e69f00", "#56b4e9"};

std::string number(double value) { return format_number(value, 1); }

/// Returns 1, 2 or 5 times a power of ten, so that about `count` steps reach `most`.
double step_of(double most, int count) {
  const double rough = most / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

/// An axis: the unit of its labels, its end and the step between two labels, in that unit.
struct Axis {
  double unit = 1;
  std::string name;
  double most = 1;
  double step = 1;
};

Axis axis_of(double most, int count, std::initializer_list<std::pair<double, const char*>> units) {
  Axis axis;
  for (const auto& [unit, name] : units) {
    axis.unit = unit;
    axis.name = name;
    if (most >= unit) break;
  }
  axis.most = std::max(most / axis.unit, 1e-9);
  axis.step = step_of(axis.most, count);
  return axis;
}

std::string text_at(double x, double y, const std::string& text, const std::string& more = {}) {
  return "<text x='" + number(x) + "' y='" + number(y) + "' " + more + ">" + text + "</text>\n";
}

std::string line_from(double x1, double y1, double x2, double y2, const std::string& style) {
  return "<line x1='" + number(x1) + "' y1='" + number(y1) + "' x2='" + number(x2) + "' y2='" +
         number(y2) + "' " + style + "/>\n";
}

class Picture {
 public:
  explicit Picture(const std::vector<Outcome>& outcomes) : outcomes_(outcomes) {
    Time longest{1};
    Bytes most{1};
    for (const Outcome& outcome : outcomes) {
      if (!outcome.run.series.empty()) {
        longest = std::max(longest, outcome.run.series.back().time);
      }
      most = std::max(most, outcome.run.peak);
    }
    x_ = axis_of(static_cast<double>(longest.count()), 8, {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}});
    y_ = axis_of(1.06 * static_cast<double>(most.count), 5,
                 {{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}});
  }

  [[nodiscard]] std::string draw() const {
    std::string svg = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " +
                      std::to_string(kWidth) + " " + std::to_string(kHeight) + "' width='" +
                      std::to_string(kWidth) + "' height='" + std::to_string(kHeight) +
                      "' font-family='system-ui, sans-serif' font-size='13' "
                      "fill='#333' role='img'>\n"
                      "<rect width='100%' height='100%' fill='#fff'/>\n";
    svg += title() + axes() + budget();
    for (std::size_t i = 0; i < outcomes_.size(); ++i) svg += curve(i) + legend(i);
    return svg + "</svg>\n";
  }

 private:
  [[nodiscard]] double x(Time time) const {
    return kLeft + static_cast<double>(time.count()) / x_.unit / x_.most * kPlotWidth;
  }
  [[nodiscard]] double y(double bytes) const {
    return kTop + kPlotHeight - bytes / y_.unit / y_.most * kPlotHeight;
  }
  static std::string colour(std::size_t i) { return std::string(kColours.at(i % kColours.size())); }

  [[nodiscard]] std::string title() const {
    const std::string about(outcomes_.front().workload->about);
    return text_at(kLeft, 26, "Device memory over time: " + about,
                   "font-size='16' font-weight='600'");
  }

  [[nodiscard]] std::string axes() const {
    std::string svg;
    const int digits_x = x_.step < 1 ? 1 : 0;
    for (int i = 0; i * x_.step <= x_.most * 1.0001; ++i) {
      const double at = kLeft + i * x_.step / x_.most * kPlotWidth;
      svg += line_from(at, kTop + kPlotHeight, at, kTop + kPlotHeight + 5, "stroke='#999'");
      svg += text_at(at, kTop + kPlotHeight + 20, format_number(i * x_.step, digits_x),
                     "text-anchor='middle'");
    }
    const int digits_y = y_.step < 1 ? 1 : 0;
    for (int i = 0; i * y_.step <= y_.most * 1.0001; ++i) {
      const double at = y(i * y_.step * y_.unit);
      svg += line_from(kLeft, at, kLeft + kPlotWidth, at,
                       i == 0 ? "stroke='#999'" : "stroke='#e6e6e6'");
      svg += text_at(kLeft - 8, at + 4, format_number(i * y_.step, digits_y), "text-anchor='end'");
    }
    svg += text_at(kLeft + kPlotWidth / 2.0, kHeight - 12, "time (" + x_.name + ")",
                   "text-anchor='middle'");
    const std::string middle = number(kTop + kPlotHeight / 2.0);
    return svg +
           text_at(0, 0, "memory in use (" + y_.name + ")",
                   "text-anchor='middle' transform='translate(22 " + middle + ") rotate(-90)'");
  }

  [[nodiscard]] std::string budget() const {
    const auto bytes = static_cast<double>(outcomes_.front().budget_bytes.count);
    if (bytes / y_.unit > y_.most) return "";
    return line_from(kLeft, y(bytes), kLeft + kPlotWidth, y(bytes),
                     "stroke='#555' stroke-dasharray='6 4'") +
           text_at(kLeft + kPlotWidth, y(bytes) - 6, "budget", "text-anchor='end'");
  }

  /// The largest sample of each pixel column, so that no peak is lost.
  [[nodiscard]] std::string curve(std::size_t index) const {
    const std::vector<Sample>& series = outcomes_[index].run.series;
    if (series.empty()) return "";
    std::string points;
    double last = 0;
    std::size_t next = 0;
    const int end = static_cast<int>(std::lround(x(series.back().time)));
    for (int column = kLeft; column <= end; ++column) {
      double most = next < series.size() && x(series[next].time) <= column ? 0 : last;
      while (next < series.size() && x(series[next].time) <= column) {
        last = static_cast<double>(series[next++].used.count);
        most = std::max(most, last);
      }
      points += std::to_string(column) + "," + number(y(most)) + " ";
    }
    const std::string ground = number(y(0));
    return "<polygon points='" + std::to_string(kLeft) + "," + ground + " " + points +
           std::to_string(end) + "," + ground + "' fill='" + colour(index) +
           "' fill-opacity='0.12'/>\n<polyline points='" + points +
           "' fill='none' stroke-width='1.8' stroke-linejoin='round' stroke='" + colour(index) +
           "'/>\n";
  }

  [[nodiscard]] std::string legend(std::size_t index) const {
    const Outcome& outcome = outcomes_[index];
    const auto column = static_cast<int>(index % 2);
    const auto row = static_cast<int>(index / 2);
    const double at_x = kLeft + column * kPlotWidth / 2.0;
    const double at_y = 48 + row * 18;
    const std::string words = std::string(outcome.policy->name) + ": peak " +
                              format_bytes(outcome.run.peak) + ", throughput " +
                              format_number(100 * outcome.of_unbounded, 1) + "%";
    return line_from(at_x, at_y - 4, at_x + 22, at_y - 4,
                     "stroke-width='4' stroke='" + colour(index) + "'") +
           text_at(at_x + 30, at_y, words);
  }

  const std::vector<Outcome>& outcomes_;
  Axis x_;
  Axis y_;
};

}  // namespace

std::string picture_svg(const std::vector<Outcome>& outcomes) { return Picture(outcomes).draw(); }

}  // namespace weir::simulate
