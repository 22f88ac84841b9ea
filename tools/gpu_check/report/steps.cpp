#include "tools/gpu_check/report/steps.hpp"

#include <array>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "allocator/base/error.hpp"

namespace weir::gpu_check {
namespace {

constexpr int kTimedOut = 124;  // of timeout(1)
constexpr int kKilled = 137;    // of the same, when the program would not end

double parse_number(const std::string& text, const std::string& line) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value)) {
    throw Error("not a step: '" + text + "' is no number in: " + line);
  }
  return value;
}

Step parse_step(const std::string& line) {
  std::array<std::string, 5> fields;
  std::istringstream in(line);
  std::size_t count = 0;
  while (count < fields.size() && std::getline(in, fields[count], '\t')) ++count;
  if (count != fields.size() || fields[0].empty() || fields[4].empty()) {
    throw Error("not a step: five fields between tabs are needed in: " + line);
  }
  Step step;
  step.name = fields[0];
  step.seconds = parse_number(fields[2], line);
  step.limit = parse_number(fields[3], line);
  if (fields[1] == "-") {
    step.left_out = fields[4];
  } else {
    step.exit_code = static_cast<int>(parse_number(fields[1], line));
    step.command = fields[4];
  }
  return step;
}

}  // namespace

bool Step::timed_out() const { return ran() && (exit_code == kTimedOut || exit_code == kKilled); }

std::vector<Step> parse_steps(std::string_view text) {
  std::vector<Step> steps;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) steps.push_back(parse_step(line));
  return steps;
}

std::string describe(const Step& step) {
  if (!step.ran()) return "left out: " + step.left_out;
  if (step.timed_out()) {
    return "stopped at its limit of " + std::to_string(std::lround(step.limit)) + " s";
  }
  if (step.exit_code != 0) return "failed (exit " + std::to_string(step.exit_code) + ")";
  return "ok";
}

}  // namespace weir::gpu_check
