// The Python interpreter, PyTorch and its plug, and the other frameworks.

#include <array>
#include <charconv>
#include <string_view>

#include "tools/weir/doctor/checks/checks.hpp"
#include "tools/weir/doctor/checks/places.hpp"

namespace weir::cli::doctor {
namespace {

/// How Weir works with a framework; docs/frameworks.md has a section for each.
struct Way {
  std::string_view framework;
  std::string_view text;
};
constexpr std::array kWays{
    Way{"JAX",
        "its own cache takes 75% of the budget at its start; with --allocator async Weir serves "
        "each buffer"},
    Way{"CuPy",
        "its own pool, whose blocks Weir serves; with cupy.cuda.set_allocator(weir.cupy.allocate) "
        "Weir serves each array"},
    Way{"Numba", "Weir serves each array; NUMBA_CUDA_MEMORY_MANAGER=weir.numba frees them at once"},
    Way{"RMM", "Weir serves what its resources ask for; weir.rmm.resource() is one over Weir"},
    Way{"TensorFlow",
        "its own cache takes nearly all of the budget; with --allocator async Weir serves each "
        "tensor"}};

/// Returns 13 for `2.15.0+cu132`: the major version of CUDA in the wheel. Zero if it has none.
int cuda_major_of(std::string_view version) {
  const std::size_t at = version.find("+cu");
  if (at == std::string_view::npos) return 0;
  const std::string_view digits = version.substr(at + 3);
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc{} && end - digits.data() >= 3 ? number / 10 : 0;
}

constexpr const char* kWithoutPlug =
    "PyTorch keeps its own cache, and Weir serves the cache's segments";

void add_plug(Findings& found, const TorchFacts& torch, const Places& places) {
  const std::string name = "PyTorch " + torch.version->text;
  const std::string minor = preload::major_minor(*torch.version);
  if (!torch.version->is_release) {
    found.warn("torch-plug",
               name + " is no release, and its classes may be those of none: " + kWithoutPlug,
               "install a release; or WEIR_TORCH=plug takes the plug of " + minor + " all the same",
               {Use::kPlug});
  } else if (!torch.abi) {
    found.warn("torch-plug", name + ": its libc10.so does not tell its C++ ABI: " + kWithoutPlug,
               "install PyTorch again, from its wheel", {Use::kPlug});
  } else if (!torch.plug_exists) {
    found.warn("torch-plug", "there is no plug for " + name + ": " + kWithoutPlug,
               build_a_plug(places), {Use::kPlug});
  } else if (!torch.plug_unfit.empty()) {
    found.warn("torch-plug",
               "the plug " + torch.plug + " for " + name + " is not used: " + torch.plug_unfit,
               "install Weir again, or " + build_a_plug(places), {Use::kPlug});
  } else {
    found.ok("torch-plug", "there is a plug for " + name + ": " + torch.plug);
  }
}

void add_torch(Findings& found, const PythonFacts& facts, int driver_version,
               const Places& places) {
  if (!facts.torch) {
    found.ok("torch", "PyTorch is not installed");
    return;
  }
  const TorchFacts& torch = *facts.torch;
  if (!torch.version) {
    found.warn("torch", "PyTorch's version is not known: its torch/version.py does not say it",
               "install PyTorch again, from its wheel", {Use::kPlug});
    return;
  }
  if (!torch.has_cuda) {
    found.warn("torch", "PyTorch " + torch.version->text + " is built without CUDA",
               "install a build with CUDA: pytorch.org has the command for each version",
               {Use::kPlug});
    return;
  }
  const int major = cuda_major_of(torch.version->text);
  if (driver_version != 0 && major > driver_version / 1000) {
    found.fails(
        "torch",
        "PyTorch " + torch.version->text + " needs a driver for CUDA " + std::to_string(major) +
            ".0, and this one is for " + format_version(driver_version),
        "install a newer driver, or a PyTorch for CUDA " + std::to_string(driver_version / 1000),
        {Use::kPlug});
  }
  add_plug(found, torch, places);
}

/// Returns whether the interpreter answered.
bool add_interpreter(Findings& found, const PythonFacts& facts) {
  const std::string name = facts.is_asked ? facts.asked : facts.asked + " of the PATH";
  if (!facts.problem.empty()) {
    // Without Python there may be nothing to swap into, unless somebody asked for this one.
    const std::string remedy =
        "name the interpreter that runs your program: weir doctor --python "
        "PATH";
    if (facts.is_asked) {
      found.fails("python", facts.problem, remedy, {Use::kPlug});
    } else {
      found.warn("python", facts.problem, remedy);
    }
    return false;
  }
  if (facts.answer == Answer::kTimedOut) {
    found.fails("python", name + " does not answer in time",
                "run it by hand: a module of its start (sitecustomize) may wait for something",
                {Use::kPlug});
    return false;
  }
  if (facts.answer == Answer::kCrashed || facts.version.empty()) {
    found.fails("python", name + " does not run" + (facts.said.empty() ? "" : ": " + facts.said),
                "run it by hand; it must be Python 3.8 or later", {Use::kPlug});
    return false;
  }
  found.ok("python", "Python " + facts.version + " (" + facts.executable + ")");
  return true;
}

}  // namespace

std::vector<Finding> check_python(const PythonFacts& facts, int driver_version,
                                  const Places& places) {
  Findings found(Group::kPython);
  if (!add_interpreter(found, facts)) return found.take();
  add_trial(found, "python-preload", facts.trial);
  add_torch(found, facts, driver_version, places);
  for (const Way& way : kWays) {
    const auto package = facts.packages.find(std::string(way.framework));
    if (package == facts.packages.end()) continue;
    found.ok("framework", package->first + " " + package->second + ": " + std::string(way.text));
  }
  return found.take();
}

}  // namespace weir::cli::doctor
