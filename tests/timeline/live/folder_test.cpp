#include "tools/timeline/live/folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "allocator/base/error.hpp"
#include "live_support.hpp"
#include "support/environment.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::ElementsAre;
using weir::testing::environment_of;

std::vector<std::string> paths_of(const std::vector<LiveFolder>& folders) {
  std::vector<std::string> paths;
  for (const LiveFolder& folder : folders) paths.push_back(folder.path);
  return paths;
}

TEST(LiveFolder, PublishingIsOnUnlessTurnedOff) {
  EXPECT_TRUE(publish_setting(environment_of({})).value.on);
  EXPECT_TRUE(publish_setting(environment_of({{"WEIR_PUBLISH", ""}})).value.on);
  EXPECT_TRUE(publish_setting(environment_of({{"WEIR_PUBLISH", "1"}})).value.on);
  EXPECT_FALSE(publish_setting(environment_of({{"WEIR_PUBLISH", "0"}})).value.on);
  EXPECT_EQ(publish_setting(environment_of({{"WEIR_PUBLISH", "/a"}})).value.folder, "/a");
}

TEST(LiveFolder, ABadSettingIsRefusedWithWhatIsAllowed) {
  for (const char* bad : {"no", "2", "a/folder", " 0"}) {
    EXPECT_THROW((void)publish_setting(environment_of({{"WEIR_PUBLISH", bad}})), UsageError) << bad;
  }
}

TEST(LiveFolder, TheRuntimeFolderComesBeforeSharedMemory) {
  EXPECT_THAT(paths_of(live_folders({}, environment_of({{"XDG_RUNTIME_DIR", "/run/x"}}), 7)),
              ElementsAre("/run/x/weir", "/run/user/7/weir", "/dev/shm/weir-7"));
  EXPECT_THAT(paths_of(live_folders({}, environment_of({{"XDG_RUNTIME_DIR", "/run/user/7"}}), 7)),
              ElementsAre("/run/user/7/weir", "/dev/shm/weir-7"));
  EXPECT_THAT(paths_of(live_folders({}, environment_of({{"XDG_RUNTIME_DIR", "not/absolute"}}), 7)),
              ElementsAre("/run/user/7/weir", "/dev/shm/weir-7"));
  EXPECT_THAT(paths_of(live_folders({.on = true, .folder = "/mine"},
                                    environment_of({{"XDG_RUNTIME_DIR", "/run/x"}}), 7)),
              ElementsAre("/mine"));
}

TEST(LiveFolder, IsMadeForItsUserAlone) {
  const Place place;
  const LiveFolder folder{place.path() + "/weir", place.path()};
  ASSERT_TRUE(open_own(folder).is_open());
  ASSERT_TRUE(open_own(folder).is_open()) << "the second time too";
  struct stat found {};
  ASSERT_EQ(stat(folder.path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0700U);
}

TEST(LiveFolder, ThatOthersCanOpenIsNotUsed) {
  const Place place;
  ASSERT_EQ(chmod(place.path().c_str(), 0755), 0);
  EXPECT_FALSE(open_own({place.path(), {}}).is_open());
}

TEST(LiveFolder, ThatIsALinkIsNotUsed) {
  const Place place;
  const std::string link = place.path() + "/link";
  ASSERT_EQ(symlink(place.path().c_str(), link.c_str()), 0);
  EXPECT_FALSE(open_own({link, {}}).is_open());
  EXPECT_FALSE(open_to_read({link, {}}).is_open());
}

TEST(LiveFolder, ThatIsAFileIsNotUsed) {
  const Place place;
  const std::string path = place.path() + "/file";
  std::ofstream(path) << "text";
  EXPECT_FALSE(open_own({path, {}}).is_open());
}

TEST(LiveFolder, BelowAnotherUsersFolderIsNotUsed) {
  const Place place;
  const std::string inside = place.path() + "/weir";
  if (geteuid() != 0) {
    EXPECT_FALSE(open_own({inside, "/proc/1"}).is_open());
    return;
  }
  const std::string others = place.path() + "/others";
  ASSERT_EQ(mkdir(others.c_str(), 0777), 0);
  ASSERT_EQ(chown(others.c_str(), 12345, 12345), 0);
  EXPECT_FALSE(open_own({others + "/weir", others}).is_open());
  EXPECT_FALSE(open_own({others, {}}).is_open()) << "nor itself";
}

}  // namespace
}  // namespace weir::timeline::testing
