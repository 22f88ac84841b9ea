#pragma once

// Ranks with torchrun's variables, each with a stand-in GPU of its own.

#include <memory>
#include <string>

#include "support/child_process.hpp"
#include "trainer/ranks/star.hpp"

namespace weir::testing {

[[nodiscard]] inline std::string free_port() { return std::to_string(port_of(listen_on(0, true))); }

/// Of a machine with two GPUs.
[[nodiscard]] inline Variables two_gpus() {
  return {{"PATH", "/usr/bin:/bin"},
          {"WEIR_STANDIN_DEVICES", "2"},
          {"CUDA_VISIBLE_DEVICES", "0,1"},
          {"ASAN_OPTIONS", "detect_leaks=0"}};  // MPI's own
}

[[nodiscard]] inline std::unique_ptr<ChildProcess> start_rank(int rank, int size,
                                                              const std::string& port,
                                                              const std::string& program,
                                                              const Words& words) {
  Variables environment = two_gpus();
  environment.insert({{"RANK", std::to_string(rank)},
                      {"WORLD_SIZE", std::to_string(size)},
                      {"LOCAL_RANK", std::to_string(rank)},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", port}});
  return std::make_unique<ChildProcess>(
      words, ChildOptions{.program = program, .environment = std::move(environment)});
}

}  // namespace weir::testing
