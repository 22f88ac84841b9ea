/* A program that never uses CUDA: threads, a child, look-ups of its own. */

#define _GNU_SOURCE  // NOLINT(readability-identifier-naming): the name is the C library's
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void* look_up(void* unused) {
  (void)unused;
  int i;
  for (i = 0; i < 1000; ++i) {
    if (dlsym(RTLD_DEFAULT, "strlen") == NULL || dlsym(RTLD_NEXT, "puts") == NULL) return NULL;
  }
  return &look_up;
}

static int threads_are_well(void) {
  pthread_t threads[4];
  int i;
  int good = 1;
  for (i = 0; i < 4; ++i) {
    if (pthread_create(&threads[i], NULL, look_up, NULL) != 0) return 0;
  }
  for (i = 0; i < 4; ++i) {
    void* result = NULL;
    good = pthread_join(threads[i], &result) == 0 && result != NULL && good;
  }
  return good;
}

/* What a failed look-up says is the loader's own message. */
static int failures_are_told(void) {
  const char* message = NULL;
  (void)dlerror();
  if (dlsym(RTLD_DEFAULT, "cuNothingOfTheKind") != NULL) return 0;
  message = dlerror();
  return message != NULL && strstr(message, "cuNothingOfTheKind") != NULL && dlerror() == NULL;
}

/* Weir has no settings in force, where it is there at all. */
static int nothing_is_set_up(void) {
  void* const found = dlsym(RTLD_DEFAULT, "weir_settings");
  size_t (*settings)(char*, size_t) = NULL;
  if (found == NULL) return 1;
  memcpy(&settings, &found, sizeof settings);
  return settings(NULL, 0) == 0;
}

int main(void) {
  int status = 0;
  pid_t child = 0;
  if (!threads_are_well() || !failures_are_told() || !nothing_is_set_up()) return 1;
  child = fork();
  if (child == 0) exit(threads_are_well() ? 0 : 1);
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 1;
  return nothing_is_set_up() ? 0 : 1;
}
