#pragma once

/// @file
/// The one error policy of the project. Exceptions inside; a program's `main` turns them into one
/// line on standard error and an exit code with `exit_code`. Nothing is swallowed: a destructor or
/// a `noexcept` function that meets a failure keeps what it could not give back and says so later.
///
/// @verbatim
///   UsageError   what the caller asked for is not allowed (what, where, what is allowed)  exit 2
///   OutOfMemory  no stage of the pool could serve a request; carries the whole report     exit 3
///   Cancelled    a wait was given up because its stop token asked for it                  exit 130
///   any other    a fault of the program or the machine                                    exit 1
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

/// Base of every error that the project itself throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The caller asked for something that is not allowed. One line: what, where, what is allowed.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// A wait ended because its stop token asked for it. Nothing was taken.
class Cancelled : public Error {
 public:
  using Error::Error;
};

/// Who holds memory, by the name that reports give.
struct MemoryHolder {
  std::string label{};       ///< of the tensor or block; says so where it awaits the device
  Bytes bytes{};             ///< of its blocks
  std::uint64_t blocks = 0;  ///< how many
};

/// The figures of an OutOfMemory: the request that failed, and what the pool held at that moment.
struct MemoryShortage {
  Bytes asked{};                        ///< as requested, before rounding
  Bytes block{};                        ///< after rounding; zero when no block can be that large
  Bytes budget{};                       ///< what may be reserved at most
  Bytes allocated{};                    ///< handed out
  Bytes awaiting{};                     ///< freed, and the device not known to be done with it
  Bytes cached{};                       ///< free, and kept for the next request
  Bytes largest_cached{};               ///< the largest free block
  std::vector<MemoryHolder> holders{};  ///< those that hold the most, first; at most five
};

/// A request that nothing could serve. `what()` is the report of several lines: asked, budget,
/// allocated, awaiting, cached, largest free block, biggest holders, what each stage found.
class OutOfMemory : public Error {
 public:
  /// Thrown by a pool.
  explicit OutOfMemory(const std::string& report, MemoryShortage figures = {})
      : Error(report), figures_(std::make_shared<const MemoryShortage>(std::move(figures))) {}
  /// What the report says, for a program that acts on it.
  [[nodiscard]] const MemoryShortage& figures() const noexcept { return *figures_; }

 private:
  std::shared_ptr<const MemoryShortage> figures_;  // shared: copying an exception may not throw
};

/// The exit code of a program that ends with `error`; see the table above.
[[nodiscard]] inline int exit_code(const std::exception& error) noexcept {
  if (dynamic_cast<const UsageError*>(&error) != nullptr) return 2;
  if (dynamic_cast<const OutOfMemory*>(&error) != nullptr) return 3;
  if (dynamic_cast<const Cancelled*>(&error) != nullptr) return 130;
  return 1;
}

}  // namespace weir
