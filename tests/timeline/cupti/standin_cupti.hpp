#pragma once

// A stand-in CUPTI, which a test drives and asks. It comes as two libraries: one has the older
// generation alone, like CUPTI up to 13.1; the other has both, like CUPTI from 13.3 on. It delivers
// the records that it is given. It calls back under a lock of its own, as the real one does, and
// notes every call that breaks a rule of CUPTI's documentation.

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tools/timeline/cupti/abi.hpp"

namespace weir::testing {

/// What a test sees of it. One for each library.
class StandinCupti {
 public:
  using Kind = timeline::cupti::Kind;
  using Result = timeline::cupti::Result;
  enum class Generation : std::uint8_t { kNone, kOlder, kNewer };

  StandinCupti() = default;
  StandinCupti(const StandinCupti&) = delete;
  StandinCupti& operator=(const StandinCupti&) = delete;
  virtual ~StandinCupti() = default;

  // Drives it.

  /// As it was when it was loaded.
  virtual void reset() = 0;
  /// From now on `function` answers `result`; 0: it works.
  virtual void answer(const std::string& function, Result result) = 0;
  /// This other subscriber holds it.
  virtual void hold(const std::string& name) = 0;
  /// CUPTI writes a record. False, and it is counted as dropped, where there is no buffer.
  virtual bool emit(const std::vector<std::uint8_t>& record) = 0;
  /// Hands the buffers that have records to the subscriber, from the calling thread.
  virtual void deliver() = 0;

  // Asks it.

  [[nodiscard]] virtual std::vector<std::string> misuse() = 0;
  [[nodiscard]] virtual std::vector<std::uint32_t> flushes() = 0;
  [[nodiscard]] virtual std::vector<std::uint64_t>
  external() = 0;  ///< ids that were pushed and not popped
  [[nodiscard]] virtual std::set<Kind> enabled() = 0;
  [[nodiscard]] virtual std::size_t enabled_calls() = 0;
  [[nodiscard]] virtual std::uint64_t
  timestamp() = 0;  ///< what the subscriber's clock says; 0: it has none
  [[nodiscard]] virtual bool held() = 0;
  [[nodiscard]] virtual Generation generation() = 0;
  /// The functions that were called.
  [[nodiscard]] virtual std::set<std::string> called() = 0;
};

}  // namespace weir::testing

/// The one of the library.
extern "C" weir::testing::StandinCupti* weir_standin_cupti();
