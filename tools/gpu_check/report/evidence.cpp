#include "tools/gpu_check/report/evidence.hpp"

#include <cctype>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include "allocator/base/error.hpp"

namespace weir::gpu_check {

using nlohmann::json;
namespace {

json step_json(const Step& step) {
  json j{{"name", step.name}, {"outcome", describe(step)}};
  if (!step.ran()) {
    j["left_out"] = step.left_out;
    return j;
  }
  j["command"] = step.command;
  j["exit_code"] = step.exit_code;
  j["seconds"] = step.seconds;
  j["limit_seconds"] = step.limit;
  return j;
}

/// Series with a value for each batch of a run are not for a page, nor for the history of a tree.
void drop_series(json& figures) {
  constexpr std::string_view kSeries = "_per_batch";
  for (auto at = figures.begin(); at != figures.end();) {
    if (figures.is_object() && std::string_view(at.key()).ends_with(kSeries)) {
      at = figures.erase(at);
    } else {
      if (at->is_structured()) drop_series(*at);
      ++at;
    }
  }
}

/// Of a list that is written one element a line (facts_command.cpp) by a step that did not come to
/// its end: with "cut", all elements that are whole, and of the last one what was written if that
/// can be read. Discarded where it is no such list.
json parse_cut(const std::string& text) {
  const std::string whole_lines = text.substr(0, text.rfind(",\n"));
  for (const std::string& closed : {text + "]}", text + "}]}", whole_lines + "]}"}) {
    json read = json::parse(closed, nullptr, false);
    if (!read.is_object()) continue;
    read["cut"] = true;
    return read;
  }
  return json(json::value_t::discarded);
}

/// Adds what the step left to `step`.
void add_files(const std::filesystem::path& run, json& step) {
  const std::string name = step.at("name");
  const std::filesystem::path figures = run / (name + ".json");
  const std::filesystem::path log = run / (name + ".log");
  if (exists(figures)) {
    const std::string text = read_text(figures);
    json read = json::parse(text, nullptr, false);
    if (read.is_discarded()) read = parse_cut(text);
    if (read.is_discarded()) {
      step["unreadable"] = figures.filename().string();
    } else {
      drop_series(read);
      step["figures"] = std::move(read);
    }
  }
  if (exists(log)) {
    if (std::string line = sanitizer_summary(read_text(log)); !line.empty()) step["summary"] = line;
  }
}

}  // namespace

std::string read_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error("cannot read " + file.string());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

json gather(const std::filesystem::path& run, const std::string& date) {
  json steps = json::array();
  for (const Step& step : parse_steps(read_text(run / "steps.tsv"))) {
    steps.push_back(step_json(step));
    add_files(run, steps.back());
  }
  json evidence{{"date", date},
                {"machine", json::parse(read_text(run / "info.json"))},
                {"steps", std::move(steps)}};
  if (exists(run / "call.txt")) {
    std::string call;
    std::istringstream(read_text(run / "call.txt")) >> call;
    evidence["call"] = call;
  }
  return evidence;
}

namespace {

const json* find_step(const json& evidence, const std::string& name) {
  for (const json& step : evidence.at("steps")) {
    if (step.at("name") == name) return &step;
  }
  return nullptr;
}

}  // namespace

Step step_of(const json& evidence, const std::string& name) {
  Step step;
  step.name = name;
  const json* found = find_step(evidence, name);
  if (found == nullptr) {
    step.left_out = kNoSuchStep;
    return step;
  }
  step.left_out = found->value("left_out", "");
  step.command = found->value("command", "");
  step.exit_code = found->value("exit_code", 0);
  step.seconds = found->value("seconds", 0.0);
  step.limit = found->value("limit_seconds", 0.0);
  return step;
}

const json& figures_of(const json& evidence, const std::string& name) {
  static const json kNone;
  const json* step = find_step(evidence, name);
  return step != nullptr && step->contains("figures") ? step->at("figures") : kNone;
}

std::string device_slug(const json& evidence) {
  const json& gpus = evidence.at("machine").at("gpus");
  if (gpus.empty()) throw Error("info.json names no GPU: nothing ran on one");
  std::string slug;
  for (const char c : gpus.front().at("name").get<std::string>()) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      slug += static_cast<char>(std::tolower(byte));
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  if (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug;
}

TestCounts count_tests(const json& googletest) {
  TestCounts counts;
  for (const json& suite : googletest.at("testsuites")) {
    for (const json& test : suite.at("testsuite")) {
      const std::string name =
          suite.at("name").get<std::string>() + "." + test.at("name").get<std::string>();
      if (test.contains("failures")) {
        counts.failed.push_back(name);
      } else if (test.at("result") == "COMPLETED") {
        ++counts.passed;
      } else if (test.at("result") == "SKIPPED") {
        counts.skipped.push_back(name);
      }
    }
  }
  return counts;
}

std::string sanitizer_summary(const std::string& output) {
  std::istringstream in(output);
  std::string found;
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find("SUMMARY:");
    if (at == std::string::npos) continue;
    const std::size_t from = line.find_first_not_of("= ");
    found = line.substr(from);
  }
  return found;
}

}  // namespace weir::gpu_check
