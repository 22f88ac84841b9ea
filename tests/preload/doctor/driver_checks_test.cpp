// The driver, its devices and the libraries beside it.

#include "doctor_cases.hpp"

namespace weir::cli::doctor::testing {
namespace {

void without_driver(Facts& facts) {
  facts.driver.driver = {};
  facts.driver.driver.problem =
      "libcuda.so.1: cannot open shared object file: No such file or directory";
  facts.driver.kernel_module.clear();
  facts.driver.device_files.clear();
}

void fail_init(Facts& facts, int error) {
  facts.driver.driver.devices.clear();
  facts.driver.driver.error = error;
  facts.driver.driver.problem = "cuInit says error " + std::to_string(error);
}

TEST(DoctorDriver, AGoodMachineIsOk) {
  for (const Finding& finding : check_all(good_machine())) {
    EXPECT_EQ(finding.state, State::kOk) << finding.text;
  }
}

TEST(DoctorDriver, ADriverThatIsMissingOrDoesNotAnswer) {
  const std::vector<Case> cases{
      {"no driver", without_driver, "driver", State::kFails,
       "there is no NVIDIA driver: the loader finds no libcuda.so.1", "weir-train runs on the cpu",
       kGpus},
      {"the kernel's half alone",
       [](Facts& facts) {
         without_driver(facts);
         facts.driver.kernel_module = "580.65.06";
       },
       "driver", State::kFails,
       "the kernel has NVIDIA's driver 580.65.06, but the loader finds no libcuda.so.1",
       "--gpus all", kGpus},
      {"device files alone",
       [](Facts& facts) {
         without_driver(facts);
         facts.driver.device_files = {{"/dev/nvidiactl", true}};
       },
       "driver", State::kFails, "the kernel has NVIDIA's driver, but", "NVIDIA Container Toolkit",
       kGpus},
      {"WSL",
       [](Facts& facts) {
         without_driver(facts);
         facts.driver.is_wsl = true;
       },
       "driver", State::kFails, "the kernel has NVIDIA's driver, but", "install", kGpus},
      {"it cannot be loaded",
       [](Facts& facts) {
         without_driver(facts);
         facts.driver.driver.problem = "libcuda.so.1: file too short";
       },
       "driver", State::kFails, "libcuda.so.1 cannot be loaded: libcuda.so.1: file too short",
       "install the driver again", kGpus},
      {"Weir's own library ends it",
       [](Facts& facts) {
         without_driver(facts);
         facts.driver.driver.problem = "weir: WEIR_POOL='slab' is not allowed\nmore";
       },
       "driver", State::kFails,
       "libweir.so, which LD_PRELOAD puts into this process, ends it: weir: WEIR_POOL='slab' is "
       "not allowed",
       "without LD_PRELOAD", kGpus},
      {"it hangs",
       [](Facts& facts) {
         without_driver(facts);
         facts.driver.answer = Answer::kTimedOut;
       },
       "driver", State::kFails, "the driver does not answer in time", "Xid", kGpus},
      {"it crashes",
       [](Facts& facts) {
         without_driver(facts);
         facts.driver.answer = Answer::kCrashed;
         facts.driver.signal = 11;
       },
       "driver", State::kFails, "asking the driver ended a process by signal 11",
       "install the driver again", kGpus},
      {"the stand-in",
       [](Facts& facts) { facts.driver.driver.is_standin = true; },
       "driver",
       State::kWarn,
       "this is Weir's stand-in driver for CUDA 13.0, not NVIDIA's: nothing runs on a GPU",
       "link programs for it by nvcc -cudart shared; for a GPU, take the folder of that file out "
       "of "
       "LD_LIBRARY_PATH",
       {Use::kTrainGpu, Use::kDeviceWork}},
      {"older than any that works", [](Facts& facts) { facts.driver.driver.version = 11020; },
       "driver", State::kFails, "for CUDA 11.2 (/lib/libcuda.so.1): CUDA 11.3 is the oldest",
       "CUDA 12.0 or later", kGpus},
      {"older than any that was tried", [](Facts& facts) { facts.driver.driver.version = 11080; },
       "driver", State::kWarn, "Weir's tests know drivers from 12.0 on", "CUDA 12.0 or later",
       kNothing},
      {"an older one that works", [](Facts& facts) { facts.driver.driver.version = 12040; },
       "driver", State::kOk, "NVIDIA's driver 580.65.06, for CUDA 12.4", "", kNothing}};
  for (const Case& one : cases) expect_finding(one);
}

TEST(DoctorDriver, DeviceFiles) {
  const std::vector<Case> cases{
      {"barred", [](Facts& facts) { facts.driver.device_files[1].usable = false; }, "device-files",
       State::kFails, "this user may not read and write /dev/nvidia0", "group", kGpus},
      {"two barred",
       [](Facts& facts) {
         for (DeviceFile& file : facts.driver.device_files) file.usable = false;
       },
       "device-files", State::kFails, "/dev/nvidia-uvm, /dev/nvidia0, /dev/nvidiactl", "group",
       kGpus},
      {"no memory file",
       [](Facts& facts) { facts.driver.device_files.erase(facts.driver.device_files.begin()); },
       "device-files", State::kFails, "/dev/nvidia-uvm is missing", "nvidia-modprobe -u", kGpus},
      {"usable", [](Facts&) {}, "device-files", State::kOk, "this user may use", "", kNothing}};
  for (const Case& one : cases) expect_finding(one);
}

TEST(DoctorDriver, WhatCuInitSaysHasARemedy) {
  struct Code {
    int error;
    const char* text;
    const char* remedy;
  };
  const std::vector<Code> codes{
      {3, "not initialised", "restart"},
      {34, "stub", "LD_LIBRARY_PATH"},
      {46, "compute mode", "nvidia-smi -c DEFAULT"},
      {100, "the driver sees no GPU (cuInit: error 100)", "nvidia-smi -L"},
      {101, "CUDA_VISIBLE_DEVICES names a GPU that is not there", "unset"},
      {304, "the operating system refused", "/dev/nvidia*"},
      {802, "fabric is not ready", "nvidia-fabricmanager"},
      {803, "different versions", "restart the machine"},
      {804, "compatibility package", "compat"},
      {999, "the kernel module does not work", "dmesg"},
      {77, "no GPU answers: cuInit says error 77", "nvidia-smi"}};
  for (const Code& code : codes) {
    SCOPED_TRACE(code.error);
    DriverFacts facts = good_machine().driver;
    Facts whole = good_machine();
    fail_init(whole, code.error);
    const std::vector<Finding> found = check_driver(whole.driver, {});
    const auto devices = std::ranges::find(found, "devices", &Finding::check);
    ASSERT_NE(devices, found.end());
    EXPECT_EQ(devices->state, State::kFails);
    EXPECT_THAT(devices->text, ::testing::HasSubstr(code.text));
    EXPECT_THAT(devices->remedy, ::testing::HasSubstr(code.remedy));
    EXPECT_EQ(devices->breaks, kGpus);
  }
}

TEST(DoctorDriver, AVariableThatHidesEveryGpuIsNamedFirst) {
  for (const char* value : {"", "-1", "NoDevFiles"}) {
    Facts facts = good_machine();
    fail_init(facts, 100);
    const std::vector<Finding> found =
        check_driver(facts.driver, {{"CUDA_VISIBLE_DEVICES", value}});
    const auto devices = std::ranges::find(found, "devices", &Finding::check);
    ASSERT_NE(devices, found.end());
    EXPECT_EQ(devices->text, "CUDA_VISIBLE_DEVICES='" + std::string(value) + "' hides every GPU");
    EXPECT_THAT(devices->remedy, ::testing::HasSubstr("unset CUDA_VISIBLE_DEVICES"));
  }
}

TEST(DoctorDriver, Devices) {
  const std::vector<Case> cases{
      {"no context", [](Facts& facts) { facts.driver.driver.devices[0].free.reset(); }, "device",
       State::kFails, "GPU 0: NVIDIA H100, 80 GiB, but no context can be made on it", "nvidia-smi",
       kGpus},
      {"no pages", [](Facts& facts) { facts.driver.driver.devices[0].has_pages = false; }, "device",
       State::kWarn, "it has no virtual memory management", "best_fit", kNothing},
      {"no files", [](Facts& facts) { facts.driver.driver.devices[0].exports_files = false; },
       "device", State::kWarn, "it hands no pages to other processes", "WEIR_POOL=best_fit",
       kNothing},
      {"good", [](Facts&) {}, "device", State::kOk, "GPU 0: NVIDIA H100, 80 GiB, 79 GiB free", "",
       kNothing}};
  for (const Case& one : cases) expect_finding(one);
}

TEST(DoctorDriver, LibrariesBesideIt) {
  const std::vector<Case> cases{
      {"built without a toolkit",
       [](Facts& facts) { facts.driver.toolkit = 0; },
       "toolkit",
       State::kWarn,
       "this build's weir-train has no GPU",
       "nvcc of CUDA 12.0 or later",
       {Use::kTrainGpu}},
      {"a driver older than weir-train's runtime",
       [](Facts& facts) { facts.driver.driver.version = 12080; },
       "toolkit",
       State::kWarn,
       "Weir was built with CUDA 13.0, and weir-train's runtime needs a driver for CUDA 13.0",
       "newer driver",
       {Use::kTrainGpu}},
      {"no NVML", [](Facts& facts) { facts.driver.nvml = {.problem = "not found"}; }, "nvml",
       State::kWarn, "NVML was not found", "libnvidia-ml.so.1", kNothing},
      {"NVML does not start",
       [](Facts& facts) { facts.driver.nvml.problem = "Driver/library version mismatch"; }, "nvml",
       State::kWarn, "NVML does not work: Driver/library version mismatch", "restart", kNothing},
      {"no cuBLAS",
       [](Facts& facts) { facts.driver.cublas = {.problem = "libcublas.so.13: no such file"}; },
       "cublas",
       State::kWarn,
       "weir-train cannot load cuBLAS: libcublas.so.13: no such file",
       "install cuBLAS 13",
       {Use::kTrainGpu}},
      {"no CUPTI",
       [](Facts& facts) { facts.driver.cupti = {.problem = "CUPTI was not found"}; },
       "cupti",
       State::kWarn,
       "CUPTI was not found",
       "WEIR_CUPTI",
       {Use::kDeviceWork}},
      {"cuBLAS", [](Facts&) {}, "cublas", State::kOk, "cuBLAS 13.0.2 (/lib/libcublas.so.13)", "",
       kNothing},
      {"CUPTI", [](Facts&) {}, "cupti", State::kOk, "CUPTI (/lib/libcupti.so.13)", "", kNothing}};
  for (const Case& one : cases) expect_finding(one);
}

}  // namespace
}  // namespace weir::cli::doctor::testing
