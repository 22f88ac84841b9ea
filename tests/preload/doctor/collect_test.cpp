// Facts of a machine that is made of files and scripts.

#include "tools/weir/doctor/collect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "support/sanitized.hpp"
#include "tools/preload/torch/plug_file.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::cli::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using weir::testing::TemporaryDirectory;
using weir::testing::write_file;
namespace fs = std::filesystem;

/// A folder in place of the root, and a time that no test waits for.
class DoctorCollect : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& contents) {
    fs::create_directories(fs::path(root_.file(path)).parent_path());
    write_file(root_.file(path), contents);
  }
  std::string script(const std::string& name, const std::string& contents) {
    put(name, "#!/bin/sh\n" + contents);
    fs::permissions(root_.file(name), fs::perms::owner_all);
    return root_.file(name);
  }
  CollectOptions options(const std::string& python = {}) {
    return {.python = python, .root = root_.file("")};
  }
  /// A script that answers as Python does, whatever it is asked.
  std::string python(const std::string& answer) {
    return script("bin/python",
                  "echo 'a module of the start prints this'\n"
                  "echo 'weir-doctor:" +
                      answer + "'\n");
  }

  TemporaryDirectory root_;
};

TEST_F(DoctorCollect, TheSystemsNameAndContainer) {
  EXPECT_THAT(collect_system(options()).name, ::testing::StartsWith("an unnamed system, Linux "));
  put("etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  const SystemFacts outside = collect_system(options());
  EXPECT_THAT(outside.name, ::testing::MatchesRegex(
                                "Debian GNU/Linux 12 .bookworm., Linux .*, glibc 2[.].*, .+"));
  EXPECT_EQ(outside.container, "");
  EXPECT_GT(outside.memory.count, mib(64).count);
  for (const auto& [file, kind] : {std::pair{".singularity.d/env", "Apptainer"},
                                   {"var/run/secrets/kubernetes.io/x", "Kubernetes"},
                                   {"run/systemd/container", "of systemd's kinds"},
                                   {"run/.containerenv", "Podman"},
                                   {".dockerenv", "Docker"}}) {
    put(file, "");
    EXPECT_EQ(collect_system(options()).container, kind);
  }
}

TEST_F(DoctorCollect, OnlyVariablesThatChecksRead) {
  const char* const lines[] = {
      "WEIR_BUDGET=6GiB",    "HOME=/home/anna", "AWS_SECRET=x", "LD_PRELOAD=/a:/b",
      "LD_PRELOAD_OTHER=no", "noequals",        "TF_X=a=b",     nullptr};
  EXPECT_THAT(
      collect_variables(lines),
      ElementsAre(Pair("LD_PRELOAD", "/a:/b"), Pair("TF_X", "a=b"), Pair("WEIR_BUDGET", "6GiB")));
}

TEST_F(DoctorCollect, TheKernelsHalfOfADriver) {
  const DriverFacts none = collect_driver(options(), {});
  EXPECT_EQ(none.answer, Answer::kCame);
  EXPECT_EQ(none.kernel_module, "");
  EXPECT_FALSE(none.has_files);
  if (none.driver.file.empty()) {
    EXPECT_THAT(none.driver.problem, HasSubstr("libcuda.so.1"));
  }
  put("proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
      "GCC version:  gcc version 12.2.0\n");
  for (const char* file : {"dev/nvidiactl", "dev/dxg"}) {  // dxg: Windows' driver
    put(file, "");
    const DriverFacts facts = collect_driver(options(), {});
    EXPECT_EQ(facts.kernel_module, "580.65.06");
    EXPECT_TRUE(facts.has_files);
    fs::remove(root_.file(file));
  }
}

TEST_F(DoctorCollect, SharedMemory) {
  EXPECT_FALSE(collect_limits(options()).shared_memory.has_value());
  fs::create_directories(root_.file("dev/shm"));
  const LimitsFacts facts = collect_limits(options());
  EXPECT_TRUE(facts.shared_memory.has_value());
  EXPECT_TRUE(facts.shared_memory_writable);
}

TEST_F(DoctorCollect, FilesOfTheKernelHaveNoSizeAndAreRead) {
  EXPECT_THAT(read_small("/proc/self/status").value_or(""), HasSubstr("Name:"));
}

TEST_F(DoctorCollect, AnInterpretersAnswer) {
  const PythonFacts facts = collect_python(
      options(python(
          R"({"version": "3.12.1", "executable": "/usr/bin/python3.12", "torch": "", "packages": {"JAX": "0.10.2"}, "runtimes": ["/x/libcudart.so.13"]})")),
      "");
  EXPECT_TRUE(facts.is_asked);
  EXPECT_EQ(facts.version, "3.12.1");
  EXPECT_EQ(facts.executable, "/usr/bin/python3.12");
  EXPECT_FALSE(facts.torch.has_value());
  EXPECT_THAT(facts.packages, ElementsAre(Pair("JAX", "0.10.2")));
  EXPECT_THAT(facts.runtimes, ElementsAre("/x/libcudart.so.13"));
  EXPECT_EQ(facts.trial.end, Trial::End::kNotTried);
}

TEST_F(DoctorCollect, PyTorchsFilesAreReadAndNotImported) {
  const auto ask = [&](const std::string& library) {
    return collect_python(
               options(python(R"({"version": "3.12.1", "executable": "", "torch": ")" +
                              root_.file("torch") + R"(", "packages": {}, "runtimes": []})")),
               library)
        .torch;
  };
  fs::create_directories(root_.file("torch"));
  EXPECT_FALSE(ask("")->version.has_value());
  put("torch/version.py", "__version__ = '2.5.1+cu124'\n");
  EXPECT_FALSE(ask("")->has_cuda);
  EXPECT_FALSE(ask("")->abi.has_value());
  put("torch/lib/libc10_cuda.so", "");
  put("torch/lib/libc10.so", std::string("x\0", 2) + preload::kCxx03Constructor + '\0');
  put("weir/libweir.so", "");
  const auto torch = ask(root_.file("weir/libweir.so"));
  ASSERT_TRUE(torch->version.has_value());
  EXPECT_EQ(torch->version->text, "2.5.1+cu124");
  EXPECT_TRUE(torch->has_cuda);
  EXPECT_EQ(torch->abi, preload::CxxAbi::kCxx03);
  EXPECT_EQ(torch->plug, "libweir_torch_2.5_cxx03.so");
  EXPECT_FALSE(torch->plug_exists);
  put("torch/lib/libc10.so", preload::kCxx11Constructor);
  put("weir/libweir_torch_2.5.so", "no library");
  const auto unfit = ask(root_.file("weir/libweir.so"));
  EXPECT_TRUE(unfit->plug_exists);
  EXPECT_EQ(unfit->plug_unfit, "it is not a shared library");
}

