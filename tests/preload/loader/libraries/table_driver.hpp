#pragma once

// What a test asks of table_driver.cpp in addition to a driver's functions. It takes these by
// dlsym: to the program they are functions of a driver.

#include <cuda.h>

/// A function of the driver in <cudaTypedefs.h>.
struct TableForm {
  const char* base;
  int version;
  bool per_thread;  ///< the form for per-thread default streams
  void* function;   ///< unique to this form
};

extern "C" {

/// The driver's result of a look-up, past anything in front of it; null for none.
const TableForm* weir_table_answer(const char* base, int version, cuuint64_t flags);
/// Every function of the toolkit's types, also those newer than the driver: `count` of them.
const TableForm* weir_table_forms(std::size_t* count);

}  // extern "C"
