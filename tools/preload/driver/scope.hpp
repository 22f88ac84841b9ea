#pragma once

// What the swap-in's own calls of the driver are made in.

#include <optional>

#include "allocator/base/error.hpp"
#include "tools/preload/driver/driver.hpp"

namespace weir::preload {

/// A call of the driver failed; the program is told its code.
class DriverError : public Error {
 public:
  DriverError(const char* call, CUresult code);
  [[nodiscard]] CUresult code() const noexcept { return code_; }

 private:
  CUresult code_;
};

/// Nothing can be recorded or asked of a stream now, because it or one of its context is captured.
class CaptureUnderWay : public Error {
 public:
  using Error::Error;
};

/// While it lives, the calling thread knows which context is current: whoever makes it has asked
/// the driver, or told it. None of the program's own code runs meanwhile.
class CurrentContext {
 public:
  explicit CurrentContext(CUcontext context) noexcept : before_(known_context) {
    known_context = context;
  }
  ~CurrentContext() { known_context = before_; }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  [[nodiscard]] static CUcontext known() noexcept { return known_context; }

 private:
  inline static constinit thread_local CUcontext known_context = nullptr;
  const CUcontext before_;
};

/// Whether a capture may be under way elsewhere.
enum class Captures : bool {
  kNone,      ///< the caller has seen to it that there is none and that none begins
  kPossible,  ///< calls that it forbids by default are to be let through
};

/// Makes `context` current until it ends, and lets the thread make calls that a capture elsewhere
/// forbids by default: ours touch no captured stream.
class ContextScope {
 public:
  ContextScope(const Driver& driver, CUcontext context,
               Captures captures = Captures::kPossible) noexcept;
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  /// False: the context is gone.
  [[nodiscard]] bool good() const noexcept { return good_; }

 private:
  const Driver& driver_;
  std::optional<CurrentContext> current_;
  bool good_ = true;
  bool pushed_ = false;
  bool relaxed_ = false;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// While it lives, hooks on this thread pass everything to the driver: the calls are our own, or
/// those that the driver makes by its own names.
class Inside {
 public:
  Inside() noexcept : Inside(true) {}
  /// With false it changes nothing.
  explicit Inside(bool passes) noexcept : before_(inside_now) { inside_now = before_ || passes; }
  ~Inside() { inside_now = before_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  [[nodiscard]] static bool now() noexcept { return inside_now; }

 private:
  inline static constinit thread_local bool inside_now = false;
  const bool before_;
};

/// While it lives, the thread runs a callback for the device, and nothing makes it wait.
class InCallback {
 public:
  InCallback() noexcept : before_(in_callback_now) { in_callback_now = true; }
  ~InCallback() { in_callback_now = before_; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  [[nodiscard]] static bool now() noexcept { return in_callback_now; }

 private:
  inline static constinit thread_local bool in_callback_now = false;
  const bool before_;
};

}  // namespace weir::preload
