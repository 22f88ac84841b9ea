// NVIDIA's driver, its devices, and the libraries that Weir opens beside it.

#include <algorithm>
#include <array>
#include <string_view>

#include "tools/weir/doctor/checks/checks.hpp"

namespace weir::cli::doctor {
namespace {

/// The first driver with cuGetProcAddress, by which CUDA's runtimes find what Weir hooks.
constexpr int kOldest = 11030;
/// The oldest one whose table of functions the tests know (docs/swap-in.md).
constexpr int kOldestTested = 12000;

const std::vector<Use>& on_gpus() {
  static const std::vector<Use> kOnGpus{Use::kRun, Use::kPlug, Use::kTrainGpu, Use::kDeviceWork};
  return kOnGpus;
}

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

void add_library_missing(Findings& found, const DriverFacts& facts) {
  const bool has_module = !facts.kernel_module.empty() || !facts.device_files.empty();
  if (has_module || facts.is_wsl) {
    found.fails("driver",
                "the kernel has NVIDIA's driver" +
                    (facts.kernel_module.empty() ? "" : " " + facts.kernel_module) +
                    ", but the loader finds no libcuda.so.1",
                "in a container, start it with --gpus all (NVIDIA Container Toolkit); otherwise "
                "install the driver's libraries of the same version",
                on_gpus());
    return;
  }
  found.fails("driver", "there is no NVIDIA driver: the loader finds no libcuda.so.1",
              "install the driver of a GPU, or start a container with --gpus all; without a GPU "
              "weir-train runs on the cpu",
              on_gpus());
}

/// Returns whether the driver's answer can be used.
bool add_answer(Findings& found, const DriverFacts& facts) {
  if (facts.answer == Answer::kTimedOut) {
    found.fails("driver", "the driver does not answer in time",
                "restart the machine; dmesg shows whether a GPU hangs (Xid)", on_gpus());
    return false;
  }
  if (facts.answer == Answer::kCrashed) {
    found.fails("driver",
                "asking the driver ended a process by signal " + std::to_string(facts.signal),
                "install the driver again; check LD_LIBRARY_PATH and LD_PRELOAD", on_gpus());
    return false;
  }
  if (!facts.driver.file.empty()) return true;
  const std::string& why = facts.driver.problem;
  if (why.starts_with("weir: ")) {
    found.fails("driver",
                "libweir.so, which LD_PRELOAD puts into this process, ends it: " +
                    why.substr(0, why.find('\n')),
                "correct that setting; or run weir doctor without LD_PRELOAD", on_gpus());
  } else if (why.empty() || why.find("No such file") != std::string::npos) {
    add_library_missing(found, facts);
  } else {
    found.fails("driver", "libcuda.so.1 cannot be loaded: " + why,
                "install the driver again; check LD_LIBRARY_PATH", on_gpus());
  }
  return false;
}

void add_version(Findings& found, const DriverFacts& facts) {
  const DriverInfo& driver = facts.driver;
  if (driver.is_standin) {
    found.warn(
        "driver",
        "this is Weir's stand-in driver for CUDA " + format_version(driver.version) +
            ", not NVIDIA's: nothing runs on a GPU, and no figure is a GPU's (" + driver.file +
            "). It knows no CUPTI, and no CUDA runtime that is linked into a program",
        "link programs for it by nvcc -cudart shared; for a GPU, take the folder of that file out "
        "of LD_LIBRARY_PATH",
        {Use::kTrainGpu, Use::kDeviceWork});
    return;
  }
  const std::string text =
      "NVIDIA's driver" + (facts.kernel_module.empty() ? "" : " " + facts.kernel_module) +
      ", for CUDA " + format_version(driver.version) + " (" + driver.file + ")";
  if (driver.version < kOldest) {
    found.fails("driver", text + ": CUDA 11.3 is the oldest that Weir can be swapped into",
                "install a driver for CUDA 12.0 or later (525 or later)", on_gpus());
  } else if (driver.version < kOldestTested) {
    found.warn("driver", text + ": Weir's tests know drivers from 12.0 on",
               "install a driver for CUDA 12.0 or later (525 or later)");
  } else {
    found.ok("driver", text);
  }
}

/// Device files that are there and cannot be used, or nvidia-uvm, which is not there.
void add_device_files(Findings& found, const DriverFacts& facts) {
  if (facts.driver.is_standin || facts.device_files.empty()) return;
  std::string barred;
  for (const DeviceFile& file : facts.device_files) {
    if (!file.usable) barred += (barred.empty() ? "" : ", ") + file.path;
  }
  const bool has_memory_file =
      std::ranges::count(facts.device_files, std::string("/dev/nvidia-uvm"), &DeviceFile::path) !=
      0;
  if (!barred.empty()) {
    found.fails("device-files", "this user may not read and write " + barred,
                "add the user to the files' group (ls -l /dev/nvidia*), or start the container "
                "with --gpus all",
                on_gpus());
  } else if (!has_memory_file) {
    found.fails("device-files", "/dev/nvidia-uvm is missing, and CUDA needs it",
                "run nvidia-modprobe -u -c=0 as root, or start the container with --gpus all",
                on_gpus());
  } else {
    found.ok("device-files", "this user may use /dev/nvidia*");
  }
}

void add_no_device(Findings& found, const DriverFacts& facts, const char* visible) {
  const int code = facts.driver.error;
  if (hides_all(visible)) {
    found.fails("devices", "CUDA_VISIBLE_DEVICES='" + std::string(visible) + "' hides every GPU",
                "unset CUDA_VISIBLE_DEVICES, or name a GPU: CUDA_VISIBLE_DEVICES=0", on_gpus());
    found.about("CUDA_VISIBLE_DEVICES");
    return;
  }
  const auto known = std::ranges::find(kInitErrors, code, &InitError::code);
  if (known == kInitErrors.end()) {
    found.fails("devices", "no GPU answers: " + facts.driver.problem,
                "check nvidia-smi, and the messages of dmesg", on_gpus());
    return;
  }
  found.fails("devices",
              "no GPU answers: " + std::string(known->means) + " (cuInit: error " +
                  std::to_string(code) + ")",
              known->remedy, on_gpus());
  if (code == kBadDevice) found.about("CUDA_VISIBLE_DEVICES");
}

void add_device(Findings& found, const DeviceInfo& device, bool is_standin) {
  const std::string name = "GPU " + std::to_string(device.number) + ": " + device.name + ", " +
                           format_bytes(device.total);
  if (!device.free) {
    found.fails("device", name + ", but no context can be made on it",
                "see nvidia-smi: its memory may be full, or its compute mode exclusive", on_gpus());
    return;
  }
  const std::string text = name + ", " + format_bytes(*device.free) + " free";
  if (!device.has_pages) {
    found.warn("device", text + "; it has no virtual memory management",
               "nothing to do: memory in stream order comes from the pool best_fit, not paged");
  } else if (!device.exports_files && !is_standin) {
    found.warn("device", text + "; it hands no pages to other processes",
               "for tensors shared between processes set WEIR_POOL=best_fit");
  } else {
    found.ok("device", text);
  }
}

void add_devices(Findings& found, const DriverFacts& facts, const char* visible) {
  if (facts.driver.devices.empty()) {
    add_no_device(found, facts, visible);
    return;
  }
  for (const DeviceInfo& device : facts.driver.devices) {
    add_device(found, device, facts.driver.is_standin);
  }
}

/// weir-train contains a CUDA runtime, which runs on drivers of its major version or later.
void add_runtime(Findings& found, const DriverFacts& facts) {
  if (facts.toolkit == 0) {
    found.warn("toolkit", "this build's weir-train has no GPU: it was made without a CUDA toolkit",
               "to train on a GPU, build with nvcc of CUDA 12.0 or later on the PATH",
               {Use::kTrainGpu});
    return;
  }
  const std::string built = "Weir was built with CUDA " + format_version(facts.toolkit);
  const int driver = facts.driver.version;
  if (driver == 0 || driver / 1000 >= facts.toolkit / 1000) {
    found.ok("toolkit", built);
    return;
  }
  found.warn("toolkit",
             built + ", and weir-train's runtime needs a driver for CUDA " +
                 std::to_string(facts.toolkit / 1000) + ".0 or later",
             "install a newer driver, or build Weir with the toolkit of the driver's version",
             {Use::kTrainGpu});
}

std::string place_of(const LibraryFound& library) {
  return (library.version.empty() ? "" : " " + library.version) + " (" + library.path + ")";
}

void add_nvml(Findings& found, const DriverFacts& facts) {
  const LibraryFound& nvml = facts.nvml;
  if (nvml.path.empty()) {
    found.warn("nvml", "NVML was not found: the memory of CUDA's own contexts is not counted",
               "install libnvidia-ml.so.1 (the driver's package has it)");
  } else if (!nvml.problem.empty()) {
    found.warn("nvml", "NVML does not work: " + nvml.problem + place_of(nvml),
               "see nvidia-smi, which uses it too; restart the machine after an update of the "
               "driver");
  } else {
    found.ok("nvml", "NVML" + place_of(nvml));
  }
}

void add_cublas(Findings& found, const DriverFacts& facts) {
  if (facts.toolkit == 0) return;  // weir-train is made for the cpu then
  const std::string major = std::to_string(facts.toolkit / 1000);
  if (facts.cublas.problem.empty()) {
    found.ok("cublas", "cuBLAS" + place_of(facts.cublas));
    return;
  }
  found.warn("cublas", "weir-train cannot load cuBLAS: " + facts.cublas.problem,
             "install cuBLAS " + major + ", or name the folder of libcublas.so." + major +
                 " in LD_LIBRARY_PATH",
             {Use::kTrainGpu});
}

void add_cupti(Findings& found, const DriverFacts& facts, const char* named) {
  if (facts.cupti.problem.empty()) {
    found.ok("cupti", "CUPTI" + place_of(facts.cupti) +
                          (facts.driver.is_standin ? ", without use to the stand-in driver" : ""));
    return;
  }
  if (named != nullptr && *named != '\0') {
    const std::string& why = facts.cupti.problem;
    found.warn("cupti",
               "WEIR_CUPTI='" + std::string(named) +
                   "' is not used: " + why.substr(0, why.find("; WEIR_CUPTI")),
               "correct WEIR_CUPTI, or unset it; without CUPTI timelines lack the device's kernels "
               "and copies",
               {Use::kDeviceWork});
    found.about("WEIR_CUPTI");
    return;
  }
  found.warn("cupti", facts.cupti.problem,
             "install the toolkit's CUPTI (pip install nvidia-cuda-cupti), or name its file in "
             "WEIR_CUPTI; without it timelines lack the device's kernels and copies",
             {Use::kDeviceWork});
}

}  // namespace

bool hides_all(const char* visible) {
  return visible != nullptr && (*visible == '\0' || std::string_view(visible) == "-1" ||
                                std::string_view(visible) == "NoDevFiles");
}

std::vector<Finding> check_driver(const DriverFacts& facts, const Variables& variables) {
  const Environment environment = environment_of(variables);
  Findings found(Group::kDriver);
  const bool has_driver = add_answer(found, facts);
  if (has_driver) {
    add_version(found, facts);
    add_device_files(found, facts);
    add_devices(found, facts, environment("CUDA_VISIBLE_DEVICES"));
    add_nvml(found, facts);
  }
  add_runtime(found, facts);
  add_cublas(found, facts);
  add_cupti(found, facts, environment("WEIR_CUPTI"));
  return found.take();
}

}  // namespace weir::cli::doctor
