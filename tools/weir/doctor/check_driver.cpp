// NVIDIA's driver, its devices, and the libraries that Weir opens beside it.

#include <algorithm>
#include <array>
#include <string_view>

#include "tools/weir/doctor/checks.hpp"

namespace weir::cli::doctor {
namespace {

/// The first driver with cuGetProcAddress, by which CUDA's runtimes find what Weir hooks.
constexpr int kOldest = 11030;
/// The oldest one whose table of functions the tests know (docs/swap-in.md).
constexpr int kOldestTested = 12000;

/// What an error of cuInit means, and what to do.
struct InitError {
  int code;
  const char* means;
  const char* remedy;
};
constexpr int kBadDevice = 101;
constexpr std::array kInitErrors{
    InitError{3, "the driver is not initialised", "restart the program; then the machine"},
    InitError{34, "this libcuda.so.1 is the toolkit's stub, which no program can use",
              "take the toolkit's folder `stubs` out of LD_LIBRARY_PATH and the loader's cache"},
    InitError{46, "the GPU is in use, or its compute mode admits nobody",
              "end the other program, or let root run nvidia-smi -c DEFAULT"},
    InitError{100, "the driver sees no GPU",
              "check nvidia-smi -L; start a container with --gpus all"},
    InitError{kBadDevice, "CUDA_VISIBLE_DEVICES names a GPU that is not there",
              "unset CUDA_VISIBLE_DEVICES, or name one that nvidia-smi -L lists"},
    InitError{304, "the operating system refused a call of the driver",
              "check that this user may open /dev/nvidia*, and the messages of dmesg"},
    InitError{802, "the GPUs' fabric is not ready",
              "start nvidia-fabricmanager, of the driver's version"},
    InitError{803, "the driver's library and kernel module have different versions",
              "restart the machine, or load the module of the library's version"},
    InitError{804,
              "this libcuda.so.1 is of the compatibility package, and this GPU is not "
              "supported by it",
              "take the folder `compat` out of LD_LIBRARY_PATH, or install a newer driver"},
    InitError{999, "the kernel module does not work",
              "run nvidia-modprobe -u, or restart the machine; dmesg has the reason"}};

bool has_driver(const DriverFacts& facts) {
  return facts.answer == Answer::kCame && !facts.driver.file.empty();
}

void add_library_missing(const DriverFacts& facts, Findings& found) {
  if (!facts.kernel_module.empty() || facts.has_files) {
    found.fails("the kernel has NVIDIA's driver" +
                    (facts.kernel_module.empty() ? "" : " " + facts.kernel_module) +
                    ", but the loader finds no libcuda.so.1",
                "in a container, start it with --gpus all (NVIDIA Container Toolkit); otherwise "
                "install the driver's libraries of the same version");
    return;
  }
  found.fails("there is no NVIDIA driver: the loader finds no libcuda.so.1",
              "install the driver of a GPU, or start a container with --gpus all; without a GPU "
              "weir-train runs on the cpu");
}

void add_no_driver(const DriverFacts& facts, Findings& found) {
  const std::string& why = facts.driver.problem;
  if (facts.answer == Answer::kTimedOut) {
    found.fails("the driver does not answer in time",
                "restart the machine; dmesg shows whether a GPU hangs (Xid)");
  } else if (facts.answer == Answer::kCrashed) {
    found.fails("asking the driver ended a process by signal " + std::to_string(facts.signal),
                "install the driver again; check LD_LIBRARY_PATH and LD_PRELOAD");
  } else if (why.starts_with("weir: ")) {
    found.fails("libweir.so, which LD_PRELOAD puts into this process, ends it: " +
                    why.substr(0, why.find('\n')),
                "correct that setting; or run weir doctor without LD_PRELOAD");
  } else if (why.empty() || why.find("No such file") != std::string::npos) {
    add_library_missing(facts, found);
  } else {
    found.fails("libcuda.so.1 cannot be loaded: " + why,
                "install the driver again; check LD_LIBRARY_PATH");
  }
}

void add_driver(const Facts& facts, Findings& found) {
  if (!has_driver(facts.driver)) return add_no_driver(facts.driver, found);
  const DriverInfo& driver = facts.driver.driver;
  if (driver.is_standin) {
    found.warn("this is Weir's stand-in driver for CUDA " + format_version(driver.version) +
                   ", not NVIDIA's: nothing runs on a GPU, and no figure is a GPU's (" +
                   driver.file +
                   "). It knows no CUPTI, and no CUDA runtime that is linked into a program",
               "link programs for it by nvcc -cudart shared; for a GPU, take the folder of that "
               "file out of LD_LIBRARY_PATH");
    found.breaks(Use::kTrainGpu);
    found.breaks(Use::kDeviceWork);
    return;
  }
  const std::string module = facts.driver.kernel_module;
  const std::string text = "NVIDIA's driver" + (module.empty() ? "" : " " + module) +
                           ", for CUDA " + format_version(driver.version) + " (" + driver.file +
                           ")";
  constexpr const char* kRemedy = "install a driver for CUDA 12.0 or later (525 or later)";
  if (driver.version < kOldest) {
    found.fails(text + ": CUDA 11.3 is the oldest that Weir can be swapped into", kRemedy);
  } else if (driver.version < kOldestTested) {
    found.warn(text + ": Weir's tests know drivers from 12.0 on", kRemedy);
  } else {
    found.ok(text);
  }
}

/// Whether this CUDA_VISIBLE_DEVICES, null if it is not set, leaves a program no GPU.
bool hides_all(const char* visible) {
  constexpr std::array<std::string_view, 3> kNone{"", "-1", "NoDevFiles"};
  return visible != nullptr && std::ranges::count(kNone, visible) != 0;
}

/// Where the driver answers and no GPU does.
void add_no_devices(const Facts& facts, Findings& found) {
  const DriverInfo& driver = facts.driver.driver;
  if (!has_driver(facts.driver) || !driver.devices.empty()) return;
  const char* const visible = environment_of(facts.variables)("CUDA_VISIBLE_DEVICES");
  const auto known = std::ranges::find(kInitErrors, driver.error, &InitError::code);
  if (hides_all(visible)) {
    found.fails("CUDA_VISIBLE_DEVICES='" + std::string(visible) + "' hides every GPU",
                "unset CUDA_VISIBLE_DEVICES, or name a GPU: CUDA_VISIBLE_DEVICES=0");
  } else if (known == kInitErrors.end()) {
    found.fails("no GPU answers: " + driver.problem, "check nvidia-smi, and the messages of dmesg");
  } else {
    found.fails("no GPU answers: " + std::string(known->means) + " (cuInit: error " +
                    std::to_string(driver.error) + ")",
                known->remedy);
  }
}

void add_devices(const Facts& facts, Findings& found) {
  for (const DeviceInfo& device : facts.driver.driver.devices) {
    const std::string name = "GPU " + std::to_string(device.number) + ": " + device.name + ", " +
                             format_bytes(device.total);
    if (device.free) {
      found.ok(name + ", " + format_bytes(*device.free) + " free");
    } else {
      found.fails(name + ", but no context can be made on it",
                  "see nvidia-smi: its memory may be full, or its compute mode exclusive");
    }
  }
}

/// weir-train contains a CUDA runtime, which runs on drivers of its major version or later.
void add_toolkit(const Facts& facts, Findings& found) {
  const int toolkit = facts.driver.toolkit;
  const int driver = facts.driver.driver.version;
  const std::string built = "Weir was built with CUDA " + format_version(toolkit);
  if (toolkit == 0) {
    found.lacks("this build's weir-train has no GPU: it was made without a CUDA toolkit",
                "to train on a GPU, build with nvcc of CUDA 12.0 or later on the PATH");
  } else if (driver == 0 || driver / 1000 >= toolkit / 1000) {
    found.ok(built);
  } else {
    found.lacks(built + ", and weir-train's runtime needs a driver for CUDA " +
                    std::to_string(toolkit / 1000) + ".0 or later",
                "install a newer driver, or build Weir with the toolkit of the driver's version");
  }
}

void add_cublas(const Facts& facts, Findings& found) {
  if (facts.driver.toolkit == 0) return;  // weir-train is made for the cpu then
  const LibraryFound& cublas = facts.driver.cublas;
  const std::string major = std::to_string(facts.driver.toolkit / 1000);
  if (cublas.problem.empty()) return found.ok("cuBLAS (" + cublas.path + ")");
  found.lacks("weir-train cannot load cuBLAS: " + cublas.problem,
              "install cuBLAS " + major + ", or name the folder of libcublas.so." + major +
                  " in LD_LIBRARY_PATH");
}

/// CUPTI, and a profiler that has it already.
void add_cupti(const Facts& facts, Findings& found) {
  const LibraryFound& cupti = facts.driver.cupti;
  const Environment environment = environment_of(facts.variables);
  const char* const named = environment("WEIR_CUPTI");
  const char* const profiler = environment("CUDA_INJECTION64_PATH");
  constexpr const char* kLack = "without it timelines lack the device's kernels and copies";
  if (cupti.problem.empty() && profiler != nullptr && *profiler != '\0' &&
      std::string_view(profiler).find("libweir_timeline.so") == std::string_view::npos) {
    found.warn("CUDA_INJECTION64_PATH names a profiler, " + std::string(profiler) +
                   ", which may be the one that CUPTI admits",
               "unset CUDA_INJECTION64_PATH for timelines of Weir");
  } else if (cupti.problem.empty()) {
    found.ok("CUPTI (" + cupti.path + ")" +
             (facts.driver.driver.is_standin ? ", without use to the stand-in driver" : ""));
  } else if (named != nullptr && *named != '\0') {
    found.lacks("WEIR_CUPTI='" + std::string(named) +
                    "' is not used: " + cupti.problem.substr(0, cupti.problem.find("; WEIR_CUPTI")),
                std::string("correct WEIR_CUPTI, or unset it; ") + kLack);
  } else {
    found.lacks(cupti.problem,
                std::string("install the toolkit's CUPTI (pip install nvidia-cuda-cupti), or name "
                            "its file in WEIR_CUPTI; ") +
                    kLack);
  }
}

}  // namespace

std::vector<Check> driver_checks() {
  const std::vector<Use> on_gpus{Use::kRun, Use::kPlug, Use::kTrainGpu, Use::kDeviceWork};
  return {{Group::kDriver, "driver", on_gpus, add_driver},
          {Group::kDriver, "devices", on_gpus, add_no_devices},
          {Group::kDriver, "device", on_gpus, add_devices},
          {Group::kDriver, "toolkit", {Use::kTrainGpu}, add_toolkit},
          {Group::kDriver, "cublas", {Use::kTrainGpu}, add_cublas},
          {Group::kDriver, "cupti", {Use::kDeviceWork}, add_cupti}};
}

}  // namespace weir::cli::doctor
