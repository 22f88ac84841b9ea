// libweir.so, an interpreter and its frameworks, and what happens with the library in front of a
// program. Imports no framework.

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/version.hpp"
#include "tools/preload/borders/version_mark.hpp"
#include "tools/preload/torch/plug_file.hpp"
#include "tools/program/is_there.hpp"
#include "tools/program/split.hpp"
#include "tools/weir/doctor/bounded.hpp"
#include "tools/weir/doctor/collect.hpp"
#include "tools/weir/run/environment.hpp"
#include "tools/weir/run/library.hpp"
#include "tools/weir/run/program.hpp"

namespace weir::cli::doctor {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

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
  for (const std::string_view line : split(text)) {
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
  return std::ranges::any_of(split(maps), [&](std::string_view line) {
    const std::size_t rights = std::min(line.find(' '), line.size());  // ADDRESSES r-xp OFFSET …
    return line.ends_with(name) && line.substr(rights, 5).find('x') != std::string_view::npos;
  });
}

constexpr std::string_view kMark = "weir-doctor:";

/// Prints one line of JSON behind the mark: what modules of the start print comes before it. Leaves
/// the current folder out of the path, where a file torch.py may lie. Needs Python 3.8.
constexpr const char* kQuestion = R"(
import sys
if sys.path and not sys.path[0]:
    del sys.path[0]
import glob, importlib.metadata, importlib.util, json, os

# Others may have put in what importlib.metadata does not take.
sys.path = [os.fspath(folder) for folder in sys.path if isinstance(folder, (str, os.PathLike))]

def version(names):
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass

packages = {
    "JAX": ["jax"],
    "CuPy": ["cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy"],
    "Numba": ["numba-cuda", "numba"],
    "RMM": ["rmm-cu13", "rmm-cu12", "rmm"],
    "TensorFlow": ["tensorflow"],
}
torch = importlib.util.find_spec("torch")
answer = {
    "version": "%d.%d.%d" % sys.version_info[:3],
    "executable": sys.executable or "",
    "torch": os.path.dirname(torch.origin) if torch and torch.origin else "",
    "packages": {name: found for name, names in packages.items() if (found := version(names))},
    "runtimes": [
        file
        for folder in sys.path
        for file in glob.glob(os.path.join(folder, "nvidia/*/lib/libcudart.so*"))
    ],
}
print("\nweir-doctor:" + json.dumps(answer))
)";

constexpr const char* kShowMaps = "print(open('/proc/self/maps').read())";

std::optional<preload::CxxAbi> abi_of(const std::string& library) {
  constexpr std::size_t kMost = std::size_t{64} << 20U;
  const std::string file = preload::read_beginning(library, kMost).value_or("");
  if (file.find(preload::kCxx03Constructor) != std::string::npos) return preload::CxxAbi::kCxx03;
  if (file.find(preload::kCxx11Constructor) != std::string::npos) return preload::CxxAbi::kCxx11;
  return std::nullopt;
}

/// Reads PyTorch's files as libweir.so does when it puts the plug in.
TorchFacts look_into(const fs::path& torch, const fs::path& plugs) {
  TorchFacts facts;
  facts.version =
      preload::parse_torch_version(read_small((torch / "version.py").string()).value_or(""));
  facts.has_cuda = is_there(torch / "lib/libc10_cuda.so");
  facts.abi = abi_of((torch / "lib/libc10.so").string());
  if (!facts.version || !facts.abi) return facts;
  facts.plug = preload::plug_name(*facts.version, *facts.abi);
  const fs::path plug = plugs / facts.plug;
  facts.plug_exists = !plugs.empty() && is_there(plug);
  if (facts.plug_exists) facts.plug_unfit = preload::why_unfit(plug.string()).value_or("");
  return facts;
}

void take_answer(PythonFacts& facts, const std::string& out, const fs::path& plugs) {
  const std::size_t mark = out.rfind(kMark);
  if (mark == std::string::npos) return;
  // What Python's exit functions print comes behind the line.
  const std::size_t begin = mark + kMark.size();
  const Json json = Json::parse(out.substr(begin, out.find('\n', begin) - begin), nullptr, false);
  try {
    PythonFacts answer = facts;
    answer.version = json.at("version");
    answer.executable = json.at("executable");  // empty where Python cannot tell
    answer.packages = json.at("packages").get<std::map<std::string, std::string>>();
    answer.runtimes = json.at("runtimes").get<std::vector<std::string>>();
    if (const std::string torch = json.at("torch"); !torch.empty()) {
      answer.torch = look_into(torch, plugs);
    }
    facts = std::move(answer);
  } catch (const Json::exception&) {
    return;  // another program's line
  }
}

/// The library in front of the program that people will start. The interpreter behind a script may
/// have other rights than the script.
Trial try_python(const PythonFacts& facts, const std::string& path, const std::string& library,
                 std::chrono::milliseconds limit) {
  const std::string name = "Python " + facts.version;
  try {
    const Environment environment = process_environment();
    (void)check_program(facts.executable, {facts.executable}, environment);
    const Started started = check_program(path, {path, "-c", kShowMaps}, environment);
    return try_library(library, name, started.path, started.words, limit);
  } catch (const UsageError& error) {
    return {.end = Trial::End::kRefused, .program = name, .message = error.what()};
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

LibraryFacts collect_library() {
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
  return facts;
}

PythonFacts collect_python(const CollectOptions& options, const std::string& library) {
  PythonFacts facts;
  facts.is_asked = !options.python.empty();
  if (facts.is_asked) facts.asked = options.python;
  std::string path;
  try {
    path = find_program(facts.asked, process_environment());
  } catch (const UsageError& error) {
    facts.problem = error.what();
    return facts;
  }
  const Bounded asked = run_program(path, {path, "-c", kQuestion}, with_variables(environ, {}),
                                    options.program_limit);
  facts.answer = asked.answer;
  facts.said = last_line(asked.err);
  if (asked.answer != Answer::kCame || asked.exit_code != 0) return facts;
  take_answer(facts, asked.out, fs::path(library).parent_path());
  if (facts.executable.empty()) facts.executable = path;
  if (!library.empty() && !facts.version.empty()) {
    facts.trial = try_python(facts, path, library, options.program_limit);
  }
  return facts;
}

}  // namespace weir::cli::doctor
