// weir ps: lists the programs under Weir on this machine and their device memory.

#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <memory>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/variables.hpp"
#include "allocator/share/share_layout.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/timeline/live/folder.hpp"
#include "tools/weir/commands/command.hpp"
#include "tools/weir/live/live_programs.hpp"
#include "tools/weir/live/ps.hpp"
#include "tools/weir/live/top_terminal.hpp"

namespace weir::cli {
namespace {

Ps look(const Environment& environment) {
  const std::vector<timeline::LiveFolder> places = places_of(environment);
  for (const timeline::LiveFolder& place : places) timeline::remove_ended(place);
  const timeline::LiveSurvey survey = timeline::read_live(places);
  std::fputs(faults_text(survey.faults).c_str(), stderr);
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  Ps ps = ps_of(survey,
                static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
                    static_cast<std::uint64_t>(now.tv_nsec),
                user_name);
  // A folder that WEIR_PUBLISH names stands apart from the rest of the machine.
  if (timeline::publish_setting(environment).value.folder.empty()) {
    for (const ShareId& id : shares_here()) ps.shares.push_back(look_into(id));
  }
  std::fputs(share_faults_text(ps.shares).c_str(), stderr);
  return ps;
}

int run(const std::string& json, bool wide) {
  const Environment environment = process_environment();
  set_log_level(log_level_from_environment());
  warn_of_unknown_variables(environ);
  if (!json.empty()) {
    OutputFile file("--json", json);
    file.commit(ps_json(look(environment)));
    return 0;
  }
  require_standard_output();
  require_printed(
      print(ps_text(look(environment),
                    {.users = geteuid() == 0, .utf8 = screen_of(environment).utf8, .wide = wide})));
  return 0;
}

}  // namespace

Command add_ps_command(CommandLine& program) {
  CommandLine& line = program.add_command(
      "ps", "list the programs under Weir on this machine, with the budget of each device");
  const auto json = std::make_shared<std::string>();
  line.set_page("docs/ps.md");
  const auto wide = std::make_shared<bool>(false);
  line.add("--wide", *wide, "show all columns, and cut nothing to fit 100 columns");
  line.add("--json", *json, Value("FILE"), "write JSON to FILE; - is standard output");
  return {line,
          [json, wide](const std::vector<std::string>& /*words*/) { return run(*json, *wide); }};
}

}  // namespace weir::cli
