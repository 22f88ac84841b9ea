// Asks an interpreter for itself and for the frameworks that are installed, without importing any.

#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "allocator/base/error.hpp"
#include "tools/preload/torch/plug_file.hpp"
#include "tools/program/is_there.hpp"
#include "tools/weir/doctor/collect/bounded.hpp"
#include "tools/weir/doctor/collect/collect.hpp"
#include "tools/weir/run/environment.hpp"
#include "tools/weir/run/program.hpp"

namespace weir::cli::doctor {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

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

/// Returns the last line that says something, without blanks around it; empty if there is none.
std::string last_line(const std::string& text) {
  constexpr const char* kBlanks = " \t\r\n";
  const std::size_t end = text.find_last_not_of(kBlanks);
  if (end == std::string::npos) return {};
  const std::size_t before = text.find_last_of('\n', end);
  const std::size_t begin =
      text.find_first_not_of(kBlanks, before == std::string::npos ? 0 : before);
  return text.substr(begin, end + 1 - begin);
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
