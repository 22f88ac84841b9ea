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
#define WEIR_API_VERSION 4

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
  /* since version 4 */
  uint64_t allocated_peak;  ///< since CUDA was first used or weir_reset_peaks
  uint64_t reserved_peak;   ///< the same
} weir_memory;

/// Who has a block.
enum weir_block_state {
  WEIR_ALLOCATED = 1,  ///< handed out
  WEIR_AWAITING = 2,   ///< freed, with the device not known to be done
  WEIR_CACHED = 3      ///< free, kept for reuse
};

/// A block of a pool, or a free piece of one. The blocks of a segment follow each other without a
/// gap and sum to its size.
typedef struct weir_block {
  uint64_t segment;       ///< address of its segment, memory that the driver maps as one
  uint64_t segment_size;  ///< in bytes
  uint64_t address;
  uint64_t size;       ///< in bytes
  uint64_t requested;  ///< bytes asked for; 0 unless it is allocated
  uint64_t stream;     ///< CUstream that allocated it, now or last; 0: a default stream, or gone
  uint32_t state;      ///< a weir_block_state
  uint32_t unused;     ///< 0
} weir_block;

/// How another process can reach a block's memory.
typedef struct weir_shared {
  size_t size;     ///< set to sizeof(weir_shared) before the call: the struct may grow
  uint64_t base;   ///< where the shared memory begins, at the block or before it
  uint64_t bytes;  ///< of the shared memory, which may include other blocks
  uint64_t page;   ///< size of its pages, each of which has a file descriptor; 0: `handle` is for all
  unsigned char handle[64];  ///< a CUipcMemHandle or cudaIpcMemHandle_t of the memory at `base`
} weir_shared;

/// Returns WEIR_API_VERSION of the swapped-in library; 0 if there is none.
WEIR_FUNCTION int weir_api_version(void);

/// Begins a batch of the calling thread on its current device, which is device 0 until it chooses
/// one. May hold the thread back until memory of earlier batches is free, for at most WEIR_MAX_WAIT.
/// `kind` names batches that need about the same memory; null is "". Inside an open batch of the same
/// thread it joins that one. Returns 1 if a batch began or was joined; 0 if it was skipped, CUDA was
/// not used on the device yet, or without the library. Call weir_batch_end once for it on the same
/// thread, whatever this returned.
WEIR_FUNCTION int weir_batch_begin(const char* kind);

/// Ends what this thread's last weir_batch_begin began. Does not wait for the device. Does nothing
/// if no batch is open, that one was skipped, or without the library.
WEIR_FUNCTION void weir_batch_end(void);

/// Fills `out`, sets out->size to the filled bytes, and returns 1. Of a later version's struct, and
/// of an earlier one's, fills what both know. Returns 0 and leaves `out` unchanged if there is no
/// such device, CUDA was not used on it yet, `out` is null, its size is below that of version 1, or
/// without the library.
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

/// Limits the device's budget to a share of its total, from 0 to 1 (what PyTorch calls a memory
/// fraction; below 1 MiB, to that). It counts beside WEIR_BUDGET, weir_set_budget and `weir set`:
/// the lowest holds, and 1 lifts this one. Memory above it goes back as weir_set_budget says.
/// Returns 1 if set. Returns 0 and changes nothing if it is out of range, the budget is a part of a
/// shared one (WEIR_SHARE), there is no such device, CUDA was not used yet, without the library, or
/// with a version before 4.
WEIR_FUNCTION int weir_set_fraction(int device, double fraction);

/// Resets the peaks of weir_memory to the current levels. Returns 1; 0 as weir_memory_info does, or
/// with a version before 4.
WEIR_FUNCTION int weir_reset_peaks(int device);

/// Allocates `bytes` of the device's memory for work on `stream`, a CUstream or cudaStream_t of its
/// primary context; null is the legacy default stream. Aligned to 512 bytes. The device's context
/// need not be current. May wait for memory that is being freed, for at most WEIR_MAX_WAIT. Returns
/// null if there is no memory, for 0 bytes, without the library, or with a version before 4.
WEIR_FUNCTION void* weir_allocate(int device, size_t bytes, void* stream);

