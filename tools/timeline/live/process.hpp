#pragma once

// Queries the kernel about processes.

#include <cstdint>
#include <optional>
#include <string>

namespace weir::timeline {

struct ProcessState {
  std::uint64_t started = 0;  ///< ticks since the machine's start; detects a reused pid
  std::uint32_t uid = 0;      ///< effective

  friend bool operator==(const ProcessState&, const ProcessState&) = default;
};

/// Returns nothing if the process does not exist or is not visible.
[[nodiscard]] std::optional<ProcessState> find_process(std::uint32_t pid);

/// Returns a process's number in its own pid namespace, as the process itself knows it. Returns
/// nothing if the process does not exist or is not visible.
[[nodiscard]] std::optional<std::uint32_t> own_number(std::uint32_t pid);

/// Returns whether the process is stopped, as by SIGSTOP or a debugger. False if it does not exist.
[[nodiscard]] bool is_stopped(std::uint32_t pid);

/// Returns a variable of the initial environment of a process of this user; nothing if it is not
/// set or not readable.
[[nodiscard]] std::optional<std::string> variable_of(std::uint32_t pid, const std::string& name);

/// The inode of this process's pid namespace; 0 if unknown. Process numbers of other namespaces
/// mean nothing here.
[[nodiscard]] std::uint64_t pid_namespace() noexcept;

/// This process's command line: the program's base name and its arguments.
[[nodiscard]] std::string command_line();

}  // namespace weir::timeline
