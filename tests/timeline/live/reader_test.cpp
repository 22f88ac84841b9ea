// Files that no process of ours wrote.

#include "tools/timeline/live/reader.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <bit>
#include <cstring>
#include <random>

#include "live_support.hpp"
#include "support/random_seed.hpp"
#include "tools/timeline/live/process.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

using Bytes = std::array<char, sizeof(LiveBlock)>;

/// As this process might publish it.
LiveBlock good_block() {
  LiveBlock block{.magic = kLiveMagic,
                  .version = kLiveVersion,
                  .size = sizeof(LiveBlock),
                  .pid = static_cast<std::uint32_t>(getpid()),
                  .pid_namespace = pid_namespace()};
  block.started = find_process(block.pid).value().started;
  block.count = 3;
  for (std::uint64_t i = 0; i < block.count; ++i) block.samples[i] = numbered(i);
  return block;
}

/// A file in the folder, locked as a running process has it.
class Forged {
 public:
  Forged(const Place& place, const void* bytes, std::size_t size,
         const std::string& name = "1-2.live")
      : descriptor_(open((place.path() + "/" + name).c_str(),
                         O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
    EXPECT_EQ(write(descriptor_, bytes, size), static_cast<ssize_t>(size));
    EXPECT_EQ(flock(descriptor_, LOCK_EX), 0);
  }
  explicit Forged(const Place& place, const LiveBlock& block)
      : Forged(place, &block, sizeof block) {}
  ~Forged() { close(descriptor_); }
  Forged(const Forged&) = delete;
  Forged& operator=(const Forged&) = delete;

  void unlock() const { flock(descriptor_, LOCK_UN); }

 private:
  const int descriptor_;
};

/// What is said of the files that were not believed.
std::vector<std::string> faults_of(const LiveSurvey& survey) {
  std::vector<std::string> faults;
  for (const LiveFault& fault : survey.faults) faults.push_back(fault.what);
  return faults;
}

TEST(LiveReader, OfNoFolderFindsNothing) {
  const std::vector<LiveFolder> none{{"/proc/none", {}}, {"/dev/null", {}}};
  EXPECT_THAT(read_live(none).programs, IsEmpty());
}

TEST(LiveReader, FindsAGoodBlock) {
  const Place place;
  const Forged file(place, good_block());
  ASSERT_THAT(place.survey().programs, SizeIs(1));
  EXPECT_THAT(place.survey().programs.front().samples, SizeIs(3));
}

TEST(LiveReader, CountsABlockOfAnotherVersion) {
  const Place place;
  LiveBlock block = good_block();
  block.version = kLiveVersion + 1;
  const Forged file(place, block);
  EXPECT_THAT(place.survey().programs, IsEmpty());
  EXPECT_EQ(place.survey().unreadable, 1U);
}

TEST(LiveReader, PassesOverWhatIsNoBlock) {
  const Place place;
  LiveBlock block = good_block();
  block.magic[0] = 'W';
  const Forged file(place, block);
  EXPECT_THAT(place.survey().programs, IsEmpty());
  EXPECT_EQ(place.survey().unreadable, 0U);
  EXPECT_THAT(faults_of(place.survey()), ElementsAre("is no block"));
  file.unlock();
  EXPECT_THAT(place.survey().faults, IsEmpty()) << "nobody runs with it";
  place.remove_ended();
  EXPECT_EQ(place.files(), 1U) << "and leaves it to whoever made it";
}

TEST(LiveReader, PassesOverAFileThatIsCutAnywhere) {
  const LiveBlock block = good_block();
  for (std::size_t size = 0; size < sizeof(LiveBlock); size += size < 1024 ? 61 : 1013) {
    const Place place;
    const Forged file(place, &block, size);
    EXPECT_THAT(place.survey().programs, IsEmpty()) << size;
    EXPECT_THAT(faults_of(place.survey()), ElementsAre(HasSubstr("is cut"))) << size;
  }
}

TEST(LiveReader, DoesNotBelieveANumberOfAnotherProcess) {
  const Place place;
  LiveBlock block = good_block();
  block.pid = 1;  // ours did not start when that one did
  const Forged file(place, block);
  EXPECT_THAT(place.survey().programs, IsEmpty());
  EXPECT_THAT(faults_of(place.survey()), ElementsAre(HasSubstr("names another process")));
}

TEST(LiveReader, TellsANumberThatCameBackByItsStart) {
  const Place place;
  LiveBlock block = good_block();
  --block.started;
  const Forged file(place, block);
  EXPECT_THAT(place.survey().programs, IsEmpty());
}

TEST(LiveReader, BelievesAnotherPidNamespaceAsLongAsItIsLocked) {
  const Place place;
  LiveBlock block = good_block();
  block.pid_namespace += 1;
  block.pid = 1;
  const Forged file(place, block);
  EXPECT_THAT(place.survey().programs, SizeIs(1));
  file.unlock();
  EXPECT_THAT(place.survey().programs, IsEmpty());
}

TEST(LiveReader, PassesOverLinksPipesAndFolders) {
  const Place place;
  const Place elsewhere;
  const Forged file(elsewhere, good_block());
  ASSERT_EQ(symlink((elsewhere.path() + "/1-2.live").c_str(), (place.path() + "/1-3.live").c_str()),
            0);
  ASSERT_EQ(mkfifo((place.path() + "/1-4.live").c_str(), 0600), 0);
  ASSERT_EQ(mkdir((place.path() + "/1-5.live").c_str(), 0700), 0);
  EXPECT_THAT(place.survey().programs, IsEmpty());
  EXPECT_THAT(faults_of(place.survey()),
              UnorderedElementsAre("is a link", "is no file", "is no file"));
  place.remove_ended();
  EXPECT_EQ(place.files(), 3U);
}

TEST(LiveReader, PassesOverAFileThatIsLongerThanItWasMade) {
  const Place place;
  std::array<char, sizeof(LiveBlock) + 1> bytes{};
  const LiveBlock block = good_block();
  std::memcpy(bytes.data(), &block, sizeof block);
  const Forged file(place, bytes.data(), bytes.size());
  EXPECT_THAT(place.survey().programs, IsEmpty());
  EXPECT_THAT(faults_of(place.survey()), ElementsAre(HasSubstr("longer")));
}

TEST(LiveReader, PassesOverAFileThatOthersMayOpen) {
  for (const mode_t mode : {0640U, 0604U, 0700U, 0660U, 04600U}) {
    const Place place;
    const Forged file(place, good_block());
    ASSERT_EQ(chmod((place.path() + "/1-2.live").c_str(), mode), 0);
    EXPECT_THAT(place.survey().programs, IsEmpty()) << mode;
    EXPECT_THAT(faults_of(place.survey()), ElementsAre("is open to others")) << mode;
  }
}

TEST(LiveReader, PassesOverAFileOfTwoNames) {
  const Place place;
  const Forged file(place, good_block());
  const std::string name = place.path() + "/1-2.live";
  ASSERT_EQ(link(name.c_str(), (place.path() + "/1-3.live").c_str()), 0);
  EXPECT_THAT(place.survey().programs, IsEmpty());
  EXPECT_THAT(faults_of(place.survey()),
              ElementsAre("has another name as well", "has another name as well"));
}

TEST(LiveReader, PassesOverAnotherUsersFile) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const Place place;
  const Forged file(place, good_block());
  ASSERT_EQ(chown((place.path() + "/1-2.live").c_str(), 65534, 65534), 0);
  EXPECT_THAT(place.survey().programs, IsEmpty());
  EXPECT_THAT(faults_of(place.survey()), ElementsAre("is not of the folder's owner"));
}

