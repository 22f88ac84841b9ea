// Programs for which the dynamic loader ignores preloading.

#include <gtest/gtest.h>
#include <linux/capability.h>

#include "capability_bytes.hpp"
#include "tools/weir/run/program.hpp"

namespace weir::cli {
namespace {

using weir::testing::capability_bytes;

constexpr std::uint64_t kRawNetwork = std::uint64_t{1} << CAP_NET_RAW;
constexpr std::uint64_t kBpf = std::uint64_t{1} << CAP_BPF;  // in the second word

TEST(Privileges, AnIdentityChangesOnlyToThatOfAnother) {
  EXPECT_TRUE(changes_identity(04755, 0, 0, 1000, 1000));
  EXPECT_TRUE(changes_identity(02755, 0, 0, 1000, 1000));
  EXPECT_FALSE(changes_identity(0755, 0, 0, 1000, 1000));
  EXPECT_FALSE(changes_identity(04755, 1000, 0, 1000, 1000));
  EXPECT_FALSE(changes_identity(02755, 0, 1000, 1000, 1000));
  EXPECT_FALSE(changes_identity(02745, 0, 0, 1000, 1000)) << "a mandatory lock";
}

TEST(Privileges, FileCapabilitiesAreReadInEachRevision) {
  for (const int revision : {VFS_CAP_REVISION_1, VFS_CAP_REVISION_2, VFS_CAP_REVISION_3}) {
    EXPECT_TRUE(
        grants_capabilities(capability_bytes({.revision = revision, .permitted = kRawNetwork}), 0));
    EXPECT_FALSE(grants_capabilities(capability_bytes({.revision = revision}), 0));
    EXPECT_TRUE(
        grants_capabilities(capability_bytes({.revision = revision, .effective = true}), 0));
  }
  EXPECT_TRUE(grants_capabilities(capability_bytes({.permitted = kBpf}), 0));
}

TEST(Privileges, WhatMayBeInheritedIsGrantedToWhoeverMayInheritIt) {
  for (const std::uint64_t one : {kRawNetwork, kBpf}) {
    const std::string bytes = capability_bytes({.inheritable = one});
    EXPECT_FALSE(grants_capabilities(bytes, 0));
    EXPECT_FALSE(grants_capabilities(bytes, ~one));
    EXPECT_TRUE(grants_capabilities(bytes, one));
  }
}

TEST(Privileges, BytesOfNoFormatGrantNothing) {
  const std::string whole = capability_bytes({.effective = true, .permitted = kRawNetwork});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(grants_capabilities(whole.substr(0, size), ~std::uint64_t{0})) << size;
  }
  EXPECT_FALSE(grants_capabilities(whole + whole, 0));
  EXPECT_FALSE(grants_capabilities(std::string(20, '\xff'), 0));
}

TEST(Privileges, ASecureStartIsByIdentityOrByCapabilities) {
  const OwnRights user{.user = 1000, .group = 1000};
  const std::string granted = capability_bytes({.permitted = kRawNetwork});
  FileRights plain;
  plain.mode = 0755;
  EXPECT_EQ(secure_by(plain, user), Secure::kNo);
  FileRights other = plain;
  other.mode = 04755;
  EXPECT_EQ(secure_by(other, user), Secure::kIdentity);
  FileRights capable = plain;
  capable.capabilities = granted;
  EXPECT_EQ(secure_by(capable, user), Secure::kCapabilities);
  EXPECT_EQ(secure_by(capable, {.user = 0, .group = 0}), Secure::kNo) << "root has them all";
}

TEST(Privileges, NothingIsGrantedWhereTheFileSystemOrTheProcessForbidsIt) {
  FileRights other;
  other.mode = 04755;
  other.ignored = true;
  const OwnRights user{.user = 1000, .group = 1000};
  EXPECT_EQ(secure_by(other, user), Secure::kNo);
  other.ignored = false;
  OwnRights held = user;
  held.no_new_ones = true;
  EXPECT_EQ(secure_by(other, held), Secure::kNo);
  FileRights capable;
  capable.capabilities = capability_bytes({.effective = true, .permitted = kRawNetwork});
  EXPECT_EQ(secure_by(capable, held), Secure::kCapabilities) << "securely, and without them";
  capable.ignored = true;
  EXPECT_EQ(secure_by(capable, user), Secure::kNo);
}

}  // namespace
}  // namespace weir::cli
