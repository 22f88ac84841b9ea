/* What weir.h's wrappers return, with the library (`swapped-in`) and without it (`alone`). Compiled
 * as C99 and as C++. */

#include "tools/preload/borders/weir.h"

#include <stdio.h>

static int failures = 0;

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "not so: %s\n", what);
  ++failures;
}
#define EXPECT(condition) expect(condition, #condition)

static void alone(void) {
  char text[8] = "as was";
  weir_memory memory;
  weir_block block;
  weir_shared shared;
  int anything = 0;
  memory.size = sizeof memory;
  memory.total = 7;
  EXPECT(weir_api_version() == 0);
  EXPECT(weir_batch_begin("train") == 0);
  weir_batch_end();
  EXPECT(weir_memory_info(0, &memory) == 0);
  EXPECT(memory.total == 7);
  EXPECT(weir_trim(-1) == 0);
  EXPECT(weir_set_budget(-1, UINT64_C(5) << 32) == 0);
  EXPECT(weir_set_fraction(0, 0.5) == 0);
  EXPECT(weir_reset_peaks(0) == 0);
  EXPECT(weir_allocate(0, 64, NULL) == NULL);
  weir_free(0, &anything, NULL);
  weir_record_use(&anything, NULL);
  EXPECT(weir_blocks(0, &block, 1, sizeof block) == 0);
  shared.size = sizeof shared;
  weir_allow_sharing();
  EXPECT(weir_share(&anything, &shared, NULL, 0) == 0);
  EXPECT(weir_settings(text, 0) == 0);
  EXPECT(text[0] == 'a');
  EXPECT(weir_settings(text, sizeof text) == 0);
  EXPECT(text[0] == '\0');
  EXPECT(weir_settings(NULL, 5) == 0);
  EXPECT(weir_timeline_start("run.json") == 0);
  weir_timeline_stop();
}

static void swapped_in(void) {
  char text[7];
  weir_memory memory;
  weir_block block;
  weir_shared shared;
  int files[2];
  int stream = 0;
  void* allocated;
  memory.size = sizeof memory;
  EXPECT(weir_api_version() == WEIR_API_VERSION);
  EXPECT(weir_batch_begin("train") == 1);
  weir_batch_end();
  EXPECT(weir_memory_info(3, &memory) == 1);
  EXPECT(memory.total == 800 && memory.passed == 50);
  EXPECT(weir_trim(-1) == UINT64_C(5) << 32);
  EXPECT(weir_set_budget(-1, UINT64_C(5) << 32) == 1);
  EXPECT(weir_set_fraction(1, 0.5) == 1);
  EXPECT(weir_reset_peaks(1) == 1);
  allocated = weir_allocate(1, 64, &stream);
  EXPECT(allocated != NULL);
  weir_record_use(allocated, NULL);
  weir_allow_sharing();
  shared.size = sizeof shared;
  EXPECT(weir_share(allocated, &shared, files, 2) == 1);
  EXPECT(shared.bytes == 6144 && shared.page == 2048 && files[0] == 11 && files[1] == 12);
  weir_free(1, allocated, NULL);
  EXPECT(weir_blocks(1, &block, 1, sizeof block) == 3);
  EXPECT(block.size == 512 && block.state == WEIR_ALLOCATED);
  EXPECT(weir_settings(text, sizeof text) > sizeof text);
  EXPECT(strcmp(text, "budget") == 0);
  EXPECT(weir_timeline_start(NULL) == 1);
  weir_timeline_stop();
}

int main(int count, char** arguments) {
  int round;
  if (count != 2) return 2;
  /* Twice: what is looked up is kept. */
  for (round = 0; round < 2; ++round) {
    if (strcmp(arguments[1], "alone") == 0) {
      alone();
    } else {
      swapped_in();
    }
  }
  return failures == 0 ? 0 : 1;
}