TEST(LiveReader, OfAnotherUsersFolderReadsNothingButForRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Place place;
  const Forged file(place, good_block());
  ASSERT_EQ(chmod(place.path().c_str(), 0755), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(65534) != 0) _exit(3);
    const LiveSurvey survey = place.survey();
    const bool told = survey.faults.size() == 1 && survey.faults[0].path == place.path();
    _exit(survey.programs.empty() && told ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(LiveReader, PassesOverOtherNames) {
  const Place place;
  const LiveBlock block = good_block();
  const Forged first(place, &block, sizeof block, "notes.live");
  const Forged second(place, &block, sizeof block, "1-2");
  const Forged third(place, &block, sizeof block, ".live");
  EXPECT_THAT(place.survey().programs, IsEmpty());
}

TEST(LiveReader, TakesNoSamplesFromAnImpossibleCount) {
  for (const std::uint64_t count :
       {~std::uint64_t{0}, ~std::uint64_t{0} - 60, std::uint64_t{1} << 63U}) {
    const Place place;
    LiveBlock block = good_block();
    block.count = count;
    const Forged file(place, block);
    const LiveSurvey survey = place.survey();
    ASSERT_THAT(survey.programs, SizeIs(1));
    EXPECT_LE(survey.programs.front().samples.size(), kLiveHistory);
  }
}

TEST(LiveReader, TimesOfSamplesAscend) {
  const Place place;
  LiveBlock block = good_block();
  block.samples[1].time_ns = 1;  // before the first
  const Forged file(place, block);
  const auto samples = place.survey().programs.at(0).samples;
  ASSERT_THAT(samples, SizeIs(2));
  EXPECT_LT(samples[0].time_ns, samples[1].time_ns);
}

TEST(LiveReader, ReadsTextsWithoutAnEndUpToTheirRoom) {
  const Place place;
  LiveBlock block = good_block();
  block.program.fill('p');
  block.device_count = 1000;
  for (auto& device : block.devices) device.fill('d');
  const Forged file(place, block);
  const LiveProgram program = place.survey().programs.at(0);
  EXPECT_EQ(program.program, std::string(block.program.size(), 'p'));
  ASSERT_THAT(program.devices, SizeIs(kLiveDevices));
  EXPECT_EQ(program.devices.back(), std::string(64, 'd'));
}

TEST(LiveReader, SurvivesAnyBytes) {
  const std::uint64_t seed = weir::testing::random_seed();
  SCOPED_TRACE(weir::testing::seed_message(seed));
  std::mt19937_64 random(seed);
  const Place place;
  for (int round = 0; round < 300; ++round) {
    auto bytes = std::bit_cast<Bytes>(good_block());
    const std::size_t first =
        round % 3 == 0 ? 0 : kLiveMagic.size() + 8;  // mostly behind the version
    const auto changes = 1 + random() % 64;
    for (std::uint64_t i = 0; i < changes; ++i) {
      const std::size_t area = random() % 2 == 0 ? 1300 : bytes.size();  // mostly the head
      bytes[first + random() % (area - first)] = static_cast<char>(random());
    }
    const Forged file(place, bytes.data(), bytes.size());
    const LiveSurvey survey = place.survey();
    ASSERT_EQ(survey.programs.size() + survey.unreadable + survey.faults.size(), 1U);
    for (const LiveProgram& program : survey.programs) {
      ASSERT_LE(program.device_figures.size(), kLiveDevices);
      ASSERT_LE(program.samples.size(), kLiveHistory);
      ASSERT_LE(program.devices.size(), kLiveDevices);
    }
  }
}

TEST(LiveReader, LooksAtABoundedNumberOfEntries) {
  const Place place;
  for (int i = 0; i < 4200; ++i) {
    const int file = creat((place.path() + "/" + std::to_string(i) + ".live").c_str(), 0600);
    ASSERT_GE(file, 0);
    close(file);
  }
  EXPECT_THAT(place.survey().programs, IsEmpty());
}

TEST(LiveProcess, KnowsThisOneAndNoneThatIsNot) {
  const auto self = find_process(static_cast<std::uint32_t>(getpid()));
  ASSERT_TRUE(self.has_value());
  EXPECT_EQ(self->uid, geteuid());
  EXPECT_GT(self->started, 0U);
  EXPECT_FALSE(find_process(0).has_value());
  EXPECT_FALSE(find_process(~0U).has_value());
  EXPECT_THAT(command_line(), ::testing::StartsWith("timeline_live_test"));
}

}  // namespace
}  // namespace weir::timeline::testing
