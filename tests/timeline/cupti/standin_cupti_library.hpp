#pragma once

// The stand-in's state and its functions' work on it.

#include <map>
#include <mutex>
#include <utility>

#include "timeline/cupti/standin_cupti.hpp"

namespace weir::testing {

class StandinCuptiLibrary final : public StandinCupti {
 public:
  StandinCuptiLibrary() = default;
  /// The program ends: nobody may call any more.
  ~StandinCuptiLibrary() override;

  void reset() override;
  void answer(const std::string& function, Result result) override;
  void hold(const std::string& name) override;
  bool emit(const std::vector<std::uint8_t>& record) override;
  void deliver() override;
  [[nodiscard]] std::vector<std::string> misuse() override;
  [[nodiscard]] std::vector<std::uint32_t> flushes() override;
  [[nodiscard]] std::vector<std::uint64_t> external() override;
  [[nodiscard]] std::set<Kind> enabled() override;
  [[nodiscard]] std::size_t enabled_calls() override;
  [[nodiscard]] std::uint64_t timestamp() override;
  [[nodiscard]] bool held() override;
  [[nodiscard]] Generation generation() override;
  [[nodiscard]] std::set<std::string> called() override;

  // For the functions of the library.

  /// Notes a call. Returns its result.
  Result enter(const char* function, Generation generation);
  Result subscribe(timeline::cupti::Subscriber* subscriber, std::string* old, Generation with);
  Result check(timeline::cupti::Subscriber subscriber);
  Result unsubscribe(timeline::cupti::Subscriber subscriber);
  Result set_up(const char* function);
  Result set_timestamp(timeline::cupti::Timestamp now);
  Result register_callbacks(timeline::cupti::BufferRequested requested,
                            timeline::cupti::BufferCompleted completed,
                            timeline::cupti::BufferRequested2 requested2,
                            timeline::cupti::BufferCompleted2 completed2);
  Result enable(Kind kind, bool on);
  Result enable_call(Kind kind, std::uint32_t function, bool on);
  Result next_record(const std::uint8_t* buffer, std::size_t valid, std::uint8_t** record);
  Result take_dropped(std::size_t* dropped);
  Result push(std::uint64_t id);
  Result pop(std::uint64_t* id);
  Result flush(std::uint32_t flag);

 private:
  struct Buffer {
    std::uint8_t* data = nullptr;
    std::size_t size = 0;
    std::size_t used = 0;
  };
  void complete(Buffer& buffer);
  void complain(std::string what) { misuse_.push_back(std::move(what)); }

  std::recursive_mutex mutex_;
  std::map<std::string, Result> answers_;
  std::string other_;
  std::vector<std::string> misuse_;
  std::vector<std::uint32_t> flushes_;
  std::vector<std::uint64_t> external_;
  std::set<Kind> enabled_;
  std::set<std::pair<Kind, std::uint32_t>> calls_;
  std::set<std::string> called_;
  timeline::cupti::Timestamp timestamp_ = nullptr;
  timeline::cupti::BufferRequested requested_ = nullptr;
  timeline::cupti::BufferCompleted completed_ = nullptr;
  timeline::cupti::BufferRequested2 requested2_ = nullptr;
  timeline::cupti::BufferCompleted2 completed2_ = nullptr;
  Generation generation_ = Generation::kNone;
  std::uintptr_t subscriber_ = 0;
  std::uintptr_t last_subscriber_ = 0;
  std::size_t dropped_ = 0;
  Buffer buffer_;
  std::map<const std::uint8_t*, std::vector<std::size_t>> places_;  // of the records in a buffer
};

/// The library's instance. Ends the program if that has ended before.
[[nodiscard]] StandinCuptiLibrary& standin_cupti_library();

inline constexpr auto kOlder = StandinCupti::Generation::kOlder;
inline constexpr auto kNewer = StandinCupti::Generation::kNewer;
inline constexpr auto kBoth = StandinCupti::Generation::kNone;

}  // namespace weir::testing

// Notes the call, and returns the result that the test wants.
#define ENTER(function, generation)                                                          \
  if (const auto answer =                                                                    \
          weir::testing::standin_cupti_library().enter(function, weir::testing::generation); \
      answer != 0) {                                                                         \
    return answer;                                                                           \
  }
// The same for a function that names its subscriber.
#define ENTER_AS(subscriber, function)                                                           \
  ENTER(function, kNewer)                                                                        \
  if (const auto answer = weir::testing::standin_cupti_library().check(subscriber); answer != 0) \
    return answer;
