#pragma once

// What the kernel says of a process.

#include <cstdint>
#include <optional>
#include <string>

namespace weir::timeline {

struct ProcessState {
  std::uint64_t started = 0;  ///< ticks since the machine's start: tells a pid that came back
  std::uint32_t uid = 0;      ///< effective

  friend bool operator==(const ProcessState&, const ProcessState&) = default;
};

/// Nothing where there is no such process, or this one may not see it.
[[nodiscard]] std::optional<ProcessState> find_process(std::uint32_t pid);

/// Inode of this process's pid namespace; 0 where it is not known. Numbers of processes mean
/// nothing in another one.
[[nodiscard]] std::uint64_t pid_namespace() noexcept;

/// Command line of this process: the base name of the program, and its arguments.
[[nodiscard]] std::string command_line();

}  // namespace weir::timeline
