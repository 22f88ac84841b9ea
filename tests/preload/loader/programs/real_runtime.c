// Loads the toolkit's own runtime and makes one call: the runtime then looks up every driver
// function that it ever calls. The result of the call does not matter.

#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** arguments) {
  void* const runtime = count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
  int (*call)(int*) = NULL;
  int devices = 0;
  if (runtime != NULL) *(void**)&call = dlsym(runtime, "cudaGetDeviceCount");
  if (call == NULL) {
    printf("not so: there is a runtime\n");
    return 1;
  }
  printf("cudaGetDeviceCount returns %d\n", call(&devices));
  return 0;
}
