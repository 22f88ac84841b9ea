// weir doctor: says what works here, what does not, and what to do.

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "allocator/base/version.hpp"
#include "tools/program/colour.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/weir/commands/command.hpp"
#include "tools/weir/doctor/checks.hpp"
#include "tools/weir/doctor/collect.hpp"
#include "tools/weir/doctor/report.hpp"
#include "tools/weir/live/live_programs.hpp"

namespace weir::cli {
namespace {

struct DoctorFlags {
  std::string python;
  std::string json;
};

std::string value_of(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

doctor::Private whose() {
  std::array<char, 256> host{};
  (void)gethostname(host.data(), host.size() - 1);
  doctor::Private whose{
      .homes = {value_of("HOME")}, .user = user_name(geteuid()), .host = host.data()};
  if (const passwd* const user = getpwuid(geteuid())) whose.homes.emplace_back(user->pw_dir);
  return whose;
}

doctor::Report examine(const DoctorFlags& flags) {
  const doctor::Facts facts = doctor::collect({.python = flags.python, .root = {}});
  std::vector<doctor::Finding> findings = doctor::check_all(facts);
  const bool has_torch = doctor::concerns_torch(facts, findings);
  doctor::Report report{.version = std::string(kVersion),
                        .findings = std::move(findings),
                        .variables = {},
                        .whose = whose(),
                        .has_torch = has_torch,
                        .is_standin = facts.driver.driver.is_standin};
  for (const auto& [name, value] : facts.variables) {
    if (name.starts_with("WEIR_") || name.starts_with("MXNET_")) {
      report.variables.emplace(name, value);
    }
  }
  return report;
}

int run(const DoctorFlags& flags) {
  if (!flags.json.empty()) {
    OutputFile file("--json", flags.json);
    const doctor::Report report = examine(flags);
    file.commit(doctor::report_json(report));
    return doctor::exit_code(report);
  }
  require_standard_output();
  const doctor::Report report = examine(flags);
  require_printed(print(doctor::report_text(report, may_colour_output(process_environment()))));
  return doctor::exit_code(report);
}

}  // namespace

Command add_doctor_command(CommandLine& program) {
  CommandLine& line = program.add_command(
      "doctor", "check driver, library, Python, settings and limits, and say what to do");
  line.set_footer(
      "Needs no GPU. The output is what a report of a problem should contain. In paths it replaces "
      "your home folder and the names of user and machine; it shows the values of Weir's "
      "variables.");
  line.set_page("docs/doctor.md");
  line.set_exit_codes({{"0", "no check fails"},
                       {"1", "a check fails, it cannot look, or standard output cannot be written"},
                       {"2", "bad input"}});
  const auto flags = std::make_shared<DoctorFlags>();
  line.add("--python", flags->python, Value("FILE"),
           "the interpreter that runs your programs: a path, or a name on the PATH (python3)");
  line.add("--json", flags->json, Value("FILE"), "write JSON to FILE; - is standard output");
  return {line, [flags](const std::vector<std::string>& /*words*/) { return run(*flags); }};
}

}  // namespace weir::cli
