// Limits of the system, and the folders that Weir writes to.

#include <algorithm>
#include <string_view>

#include "tools/weir/doctor/checks/checks.hpp"

namespace weir::cli::doctor {
namespace {

/// A page of the pool `paged`, on the cpu device and on every GPU so far.
constexpr Bytes kPage = mib(2);
/// Mappings of the program itself: libraries, threads, heaps.
constexpr std::uint64_t kOtherMappings = 2000;

std::string in_bytes(std::uint64_t count) { return format_bytes(Bytes{count}); }

/// On the cpu device each page can be a mapping of its own
/// (allocator/memory/page_source_memfd.hpp), and that device is given half of the machine's memory
/// by default. A GPU's pages need none.
void add_mappings(Findings& found, const LimitsFacts& facts) {
  if (!facts.max_mappings) return;
  const std::uint64_t most = *facts.max_mappings;
  const std::uint64_t needed = facts.memory.count / 2 / kPage.count + kOtherMappings;
  const std::string text = "vm.max_map_count is " + std::to_string(most);
  if (most >= needed) {
    found.ok("mappings", text + ": enough for the pool paged on the cpu device");
    return;
  }
  const std::uint64_t pages = most > kOtherMappings ? most - kOtherMappings : 0;
  found.warn("mappings",
             text + ": in the worst case the pool paged on the cpu device maps " +
                 in_bytes(pages * kPage.count) + " of memory and no more",
             "sysctl -w vm.max_map_count=" + std::to_string(needed) +
                 " as root, or a smaller --device-memory");
}

void add_locked(Findings& found, const LimitsFacts& facts) {
  constexpr std::uint64_t kLittle = mib(1).count;
  if (!facts.locked_memory) {
    found.ok("locked-memory", "locked memory (ulimit -l) is unlimited");
  } else if (*facts.locked_memory >= kLittle) {
    found.ok("locked-memory",
             "locked memory (ulimit -l) is " + in_bytes(*facts.locked_memory) +
                 "; raise it where page-locked memory or NCCL over InfiniBand is refused");
  } else {
    found.warn("locked-memory",
               "locked memory (ulimit -l) is " + in_bytes(*facts.locked_memory) +
                   ": page-locked memory and NCCL over InfiniBand may be refused",
               "ulimit -l unlimited, or in a container --ulimit memlock=-1");
  }
}

void add_files(Findings& found, const LimitsFacts& facts) {
  constexpr std::uint64_t kEnough = 4096;
  if (!facts.open_files) {
    found.ok("open-files", "open files (ulimit -n) are unlimited");
    return;
  }
  const std::string text = "open files (ulimit -n) are " + std::to_string(*facts.open_files) +
                           ": of tensors in pages, " + in_bytes(*facts.open_files * kPage.count) +
                           " can be shared with other processes, a file for each 2 MiB";
  if (*facts.open_files >= kEnough) {
    found.ok("open-files", text);
    return;
  }
  const bool at_most = facts.open_files_at_most && *facts.open_files_at_most <= *facts.open_files;
  const std::string raise =
      at_most ? "let root raise the hard limit (limits.conf, or a container's --ulimit nofile)"
              : "ulimit -n " + (facts.open_files_at_most ? std::to_string(*facts.open_files_at_most)
                                                         : std::string("unlimited"));
  found.warn("open-files", text, "if you share tensors: " + raise + ", or WEIR_POOL=best_fit");
}

void add_sizes(Findings& found, const LimitsFacts& facts) {
  if (facts.addresses) {
    found.warn("addresses",
               "addresses (ulimit -v) are limited to " + in_bytes(*facts.addresses) +
                   ": CUDA reserves more than the machine and its GPUs have memory",
               "ulimit -v unlimited");
  }
  if (facts.file_size) {
    found.warn("file-size",
               "files (ulimit -f) are limited to " + in_bytes(*facts.file_size) +
                   ": logs, timelines and pages of the cpu device end there",
               "ulimit -f unlimited");
  }
  if (facts.cgroup_memory && *facts.cgroup_memory < facts.memory) {
    const std::string text = "this process's group may use " + format_bytes(*facts.cgroup_memory) +
                             " of the machine's " + format_bytes(facts.memory);
    if (facts.cgroup_memory->count < facts.memory.count / 2) {
      found.warn("memory", text + ", and weir-train's cpu device takes half of the machine's",
                 "weir-train --device-memory SIZE, less than that");
    } else {
      found.ok("memory", text);
    }
  }
  if (facts.overcommit == 2) {
    found.warn("overcommit",
               "vm.overcommit_memory is 2: the system may refuse memory that CUDA only reserves",
               "sysctl -w vm.overcommit_memory=0 as root");
  }
}

void add_sharing(Findings& found, const LimitsFacts& facts) {
  const std::vector<Use> by_shared_memory{Use::kShare};
  if (!facts.shared_memory) {
    found.fails("shared-memory", "there is no /dev/shm: WEIR_SHARE keeps its files there",
                "mount a tmpfs at /dev/shm", by_shared_memory);
  } else if (!facts.shared_memory_writable) {
    found.fails("shared-memory",
                "this user may not write to /dev/shm: WEIR_SHARE keeps its files "
                "there",
                "chmod 1777 /dev/shm as root, or mount it writable", by_shared_memory);
  } else {
    found.ok("shared-memory", "/dev/shm is writable, " + format_bytes(*facts.shared_memory) +
                                  (facts.shared_memory->count < mib(128).count
                                       ? "; workers of PyTorch may need more (--shm-size)"
                                       : ""));
  }
  if (!facts.takes_files) {
    found.warn("shared-tensors",
               "pidfd_getfd is missing or forbidden: tensors in pages cannot be shared between "
               "processes",
               "WEIR_POOL=best_fit; or Linux 5.6, and a container that allows the call");
  } else if (facts.ptrace_scope.value_or(0) >= 2) {
    found.warn("shared-tensors",
               "kernel.yama.ptrace_scope is " + std::to_string(*facts.ptrace_scope) +
                   ": tensors in pages cannot be shared between processes",
               "WEIR_POOL=best_fit; or sysctl -w kernel.yama.ptrace_scope=1 as root");
  } else {
    found.ok("shared-tensors", "processes of one user may share tensors in pages");
  }
}

void add_live(Findings& found, const LimitsFacts& facts) {
  if (facts.publish_is_wrong) return;  // the group `settings` has it
  if (!facts.publishes) {
    found.warn("live", "WEIR_PUBLISH=0: programs started here do not show in weir ps and top",
               "unset WEIR_PUBLISH", {Use::kLive});
  } else if (facts.live_folder.empty()) {
    found.fails("live",
                std::string("programs cannot publish for weir ps, top and set") +
                    (facts.publish_is_set ? " where WEIR_PUBLISH says: " : ": ") +
                    facts.live_problem,
                "set WEIR_PUBLISH to an absolute path of a folder that only this user may open "
                "(chmod 700)",
                {Use::kLive});
  } else {
    found.ok("live", "programs publish for weir ps and top in " + facts.live_folder);
  }
  if (facts.publish_is_set && (!facts.publishes || facts.live_folder.empty())) {
    found.about("WEIR_PUBLISH");
  }
}

void add_temporary_folder(Findings& found, const LimitsFacts& facts) {
  if (facts.temporary_problem.empty()) {
    found.ok("temporary-folder", "weir run can write to " + facts.temporary);
  } else {
    found.fails("temporary-folder",
                "weir run cannot write to " + facts.temporary + ": " + facts.temporary_problem,
                "set TMPDIR to a folder that can be written to", {Use::kRun, Use::kPlug});
  }
}

}  // namespace

std::vector<Finding> check_limits(const LimitsFacts& facts) {
  Findings found(Group::kLimits);
  add_mappings(found, facts);
  add_locked(found, facts);
  add_files(found, facts);
  add_sizes(found, facts);
  add_sharing(found, facts);
  add_live(found, facts);
  add_temporary_folder(found, facts);
  return found.take();
}

}  // namespace weir::cli::doctor
