/* A library that stands in front of functions and asks for the next ones, as wrappers of malloc and
   tracers of CUDA do. */

#define _GNU_SOURCE  // NOLINT(readability-identifier-naming): the name is the C library's
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int allocations = 0;

int cuMemAlloc_v2(unsigned long long* pointer, size_t bytes) {
  typedef int (*Alloc)(unsigned long long*, size_t);
  static Alloc next = NULL;
  if (next == NULL) {
    void* found = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
    Alloc mine = &cuMemAlloc_v2;
    if (found == NULL || memcmp(&found, &mine, sizeof mine) == 0) _exit(3);
    memcpy(&next, &found, sizeof next);
  }
  ++allocations;
  return next(pointer, bytes);
}

/* Weir's summary asks for it. */
pid_t getpid(void) {
  typedef pid_t (*Getpid)(void);
  static Getpid next = NULL;
  if (next == NULL) {
    void* found = dlsym(RTLD_NEXT, "getpid");
    Getpid mine = &getpid;
    if (found == NULL || memcmp(&found, &mine, sizeof mine) == 0) _exit(3);
    memcpy(&next, &found, sizeof next);
  }
  return next();
}

__attribute__((destructor)) static void say(void) {
  fprintf(stderr, "other: %d calls of cuMemAlloc\n", allocations);
}
