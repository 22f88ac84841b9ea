// weir info: prints the machine, the library and the settings in force.

#include <unistd.h>

#include <memory>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/variables.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/weir/commands/command.hpp"
#include "tools/weir/info/info.hpp"
#include "tools/weir/run/library.hpp"

namespace weir::cli {
namespace {

struct InfoFlags {
  bool hooks = false;
  bool library = false;
  bool wide = false;
  std::string json;
};

Info find_info() {
  const Environment environment = process_environment();
  const Setting<std::string> named = named_library(environment);
  // Settings first: refuse a bad one before waking a device.
  Setting<std::string> library = locate_library(named);
  preload::Settings settings = preload::Settings::from_environment(environment);
  set_log_level(settings.log.value);
  warn_of_unknown_variables(environ);
  if (!named.value.empty()) (void)require_library(named);
  Setting<AllocatorMode> allocator = allocator_mode(environment);
  settings.torch = torch_way(allocator, environment);
  std::string line = choose_allocator({.mode = allocator.value,
                                       .torch = settings.torch.value,
                                       .plugs = plugs_beside(library.value)},
                                      environment)
                         .line;
  return {.driver = ask_driver(),
          .library = std::move(library),
          .settings = std::move(settings),
          .allocator = std::move(allocator),
          .allocator_line = std::move(line)};
}

std::string text_for(const InfoFlags& flags) {
  if (flags.hooks) return hooks_text(flags.wide);
  if (flags.library) return require_library(named_library(process_environment())) + "\n";
  return info_text(find_info(), flags.wide);
}

int run(const InfoFlags& flags) {
  if (!flags.json.empty()) {
    OutputFile file("--json", flags.json);
    file.commit(info_json(find_info()));
    return 0;
  }
  require_standard_output();
  require_printed(print(text_for(flags)));
  return 0;
}

}  // namespace

Command add_info_command(CommandLine& program) {
  CommandLine& line = program.add_command(
      "info", "print devices, memory, driver, library, and the source of each setting");
  line.set_page("docs/weir-run.md");
  const auto flags = std::make_shared<InfoFlags>();
  const Flag hooks =
      line.add("--hooks", flags->hooks, "print what the library does to the driver's functions");
  const Flag library = line.add("--library", flags->library, "print only the path to preload");
  line.add("--wide", flags->wide, "show all columns, and cut nothing to fit 100 columns");
  const Flag json =
      line.add("--json", flags->json, Value("FILE"), "write JSON to FILE; - is standard output");
  hooks.exclude(library).exclude(json);
  library.exclude(json);
  return {line, [flags](const std::vector<std::string>& /*words*/) { return run(*flags); }};
}

}  // namespace weir::cli
