// weir run: runs a program with the library in it.

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

#include "allocator/base/log.hpp"
#include "allocator/base/setting.hpp"
#include "allocator/base/variables.hpp"
#include "tools/preload/settings/settings.hpp"
#include "tools/program/report_table.hpp"
#include "tools/program/temporary_folder.hpp"
#include "tools/weir/commands/command.hpp"
#include "tools/weir/commands/run_flags.hpp"
#include "tools/weir/recordings/recordings.hpp"
#include "tools/weir/run/child.hpp"
#include "tools/weir/run/environment.hpp"
#include "tools/weir/run/library.hpp"
#include "tools/weir/run/linked_cuda.hpp"
#include "tools/weir/run/program.hpp"
#include "tools/weir/run/remarks.hpp"
#include "tools/weir/run/summary_file.hpp"

namespace weir::cli {
namespace {

constexpr std::size_t kIndent = 6;  ///< of the lines that continue one: as wide as `weir: `

struct Ran {
  Ended ended;
  Collected collected;
};

/// Returns the settings that the program will read. Throws UsageError for a bad one.
preload::Settings check_settings(const Environment& environment) {
  preload::Settings settings = preload::Settings::from_environment(environment);
  set_log_level(settings.log.value);
  warn_of_unknown_variables(environ);
  const Setting<std::string>& log = settings.pool.log;
  if (!log.value.empty()) const OutputFile writable(log.source, log.value);
  return settings;
}

/// Returns the files that the program is known to read: itself, the library, and each word that
/// names a file, such as an interpreter's script.
std::vector<NamedPath> files_read(const std::string& program, const std::string& library,
                                  const std::vector<std::string>& words) {
  std::vector<NamedPath> files{{"the program", program}, {"the library", library}};
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] != "-") files.push_back({"the program's argument", words[i]});
  }
  return files;
}

/// Runs the program and collects its summaries; their folder is removed afterwards. Says first
/// which allocator a framework has, if `names_allocator`.
Ran run_program(const Started& started, Preload preload, bool names_allocator,
                const Environment& environment) {
  const BlockedSignals signals;  // first, so that no later signal leaves the folder behind
  const TemporaryFolder folder(environment, "weir-run");
  preload.summary = folder.path() + "/%p.json";
  const Prepared prepared = environment_for(preload, environment);
  // Printed whatever WEIR_LOG says, because nobody would guess it when a framework behaves
  // differently.
  if (names_allocator) {
    std::fputs(wrapped("weir: " + prepared.allocator, kIndent).c_str(), stderr);
  }
  const Child child(started.path, started.words, with_variables(environ, prepared.variables),
                    signals);
  const Ended ended = child.wait();
  return {ended, collect_summaries(folder.path(), child.process())};
}

/// Returns whether the summaries could be written.
bool write_summaries(SummaryOutput& output, const Ran& ran, const FlagSources& flags) {
  try {
    output.commit(ran.collected.summaries, flags);
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weir: %s\n", error.what());
    return false;
  }
}

/// The program's exit code takes precedence over our own failure.
int end_like(const Ended& ended, bool written) {
  if (ended.signal != 0) {
    end_by(ended.signal);
    return 128 + ended.signal;
  }
  return ended.exit_code == 0 && !written ? 1 : ended.exit_code;
}

}  // namespace

std::vector<ExitCode> exit_codes_of_program() {
  return {{"the program's own", "it ran"},
          {"128 + N", "signal N ended the program"},
          {"1", "the program finished, but its summary cannot be written"},
          {"2", "bad input, and the program was not started"}};
}

int run_with(const RunFlags& flags, const std::vector<Variable>& more,
             const FlagSources& more_flags, const std::vector<std::string>& words) {
  const Environment environment = process_environment();
  Preload preload{.library = {}, .summary = {}, .flags = flags.variables()};
  preload.flags.insert(preload.flags.end(), more.begin(), more.end());
  // The program gets our WEIR_SUMMARY; the user's is for us.
  const Environment with_flags = overlaid(environment, preload.flags);
  const preload::Settings settings = check_settings(with_flags);
  const Setting<AllocatorMode> allocator = allocator_mode(with_flags);
  const Setting<preload::TorchWay> torch = torch_way(allocator, with_flags);
  FlagSources sources = flags.sources();
  sources.insert(more_flags.begin(), more_flags.end());
  if (torch.source == allocator.source && torch.source != "default") {
    const auto flag = sources.find(torch.source);
    sources["WEIR_TORCH"] = flag == sources.end() ? torch.source : flag->second;
    preload.flags.push_back({"WEIR_TORCH", std::string(to_string(torch.value))});
  }
  preload.batch_range = !settings.batch_range.value.empty();
  preload.library = require_library(flags.library(environment));
  preload.allocator = {allocator.value, torch.value, plugs_beside(preload.library)};
  const std::string path = find_program(words.front(), environment);
  const Started started = check_program(path, words, environment);
  const Setting<std::string> json = flags.json(environment);
  require_different_files(std::array{NamedPath{json.source, json.value},
                                     NamedPath{settings.pool.log.source, settings.pool.log.value}},
                          files_read(path, preload.library, words));
  SummaryOutput output(json.source, json.value);

  const LinkedCuda linked = linked_cuda(path);
  const bool of_its_own = linked.cuda && !linked.framework;
  const bool by_default = allocator.source == "default" && torch.source == "default";
  const FileTime began = file_time_now();
  const Ran ran =
      run_program(started, std::move(preload), !(of_its_own && by_default), environment);
  // Without a reader, or beyond a file's greatest size, the exit code must still be passed on.
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::signal(SIGXFSZ, SIG_IGN);
  for (const SummaryFile& file : ran.collected.summaries) {
    const std::string text = flags.details() ? to_text(file.summary) : brief(file.summary);
    std::fputs(text.c_str(), stderr);
  }
  const std::string hint = no_cuda_hint(linked, finds_standin(environment));
  for (const Remark& remark : remarks(ran.ended, ran.collected, hint)) {
    log(remark.level, remark.text);
  }
  const bool written = write_summaries(output, ran, sources);
  make_failure_pages(settings.timeline.file.value, began);
  return end_like(ran.ended, written);
}

Command add_run_command(CommandLine& program) {
  CommandLine& line = program.add_command("run", "run a program with Weir's pool and budget");
  line.set_footer("Flags override variables, and the program receives them as variables.");
  line.set_page("docs/weir-run.md");
  line.set_exit_codes(exit_codes_of_program());
  const auto flags = std::make_shared<RunFlags>(line);
  return {line, [flags](const std::vector<std::string>& words) {
            return run_with(*flags, {}, {}, words);
          }};
}

}  // namespace weir::cli
