#ifndef WEIR_H
#define WEIR_H

/// @file
/// What a program can tell Weir, and ask of it, once libweir.so is swapped in (docs/c-api.md).
///
/// A program that includes this links against nothing of Weir's. Each function here is a small one
/// of the program's own: it looks for the library's function of the same name, once, and does
/// nothing where the library is not preloaded; what it then returns is said at each. The name is
/// the same on purpose: one name for C, C++, dlsym and ctypes. Both cannot be had in one source
/// file, so define WEIR_LINKED before this for plain declarations, where the library is linked.
///
/// C99 or later, C++98 or later, GCC or Clang, Linux. A C library older than glibc 2.34 needs -ldl.
///
/// Every function may be called by any thread at any time, before CUDA is used too. None throws,
/// none sets errno to tell something, and none keeps a pointer that it was given.

#include <stddef.h>
#include <stdint.h>

#ifndef WEIR_LINKED
#include <dlfcn.h>
#include <string.h>
#endif

/// The version of this interface. Functions are added to it and none is changed or taken away.
#define WEIR_API_VERSION 3

#ifdef __cplusplus
extern "C" {
#endif

#ifdef WEIR_LINKED
#define WEIR_FUNCTION extern __attribute__((visibility("default")))
#else
#define WEIR_FUNCTION static inline
#endif

/// A device's memory, all of it in bytes. allocated + awaiting + cached is reserved.
typedef struct weir_memory {
  size_t size;         ///< set it to sizeof(weir_memory) before the call: the struct may grow
  uint64_t total;      ///< of the device
  uint64_t budget;     ///< of it, the program's
  uint64_t allocated;  ///< handed out by the pool
  uint64_t awaiting;   ///< freed, and the device is not known to be done with it
  uint64_t cached;     ///< free, kept
  uint64_t reserved;   ///< obtained from the driver
  uint64_t passed;     ///< served by the driver itself and counted against the budget
} weir_memory;

/// WEIR_API_VERSION of the library that is swapped in; 0 where there is none.
WEIR_FUNCTION int weir_api_version(void);

/// Begins a batch of the calling thread on its current device, and may hold the thread back until
/// memory of earlier batches is free: a bounded time, WEIR_MAX_WAIT. `kind` names batches that need
/// about the same memory; null is as "". Inside an open batch of the same thread it joins that one.
/// 1 where it began or joined; 0 where it was passed over, and without the library.
/// Call weir_batch_end once for it on the same thread, whatever this returned.
WEIR_FUNCTION int weir_batch_begin(const char* kind);

/// Ends what the last weir_batch_begin of this thread began. It does not wait for the device.
/// Nothing happens where no batch is open, where that one was passed over, or without the library.
WEIR_FUNCTION void weir_batch_end(void);

/// Fills `out`, and sets out->size to the bytes of it that were filled. 1 when done. 0, and `out`
/// as it was, where there is no such device or CUDA was not used on it yet, where `out` is null or
/// its size is less than that of version 1, and without the library.
WEIR_FUNCTION int weir_memory_info(int device, weir_memory* out);

/// Gives cached memory that the device is done with back to the driver; -1 stands for every device.
/// How many bytes: 0 where there is no such device, and without the library.
WEIR_FUNCTION uint64_t weir_trim(int device);

/// Gives the device another budget: from 1 MiB to what it has. -1 stands for every device that CUDA
/// was used on. Cached memory above it goes back to the driver at once, memory that is handed out
/// as it is freed; until then more than the budget is reserved, and nothing is taken beside it. 1
/// when done; 0, and nothing changed, where that is not a budget for it, where there is no such
/// device or CUDA was not used yet, without the library, or with one before version 3.
WEIR_FUNCTION int weir_set_budget(int device, uint64_t bytes);

/// Writes the settings in force into `text`, at most `size` bytes with the closing zero: a line
/// `name=value (source)` for each. The length of all of it without the zero, as snprintf's:
/// what was written is cut short where that is not less than `size`. `text` may be null when `size`
/// is 0. 0 and an empty text before CUDA is used and without the library.
WEIR_FUNCTION size_t weir_settings(char* text, size_t size);

/// Records a timeline from here on. `file` names it as WEIR_TIMELINE does; null goes on with the
/// recording that is there already, by that variable or an earlier call: one process has one file,
/// and another name than its own is refused. 1 when it records now; 0, with a line on standard error
/// that says why, where it does not. 0 without the library, or with one of version 1.
WEIR_FUNCTION int weir_timeline_start(const char* file);

/// Stops recording until the next start. What was recorded is in the file when this returns.
/// Nothing happens where nothing is recorded, and without the library.
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
