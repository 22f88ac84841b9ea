#pragma once

/// @file
/// The project's error policy. Inside, errors are exceptions. A program's `main` prints one as a
/// line on standard error and exits with `exit_code`. No failure is dropped: a destructor or
/// `noexcept` function keeps what it could not release and reports it later.
///
/// @verbatim
///   UsageError   the request is not allowed                           exit 2
///   OutOfMemory  no stage of the pool could serve a request           exit 3
///   Cancelled    a wait ended because its stop token asked for it     exit 130
///   any other    a fault of the program or the machine                exit 1
/// @endverbatim

#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/bytes.hpp"

namespace weir {

/// Base of every error that the project throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The request is not allowed. One line: what, where, what is allowed.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// A wait's stop token ended it. The wait took nothing.
class Cancelled : public Error {
 public:
  using Error::Error;
};

/// A holder of memory, by its name in reports.
struct MemoryHolder {
  std::string label{};       ///< of the tensor or block; marked if it awaits the device
  Bytes bytes{};             ///< of its blocks
  std::uint64_t blocks = 0;  ///< how many
};

/// A failed request, and what the pool held then.
struct MemoryShortage {
  Bytes asked{};                        ///< as requested, before rounding
  Bytes block{};                        ///< after rounding; zero if no block can be that large
  Bytes budget{};                       ///< the most that may be reserved
  Bytes allocated{};                    ///< handed out
  Bytes awaiting{};                     ///< freed; the device may still use it
  Bytes cached{};                       ///< free, kept for the next request
  Bytes largest_cached{};               ///< the largest free block
  std::vector<MemoryHolder> holders{};  ///< the biggest, largest first; at most five
};

/// No stage could serve a request. `what()` is a report of several lines: the figures of
/// MemoryShortage, and what each stage found.
class OutOfMemory : public Error {
 public:
  /// Thrown by a pool; `report` becomes `what()`.
  explicit OutOfMemory(const std::string& report, MemoryShortage figures = {})
      : Error(report), figures_(std::make_shared<const MemoryShortage>(std::move(figures))) {}
  /// The report's figures, for a program that acts on them.
  [[nodiscard]] const MemoryShortage& figures() const noexcept { return *figures_; }

 private:
  std::shared_ptr<const MemoryShortage> figures_;  // shared: copying an exception must not throw
};

/// Returns a program's exit code for `error`: see the table above.
[[nodiscard]] inline int exit_code(const std::exception& error) noexcept {
  if (dynamic_cast<const UsageError*>(&error) != nullptr) return 2;
  if (dynamic_cast<const OutOfMemory*>(&error) != nullptr) return 3;
  if (dynamic_cast<const Cancelled*>(&error) != nullptr) return 130;
  return 1;
}

/// A default argument of functions that report their caller.
struct CallSite {
  const char* file = "";  ///< as passed to the compiler
  int line = 0;           ///< from 1; 0: unknown
  /// As a default argument: returns the place of the call.
  // Not std::source_location: clang 14, and so clang-tidy, cannot parse libstdc++'s.
  [[nodiscard]] static constexpr CallSite here(const char* file = __builtin_FILE(),
                                               int line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

}  // namespace weir
