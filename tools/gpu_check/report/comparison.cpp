#include "tools/gpu_check/report/comparison.hpp"

#include <stdexcept>

namespace weir::gpu_check {

using nlohmann::json;
namespace {

PolicyLine read_line(const json& j) {
  PolicyLine line;
  line.policy = j.at("policy");
  if (j.at("runs") == 0) return line;
  line.batches_per_second = j.at("batches_per_second");
  line.host_us = j.at("host_us");
  if (j.contains("idle_share")) line.idle_share = j.at("idle_share").get<double>();
  if (j.contains("to_plain")) {
    const json& plain = j.at("to_plain");
    line.to_plain = Spread{plain.at("ratio"), plain.at("low"), plain.at("high")};
  }
  // Zero stands for a policy none of whose runs finished.
  if (const double ratio = j.at("ratio_to_reference"); ratio > 0) line.ratio = ratio;
  line.ratio_low = j.at("ratio_low");
  line.ratio_high = j.at("ratio_high");
  line.peak_reserved_bytes = j.at("last_run").at("peak_reserved_bytes");
  line.outcome = j.at("last_run").at("outcome");
  return line;
}

PolicyLine read_plain(const json& j) {
  if (!j.contains("left_out")) return read_line(j);
  PolicyLine line;
  line.outcome = j.at("left_out");
  return line;
}

}  // namespace

const PolicyLine& ComparisonFigures::policy(const std::string& name) const {
  for (const PolicyLine& line : policies) {
    if (line.policy == name) return line;
  }
  throw std::out_of_range("the comparison has no policy " + name);
}

ComparisonFigures read_comparison(const json& figures) {
  ComparisonFigures read;
  read.settings = figures.at("settings");
  read.reference = read_line(figures.at("reference"));
  read.plain = read_plain(figures.at("plain"));
  for (const json& policy : figures.at("policies")) read.policies.push_back(read_line(policy));
  read.identical = figures.at("weights_identical");
  read.finished_runs = figures.at("finished_runs");
  return read;
}

}  // namespace weir::gpu_check
