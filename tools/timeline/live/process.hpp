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

/// The number of a process in its own pid namespace, where each process knows itself by it. Nothing
/// where there is no such process, or this one may not see it.
[[nodiscard]] std::optional<std::uint32_t> own_number(std::uint32_t pid);

/// Whether the process is stopped, as by SIGSTOP or a debugger. False where there is none.
[[nodiscard]] bool is_stopped(std::uint32_t pid);

/// What a process of this user had in its environment when it began; nothing where it had none of
/// that name, or cannot be looked at.
[[nodiscard]] std::optional<std::string> variable_of(std::uint32_t pid, const std::string& name);

/// Inode of this process's pid namespace; 0 where it is not known. Numbers of processes mean
/// nothing in another one.
[[nodiscard]] std::uint64_t pid_namespace() noexcept;

/// Command line of this process: the base name of the program, and its arguments.
[[nodiscard]] std::string command_line();

}  // namespace weir::timeline
