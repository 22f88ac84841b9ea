// libweir.so, the interpreter, and PyTorch with its plug.

#include <array>
#include <charconv>
#include <string_view>

#include "tools/weir/doctor/checks.hpp"

namespace weir::cli::doctor {
namespace {

/// What the loader says, and what to do.
struct LoaderSays {
  std::string_view words;
  const char* remedy;
};
constexpr const char* kOtherC =
    "this program uses another C library (musl): run one that uses glibc";
constexpr std::array kLoaderSays{
    LoaderSays{"failed to map segment",
               "put Weir on a file system that is not mounted noexec, or name a copy there with "
               "WEIR_LIBRARY"},
    LoaderSays{"GLIBC_", "use a build of Weir for this system's C library, or an older one"},
    LoaderSays{"wrong ELF class", "use a build of Weir for this machine"},
    LoaderSays{"Error relocating", kOtherC},
    LoaderSays{"Error loading shared library", kOtherC},
    LoaderSays{"cannot open shared object file",
               "let this user read the library and its folders, and check WEIR_LIBRARY"}};
constexpr const char* kByHand = "run it by hand: LD_PRELOAD=$(weir info --library) PROGRAM";

const char* remedy_for_loader(std::string_view message) {
  for (const LoaderSays& one : kLoaderSays) {
    if (message.find(one.words) != std::string_view::npos) return one.remedy;
  }
  return kByHand;
}

/// Adds what became of a trial.
void add_trial(const Trial& trial, Findings& found) {
  const std::string why = trial.message.empty() ? "" : ": " + trial.message;
  switch (trial.end) {
    case Trial::End::kLoaded:
      return found.ok("a trial: " + trial.program + " ran with the library in it");
    case Trial::End::kNotLoaded:
      return found.fails(
          trial.program + " ran without the library" + why,
          why.empty() ? "start it without other rights than yours: the loader ignores LD_PRELOAD "
                        "for set-user-id programs and file capabilities"
                      : remedy_for_loader(trial.message));
    case Trial::End::kFailed:
      return found.fails(trial.program + " fails with the library in it" + why,
                         remedy_for_loader(trial.message));
    case Trial::End::kTimedOut:
      return found.fails(trial.program + " does not end in time with the library in it", kByHand);
    case Trial::End::kRefused:
      return found.fails(trial.message,
                         "run your programs by another one; weir doctor --python PATH checks it");
    case Trial::End::kNotTried:
      break;  // another finding says why
  }
}

void add_library(const Facts& facts, Findings& found) {
  const LibraryFacts& library = facts.library;
  const std::string ours = ": the command takes the library beside it";
  const std::string again =
      library.is_named ? "unset WEIR_LIBRARY" + ours : std::string("install Weir again");
  if (!library.problem.empty()) {
    found.fails(library.problem, library.is_named
                                     ? "correct WEIR_LIBRARY, or unset it" + ours
                                     : "install the wheel (in a clone: pip install .) or the "
                                       ".deb; WEIR_LIBRARY names another library");
  } else if (library.version == library.command_version) {
    std::string text = library.path + ", version " + library.version;
    for (const std::string& plug : library.plugs) {
      text += (&plug == &library.plugs.front() ? ", plugs for PyTorch " : ", ") + plug;
    }
    found.ok(text);
  } else if (library.version.empty()) {
    found.warn(library.path + " does not say its version: it is no build of this Weir", again);
  } else {
    found.fails(library.path + " is version " + library.version + ", and this command " +
                    library.command_version,
                again);
  }
}

bool has_answered(const PythonFacts& python) {
  return python.problem.empty() && python.answer == Answer::kCame && !python.version.empty();
}

void add_python(const Facts& facts, Findings& found) {
  const PythonFacts& python = facts.python;
  const std::string name = python.is_asked ? python.asked : python.asked + " of the PATH";
  const std::string remedy =
      "name the interpreter that runs your program: weir doctor --python PATH";
  if (!python.problem.empty() && python.is_asked) {
    found.fails(python.problem, remedy);
  } else if (!python.problem.empty()) {
    found.warn(python.problem, remedy);  // without Python there may be nothing to swap into
  } else if (python.answer == Answer::kTimedOut) {
    found.fails(name + " does not answer in time",
                "run it by hand: a module of its start (sitecustomize) may wait for something");
  } else if (!has_answered(python)) {
    found.fails(name + " does not run" + (python.said.empty() ? "" : ": " + python.said),
                "run it by hand; it must be Python 3.8 or later");
  } else {
    std::string text = "Python " + python.version + " (" + python.executable + ")";
    for (const auto& [package, version] : python.packages)
      text.append(", ").append(package).append(" ").append(version);
    found.ok(text);
  }
}

void add_python_preload(const Facts& facts, Findings& found) {
  if (has_answered(facts.python)) add_trial(facts.python.trial, found);
}

/// Returns 13 for `2.15.0+cu132`: the major version of CUDA in the wheel. Zero if it has none.
int cuda_major_of(std::string_view version) {
  const std::size_t at = version.find("+cu");
  if (at == std::string_view::npos) return 0;
  const std::string_view digits = version.substr(at + 3);
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc{} && end - digits.data() >= 3 ? number / 10 : 0;
}

void add_torch(const Facts& facts, Findings& found) {
  if (!has_answered(facts.python)) return;
  if (!facts.python.torch) return found.ok("PyTorch is not installed");
  const TorchFacts& torch = *facts.python.torch;
  const int driver = facts.driver.driver.version;
  if (!torch.version) {
    found.lacks("PyTorch's version is not known: its torch/version.py does not say it",
                "install PyTorch again, from its wheel");
  } else if (!torch.has_cuda) {
    found.lacks("PyTorch " + torch.version->text + " is built without CUDA",
                "install a build with CUDA: pytorch.org has the command for each version");
  } else if (const int major = cuda_major_of(torch.version->text);
             driver != 0 && major > driver / 1000) {
    found.fails("PyTorch " + torch.version->text + " needs a driver for CUDA " +
                    std::to_string(major) + ".0, and this one is for " + format_version(driver),
                "install a newer driver, or a PyTorch for CUDA " + std::to_string(driver / 1000));
  }
}

void add_torch_plug(const Facts& facts, Findings& found) {
  const bool is_there = has_answered(facts.python) && facts.python.torch &&
                        facts.python.torch->version && facts.python.torch->has_cuda;
  if (!is_there) return;
  const TorchFacts& torch = *facts.python.torch;
  const std::string name = "PyTorch " + torch.version->text;
  const std::string without = ": PyTorch keeps its own cache, and Weir serves the cache's segments";
  if (!torch.version->is_release) {
    found.lacks(name + " is no release, and its classes may be those of none" + without,
                "install a release; or WEIR_TORCH=plug takes the plug of " +
                    preload::major_minor(*torch.version) + " all the same");
  } else if (!torch.abi) {
    found.lacks(name + ": its libc10.so does not tell its C++ ABI" + without,
                "install PyTorch again, from its wheel");
  } else if (!torch.plug_exists) {
    found.lacks("there is no plug for " + name + without, build_a_plug(facts));
  } else if (!torch.plug_unfit.empty()) {
    found.lacks("the plug " + torch.plug + " for " + name + " is not used: " + torch.plug_unfit,
                "install Weir again, or " + build_a_plug(facts));
  } else {
    found.ok("there is a plug for " + name + ": " + torch.plug);
  }
}

}  // namespace

std::vector<Check> library_checks() {
  const std::vector<Use> swap_in{Use::kRun, Use::kPlug};
  return {{Group::kLibrary, "library", swap_in, add_library},
          {Group::kPython, "python", {Use::kPlug}, add_python},
          {Group::kPython, "python-preload", swap_in, add_python_preload},
          {Group::kPython, "torch", {Use::kPlug}, add_torch},
          {Group::kPython, "torch-plug", {Use::kPlug}, add_torch_plug}};
}

}  // namespace weir::cli::doctor
