/* Probes for functions of the driver by their names, as programs do that would use what a newer
   driver has: probe_program nothing|local|global|plugin NAME... opens the driver so first, or a
   library that needs it. */

#define _GNU_SOURCE  // NOLINT(readability-identifier-naming): the name is the C library's
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void loader_probe(const char* from, int count, char** names);

int main(int count, char** arguments) {
  const char* const how = count > 2 ? arguments[1] : "";
  char** const names = arguments + 2;
  if (strcmp(how, "plugin") == 0) {
    void* const plugin = dlopen(getenv("LOADER_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
    void (*probe)(const char*, int, char**) = NULL;
    if (plugin != NULL) *(void**)&probe = dlsym(plugin, "loader_probe");
    if (probe == NULL) {
      printf("not so: there is a plugin\n");
      return 1;
    }
    probe("plugin", count - 2, names);
  } else if (strcmp(how, "nothing") != 0) {
    const int scope = strcmp(how, "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
    if (dlopen("libcuda.so.1", RTLD_NOW | scope) == NULL) {
      printf("not so: there is a driver\n");
      return 1;
    }
  }
  loader_probe("program", count - 2, names);
  return 0;
}
