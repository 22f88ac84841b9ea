// A plug for PyTorch 2.15 that only says that it was asked. WEIR_FAKE_REASON is its reason not to
// install itself. With LOADER_NEEDS it needs a function that no PyTorch has.

#include <cstddef>
#include <cstdio>
#include <cstdlib>

#ifdef LOADER_NEEDS
extern "C" void loader_of_no_pytorch();
#endif

extern "C" __attribute__((visibility("default"))) const char* weir_torch_version() {
  return "2.15";
}

extern "C" __attribute__((visibility("default"))) int weir_torch_install(char* text,
                                                                         std::size_t size) {
#ifdef LOADER_NEEDS
  loader_of_no_pytorch();
#endif
  const char* const reason = std::getenv("WEIR_FAKE_REASON");
  std::printf("plug\n");
  if (reason == nullptr) return 1;
  (void)std::snprintf(text, size, "%s", reason);
  return 0;
}
