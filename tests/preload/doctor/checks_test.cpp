// Tests the finding of each check. One long file, because the checks are one table, and so are the
// facts that each case changes.

#include "tools/weir/doctor/checks.hpp"

#include <fstream>

#include "doctor_cases.hpp"

namespace weir::cli::doctor::testing {
namespace {

using enum State;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// `check: text`.
std::vector<std::string> texts_of(const std::vector<Finding>& findings) {
  std::vector<std::string> texts;
  for (const Finding& finding : findings) texts.push_back(finding.check + ": " + finding.text);
  return texts;
}

TEST(DoctorChecks, AGoodMachineIsOk) {
  const std::vector<Finding> findings = check_all(good_machine());
  for (const Finding& finding : findings) EXPECT_EQ(finding.state, kOk) << finding.text;
  EXPECT_THAT(
      texts_of(findings),
      ::testing::ElementsAre(
          "system: Debian GNU/Linux 12, Linux 6.1.0, glibc 2.36, x86_64, 16 cpus, 64 GiB of memory",
          "driver: NVIDIA's driver 580.65.06, for CUDA 13.0 (/lib/libcuda.so.1)",
          "device: GPU 0: NVIDIA H100, 80 GiB, 79 GiB free",
          "toolkit: Weir was built with CUDA 13.0", "cublas: cuBLAS (/lib/libcublas.so.13)",
          "cupti: CUPTI (/lib/libcupti.so.13)",
          "library: /lib/weir/libweir.so, version 0.1.0, plugs for PyTorch 2.9, 2.15",
          "python: Python 3.11.2 (/usr/bin/python3), CuPy 14.2.0, JAX 0.10.2",
          "python-preload: a trial: Python 3.11.2 ran with the library in it",
          "torch-plug: there is a plug for PyTorch 2.15.0+cu130: libweir_torch_2.15.so",
          "variable: no variable of Weir or MXNet is set: the defaults hold",
          "open-files: open files (ulimit -n): 1048576",
          "shared-memory: /dev/shm is writable, 32 GiB"));
}

void without_driver(Facts& facts) {
  facts.driver.driver = {};
  facts.driver.driver.problem =
      "libcuda.so.1: cannot open shared object file: No such file or directory";
  facts.driver.kernel_module.clear();
  facts.driver.has_files = false;
}

std::function<void(Facts&)> driver_says(const std::string& problem) {
  return [problem](Facts& facts) {
    without_driver(facts);
    facts.driver.driver.problem = problem;
  };
}

std::function<void(Facts&)> driver_version(int version) {
  return [version](Facts& facts) { facts.driver.driver.version = version; };
}

TEST(DoctorChecks, ADriverThatIsMissingOrDoesNotAnswer) {
  expect_findings(
      {{without_driver, "driver", kFails,
        "there is no NVIDIA driver: the loader finds no libcuda.so.1", "weir-train runs on the cpu",
        kGpus},
       {[](Facts& facts) {
          without_driver(facts);
          facts.driver.kernel_module = "580.65.06";
        },
        "driver", kFails,
        "the kernel has NVIDIA's driver 580.65.06, but the loader finds no libcuda.so.1",
        "--gpus all", kGpus},
       {[](Facts& facts) {
          without_driver(facts);
          facts.driver.has_files = true;
        },
        "driver", kFails, "the kernel has NVIDIA's driver, but", "NVIDIA Container Toolkit", kGpus},
       {driver_says("libcuda.so.1: file too short"), "driver", kFails,
        "libcuda.so.1 cannot be loaded: libcuda.so.1: file too short", "install the driver again",
        kGpus},
       {driver_says("weir: WEIR_POOL='slab' is not allowed\nmore"), "driver", kFails,
        "libweir.so, which LD_PRELOAD puts into this process, ends it: weir: WEIR_POOL='slab' is "
        "not allowed",
        "without LD_PRELOAD", kGpus},
       {[](Facts& facts) { facts.driver.answer = Answer::kTimedOut; }, "driver", kFails,
        "the driver does not answer in time", "Xid", kGpus},
       {[](Facts& facts) {
          facts.driver.answer = Answer::kCrashed;
          facts.driver.signal = 11;
        },
        "driver", kFails, "asking the driver ended a process by signal 11",
        "install the driver again", kGpus},
       {[](Facts& facts) { facts.driver.driver.is_standin = true; },
        "driver",
        kWarn,
        "this is Weir's stand-in driver for CUDA 13.0, not NVIDIA's: nothing runs on a GPU",
        "nvcc -cudart shared; for a GPU, take the folder of that file out of LD_LIBRARY_PATH",
        {Use::kTrainGpu, Use::kDeviceWork}},
       {driver_version(11020), "driver", kFails,
        "for CUDA 11.2 (/lib/libcuda.so.1): CUDA 11.3 is the oldest", "CUDA 12.0 or later", kGpus},
       {driver_version(11080), "driver", kWarn, "Weir's tests know drivers from 12.0 on",
        "CUDA 12.0 or later"},
       {driver_version(12040), "driver", kOk, "NVIDIA's driver 580.65.06, for CUDA 12.4", ""}});
}

/// Where cuInit returns this error.
std::function<void(Facts&)> init_fails(int error, const Variables& variables = {}) {
  return [error, variables](Facts& facts) {
    facts.driver.driver.devices.clear();
    facts.driver.driver.error = error;
    facts.driver.driver.problem = "cuInit says error " + std::to_string(error);
    facts.variables = variables;
  };
}

TEST(DoctorChecks, WhatCuInitSaysHasARemedy) {
  struct Code {
    int error;
    const char* text;
    const char* remedy;
  };
  for (const Code& code : {Code{3, "not initialised", "restart"},
                           {34, "stub", "LD_LIBRARY_PATH"},
                           {46, "compute mode", "nvidia-smi -c DEFAULT"},
                           {100, "the driver sees no GPU (cuInit: error 100)", "nvidia-smi -L"},
                           {101, "CUDA_VISIBLE_DEVICES names a GPU that is not there", "unset"},
                           {304, "the operating system refused", "/dev/nvidia*"},
                           {802, "fabric is not ready", "nvidia-fabricmanager"},
                           {803, "different versions", "restart the machine"},
                           {804, "compatibility package", "compat"},
                           {999, "the kernel module does not work", "dmesg"},
                           {77, "no GPU answers: cuInit says error 77", "nvidia-smi"}}) {
    expect_findings({{init_fails(code.error), "devices", kFails, code.text, code.remedy, kGpus}});
  }
  for (const char* value : {"", "-1", "NoDevFiles"}) {
    expect_findings({{init_fails(100, {{"CUDA_VISIBLE_DEVICES", value}}), "devices", kFails,
                      "CUDA_VISIBLE_DEVICES='" + std::string(value) + "' hides every GPU",
                      "unset CUDA_VISIBLE_DEVICES", kGpus}});
  }
}

TEST(DoctorChecks, DevicesAndLibrariesBesideTheDriver) {
  const std::vector<Use> train{Use::kTrainGpu};
  const std::vector<Use> work{Use::kDeviceWork};
  const auto no_cupti = [](Facts& facts) { facts.driver.cupti.problem = "CUPTI was not found"; };
  expect_findings(
      {{[](Facts& facts) { facts.driver.driver.devices[0].free.reset(); }, "device", kFails,
        "GPU 0: NVIDIA H100, 80 GiB, but no context can be made on it", "nvidia-smi", kGpus},
       {[](Facts& facts) { facts.driver.toolkit = 0; }, "toolkit", kWarn,
        "this build's weir-train has no GPU", "nvcc of CUDA 12.0 or later", train},
       {driver_version(12080), "toolkit", kWarn,
        "Weir was built with CUDA 13.0, and weir-train's runtime needs a driver for CUDA 13.0",
        "newer driver", train},
       {[](Facts& facts) { facts.driver.cublas.problem = "libcublas.so.13: no such file"; },
        "cublas", kWarn, "weir-train cannot load cuBLAS: libcublas.so.13: no such file",
        "install cuBLAS 13", train},
       {no_cupti, "cupti", kWarn, "CUPTI was not found", "WEIR_CUPTI", work},
       {[](Facts& facts) {
          facts.variables = {{"WEIR_CUPTI", "/x/libcupti.so"}};
          facts.driver.cupti.problem = "CUPTI was not found: /x; WEIR_CUPTI can name its file";
        },
        "cupti", kWarn, "WEIR_CUPTI='/x/libcupti.so' is not used: CUPTI was not found: /x",
        "correct WEIR_CUPTI, or unset it", work},
       {with({{"CUDA_INJECTION64_PATH", "/x/p.so"}}), "cupti", kWarn, "names a profiler, /x/p.so",
        "unset CUDA_INJECTION64_PATH"},
       {with({{"CUDA_INJECTION64_PATH", "/x/libweir_timeline.so"}}), "cupti", kOk, "CUPTI (", ""}});
}

TEST(DoctorChecks, TheLibraryAndWhoseVersionItIs) {
  const auto named = [](const char* problem, const char* version) {
    return [=](Facts& facts) {
      facts.library.is_named = true;
      facts.library.problem = problem;
      facts.library.version = version;
    };
  };
  expect_findings(
      {{[](Facts& facts) {
          facts.library = {};
          facts.library.problem = "there is none";
        },
        "library", kFails, "there is none", "WEIR_LIBRARY names another library", kSwapIn},
       {[](Facts& facts) { facts.library.version = "0.0.9"; }, "library", kFails,
        "is version 0.0.9, and this command 0.1.0", "install Weir again", kSwapIn},
       {[](Facts& facts) { facts.library.version.clear(); }, "library", kWarn,
        "does not say its version", "install Weir again"},
       {named("", ""), "library", kWarn, "does not say its version", "unset WEIR_LIBRARY"},
       {named("WEIR_LIBRARY='/x' is not allowed", ""), "library", kFails,
        "WEIR_LIBRARY='/x' is not allowed", "correct WEIR_LIBRARY, or unset it", kSwapIn}});
}

/// A trial with the interpreter that ended so.
std::function<void(Facts&)> tried(Trial::End end, const std::string& message = {}) {
  return [end, message](Facts& facts) {
    facts.python.trial = {.end = end, .program = "Python 3.11.2", .message = message};
  };
}

TEST(DoctorChecks, ATrialThatDidNotGoWellHasItsRemedy) {
  using End = Trial::End;
  expect_findings(
      {{tried(End::kNotLoaded), "python-preload", kFails, "Python 3.11.2 ran without the library",
        "the loader ignores LD_PRELOAD", kSwapIn},
       {tried(End::kNotLoaded,
              "object '/x/libweir.so' cannot be preloaded (failed to map segment)"),
        "python-preload", kFails, "Python 3.11.2 ran without the library: object '/x/libweir.so'",
        "noexec", kSwapIn},
       {tried(End::kFailed, "cat: libc.so.6: version `GLIBC_2.38' not found"), "python-preload",
        kFails, "Python 3.11.2 fails with the library in it: cat: libc.so.6",
        "this system's C library", kSwapIn},
       {tried(End::kNotLoaded, "cannot be preloaded (wrong ELF class: ELFCLASS64)"),
        "python-preload", kFails, "wrong ELF class", "for this machine", kSwapIn},
       {tried(End::kFailed, "Error relocating /x/libweir.so: dlvsym: not found"), "python-preload",
        kFails, "Error relocating", "musl", kSwapIn},
       {tried(End::kFailed, "Error loading shared library ld-linux: No such file"),
        "python-preload", kFails, "Error loading", "musl", kSwapIn},
       {tried(End::kNotLoaded, "cannot be preloaded (cannot open shared object file)"),
        "python-preload", kFails, "cannot open shared object file", "let this user read", kSwapIn},
       {tried(End::kFailed, "it ends by signal 11"), "python-preload", kFails,
        "Python 3.11.2 fails with the library in it: it ends by signal 11",
        "LD_PRELOAD=$(weir info --library)", kSwapIn},
       {tried(End::kTimedOut), "python-preload", kFails,
        "Python 3.11.2 does not end in time with the library in it", "by hand", kSwapIn},
       {tried(End::kRefused, "it has file capabilities"), "python-preload", kFails,
        "it has file capabilities", "run your programs by another one", kSwapIn}});
}

/// An interpreter that does not answer: `change` says why.
std::function<void(Facts&)> python(void (*change)(PythonFacts&)) {
  return [change](Facts& facts) {
    facts.python = {};
    change(facts.python);
  };
}

void is_missing(PythonFacts& facts) {
  facts.problem = "the program 'python3' is not in any folder";
}
void is_asked_and_missing(PythonFacts& facts) {
  is_missing(facts);
  facts.is_asked = true;
}

TEST(DoctorChecks, AnInterpreterThatDoesNotAnswer) {
  expect_findings(
      {{python(is_missing), "python", kWarn, "the program 'python3' is not in any folder",
        "weir doctor --python"},
       {python(is_asked_and_missing), "python", kFails, "'python3' is not in any folder",
        "weir doctor --python", kPlugAlone},
       {python([](PythonFacts& facts) { facts.answer = Answer::kTimedOut; }), "python", kFails,
        "python3 of the PATH does not answer in time", "sitecustomize", kPlugAlone},
       {python([](PythonFacts& facts) {
          facts.answer = Answer::kCrashed;
          facts.is_asked = true;
        }),
        "python", kFails, "python3 does not run", "Python 3.8 or later", kPlugAlone},
       {python([](PythonFacts& facts) { facts.said = "No module named 'encodings'"; }), "python",
        kFails, "python3 of the PATH does not run: No module named 'encodings'",
        "Python 3.8 or later", kPlugAlone}});
}

std::function<void(Facts&)> torch(void (*change)(TorchFacts&)) {
  return [change](Facts& facts) { change(*facts.python.torch); };
}

TEST(DoctorChecks, PyTorchAndItsPlug) {
  expect_findings(
      {{[](Facts& facts) { facts.python.torch.reset(); }, "torch", kOk, "PyTorch is not installed",
        ""},
       {torch([](TorchFacts& facts) { facts.version.reset(); }), "torch", kWarn,
        "PyTorch's version is not known", "install PyTorch again", kPlugAlone},
       {torch([](TorchFacts& facts) {
          facts.has_cuda = false;
          facts.version->text = "2.15.0+cpu";
        }),
        "torch", kWarn, "PyTorch 2.15.0+cpu is built without CUDA", "with CUDA", kPlugAlone},
       {[](Facts& facts) {
          facts.driver.driver.version = 12080;
          facts.python.torch->version->text = "2.15.0+cu132";
        },
        "torch", kFails,
        "PyTorch 2.15.0+cu132 needs a driver for CUDA 13.0, and this one is for 12.8",
        "a PyTorch for CUDA 12", kPlugAlone},
       {torch([](TorchFacts& facts) { facts.version->is_release = false; }), "torch-plug", kWarn,
        "is no release", "WEIR_TORCH=plug", kPlugAlone},
       {torch([](TorchFacts& facts) { facts.abi.reset(); }), "torch-plug", kWarn,
        "does not tell its C++ ABI", "install PyTorch again", kPlugAlone},
       {torch([](TorchFacts& facts) { facts.plug_exists = false; }), "torch-plug", kWarn,
        "there is no plug for PyTorch 2.15.0+cu130: PyTorch keeps its own cache, and Weir serves "
        "the cache's segments",
        "says under \"A version of PyTorch that came later\"", kPlugAlone},
       {torch([](TorchFacts& facts) { facts.plug_unfit = "it is cut off"; }), "torch-plug", kWarn,
        "the plug libweir_torch_2.15.so for PyTorch 2.15.0+cu130 is not used: it is cut off",
        "install Weir again", kPlugAlone}});
  for (const char* version : {"2.15.0+cu126", "2.15.0", "2.15.0+cu", "2.15.0+cu99999999999"}) {
    Facts facts = good_machine();
    facts.python.torch->version->text = version;
    for (const Finding& finding : check_all(facts)) EXPECT_EQ(finding.state, kOk) << finding.text;
  }
}

TEST(DoctorChecks, ThePlugIsSpokenOfWherePyTorchIsOrNobodyCouldLook) {
  const auto concerns = [](const std::function<void(Facts&)>& change) {
    Facts facts = good_machine();
    change(facts);
    return concerns_torch(facts, check_all(facts));
  };
  EXPECT_TRUE(concerns([](Facts&) {}));
  EXPECT_FALSE(concerns([](Facts& facts) { facts.python.torch.reset(); }));
  EXPECT_TRUE(concerns(python([](PythonFacts& facts) { facts.answer = Answer::kCrashed; })));
  EXPECT_FALSE(concerns(python(is_missing))) << "and nobody asked for it";
  EXPECT_TRUE(concerns(python(is_asked_and_missing)));
}

std::vector<Use> settings_and(const std::vector<Use>& more = {}) {
  std::vector<Use> uses{Use::kRun, Use::kPlug, Use::kTrainGpu, Use::kTrainCpu};
  uses.insert(uses.end(), more.begin(), more.end());
  return uses;
}

TEST(DoctorChecks, EachVariable) {
  const auto good = [](const char* name, const char* value, const std::string& text) {
    return Case{with({{name, value}}), "variable", kOk, text, ""};
  };
  const auto bad = [](const char* name, const char* value, const std::vector<Use>& more = {}) {
    return Case{with({{name, value}}),
                "variable",
                kFails,
                std::string(name) + "='" + value + "' is not allowed",
                "correct " + std::string(name) + ", or unset it (",
                settings_and(more)};
  };
  expect_findings(
      {good("WEIR_BUDGET", "6GiB", "WEIR_BUDGET=6GiB"),
       good("WEIR_BUDGET", "", "WEIR_BUDGET is empty, which counts as not set"),
       good("MXNET_GPU_MEM_POOL_TYPE", "Round", "MXNET_GPU_MEM_POOL_TYPE=Round"),
       good("MXNET_KVSTORE_REDUCE_BUCKET_SIZE", "4", "MXNET_KVSTORE_REDUCE_BUCKET_SIZE=4"),
       good("MXNET_CPU_WORKER_NTHREADS", "4", "no variable of Weir or MXNet is set"),
       good("WEIR_STANDIN_MEMORY", "4G", "WEIR_STANDIN_MEMORY=4G"),
       bad("WEIR_POOL", "slab"),
       bad("WEIR_ALLOCATOR", "native"),
       bad("WEIR_TORCH", "on"),
       bad("WEIR_TIMELINE", "run.txt"),
       bad("MXNET_KVSTORE_REDUCE_BUCKET_SIZE", "x"),
       bad("MXNET_CPU_MEM_POOL_TYPE", "slab"),
       bad("WEIR_SHARE", "../x", {Use::kShare}),
       bad("WEIR_PUBLISH", "x"),
       {with({{"WEIR_BUGET", "6GiB"}}), "unknown-variable", kWarn,
        "WEIR_BUGET is set but is not a variable of Weir: the nearest is WEIR_BUDGET",
        "unset WEIR_BUGET"},
       {with({{"WEIR_POOL", "round"}, {"WEIR_POOL_PAGE_SIZE", "5000"}}), "settings", kFails,
        "the settings do not fit together: ", "environment.md", settings_and()}});
  // The checks `library` and `cupti` have these.
  for (const char* name : {"WEIR_LIBRARY", "WEIR_CUPTI"}) {
    Facts facts = good_machine();
    facts.variables = {{name, "/x"}};
    const std::vector<Finding> findings = check_all(facts);
    EXPECT_EQ(std::ranges::count(findings, "variable", &Finding::check), 0) << name;
  }
}

std::function<void(Facts&)> limits(void (*change)(LimitsFacts&)) {
  return [change](Facts& facts) { change(facts.limits); };
}

TEST(DoctorChecks, Limits) {
  const std::vector<Use> share{Use::kShare};
  expect_findings(
      {{limits([](LimitsFacts& facts) { facts.open_files.reset(); }), "open-files", kOk,
        "open files (ulimit -n): unlimited", ""},
       {limits([](LimitsFacts& facts) { facts.open_files = 1024; }), "open-files", kWarn,
        "1024; of tensors in pages, 2 GiB can be shared", "ulimit -n 1048576"},
       {limits([](LimitsFacts& facts) { facts.open_files = facts.open_files_at_most = 1024; }),
        "open-files", kWarn, "1024;", "let root raise the hard limit"},
       {limits([](LimitsFacts& facts) {
          facts.open_files = 1024;
          facts.open_files_at_most.reset();
        }),
        "open-files", kWarn, "1024;", "ulimit -n unlimited"},
       {limits([](LimitsFacts& facts) { facts.shared_memory.reset(); }), "shared-memory", kFails,
        "there is no /dev/shm", "mount a tmpfs", share},
       {limits([](LimitsFacts& facts) { facts.shared_memory_writable = false; }), "shared-memory",
        kFails, "may not write to /dev/shm", "chmod 1777", share},
       {limits([](LimitsFacts& facts) { facts.shared_memory = mib(64); }), "shared-memory", kOk,
        "64 MiB; workers of PyTorch may need more", ""}});
}

TEST(DoctorChecks, OthersVariables) {
  const auto preloads = [](const char* files) { return with({{"LD_PRELOAD", files}}); };
  expect_findings(
      {{preloads("/x/libweir.so:/lib/libtcmalloc.so"), "preloaded", kOk,
        "so a GPU's memory is the budget", ""},
       {preloads("/lib/libx.so"), "preloaded", kOk,
        "LD_PRELOAD='/lib/libx.so'; weir run puts libweir.so first", ""},
       {preloads("/lib/libother.so /x/libweir.so"), "preloaded", kWarn,
        "has libweir.so behind another library", "libweir.so first"},
       {preloads("/lib/libasan.so.8"), "preloaded", kWarn, "has a sanitizer",
        "verify_asan_link_order=0"},
       {with({{"CUDA_LAUNCH_BLOCKING", "1"}}), "launch-blocking", kWarn, "nothing runs ahead",
        "unset CUDA_LAUNCH_BLOCKING"},
       {with({{"NVTX_INJECTION64_PATH", "/x/nsys.so"}, {"WEIR_BATCH_RANGE", "step"}}), "nvtx",
        kWarn, "WEIR_BATCH_RANGE sees no range", "unset NVTX_INJECTION64_PATH"}});
  Facts good = good_machine();
  good.variables = {{"CUDA_LAUNCH_BLOCKING", "0"},
                    {"NVTX_INJECTION64_PATH", "/x/libweir.so"},
                    {"WEIR_BATCH_RANGE", "step"},
                    {"CUDA_VISIBLE_DEVICES", "0"}};
  for (const Finding& finding : check_all(good)) EXPECT_EQ(finding.state, kOk) << finding.text;
}

TEST(DoctorChecks, PagesAreFoundInACloneAPackageAndAnEnvironment) {
  EXPECT_EQ(layouts()[0], SOURCE_FOLDER "/docs");
  EXPECT_EQ(layouts()[1], installed_folder() + "/share/doc/weir/docs");
  EXPECT_EQ(layouts()[2], layouts()[1]);
  EXPECT_EQ(layouts()[3], "");
  const weir::testing::TemporaryDirectory other;
  fs::create_directories(other.file("docs"));
  weir::testing::write_file(other.file("docs/doctor.md"), "another project's");
  EXPECT_EQ(find_pages(other.file("venv/bin/weir")), "");
}

TEST(DoctorChecks, ThePageOfThePlugHasTheSectionThatTheRemedyNames) {
  for (const std::string& pages : layouts()) {
    Facts facts;
    facts.pages = pages;
    const std::string remedy = build_a_plug(facts);
    EXPECT_THAT(remedy,
                HasSubstr(pages.empty() ? "the page packages.md in the docs of Weir's source"
                                        : pages + "/packages.md"));
    const std::size_t begin = remedy.find('"') + 1;
    const std::string section = remedy.substr(begin, remedy.find('"', begin) - begin);
    const std::string folder = pages.empty() ? SOURCE_FOLDER "/docs" : pages;
    EXPECT_THAT(weir::testing::read_file(folder + "/packages.md"),
                HasSubstr("\n## " + section + "\n"));
  }
}

/// The cases above may leave out a remedy.
TEST(DoctorChecks, NoCheckWritesAPathOfTheClone) {
  for (const auto& file : fs::directory_iterator(SOURCE_FOLDER "/tools/weir/doctor")) {
    if (!file.path().filename().string().starts_with("check")) continue;
    std::ifstream lines(file.path());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('#') || line.find("//") != std::string::npos) continue;
      for (const char* folder : {"docs/", "tools/", "tests/"}) {
        EXPECT_EQ(line.find(folder), std::string::npos) << file.path() << ": " << line;
      }
    }
  }
}

}  // namespace
}  // namespace weir::cli::doctor::testing
