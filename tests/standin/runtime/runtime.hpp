#pragma once

// What every function of the runtime does around its call of the driver.

#include <utility>

#include "tests/standin/runtime/calls.hpp"

namespace weir::standin {

/// What the driver has answered this thread before is no answer to the call that begins.
void forget_answers();
/// Remembers an error for cudaGetLastError.
cudaError_t note(cudaError_t error);
/// The same, for an error that no call of the driver has returned.
cudaError_t note_own(cudaError_t error);
inline cudaError_t note(CUresult result) { return note(static_cast<cudaError_t>(result)); }

/// Makes the device that this thread chose current, with its primary context.
cudaError_t use_device();
/// The device that this thread chose.
int chosen_device();
cudaError_t choose_device(int device);
/// The primary context of another device, made where it is not there.
cudaError_t context_of(int device, CUcontext* context);
/// The primary context of `device` was reset: it is retained anew when next used.
void forget_device(int device);

/// A function that needs the driver, and no context.
template <typename Body>
cudaError_t with_driver(Body&& body) {
  forget_answers();
  if (library().status != cudaSuccess) return note(library().status);
  return note(std::forward<Body>(body)(library().legacy));
}

/// A function that needs a context.
template <typename Body>
cudaError_t with_context(Body&& body) {
  const cudaError_t error = use_device();
  return error == cudaSuccess ? note(std::forward<Body>(body)(library().legacy)) : note(error);
}

/// Which functions of the driver a function's variant uses.
enum class DefaultStream { kLegacy, kPerThread };

/// A function that takes a stream: `body` gets the functions that know what stream 0 means.
template <typename Body>
cudaError_t on_stream(DefaultStream meant, Body&& body) {
  const cudaError_t error = use_device();
  if (error != cudaSuccess) return note(error);
  const Library& driver = library();
  return note(std::forward<Body>(body)(meant == DefaultStream::kLegacy ? driver.legacy
                                                                       : driver.per_thread));
}

inline CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace weir::standin
