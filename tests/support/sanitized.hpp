#pragma once

// Which sanitizer this build has, as 1 or 0. Code is then slower and needs far more address space.
// GCC says it by a macro, clang by __has_feature.

#if defined(__has_feature)
#define WEIR_TEST_HAS(sanitizer) __has_feature(sanitizer)
#else
#define WEIR_TEST_HAS(sanitizer) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || WEIR_TEST_HAS(address_sanitizer)
#define WEIR_TEST_ADDRESS_SANITIZED 1
#else
#define WEIR_TEST_ADDRESS_SANITIZED 0
#endif

#if defined(__SANITIZE_THREAD__) || WEIR_TEST_HAS(thread_sanitizer)
#define WEIR_TEST_THREAD_SANITIZED 1
#else
#define WEIR_TEST_THREAD_SANITIZED 0
#endif

#define WEIR_TEST_SANITIZED (WEIR_TEST_ADDRESS_SANITIZED | WEIR_TEST_THREAD_SANITIZED)