TEST_F(DoctorCollect, AnInterpreterThatIsMissingHangsOrSaysNothing) {
  EXPECT_THAT(collect_python(options("/nowhere/python"), "").problem,
              HasSubstr("'/nowhere/python' cannot be run"));
  EXPECT_EQ(collect_python(options(script("old", "exit 1\n")), "").version, "");
  EXPECT_EQ(collect_python(options(script("mute", "echo nothing\n")), "").version, "");
  for (const std::string line : {"[1]", "{}", R"({"version":3})", "", "{"}) {
    const PythonFacts odd =
        collect_python(options(script("odd", "echo 'weir-doctor:" + line +
                                                 "'\nprintf 'why:\\n  it broke \\n\\n' >&2\n")),
                       "");
    EXPECT_EQ(odd.version, "") << line;
    EXPECT_EQ(odd.said, "it broke");
  }
  CollectOptions hanging = options(script("hanging", "exec sleep 1000\n"));
  hanging.program_limit = std::chrono::milliseconds(100);
  EXPECT_EQ(collect_python(hanging, "").answer, Answer::kTimedOut);
  EXPECT_EQ(collect_python(options(script("ending", "kill -SEGV $$\n")), "").answer,
            Answer::kCrashed);
}

TEST_F(DoctorCollect, ATrialKeepsWhatTheUserPreloads) {
  if (WEIR_TEST_SANITIZED != 0) GTEST_SKIP() << "a sanitized library cannot be preloaded into sh";
  setenv("LD_PRELOAD", "/nowhere/mine.so", 1);
  const auto attempt = [](const std::string& library, const std::string& script) {
    return try_library(library, "sh", "/bin/sh", {"sh", "-c", script}, std::chrono::minutes(10));
  };
  const Trial shown = attempt(FAKE_LIBRARY, "echo \"with $LD_PRELOAD\" >&2; exit 1");
  const Trial loaded = attempt(FAKE_LIBRARY,
                               "while read -r line; do echo \"$line\"; done "
                               "< /proc/self/maps");
  const Trial refused = attempt("/nowhere/libweir.so", "exit 1");
  unsetenv("LD_PRELOAD");
  EXPECT_EQ(shown.message, "with " FAKE_LIBRARY ":/nowhere/mine.so");
  EXPECT_EQ(loaded.end, Trial::End::kLoaded) << loaded.message;
  EXPECT_THAT(refused.message, ::testing::StartsWith("object '/nowhere/libweir.so' from"));
}

TEST_F(DoctorCollect, ATrialSeesTheLibraryInTheProcess) {
  if (WEIR_TEST_SANITIZED != 0) GTEST_SKIP() << "a sanitized library cannot be preloaded into cat";
  const auto attempt = [](const std::string& library, const std::string& script,
                          std::chrono::milliseconds limit = std::chrono::minutes(10)) {
    return try_library(library, "sh", "/bin/sh", {"sh", "-c", script}, limit);
  };
  const std::string maps = "cat /proc/self/maps";
  EXPECT_EQ(attempt(FAKE_LIBRARY, maps).end, Trial::End::kLoaded);
  EXPECT_EQ(attempt(FAKE_LIBRARY, "unset LD_PRELOAD; " + maps).end, Trial::End::kNotLoaded);
  const std::string refused = "echo '7f00-7f01 r--p 00000000 00:27 3  " FAKE_LIBRARY "'";
  EXPECT_EQ(attempt(FAKE_LIBRARY, "unset LD_PRELOAD; " + refused).end, Trial::End::kNotLoaded);
  const Trial missing = attempt("/nowhere/libweir.so", maps);
  EXPECT_EQ(missing.end, Trial::End::kNotLoaded);
  EXPECT_THAT(missing.message, ::testing::StartsWith("object '/nowhere/libweir.so' from"));
  const Trial failing = attempt(FAKE_LIBRARY, "echo why >&2; exit 1");
  EXPECT_EQ(failing.end, Trial::End::kFailed);
  EXPECT_EQ(failing.message, "why");
  const Trial crashing = attempt(FAKE_LIBRARY, "kill -SEGV $$");
  EXPECT_EQ(crashing.end, Trial::End::kFailed);
  EXPECT_EQ(crashing.message, "it ends by signal 11");
  EXPECT_EQ(attempt(FAKE_LIBRARY, "exec sleep 1000", std::chrono::milliseconds(100)).end,
            Trial::End::kTimedOut);
}

}  // namespace
}  // namespace weir::cli::doctor
