// Names of user and machine are replaced in paths.

#include "tools/weir/doctor/redact.hpp"

#include <gtest/gtest.h>

namespace weir::cli::doctor {
namespace {

const Private kAnna{.homes = {"/home/anna"}, .user = "anna", .host = "gpu7"};

TEST(DoctorRedact, TheHomeFolderIsATilde) {
  EXPECT_EQ(redacted("/home/anna/run.log", kAnna), "~/run.log");
  EXPECT_EQ(redacted("WEIR_ALLOC_LOG='/home/anna' and (/home/anna/x)", kAnna),
            "WEIR_ALLOC_LOG='~' and (~/x)");
  EXPECT_EQ(redacted("in /home/anna.", kAnna), "in ~.");
  EXPECT_EQ(redacted("/home/anna/x:/home/anna/y", kAnna), "~/x:~/y");
  EXPECT_EQ(redacted("/home/annabel/x", kAnna), "/home/annabel/x");
  EXPECT_EQ(redacted("/mnt/home/anna.old", {.homes = {"/home/anna/"}, .user = "", .host = ""}),
            "/mnt/home/anna.old");
}

TEST(DoctorRedact, AHomeThatIsNoFolderOfSomebodyChangesNothing) {
  for (const char* home : {"", "/"}) {
    EXPECT_EQ(redacted("/tmp/x", {.homes = {home}, .user = "", .host = ""}), "/tmp/x");
  }
  EXPECT_EQ(redacted("/usr/sbin/x", {.homes = {"/usr/sbin"}, .user = "", .host = ""}),
            "/usr/sbin/x");
}

TEST(DoctorRedact, BothHomesAreTildesWhereHomeIsSetToAnother) {
  const Private two{.homes = {"/tmp/scene", "/home/anna"}, .user = "anna", .host = ""};
  EXPECT_EQ(redacted("/tmp/scene/x and /home/anna/y", two), "~/x and ~/y");
}

TEST(DoctorRedact, FoldersNamedAsUserOrMachineLoseTheName) {
  EXPECT_EQ(redacted("/data/anna/gpu7/x", kAnna), "/data/USER/HOST/x");
  EXPECT_EQ(redacted("/data/annas/x", kAnna), "/data/annas/x");
  EXPECT_EQ(redacted("anna trains", kAnna), "anna trains");
}

TEST(DoctorRedact, TheSystemsFoldersStay) {
  const Private weir{.homes = {"/home/weir"}, .user = "weir", .host = ""};
  EXPECT_EQ(redacted("/usr/lib/weir/libweir.so, /home/weir/lib/weir/x", weir),
            "/usr/lib/weir/libweir.so, ~/lib/USER/x");
  EXPECT_EQ(redacted("/opt/weir", weir), "/opt/weir");
}

}  // namespace
}  // namespace weir::cli::doctor
