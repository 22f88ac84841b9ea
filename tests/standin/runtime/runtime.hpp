#pragma once

// Common code of every function of the runtime around its driver call.

#include <utility>

#include "tests/standin/runtime/calls.hpp"

namespace weir::standin {

/// Forgets this thread's earlier result of the driver, at the start of a call.
void forget_answers();
/// Remembers an error for cudaGetLastError.
cudaError_t note(cudaError_t error);
/// The same, for an error that no driver call has returned.
cudaError_t note_own(cudaError_t error);
inline cudaError_t note(CUresult result) { return note(static_cast<cudaError_t>(result)); }

/// Makes this thread's device current, with its primary context.
cudaError_t use_device();
/// The device that this thread chose.
int chosen_device();
cudaError_t choose_device(int device);
/// The primary context of another device, created if needed.
cudaError_t context_of(int device, CUcontext* context);
/// The primary context of `device` was reset: retains it again at the next use.
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

/// The driver functions that a variant uses.
enum class DefaultStream { kLegacy, kPerThread };

/// A function with a stream: `body` gets the functions with the right meaning of stream 0.
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
