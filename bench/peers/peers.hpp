#pragma once

// Other projects' allocators, as subjects of replays and peers of our pools. This tree contains
// none of their files: bench/peers/fetch downloads them, and a build without one reports that in
// one line.

#include <functional>
#include <string>
#include <vector>

#include "tools/replay/subject/pool_subject.hpp"
#include "tools/replay/subject/subject.hpp"

namespace weir::bench {

using replay::MakeUpstream;

struct Peer {
  std::string name;      ///< in tables: `rmm_pool`
  std::string settings;  ///< its configuration, in words
  /// Whether it can use an upstream of ours. If not, it uses the CUDA runtime's memory, which on
  /// the stand-in is addresses without memory.
  bool takes_upstream = true;
  /// Makes subjects on `upstream`. A subject that cannot start in its capacity refuses every
  /// request. Of peers that take no upstream, only one subject exists at a time: another thread
  /// that makes one waits.
  std::function<replay::MakeSubject(const MakeUpstream& upstream)> on;
};

struct Peers {
  std::vector<Peer> found;
  std::vector<std::string> missing;  ///< a line each
};

/// Returns the peers that this program was built with.
[[nodiscard]] Peers find_peers();

// One function per allocator, in rmm_cuda.cpp or rmm_none.cpp, and so on.
void add_rmm(Peers& peers);
void add_torch(Peers& peers);

}  // namespace weir::bench
