#ifndef WEIR_H
#define WEIR_H

/// @file
/// What a program can tell Weir and ask it once libweir.so is swapped in (docs/c-api.md).
///
/// A program that includes this file links against no Weir library. Each function here is a small
/// static one: it looks up the library's function of the same name once, and does nothing if the
/// library is not preloaded; its description says what it then returns. C, C++, dlsym and ctypes
/// use one name on purpose. A source file cannot have both, so define WEIR_LINKED first for plain
/// declarations if you link the library.
///
/// C99 or later, C++98 or later, GCC or Clang, Linux. A C library older than glibc 2.34 needs -ldl.
///
/// Any thread may call any function at any time, even before CUDA is used. No function throws,
/// reports errors in errno, or keeps a pointer argument.

#include <stddef.h>
#include <stdint.h>

#ifndef WEIR_LINKED
#include <dlfcn.h>
#include <string.h>
#endif

/// The version of this interface. Versions only add functions; none is changed or removed.
#define WEIR_API_VERSION 3

#ifdef __cplusplus
extern "C" {
#endif

#ifdef WEIR_LINKED
#define WEIR_FUNCTION extern __attribute__((visibility("default")))
#else
#define WEIR_FUNCTION static inline
#endif

/// A device's memory in bytes. reserved = allocated + awaiting + cached.
typedef struct weir_memory {
  size_t size;         ///< set to sizeof(weir_memory) before the call: the struct may grow
  uint64_t total;      ///< of the device
  uint64_t budget;     ///< the program's part of it
  uint64_t allocated;  ///< handed out by the pool
  uint64_t awaiting;   ///< freed, with the device not known to be done
  uint64_t cached;     ///< free, kept for reuse
  uint64_t reserved;   ///< obtained from the driver
  uint64_t passed;     ///< served by the driver itself, counted against the budget
} weir_memory;

/// Returns WEIR_API_VERSION of the swapped-in library; 0 if there is none.
WEIR_FUNCTION int weir_api_version(void);

/// Begins a batch of the calling thread on its current device. May hold the thread back until
/// memory of earlier batches is free, for at most WEIR_MAX_WAIT. `kind` names batches that need
/// about the same memory; null is "". Inside an open batch of the same thread it joins that one.
/// Returns 1 if a batch began or was joined; 0 if it was skipped, or without the library. Call
/// weir_batch_end once for it on the same thread, whatever this returned.
WEIR_FUNCTION int weir_batch_begin(const char* kind);

/// Ends what this thread's last weir_batch_begin began. Does not wait for the device. Does nothing
/// if no batch is open, that one was skipped, or without the library.
WEIR_FUNCTION void weir_batch_end(void);

/// Fills `out`, sets out->size to the filled bytes, and returns 1. Returns 0 and leaves `out`
/// unchanged if there is no such device, CUDA was not used on it yet, `out` is null, its size is
/// below that of version 1, or without the library.
WEIR_FUNCTION int weir_memory_info(int device, weir_memory* out);

/// Returns cached memory that the device is done with to the driver; -1 means every device. Returns
/// the number of bytes; 0 if there is no such device, or without the library.
WEIR_FUNCTION uint64_t weir_trim(int device);

/// Sets the device's budget, from 1 MiB to the device's total; -1 means every device that CUDA was
/// used on. Cached memory above it goes back to the driver at once, allocated memory as it is
/// freed. Until then more than the budget is reserved, and nothing is added to it. Returns 1 if
/// set. Returns 0 and changes nothing if the budget is out of range, there is no such device, CUDA
/// was not used yet, without the library, or with a version before 3.
WEIR_FUNCTION int weir_set_budget(int device, uint64_t bytes);

/// Writes the settings in force into `text`, a line `name=value (source)` for each: at most `size`
/// bytes, including the closing zero. Returns the full length without the zero, like snprintf: the
/// text was cut if that is not less than `size`. `text` may be null if `size` is 0. Returns 0 and
/// an empty text before CUDA is used, and without the library.
WEIR_FUNCTION size_t weir_settings(char* text, size_t size);

/// Starts recording a timeline. `file` names it as WEIR_TIMELINE does. Null continues the recording
/// that the variable or an earlier call began: a process has one file, and any other name is
/// refused. Returns 1 if it records now; otherwise 0, with the reason on standard error. Returns 0
/// without the library, or with version 1.
WEIR_FUNCTION int weir_timeline_start(const char* file);

/// Stops recording until the next start. The file is complete when this returns. Does nothing if
/// nothing is recorded, and without the library.
WEIR_FUNCTION void weir_timeline_stop(void);

#ifndef WEIR_LINKED

#ifdef RTLD_DEFAULT
#define WEIR_WHERE RTLD_DEFAULT
#else
#define WEIR_WHERE NULL /* what it is in glibc, which names it only with _GNU_SOURCE */
#endif

/* What `name` is in the library; null where it is not there, which is found out once as well:
 * `symbol` then points to itself. Threads that get here together find the same. */
static inline void* weir_find(void** symbol, const char* name) {
  void* found = __atomic_load_n(symbol, __ATOMIC_ACQUIRE);
  if (found == NULL) {
    found = dlsym(WEIR_WHERE, name);
    if (found == NULL) found = symbol;
    __atomic_store_n(symbol, found, __ATOMIC_RELEASE);
  }
  return found == symbol ? NULL : found;
}

/* Copied into a pointer to a function rather than cast: C does not know that cast. */
static inline int weir_api_version(void) {
  static void* symbol;
  int (*function)(void);
  void* found = weir_find(&symbol, "weir_api_version");
  if (found == NULL) return 0;
  memcpy(&function, &found, sizeof function);
  return function();
}

static inline int weir_batch_begin(const char* kind) {
  static void* symbol;
  int (*function)(const char*);
  void* found = weir_find(&symbol, "weir_batch_begin");
  if (found == NULL) return 0;
  memcpy(&function, &found, sizeof function);
  return function(kind);
}

static inline void weir_batch_end(void) {
  static void* symbol;
  void (*function)(void);
  void* found = weir_find(&symbol, "weir_batch_end");
  if (found == NULL) return;
  memcpy(&function, &found, sizeof function);
  function();
}

static inline int weir_memory_info(int device, weir_memory* out) {
  static void* symbol;
  int (*function)(int, weir_memory*);
  void* found = weir_find(&symbol, "weir_memory_info");
  if (found == NULL) return 0;
  memcpy(&function, &found, sizeof function);
  return function(device, out);
}

static inline uint64_t weir_trim(int device) {
  static void* symbol;
  uint64_t (*function)(int);
  void* found = weir_find(&symbol, "weir_trim");
  if (found == NULL) return 0;
  memcpy(&function, &found, sizeof function);
  return function(device);
}

static inline int weir_set_budget(int device, uint64_t bytes) {
  static void* symbol;
  int (*function)(int, uint64_t);
  void* found = weir_find(&symbol, "weir_set_budget");
  if (found == NULL) return 0;
  memcpy(&function, &found, sizeof function);
  return function(device, bytes);
}

static inline size_t weir_settings(char* text, size_t size) {
  static void* symbol;
  size_t (*function)(char*, size_t);
  void* found = weir_find(&symbol, "weir_settings");
  if (found == NULL) {
    if (text != NULL && size > 0) text[0] = '\0';
    return 0;
  }
  memcpy(&function, &found, sizeof function);
  return function(text, size);
}

static inline int weir_timeline_start(const char* file) {
  static void* symbol;
  int (*function)(const char*);
  void* found = weir_find(&symbol, "weir_timeline_start");
  if (found == NULL) return 0;
  memcpy(&function, &found, sizeof function);
  return function(file);
}

static inline void weir_timeline_stop(void) {
  static void* symbol;
  void (*function)(void);
  void* found = weir_find(&symbol, "weir_timeline_stop");
  if (found == NULL) return;
  memcpy(&function, &found, sizeof function);
  function();
}

#undef WEIR_WHERE
#endif /* WEIR_LINKED */

#undef WEIR_FUNCTION

#ifdef __cplusplus
}
#endif

#endif /* WEIR_H */