/// Frees what weir_allocate returned, in the order of `stream`: work submitted to it so far may use
/// the memory, and so may work on streams of weir_record_use. Does nothing for null, and without
/// the library.
WEIR_FUNCTION void weir_free(int device, void* pointer, void* stream);

/// Records that work on `stream` uses the memory too, so that its free waits for that work. Does
/// nothing if no pool has allocated it, and without the library.
WEIR_FUNCTION void weir_record_use(void* pointer, void* stream);

/// Lets weir_share share memory that the library takes from the driver from now on. Call it before
/// CUDA is used. Does nothing without the library.
WEIR_FUNCTION void weir_allow_sharing(void);

/// Says how another process can reach the block that weir_allocate returned: fills `out`, and up to
/// `count` of `files` if the memory has pages, one file descriptor for each: the other process maps
/// them with cuMemImportFromShareableHandle one after the other. They are the library's, and stay
/// open and valid while the block is allocated. `files` may be null if `count` is 0. Returns 1.
/// Returns 0 if the block cannot be shared, it is none, `out` is null or its size below that of
/// version 4, without the library, or with a version before 4. Neighbours of the block in `bytes`
/// are shared too, as with CUDA itself.
WEIR_FUNCTION int weir_share(void* pointer, weir_shared* out, int* files, size_t count);

/// Lists the memory of the device's pools, ascending by address, as of one moment for each pool:
/// fills up to `count` structs of `block_size` bytes, which is sizeof(weir_block), and returns how
/// many blocks there are. If that is more than `count`, the list was cut: call again with more.
/// `blocks` may be null if `count` is 0. Memory that is on its way to or from the driver, or to
/// another address, is in no block. Returns 0 as weir_memory_info does, if `block_size` is below
/// that of version 4, if host memory is short, or with a version before 4.
WEIR_FUNCTION size_t weir_blocks(int device, weir_block* blocks, size_t count, size_t block_size);

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

static inline int weir_set_fraction(int device, double fraction) {
  static void* symbol;
  int (*function)(int, double);
  void* found = weir_find(&symbol, "weir_set_fraction");
  if (found == NULL) return 0;
  memcpy(&function, &found, sizeof function);
  return function(device, fraction);
}

static inline int weir_reset_peaks(int device) {
  static void* symbol;
  int (*function)(int);
  void* found = weir_find(&symbol, "weir_reset_peaks");
  if (found == NULL) return 0;
  memcpy(&function, &found, sizeof function);
  return function(device);
}

static inline void* weir_allocate(int device, size_t bytes, void* stream) {
  static void* symbol;
  void* (*function)(int, size_t, void*);
  void* found = weir_find(&symbol, "weir_allocate");
  if (found == NULL) return NULL;
  memcpy(&function, &found, sizeof function);
  return function(device, bytes, stream);
}

static inline void weir_free(int device, void* pointer, void* stream) {
  static void* symbol;
  void (*function)(int, void*, void*);
  void* found = weir_find(&symbol, "weir_free");
  if (found == NULL) return;
  memcpy(&function, &found, sizeof function);
  function(device, pointer, stream);
}

static inline void weir_record_use(void* pointer, void* stream) {
  static void* symbol;
  void (*function)(void*, void*);
  void* found = weir_find(&symbol, "weir_record_use");
  if (found == NULL) return;
  memcpy(&function, &found, sizeof function);
  function(pointer, stream);
}

static inline void weir_allow_sharing(void) {
  static void* symbol;
  void (*function)(void);
  void* found = weir_find(&symbol, "weir_allow_sharing");
  if (found == NULL) return;
  memcpy(&function, &found, sizeof function);
  function();
}

static inline int weir_share(void* pointer, weir_shared* out, int* files, size_t count) {
  static void* symbol;
  int (*function)(void*, weir_shared*, int*, size_t);
  void* found = weir_find(&symbol, "weir_share");
  if (found == NULL) return 0;
  memcpy(&function, &found, sizeof function);
  return function(pointer, out, files, count);
}

static inline size_t weir_blocks(int device, weir_block* blocks, size_t count, size_t block_size) {
  static void* symbol;
  size_t (*function)(int, weir_block*, size_t, size_t);
  void* found = weir_find(&symbol, "weir_blocks");
  if (found == NULL) return 0;
  memcpy(&function, &found, sizeof function);
  return function(device, blocks, count, block_size);
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
