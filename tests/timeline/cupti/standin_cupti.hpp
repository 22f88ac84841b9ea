#pragma once

// A stand-in CUPTI that a test controls and queries. It comes as two libraries: one has only the
// older generation, like CUPTI up to 13.1; the other has both, like CUPTI from 13.3 on. It delivers
// the records that it is given. It calls back under its own lock, as the real one does, and notes
// every call that breaks a rule of CUPTI's documentation.

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tools/timeline/cupti/abi.hpp"

namespace weir::testing {

/// A test's view of it. One for each library.
class StandinCupti {
 public:
  using Kind = timeline::cupti::Kind;
  using Result = timeline::cupti::Result;
  enum class Generation : std::uint8_t { kNone, kOlder, kNewer };

  StandinCupti() = default;
  StandinCupti(const StandinCupti&) = delete;
  StandinCupti& operator=(const StandinCupti&) = delete;
  virtual ~StandinCupti() = default;

  /// Restores the state after loading.
  virtual void reset() = 0;
  /// From now on `function` returns `result`; 0: it works.
  virtual void answer(const std::string& function, Result result) = 0;
  /// This other subscriber holds it.
  virtual void hold(const std::string& name) = 0;
  /// CUPTI writes a record. Returns false, and counts it as dropped, if there is no buffer.
  virtual bool emit(const std::vector<std::uint8_t>& record) = 0;
  /// Hands the buffers that have records to the subscriber, from the calling thread.
  virtual void deliver() = 0;

  /// What a test asks it.
  struct Seen {
    std::vector<std::string> misuse;
    std::vector<std::uint32_t> flushes;
    std::vector<std::uint64_t> external;  ///< ids that were pushed and not popped
    std::set<Kind> enabled;
    std::size_t enabled_calls = 0;
    std::uint64_t timestamp = 0;  ///< the time of the subscriber's clock; 0: it has none
    bool held = false;
    Generation generation = Generation::kNone;
    std::set<std::string> called;  ///< functions
  };
  [[nodiscard]] virtual Seen seen() = 0;
};

}  // namespace weir::testing

/// The one of the library.
extern "C" weir::testing::StandinCupti* weir_standin_cupti();
