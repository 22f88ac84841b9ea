// weir info: the machine, the library and the settings in force.

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "allocator/error.hpp"
#include "tools/weir/command.hpp"
#include "tools/weir/info.hpp"
#include "tools/weir/library.hpp"

namespace weir::cli {
namespace {

struct InfoFlags {
  bool hooks = false;
  bool library = false;
  bool json = false;
};

std::string text_for(const InfoFlags& flags) {
  if (flags.hooks) return hooks_text();
  const Environment environment = process_environment();
  const Setting<std::string> named = named_library(environment);
  if (flags.library) return require_library(named) + "\n";
  // Settings first: a bad one is refused before a device is woken.
  Info info{.driver = {},
            .library = locate_library(named),
            .settings = preload::Settings::from_environment(environment)};
  if (!named.value.empty()) (void)require_library(named);
  info.driver = ask_driver();
  return flags.json ? info_json(info) : info_text(info);
}

int run(const InfoFlags& flags, const std::vector<std::string>& words) {
  if (!words.empty()) throw UsageError("weir info takes no words after --");
  const std::string text = text_for(flags);
  errno = 0;
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    throw Error("standard output cannot be written (" + std::generic_category().message(errno) +
                ")");
  }
  return 0;
}

}  // namespace

Command add_info_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "info", "print devices, memory, driver, library, and which settings come from where");
  const auto flags = std::make_shared<InfoFlags>();
  CLI::Option* hooks = app->add_flag("--hooks", flags->hooks,
                                     "print what the library does to the driver's functions");
  CLI::Option* library =
      app->add_flag("--library", flags->library, "print the path to preload and nothing else");
  CLI::Option* json = app->add_flag("--json", flags->json, "print it for a program");
  hooks->excludes(library)->excludes(json);
  library->excludes(json);
  return {app, [flags](const std::vector<std::string>& words) { return run(*flags, words); }};
}

}  // namespace weir::cli
