#pragma once

// The C functions of libweir.so that the plug calls. They are looked up in the process: the plug
// links nothing.

#include <dlfcn.h>
#include <sys/types.h>

#include <cstddef>

#include "tools/preload/borders/weir.h"

namespace weir::torch_plug {

struct WeirCalls {
  void* (*allocate)(ssize_t, int, void*) = nullptr;
  void (*free)(void*, ssize_t, int, void*) = nullptr;
  void (*record_use)(void*, void*) = nullptr;

  /// Returns false if libweir.so is not in the process, or too old.
  [[nodiscard]] bool find() {
    return look_up(allocate, "weir_torch_alloc_or_null") && look_up(free, "weir_torch_free") &&
           look_up(record_use, "weir_torch_record_stream");
  }

 private:
  template <typename Function>
  static bool look_up(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
    return function != nullptr;
  }
};

}  // namespace weir::torch_plug
