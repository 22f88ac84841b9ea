// Files that no process of ours wrote. One long file, because every case changes one good file.

#include "tools/timeline/live/reader.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "live_support.hpp"
#include "support/random_seed.hpp"
#include "tools/timeline/live/folder.hpp"

namespace weir::timeline::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

using Bytes = std::array<char, sizeof(LiveBlock)>;

/// A block as this process might publish it.
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

/// A valid name for a file of this process.
std::string own_name(int number = 2) {
  return std::to_string(getpid()) + "-" + std::to_string(number) + ".live";
}

/// The messages about the files that were not trusted.
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

/// Expects that a good file to whose path `change` was done is passed over for this reason.
void expect_passed_over(const std::function<void(const char* path)>& change, const char* why) {
  const Place place;
  const Forged file(place, good_block());
  change((place.path() + "/" + own_name()).c_str());
  const LiveSurvey survey = place.survey();
  EXPECT_THAT(survey.programs, IsEmpty());
  EXPECT_THAT(faults_of(survey), ElementsAre(HasSubstr(why)));
}

TEST(LiveReader, PassesOverAFileThatIsShorterOrLonger) {
  const auto sized = [](std::size_t size) {
    SCOPED_TRACE(size);
    const auto cut = [&](const char* path) {
      EXPECT_EQ(truncate(path, static_cast<off_t>(size)), 0);
    };
    expect_passed_over(cut, "is shorter or longer");
  };
  for (std::size_t size = 0; size < sizeof(LiveBlock); size += size < 1024 ? 61 : 1013) sized(size);
  sized(sizeof(LiveBlock) + 1);
}

TEST(LiveReader, PassesOverAFileThatOthersMayOpenOrOwn) {
  for (const mode_t mode : {0640U, 0604U, 0700U, 0660U, 04600U}) {
    SCOPED_TRACE(mode);
    expect_passed_over([&](const char* path) { EXPECT_EQ(chmod(path, mode), 0); },
                       "is accessible to other users");
  }
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  expect_passed_over([](const char* path) { EXPECT_EQ(chown(path, 65534, 65534), 0); },
                     "does not belong to the folder's owner");
}

TEST(LiveReader, DoesNotBelieveANumberOfAnotherProcess) {
  const Place place;
  LiveBlock block = good_block();
  block.pid = 1;  // ours did not start when that one did
  const Forged file(place, &block, sizeof block, own_name());
  EXPECT_THAT(place.survey().programs, IsEmpty());
  EXPECT_THAT(faults_of(place.survey()),
              ElementsAre(HasSubstr("names a process that did not create it")));
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
  const Forged file(place, block);
  EXPECT_THAT(place.survey().programs, SizeIs(1));
  file.unlock();
  EXPECT_THAT(place.survey().programs, IsEmpty());
}

TEST(LiveReader, DoesNotBelieveAFileWithTheNameOfAnotherProcess) {
  const Place place;
  const LiveBlock block = good_block();
  const Forged file(place, &block, sizeof block, "1-2.live");
  const Forged longer(place, &block, sizeof block, std::to_string(getpid()) + "0-2.live");
  LiveBlock newer = block;
  newer.version = kLiveVersion + 1;
  const Forged other(place, &newer, sizeof newer, "1-3.live");
  const LiveSurvey survey = place.survey();
  EXPECT_THAT(survey.programs, IsEmpty());
  EXPECT_EQ(survey.unreadable, 0U);
  const std::string fault = "is locked by a process that it is not named after";
  EXPECT_THAT(faults_of(survey), ElementsAre(fault, fault, fault));
}

