// libweir.so: where it is, what it says of itself, and whether it can be preloaded.

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/version.hpp"
#include "tools/preload/borders/version_mark.hpp"
#include "tools/preload/torch/plug_file.hpp"
#include "tools/weir/doctor/collect/bounded.hpp"
#include "tools/weir/doctor/collect/collect.hpp"
#include "tools/weir/run/environment.hpp"
#include "tools/weir/run/library.hpp"
#include "tools/weir/run/program.hpp"

namespace weir::cli::doctor {
namespace {

/// Returns the version in the file; empty if it does not say one.
std::string version_in(const std::string& path) {
  constexpr std::size_t kMost = std::size_t{256} << 20U;
  const std::string file = preload::read_beginning(path, kMost).value_or("");
  const std::size_t mark = file.find(preload::kVersionMark);
  if (mark == std::string::npos) return {};
  const std::size_t begin = mark + preload::kVersionMark.size();
  return file.substr(begin, file.find('\0', begin) - begin);
}

constexpr std::string_view kLoader = "ERROR: ld.so: ";

/// Returns the line that says what went wrong: the loader's about the library, or the program's
/// first. The loader's about other preloaded files are no reason.
std::string line_about(std::string_view text, const std::string& library) {
  std::string first;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(kLoader)) {
      if (first.empty()) first = line;
    } else if (line.find("'" + library + "'") != std::string_view::npos) {
      return std::string(line.substr(kLoader.size()));
    }
  }
  return first;
}

/// Returns what `weir run` would preload: the library, and behind it what the user has.
Variable preload_of(const std::string& library) {
  Preload preload;
  preload.library = library;
  for (Variable& variable : environment_for(preload, process_environment()).variables) {
    if (variable.name == "LD_PRELOAD") return std::move(variable);
  }
  return {"LD_PRELOAD", library};
}

/// Whether the process with these /proc/PID/maps runs code of the library. A loader that is refused
/// its code leaves the other parts mapped.
bool has_code_of(std::string_view maps, const std::string& library) {
  // The loader writes the path as it opened it, the kernel without links.
  const std::string name = library.substr(library.rfind('/'));
  while (!maps.empty()) {
    const std::size_t end = std::min(maps.find('\n'), maps.size());
    const std::string_view line = maps.substr(0, end);
    maps.remove_prefix(std::min(end + 1, maps.size()));
    // ADDRESS-ADDRESS r-xp OFFSET …
    const std::size_t rights = line.find(' ');
    if (rights == std::string_view::npos) continue;
    if (line.substr(rights, 5).find('x') != std::string_view::npos && line.ends_with(name)) {
      return true;
    }
  }
  return false;
}

/// A program that every system has, and that prints a file.
Trial try_with_cat(const std::string& library, std::chrono::milliseconds limit) {
  const Environment environment = process_environment();
  try {
    const std::string path = find_program("cat", environment);
    const Started started = check_program(path, {"cat", "/proc/self/maps"}, environment);
    return try_library(library, "cat", started.path, started.words, limit);
  } catch (const UsageError& error) {
    return {.end = Trial::End::kNotTried, .program = "cat", .message = error.what()};
  }
}

}  // namespace

Trial try_library(const std::string& library, const std::string& program, const std::string& path,
                  const std::vector<std::string>& words, std::chrono::milliseconds limit) {
  const Bounded ran =
      run_program(path, words, with_variables(environ, {preload_of(library)}), limit);
  Trial trial{
      .end = Trial::End::kFailed, .program = program, .message = line_about(ran.err, library)};
  if (ran.answer == Answer::kTimedOut) {
    trial.end = Trial::End::kTimedOut;
  } else if (ran.answer == Answer::kCrashed) {
    trial.message = "it ends by signal " + std::to_string(ran.signal);
  } else if (ran.exit_code == 0) {
    const bool is_loaded = has_code_of(ran.out, library);
    trial.end = is_loaded ? Trial::End::kLoaded : Trial::End::kNotLoaded;
  }
  return trial;
}

LibraryFacts collect_library(const CollectOptions& options) {
  LibraryFacts facts;
  facts.command_version = kVersion;
  const Setting<std::string> named = named_library(process_environment());
  facts.is_named = !named.value.empty();
  try {
    facts.path = require_library(named);
  } catch (const UsageError& error) {
    facts.problem = error.what();
    return facts;
  }
  facts.version = version_in(facts.path);
  facts.plugs = plugs_beside(facts.path);
  facts.trial = try_with_cat(facts.path, options.program_limit);
  return facts;
}

}  // namespace weir::cli::doctor
