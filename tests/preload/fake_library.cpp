// Preloaded in place of libweir.so. It does nothing.

// NOLINTNEXTLINE(misc-definitions-in-headers, readability-identifier-naming)
extern "C" int weir_fake_library() { return 0; }
