#include "tools/gpu_check/report/merge.hpp"

#include <algorithm>

#include "allocator/base/error.hpp"
#include "tools/gpu_check/report/evidence.hpp"
#include "tools/gpu_check/report/programs.hpp"

namespace weir::gpu_check {

using nlohmann::json;
namespace {

/// What figures are of: no page may mix two of these.
std::string identity(const json& call) {
  const json& machine = call.at("machine");
  return machine.at("gpus").at(0).at("name").get<std::string>() + ", driver " +
         machine.value("driver", "") + ", commit " + machine.value("commit", "") +
         (machine.value("rehearsal", false) ? ", a rehearsal" : "");
}

/// The element of that name in a list of objects; its end where there is none.
json::iterator find_named(json& list, const json& name) {
  return std::find_if(list.begin(), list.end(),
                      [&](const json& one) { return one.at("name") == name; });
}

/// Puts `later` where the element of its name is, or at the end.
void put(json& list, const json& later) {
  const auto found = find_named(list, later.at("name"));
  if (found == list.end()) {
    list.push_back(later);
  } else {
    *found = later;
  }
}

/// Adds another call of programs to the step `all`.
void add_programs(json& all, const json& later) {
  if (!later.contains("figures")) return;
  if (!all.contains("figures")) {
    all = later;
    return;
  }
  for (const json& program : later.at("figures").at("programs")) {
    put(all.at("figures").at("programs"), program);
  }
  all["command"] = all.at("command").get<std::string>() + "; " + later.value("command", "");
  for (const char* sum : {"seconds", "limit_seconds"}) {
    all[sum] = all.at(sum).get<double>() + later.at(sum).get<double>();
  }
  if (all.at("exit_code") == 0) {
    all["exit_code"] = later.at("exit_code");
    all["outcome"] = later.at("outcome");
  }
}

void add_step(json& steps, const json& later) {
  const auto found = find_named(steps, later.at("name"));
  if (found == steps.end() || found->contains("left_out")) {
    put(steps, later);
  } else if (!later.contains("left_out")) {
    later.at("name") == kProgramsStep ? add_programs(*found, later) : put(steps, later);
  }
}

}  // namespace

json read_call(const std::filesystem::path& run, const std::string& date) {
  if (is_directory(run)) return gather(run, date);
  json call = json::parse(read_text(run), nullptr, false);
  if (!call.is_object() || !call.contains("machine") || !call.contains("steps")) {
    throw Error(run.string() + " is not what weir-gpu report wrote");
  }
  return call;
}

json merge_calls(const std::vector<json>& calls, const std::string& date) {
  if (calls.empty()) throw Error("there is no call to make a page of");
  if (calls.size() == 1) return calls.front();
  json all{{"date", date},
           {"call", kAllCalls},
           {"machine", calls.front().at("machine")},
           {"steps", json::array()}};
  for (const json& call : calls) {
    if (identity(call) != identity(calls.front())) {
      throw Error("no page is of two machines or builds: " + identity(calls.front()) + "; and " +
                  identity(call));
    }
    for (const json& step : call.at("steps")) add_step(all.at("steps"), step);
  }
  const auto programs = find_named(all.at("steps"), kProgramsStep);
  if (programs != all.at("steps").end() && programs->contains("figures")) {
    programs->at("figures").erase("planned");
  }
  return all;
}

}  // namespace weir::gpu_check
