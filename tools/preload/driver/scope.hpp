#pragma once

// Scopes for the swap-in's own work and driver calls.

#include <exception>
#include <optional>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "tools/preload/driver/driver.hpp"

namespace weir::preload {

/// Logs `what: reason`.
void log_failure(LogLevel level, const char* what, const std::exception& why) noexcept;
/// Calls `work`; if it throws, logs that.
template <typename Work>
void attempt(LogLevel level, const char* what, const Work& work) noexcept {
  try {
    work();
  } catch (const std::exception& error) {
    log_failure(level, what, error);
  }
}
/// The same; returns what `work` returns, or `otherwise`.
template <typename T, typename Work>
[[nodiscard]] T attempt(LogLevel level, const char* what, T otherwise, const Work& work) noexcept {
  attempt(level, what, [&] { otherwise = work(); });
  return otherwise;
}

/// A driver call failed; the program gets its code.
class DriverError : public Error {
 public:
  DriverError(const char* call, CUresult code);
  [[nodiscard]] CUresult code() const noexcept { return code_; }

 private:
  CUresult code_;
};

/// Nothing can be recorded on or asked of a stream, because it or another stream of its context is
/// captured.
class CaptureUnderWay : public Error {
 public:
  using Error::Error;
};

/// In which scopes of ours the calling thread is.
struct Guard {
  bool in_call = false;         ///< a Call
  bool inside = false;          ///< Inside
  bool in_callback = false;     ///< InCallback
  CUcontext context = nullptr;  ///< CurrentContext
};
inline constinit thread_local Guard guard{};

/// During its lifetime the calling thread knows the current context: its creator has asked or told
/// the driver, and no program code runs meanwhile.
class CurrentContext {
 public:
  explicit CurrentContext(CUcontext context) noexcept
      : before_(std::exchange(guard.context, context)) {}
  ~CurrentContext() { guard.context = before_; }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  [[nodiscard]] static CUcontext known() noexcept { return guard.context; }

 private:
  const CUcontext before_;
};

/// Whether a capture may be in progress elsewhere.
enum class Captures : bool {
  kNone,      ///< the caller ensures that there is none and none begins
  kPossible,  ///< lets through calls that a capture forbids by default
};

/// Lets the thread make calls that a capture elsewhere forbids by default. Our calls touch no
/// captured stream.
class RelaxedCaptures {
 public:
  explicit RelaxedCaptures(const Driver& driver) noexcept : driver_(driver) { exchange(); }
  ~RelaxedCaptures() { exchange(); }
  RelaxedCaptures(const RelaxedCaptures&) = delete;
  RelaxedCaptures& operator=(const RelaxedCaptures&) = delete;

 private:
  void exchange() noexcept { (void)driver_.cuThreadExchangeStreamCaptureMode(&mode_); }

  const Driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// Makes `context` current during its lifetime, and lets the thread make calls that a capture
/// elsewhere forbids by default.
class ContextScope {
 public:
  ContextScope(const Driver& driver, CUcontext context,
               Captures captures = Captures::kPossible) noexcept;
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  /// False if the context is gone.
  [[nodiscard]] bool good() const noexcept { return good_; }

 private:
  const Driver& driver_;
  std::optional<CurrentContext> current_;
  bool good_ = true;
  bool pushed_ = false;
  std::optional<RelaxedCaptures> relaxed_;
};

/// During its lifetime, hooks on this thread pass everything to the driver: the calls are our own,
/// or the driver's internal ones.
class Inside {
 public:
  Inside() noexcept : Inside(true) {}
  /// Does nothing if `passes` is false.
  explicit Inside(bool passes) noexcept : before_(guard.inside) {
    guard.inside = before_ || passes;
  }
  ~Inside() { guard.inside = before_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  [[nodiscard]] static bool now() noexcept { return guard.inside; }

 private:
  const bool before_;
};

/// During its lifetime the thread runs a callback for the device, and nothing makes it wait.
class InCallback {
 public:
  InCallback() noexcept : before_(std::exchange(guard.in_callback, true)) {}
  ~InCallback() { guard.in_callback = before_; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  [[nodiscard]] static bool now() noexcept { return guard.in_callback; }

 private:
  const bool before_;
};

}  // namespace weir::preload
