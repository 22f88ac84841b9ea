#pragma once

// What a test asks of table_driver.cpp beside what programs ask of a driver. It takes the functions
// by dlsym: to the program they are a driver's like any other.

#include <cuda.h>

/// A function of the driver as <cudaTypedefs.h> knows it.
struct TableForm {
  const char* base;
  int version;
  bool per_thread;  ///< the form for per-thread default streams
  void* function;   ///< its own, as no other form has
};

extern "C" {

/// What the driver gives for a look-up, asked past whoever stands in front of it; null for nothing.
const TableForm* weir_table_answer(const char* base, int version, cuuint64_t flags);
/// Every function of the toolkit's types, also those newer than the driver: `count` of them.
const TableForm* weir_table_forms(std::size_t* count);

}  // extern "C"
