/* What dlsym finds without a library, asked from here: which library it is of, or what dlerror
   says. Made into a program and into a library of its own. */

#define _GNU_SOURCE  // NOLINT(readability-identifier-naming): the name is the C library's
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void probe_one(const char* from, const char* how, void* where, const char* name) {
  Dl_info info;
  const char* file = "?";
  const char* message = NULL;
  void* found = NULL;
  /* An error that nobody has asked for, which the next look-up ends. */
  (void)dlsym(RTLD_DEFAULT, "loader_nothing_of_the_kind");
  found = dlsym(where, name);
  message = dlerror();
  if (found != NULL && dladdr(found, &info) != 0) {
    const char* const slash = strrchr(info.dli_fname, '/');
    file = slash != NULL ? slash + 1 : info.dli_fname;
  }
  printf("%s %s %s %s; dlerror: %s\n", from, how, name, found != NULL ? file : "nothing",
         message != NULL ? message : "nothing");
}

void loader_probe(const char* from, int count, char** names) {
  int i;
  for (i = 0; i < count; ++i) {
    probe_one(from, "default", RTLD_DEFAULT, names[i]);
    probe_one(from, "next", RTLD_NEXT, names[i]);
  }
}
