// weir top: shows the programs under Weir on this machine while they run.

#include <ctime>
#include <memory>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/variables.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/weir/commands/command.hpp"
#include "tools/weir/live/live_programs.hpp"
#include "tools/weir/live/top.hpp"
#include "tools/weir/live/top_screen.hpp"
#include "tools/weir/live/top_terminal.hpp"
#include "tools/weir/run/child.hpp"

namespace weir::cli {
namespace {

struct TopFlags {
  bool once = false;
  bool wide = false;
  std::string every = "1";
  std::string json;
};

/// Parses seconds: 0.1 to 3600.
std::chrono::milliseconds parse_every(const std::string& text) {
  constexpr double kLeast = 0.1;
  constexpr double kMost = 3600;
  const auto seconds = parse_decimal(text);
  if (!seconds || *seconds < kLeast || *seconds > kMost) {
    refuse("--every", text, "seconds between two updates, 0.1 to 3600");
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
}

Top look(const std::vector<timeline::LiveFolder>& places) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  for (const timeline::LiveFolder& place : places) timeline::remove_ended(place);
  return top_of(timeline::read_live(places),
                static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
                    static_cast<std::uint64_t>(now.tv_nsec),
                user_name);
}

/// Runs until the user quits. Returns the signal that ended it; 0: none.
int show(const Environment& environment, std::chrono::milliseconds every) {
  using Kind = TopTerminal::Event::Kind;
  TopTerminal terminal;
  for (;;) {
    const std::string text = top_text(look(places_of(environment)), screen_of(environment));
    if (!terminal.draw(text)) return 0;
    const TopTerminal::Event event = terminal.wait(every);
    if (event.kind == Kind::kQuit) return 0;
    if (event.kind == Kind::kSignal) return event.signal;
  }
}

int run(const TopFlags& flags) {
  const std::chrono::milliseconds every = parse_every(flags.every);
  const Environment environment = process_environment();
  set_log_level(log_level_from_environment());
  warn_of_unknown_variables(environ);
  if (!flags.json.empty()) {
    OutputFile file("--json", flags.json);
    file.commit(top_json(look(places_of(environment))));
    return 0;
  }
  require_standard_output();
  if (flags.once || !can_draw(environment)) {
    Screen screen = screen_of(environment);
    screen.height = 0;
    if (flags.wide) screen.width = kEveryColumn;
    require_printed(print(top_text(look(places_of(environment)), screen)));
    return 0;
  }
  const int signal = show(environment, every);
  if (signal == 0) return 0;
  end_by(signal);
  return 128 + signal;
}

}  // namespace

Command add_top_command(CommandLine& program) {
  CommandLine& line = program.add_command(
      "top", "show the programs under Weir on this machine while they run; q quits");
  const auto flags = std::make_shared<TopFlags>();
  line.set_page("docs/ps.md");
  line.set_exit_codes({{"0", "finished, or q or Ctrl-C was pressed"},
                       {"1", "the terminal cannot be used"},
                       {"2", "bad input"},
                       {"128 + N", "signal N ended it"}});
  const Flag once = line.add("--once", flags->once, "print one table and exit");
  line.add("--wide", flags->wide, "with --once: all columns");
  line.add("--every", flags->every, Value("SECONDS"), "the time between two updates").exclude(once);
  line.add("--json", flags->json, Value("FILE"), "write JSON to FILE, once; - is standard output");
  return {line, [flags](const std::vector<std::string>& /*words*/) { return run(*flags); }};
}

}  // namespace weir::cli
