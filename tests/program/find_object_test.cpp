#include "tools/program/find_object.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#ifdef DLFO_STRUCT_HAS_EH_DBASE

namespace weir::testing {
namespace {

using FindObject = int (*)(void*, dl_find_object*);

/// The C library's own; this program's name for it leads to ours.
FindObject the_c_library_s() {
  return reinterpret_cast<FindObject>(dlvsym(RTLD_DEFAULT, "_dl_find_object", "GLIBC_2.35"));
}

TEST(FindObject, TheWalkFindsWhatTheCLibraryFinds) {
  const FindObject theirs = the_c_library_s();
  if (theirs == nullptr) GTEST_SKIP() << "this C library has no _dl_find_object";
  const std::array<void*, 4> addresses = {
      reinterpret_cast<void*>(&walk_objects),
      reinterpret_cast<void*>(&std::abort),  // the C library
      dlsym(RTLD_DEFAULT, "__cxa_throw"),    // the C++ library
      const_cast<char*>(::testing::UnitTest::GetInstance()->original_working_dir()),  // no object
  };
  int found = 0;
  for (void* const address : addresses) {
    dl_find_object walked{};
    dl_find_object looked_up{};
    const int result = walk_objects(address, walked);
    ASSERT_EQ(result, theirs(address, &looked_up));
    if (result != 0) continue;
    ++found;
    EXPECT_EQ(walked.dlfo_eh_frame, looked_up.dlfo_eh_frame);
    EXPECT_LE(looked_up.dlfo_map_start, walked.dlfo_map_start);
    EXPECT_LT(walked.dlfo_map_start, walked.dlfo_map_end);
  }
  EXPECT_EQ(found, 3);
}

}  // namespace
}  // namespace weir::testing

#endif
