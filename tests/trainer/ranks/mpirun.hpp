#pragma once

// Starts ranks by the mpirun of each MPI that tools/setup installs.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "support/child_process.hpp"

namespace weir::testing {

/// One MPI's way to start ranks.
struct Engine {
  std::string name;
  std::string program;
  std::vector<std::string> options;
};

inline std::ostream& operator<<(std::ostream& out, const Engine& engine) {
  return out << engine.name;
}

inline const Engine kOpenMpi{"Open MPI", "/usr/bin/mpirun.openmpi", {"--oversubscribe"}};
inline const Engine kMpich{"MPICH", "/usr/bin/mpirun.mpich", {}};

/// Returns the child that runs mpirun with these words behind its own options: `-n 2 PROGRAM …`.
[[nodiscard]] inline ChildProcess start_mpirun(const Engine& engine,
                                               const std::vector<std::string>& words,
                                               Variables environment = {}) {
  std::vector<std::string> arguments = engine.options;
  arguments.insert(arguments.end(), words.begin(), words.end());
  const char* const home = std::getenv("HOME");
  environment.insert({{"PATH", "/usr/bin:/bin"},
                      {"HOME", home != nullptr ? home : "/tmp"},
                      // Containers run as root, have few processors and no other hosts.
                      {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                      {"OMPI_MCA_btl", "self,vader"},
                      {"OMPI_MCA_hwloc_base_binding_policy", "none"}});
  return ChildProcess(arguments, {.program = engine.program, .environment = environment});
}

/// Tests that run for each MPI.
class ByMpi : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    ASSERT_EQ(access(GetParam().program.c_str(), X_OK), 0)
        << GetParam().program << " is missing: run tools/setup";
  }
  [[nodiscard]] static Finished run_ranks(int count, const std::vector<std::string>& program) {
    std::vector<std::string> words{"-n", std::to_string(count)};
    words.insert(words.end(), program.begin(), program.end());
    return start_mpirun(GetParam(), words).wait();
  }
  /// Runs ranks of which one dies. What each says goes to `folder`/error.RANK; seen.2 is what rank
  /// 2 had said when rank 0 ended. No end reaches the launcher before all have ended, or within 30
  /// s: what MPICH's launcher does about a death varies. It may end the other ranks before they can
  /// say a word, or end itself by SIGPIPE with all that it was to forward.
  [[nodiscard]] static Finished run_dying_ranks(int count, const std::vector<std::string>& program,
                                                const std::string& folder) {
    std::vector<std::string> words{
        "/bin/sh", "-c",
        "cd \"$0\"; rank=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; \"$@\" 2> error.$rank; code=$?; "
        "[ $rank = 0 ] && cp error.2 seen.2; : > ended.$rank; "
        "for i in $(seq 300); do [ $(ls ended.* | wc -l) = " +
            std::to_string(count) + " ] && break; sleep 0.1; done; exit $code",
        folder};
    words.insert(words.end(), program.begin(), program.end());
    return run_ranks(count, words);
  }
};

/// For INSTANTIATE_TEST_SUITE_P.
[[nodiscard]] inline std::string engine_name(const ::testing::TestParamInfo<Engine>& engine) {
  return engine.param.name == "MPICH" ? "Mpich" : "OpenMpi";
}

}  // namespace weir::testing
