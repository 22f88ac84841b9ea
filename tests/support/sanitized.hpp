#pragma once

// Whether this build has a sanitizer: 1 or 0. Code is then slower and needs far more address space.

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define WEIR_TEST_SANITIZED 1
#else
#define WEIR_TEST_SANITIZED 0
#endif