TEST(LiveReader, DoesNotBelieveACopyThatAnotherProcessMade) {
  const Place place;
  Forked program([&place](const Telling& tell) {
    BlockFile block(place.folders(), "original");
    block.append(numbered(0));
    tell.and_wait();
  });
  ASSERT_TRUE(program.told());
  const LiveSurvey alone = place.survey();
  ASSERT_THAT(alone.programs, SizeIs(1));
  LiveBlock copy = contents_of(place.path() + "/" + alone.programs[0].file);
  copy.program[0] = 'O';
  const Forged plain(place, copy);
  // As if it were in a container.
  copy.pid_namespace += 1;
  const Forged other(place, &copy, sizeof copy, std::to_string(copy.pid) + "-3.live");
  const LiveSurvey survey = place.survey();
  ASSERT_THAT(survey.programs, SizeIs(1));
  EXPECT_EQ(survey.programs[0].program, "original");
  EXPECT_EQ(survey.programs[0].file, alone.programs[0].file);
  const std::string fault = "is locked by a process that it is not named after";
  EXPECT_THAT(faults_of(survey), ElementsAre(fault, fault));
  // As a file of its own.
  const Forged own(place, &copy, sizeof copy, own_name());
  EXPECT_THAT(faults_of(place.survey()),
              UnorderedElementsAre(fault, fault, "has the name of another process's file"));
}

TEST(LiveReader, DoesNotBelieveFiguresThatNoProgramHas) {
  const auto faults = [](const std::function<void(LiveBlock & block)>& change) {
    const Place place;
    LiveBlock block = good_block();
    block.device_samples[2] = {
        .count = 2, .devices = {{{.device = 1}, {.device = 2, .total = 9, .budget = 9}}}};
    change(block);
    const Forged file(place, block);
    const LiveSurvey survey = place.survey();
    EXPECT_EQ(survey.programs.size() + survey.faults.size(), 1U);
    return faults_of(survey);
  };
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  const auto refused = ElementsAre("has impossible figures");
  EXPECT_THAT(faults([](LiveBlock& /*block*/) {}), IsEmpty());
  EXPECT_THAT(faults([](LiveBlock& block) { block.device_samples[2].devices[1].budget = 10; }),
              refused);
  EXPECT_THAT(faults([](LiveBlock& block) { block.device_samples[2].devices[1].device = 1; }),
              refused);
  EXPECT_THAT(faults([](LiveBlock& block) { block.device_samples[2].devices[1].device = kMost; }),
              refused);
  EXPECT_THAT(faults([](LiveBlock& block) { block.device_samples[2].count = kMost; }), refused);
  EXPECT_THAT(faults([](LiveBlock& block) { block.samples[1].budget = kMost; }), refused);
}

/// Enters a new pid namespace with its own /proc, as process number 1. Everything in it ends with
/// this process. Returns false if this user may not.
bool enter_container() {
  if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) return false;
  const pid_t first = fork();
  if (first != 0) {
    int status = 0;
    waitpid(first, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("proc", "/proc", "proc", 0, nullptr) == 0;
}

TEST(LiveReader, BelievesTheProgramsOfAContainerInsideAndOutside) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a container";
  if (run_forked([] { return enter_container() ? 0 : 1; }) != 0) {
    GTEST_SKIP() << "this root can make no container";
  }
  const Place place;
  Forked outside([&place](const Telling& tell) {
    const BlockFile block(place.folders(), "outside");
    tell.and_wait();
  });
  ASSERT_TRUE(outside.told());
  Forked inside([&place](const Telling& tell) {
    if (!enter_container()) return;
    const BlockFile block(place.folders(), "inside");
    const LiveSurvey survey = place.survey();
    if (survey.programs.size() == 2 && survey.faults.empty()) tell.and_wait();
  });
  ASSERT_TRUE(inside.told()) << "it sees both";
  const LiveSurvey survey = place.survey();
  ASSERT_THAT(survey.programs, SizeIs(2));
  EXPECT_EQ(survey.programs[0].pid, 1U) << "as it knows itself";
  EXPECT_THAT(survey.faults, IsEmpty());
}

TEST(LiveReader, PassesOverLinksPipesAndFolders) {
  const Place place;
  const Place elsewhere;
  const Forged file(elsewhere, good_block());
  ASSERT_EQ(
      symlink((elsewhere.path() + "/" + own_name()).c_str(), (place.path() + "/1-3.live").c_str()),
      0);
  ASSERT_EQ(mkfifo((place.path() + "/1-4.live").c_str(), 0600), 0);
  ASSERT_EQ(mkdir((place.path() + "/1-5.live").c_str(), 0700), 0);
  EXPECT_THAT(place.survey().programs, IsEmpty());
  EXPECT_THAT(faults_of(place.survey()),
              UnorderedElementsAre("is a link", "is no file", "is no file"));
  place.remove_ended();
  EXPECT_EQ(place.files(), 3U);
}

