#pragma once

// Fills in the facts of this machine. Whatever may hang or crash runs in a child process with a
// time limit; nothing needs a GPU, and nothing is written but what is removed at once. Call from
// one thread, in a process without others.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/weir/doctor/facts.hpp"

namespace weir::cli::doctor {

/// Folders and limits of time, which tests replace.
struct CollectOptions {
  std::string python;                              ///< --python; empty: python3 of the PATH
  std::string root;                                ///< in front of /proc, /dev, /etc and /sys
  std::chrono::milliseconds driver_limit{30'000};  ///< each GPU's first context takes a second
  std::chrono::milliseconds library_limit{10'000};
  std::chrono::milliseconds program_limit{15'000};
};

/// Throws std::system_error for want of files or processes: what cannot be opened would pass for
/// missing.
[[nodiscard]] Facts collect(const CollectOptions& options);

/// Returns the folder of the pages for a program that lies at this path: installed with it, or in
/// the clone in whose build folder it lies. Empty if there is none.
[[nodiscard]] std::string find_pages(const std::string& program);

/// Returns the named variables of this process: Weir's, and all that checks read.
[[nodiscard]] Variables collect_variables(const char* const* environment);

[[nodiscard]] SystemFacts collect_system(const CollectOptions& options);
/// `runtimes`: files of CUDA runtimes, beside which CUPTI may be.
[[nodiscard]] DriverFacts collect_driver(const CollectOptions& options,
                                         const std::vector<std::string>& runtimes);
[[nodiscard]] LibraryFacts collect_library();
/// `library`: its path; empty: none.
[[nodiscard]] PythonFacts collect_python(const CollectOptions& options, const std::string& library);
[[nodiscard]] LimitsFacts collect_limits(const CollectOptions& options);

/// Starts `path` with `words` and what `weir run` would preload, and looks whether the library is
/// in the process. The program prints its /proc/self/maps.
[[nodiscard]] Trial try_library(const std::string& library, const std::string& program,
                                const std::string& path, const std::vector<std::string>& words,
                                std::chrono::milliseconds limit);

/// Returns a small file's contents; nothing if it cannot be read.
[[nodiscard]] std::optional<std::string> read_small(const std::string& path);

/// Returns the last line that says something; empty if there is none.
[[nodiscard]] std::string last_line(const std::string& text);

}  // namespace weir::cli::doctor
