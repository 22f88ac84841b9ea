// weir set: sets the budget of a running program.

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/variables.hpp"
#include "allocator/budget.hpp"
#include "tools/program/printable.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/timeline/live/asker.hpp"
#include "tools/timeline/live/folder.hpp"
#include "tools/weir/commands/command.hpp"
#include "tools/weir/live/live_programs.hpp"
#include "tools/weir/live/ps.hpp"

namespace weir::cli {
namespace {

using timeline::Asker;
using timeline::BudgetAnswer;
using timeline::BudgetCode;

struct SetFlags {
  std::string pid;
  std::string budget;
  std::string device;
  std::string wait = "5";
};

struct Wanted {
  std::uint32_t pid = 0;
  BudgetRequest budget;
  std::optional<std::uint64_t> device{};  ///< as LiveDevice has it
  std::chrono::milliseconds wait{};
};

Wanted parse(const SetFlags& flags) {
  constexpr std::uint64_t kMostPid = 4'194'304;  // the kernel's own limit
  constexpr std::uint64_t kMostDevice = 1023;
  constexpr double kLeastWait = 0.1;
  constexpr double kMostWait = 3600;
  const auto pid = parse_whole(flags.pid);
  if (!pid || *pid == 0 || *pid > kMostPid) {
    refuse("PID", flags.pid, "the number of a process, as weir ps lists it");
  }
  Wanted wanted{.pid = static_cast<std::uint32_t>(*pid),
                .budget = parse_budget("--budget", flags.budget)};
  if (wanted.budget.percent <= 0 && wanted.budget.bytes < timeline::kLeastBudget) {
    refuse("--budget", flags.budget,
           format_bytes(timeline::kLeastBudget) + " or more, or a share of the device such as 80%");
  }
  if (!flags.device.empty()) {
    const auto device = parse_whole(flags.device);
    if (!device || *device > kMostDevice) {
      refuse("--device", flags.device, "the number of a GPU, from 0, as the program counts them");
    }
    wanted.device = *device + 1;
  }
  const auto seconds = parse_decimal(flags.wait);
  if (!seconds || *seconds < kLeastWait || *seconds > kMostWait) {
    refuse("--wait", flags.wait, "seconds, 0.1 to 3600");
  }
  wanted.wait = std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
  return wanted;
}

std::string process_name(std::uint32_t pid) { return "process " + std::to_string(pid); }

/// Returns the program with this number if it accepts requests.
timeline::LiveProgram find_program(const timeline::LiveSurvey& survey, std::uint32_t pid) {
  std::vector<timeline::LiveProgram> found;
  for (const timeline::LiveProgram& program : survey.programs) {
    if (program.pid == pid) found.push_back(program);
  }
  if (found.empty()) throw Error(printable(why_missing(survey, pid), true));
  if (found.size() > 1) {
    throw Error("there are " + std::to_string(found.size()) + " programs with the number " +
                std::to_string(pid) +
                ", in containers that share a folder: give each its own folder (WEIR_PUBLISH)");
  }
  if (found.front().uid != geteuid()) {
    throw Error(process_name(pid) + " is " + user_name(found.front().uid) +
                "'s: only that user can set its budget");
  }
  return found.front();
}

/// What to ask for each device. All are checked before any is sent.
struct Change {
  timeline::BudgetAsk ask;
  std::string device;
};
std::vector<Change> changes_of(const timeline::LiveProgram& program, const Wanted& wanted) {
  std::vector<Change> changes;
  std::string used;
  for (const timeline::LiveDevice& device : program.device_figures) {
    const std::string name = device_name(device.device);
    used += (used.empty() ? "" : ", ") + name;
    if (wanted.device && *wanted.device != device.device) continue;
    Bytes budget = wanted.budget.bytes;
    // A device that shows no total does not allow another budget, and answers so itself.
    if (device.total != 0) budget = resolve_budget(wanted.budget, {device.total}, "--budget");
    if (device.total != 0 && budget < timeline::kLeastBudget) {
      refuse("--budget", format_budget(wanted.budget),
             format_bytes(timeline::kLeastBudget) + " or more of " + name);
    }
    changes.push_back({{.device = device.device, .budget = budget}, name});
  }
  if (used.empty()) throw Error(process_name(program.pid) + " has not used a GPU yet");
  if (changes.empty()) {
    throw UsageError("--device: " + process_name(program.pid) + " does not use " +
                     device_name(*wanted.device) + ": it uses " + used);
  }
  return changes;
}

std::string why_silent(Asker::Failure failure, std::uint32_t pid, const std::string& wait) {
  switch (failure) {
    case Asker::Failure::kEnded:
      return process_name(pid) + " has ended";
    case Asker::Failure::kBusy:
      return process_name(pid) + " was busy with other requests for " + wait + " s";
    case Asker::Failure::kBroken:
      return process_name(pid) + " cannot be reached: its file cannot be written";
    case Asker::Failure::kSilent:
      break;
  }
  return process_name(pid) + " did not answer within " + wait + " s" +
         (timeline::is_stopped(pid) ? ": it is stopped" : "") + "; the request was withdrawn";
}

std::string why_refused(const BudgetAnswer& answer, const Change& change, std::uint32_t pid) {
  switch (answer.code) {
    case BudgetCode::kOutOfRange:
      return process_name(pid) + " refused " + format_bytes(change.ask.budget) + " for " +
             change.device + ": a budget is " + format_bytes(timeline::kLeastBudget) +
             " or more, and at most the device's memory, " + format_bytes(answer.total);
    case BudgetCode::kNoDevice:
      return process_name(pid) + " does not use " + change.device;
    case BudgetCode::kTampered:
      return process_name(pid) + " did not accept it: another program changed the request file";
    case BudgetCode::kFixed:
    case BudgetCode::kTaken:
      break;
  }
  return "the budget of " + process_name(pid) +
         " is fixed while it runs: it does not run under libweir.so";
}

std::string said(const BudgetAnswer& answer, const Change& change, std::uint32_t pid) {
  std::string text = process_name(pid) + ", " + change.device + ": budget " +
                     format_bytes(answer.before) + " -> " + format_bytes(answer.after) + ", " +
                     format_bytes(answer.used) + " in use";
  if (answer.used > answer.after) {
    text += ", " + format_bytes(answer.used - answer.after) + " above it until they are freed";
  }
  return text + "\n";
}

int run(const SetFlags& flags) {
  const Wanted wanted = parse(flags);
  const Environment environment = process_environment();
  set_log_level(log_level_from_environment());
  warn_of_unknown_variables(environ);
  require_standard_output();
  const timeline::LiveSurvey survey = timeline::read_live(places_of(environment));
  const timeline::LiveProgram program = find_program(survey, wanted.pid);
  const std::vector<Change> changes = changes_of(program, wanted);
  Asker asker(program);
  for (const Change& change : changes) {
    const Asker::Result result = asker.ask(change.ask, wanted.wait);
    if (!result.answer) throw Error(why_silent(result.failure, wanted.pid, flags.wait));
    if (result.answer->code != BudgetCode::kTaken) {
      throw Error(why_refused(*result.answer, change, wanted.pid));
    }
    require_printed(print(said(*result.answer, change, wanted.pid)));
  }
  return 0;
}

}  // namespace

Command add_set_command(CommandLine& program) {
  CommandLine& line = program.add_command("set", "change the budget of a running program");
  const auto flags = std::make_shared<SetFlags>();
  line.set_page("docs/ps.md");
  line.set_exit_codes({{"0", "the budget is in force"},
                       {"1", "the process cannot be asked, refused, or did not answer"},
                       {"2", "bad input"}});
  line.add("PID", flags->pid, Value("PID"), "the process, as weir ps lists it").require();
  line.add("--budget", flags->budget, Value("BYTES|PERCENT"), "the new budget of each device")
      .require();
  line.add("--device", flags->device, Value("N"),
           "only this one of its GPUs, counted from 0 (default: all of them)");
  line.add("--wait", flags->wait, Value("SECONDS"), "how long to wait for its answer");
  return {line, [flags](const std::vector<std::string>& /*words*/) { return run(*flags); }};
}

}  // namespace weir::cli