TEST(LiveReader, PassesOverAFileOfTwoNames) {
  const Place place;
  const Forged file(place, good_block());
  const std::string name = place.path() + "/" + own_name();
  ASSERT_EQ(link(name.c_str(), (place.path() + "/" + own_name(3)).c_str()), 0);
  EXPECT_THAT(place.survey().programs, IsEmpty());
  EXPECT_THAT(faults_of(place.survey()), ElementsAre("has a second name", "has a second name"));
}

TEST(LiveReader, OfAnotherUsersFolderReadsNothingButForRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Place place;
  const Forged file(place, good_block());
  ASSERT_EQ(chmod(place.path().c_str(), 0755), 0);
  const auto read_as_another = [&] {
    if (setuid(65534) != 0) return 3;
    const LiveSurvey survey = place.survey();
    const bool told = survey.faults.size() == 1 && survey.faults[0].path == place.path();
    return survey.programs.empty() && told ? 0 : 1;
  };
  EXPECT_EQ(run_forked(read_as_another), 0);
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
    const Forged file(place, bytes.data(), bytes.size(), own_name());
    const LiveSurvey survey = place.survey();
    ASSERT_EQ(survey.programs.size() + survey.unreadable + survey.faults.size(), 1U);
    for (const LiveProgram& program : survey.programs) {
      ASSERT_LE(program.device_figures.size(), kLiveDevices);
      ASSERT_LE(program.samples.size(), kLiveHistory);
      ASSERT_LE(program.devices.size(), kLiveDevices);
      ASSERT_TRUE(has_possible_figures(program));
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
  const LiveSurvey survey = place.survey();
  EXPECT_THAT(survey.programs, IsEmpty());
  EXPECT_THAT(faults_of(survey), ElementsAre("has more than 4096 entries: only 4096 were read"))
      << "programs may be among the others";
}

TEST(LiveReader, SaysWhatItCannotOpen) {
  const Place place;
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = place.path() + "/1-2.live";
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::ranges::copy(path, std::begin(address.sun_path));
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(faults_of(place.survey()), ElementsAre("cannot be opened"));
  close(listener);
}

TEST(LiveReader, ReadsAFolderOfTwoPathsOnce) {
  const Place place;
  const BlockFile block(place.folders(), "one");
  const std::vector<LiveFolder> folders{{place.path(), {}}, {place.path() + "/", {}}};
  const LiveSurvey survey = read_live(folders);
  EXPECT_THAT(survey.programs, SizeIs(1));
  EXPECT_THAT(survey.faults, IsEmpty());
}

TEST(LiveProcess, KnowsItsOwnNumber) {
  const auto self = static_cast<std::uint32_t>(getpid());
  EXPECT_EQ(own_number(self), self);
  EXPECT_FALSE(own_number(0));
  EXPECT_FALSE(own_number(~0U));
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

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(LiveRates, AreDifferencesOverTheTimeBetween) {
  const std::vector<LiveSample> samples{
      {.time_ns = 10 * kSecond, .settled = 5, .stalls = 2, .stalled_ns = 0, .knows_busy = 1},
      {.time_ns = 12 * kSecond,
       .settled = 11,
       .stalls = 3,
       .stalled_ns = kSecond / 2,
       .knows_busy = 1,
       .busy_ns = kSecond}};
  const LiveRates rates = rates_of(samples);
  EXPECT_DOUBLE_EQ(rates.batches.value(), 3.0);
  EXPECT_DOUBLE_EQ(rates.stalls.value(), 0.5);
  EXPECT_DOUBLE_EQ(rates.stalled.value(), 0.25);
  EXPECT_DOUBLE_EQ(rates.idle.value(), 0.5);
}

TEST(LiveRates, LookBackNoFurtherThanTheWindow) {
  std::vector<LiveSample> samples;
  for (std::uint64_t i = 0; i < 20; ++i) {
    samples.push_back({.time_ns = i * kSecond, .settled = i < 10 ? 1000 * i : 10'000});
  }
  EXPECT_DOUBLE_EQ(rates_of(samples, std::chrono::seconds(9)).batches.value(), 0.0);
  EXPECT_GT(rates_of(samples, std::chrono::seconds(12)).batches.value(), 0.0);
}

TEST(LiveRates, NeedTwoSamples) {
  EXPECT_FALSE(rates_of({}).batches.has_value());
  const std::vector<LiveSample> one{{.time_ns = 1, .settled = 1}};
  EXPECT_FALSE(rates_of(one).batches.has_value());
  const std::vector<LiveSample> far_apart{{.time_ns = 1}, {.time_ns = 60 * kSecond}};
  EXPECT_FALSE(rates_of(far_apart).batches.has_value());
}

TEST(LiveRates, OfACounterThatJustWentBackAreNotKnown) {
  const std::vector<LiveSample> samples{{.time_ns = kSecond, .settled = 9, .stalls = 1},
                                        {.time_ns = 2 * kSecond, .settled = 3, .stalls = 2}};
  EXPECT_FALSE(rates_of(samples).batches.has_value());
  EXPECT_DOUBLE_EQ(rates_of(samples).stalls.value(), 1.0);
}

TEST(LiveRates, OfACounterThatWentBackAreOfTheTimeSince) {
  // By its end the next scheduler has counted more than the first had.
  const std::vector<LiveSample> samples{{.time_ns = 1 * kSecond, .settled = 5, .stalled_ns = 7},
                                        {.time_ns = 2 * kSecond, .settled = 9, .stalled_ns = 8},
                                        {.time_ns = 3 * kSecond, .settled = 1, .stalled_ns = 8},
                                        {.time_ns = 5 * kSecond, .settled = 21, .stalled_ns = 11}};
  EXPECT_DOUBLE_EQ(rates_of(samples).batches.value(), 10.0);
  EXPECT_DOUBLE_EQ(rates_of(samples).stalled.value(), 1e-9) << "this one never went back";
}

TEST(LiveRates, IdleIsOfTheTimeSinceTheDeviceIsThere) {
  std::vector<LiveSample> samples{
      {.time_ns = 1 * kSecond}, {.time_ns = 2 * kSecond, .knows_busy = 1, .busy_ns = kSecond / 2}};
  EXPECT_FALSE(rates_of(samples).idle.has_value()) << "one sample of it";
  samples.push_back({.time_ns = 4 * kSecond, .knows_busy = 1, .busy_ns = 2 * kSecond});
  EXPECT_DOUBLE_EQ(rates_of(samples).idle.value(), 0.25);
}

TEST(LiveRates, IdleIsOfTheTimeSinceTheNextDeviceIsThere) {
  const std::vector<LiveSample> samples{
      {.time_ns = 1 * kSecond, .knows_busy = 1, .busy_ns = kSecond},
      {.time_ns = 2 * kSecond},
      {.time_ns = 3 * kSecond, .knows_busy = 1, .busy_ns = 3 * kSecond},
      {.time_ns = 4 * kSecond, .knows_busy = 1, .busy_ns = 0},
      {.time_ns = 5 * kSecond, .knows_busy = 1, .busy_ns = kSecond / 4}};
  EXPECT_DOUBLE_EQ(rates_of(samples).idle.value(), 0.75);
}

TEST(LiveRates, OfADeviceThatDoesNotSayHowBusyItIsHaveNoIdleShare) {
  const std::vector<LiveSample> samples{{.time_ns = kSecond, .knows_busy = 1},
                                        {.time_ns = 2 * kSecond}};
  EXPECT_FALSE(rates_of(samples).idle.has_value());
}

TEST(LiveRates, OfImpossibleSamplesAreFiniteOrNotKnown) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const std::vector<LiveSample> samples{
      {.time_ns = kMost, .settled = kMost},
      {.time_ns = 5, .knows_busy = 7},
      {.time_ns = 6, .settled = kMost, .stalled_ns = kMost, .knows_busy = 9, .busy_ns = kMost}};
  const LiveRates rates = rates_of(samples);
  EXPECT_TRUE(std::isfinite(rates.batches.value()));
  EXPECT_TRUE(std::isfinite(rates.stalled.value()));
  EXPECT_DOUBLE_EQ(rates.idle.value(), 0.0);
}

}  // namespace
}  // namespace weir::timeline::testing
