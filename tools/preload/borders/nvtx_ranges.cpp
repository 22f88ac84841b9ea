#include "tools/preload/borders/nvtx_ranges.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "tools/preload/driver/this_thread.hpp"
#include "tools/preload/process/api.hpp"

namespace weir::preload {
namespace {

constinit std::atomic<std::uint64_t> last_range{0};
// Batches ended by another thread, stored at number modulo size. One may overwrite another that its
// thread has not seen; that batch then stays open until a fifth one ends it.
constinit std::array<std::atomic<std::uint64_t>, 64> ended_elsewhere{};

Marks& nested_in(std::uint64_t domain) noexcept {
  return this_thread.ranges[std::min<std::uint64_t>(domain, ThisThread::kDomains - 1)];
}

// Ends this thread's batch at `place`. The inside counts begins, so any may end first.
void end_started(std::size_t place) noexcept {
  auto& started = this_thread.started;
  std::rotate(started.begin() + static_cast<std::ptrdiff_t>(place),
              started.begin() + static_cast<std::ptrdiff_t>(place) + 1, started.end());
  started.back() = 0;
  end_batch();
}

std::atomic<std::uint64_t>& word_on(std::uint64_t range) noexcept {
  return ended_elsewhere[range % ended_elsewhere.size()];
}

void end_what_others_ended() noexcept {
  for (std::size_t place = 0; place < this_thread.started.size();) {
    const std::uint64_t range = this_thread.started[place];
    if (range == 0) return;
    if (word_on(range).load(std::memory_order_relaxed) == range) {
      end_started(place);
    } else {
      ++place;
    }
  }
}

// Encodes one character as UTF-8, padded with zeros.
std::array<char, 5> encode(std::uint32_t code) noexcept {
  const auto last = [code](unsigned shift) {
    return static_cast<char>(0x80U | (code >> shift & 0x3FU));
  };
  if (code < 0x80U) return {static_cast<char>(code)};
  if (code < 0x800U) return {static_cast<char>(0xC0U | code >> 6U), last(0)};
  if (code < 0x10000U) return {static_cast<char>(0xE0U | code >> 12U), last(6), last(0)};
  return {static_cast<char>(0xF0U | (code >> 18U & 0x07U)), last(12), last(6), last(0)};
}

}  // namespace

bool is_name(const char* name, const char* batch) noexcept {
  return name != nullptr && std::strcmp(name, batch) == 0;
}

bool is_name(const wchar_t* name, const char* batch) noexcept {
  if (name == nullptr) return false;
  for (; *name != L'\0'; ++name) {
    const std::array<char, 5> bytes = encode(std::uint32_t{std::make_unsigned_t<wchar_t>(*name)});
    const std::size_t length = std::strlen(bytes.data());
    if (std::strncmp(batch, bytes.data(), length) != 0) return false;
    batch += length;
  }
  return *batch == '\0';
}

int push_range(std::uint64_t domain, const char* batch) noexcept {
  Marks& nested = nested_in(domain);
  if (batch == nullptr || !nested.remembers()) return static_cast<int>(nested.push(false));
  end_what_others_ended();
  return static_cast<int>(nested.push(begin_batch(batch)));
}

int pop_range(std::uint64_t domain) noexcept {
  Marks& nested = nested_in(domain);
  if (nested.depth() == 0) return -1;
  if (nested.pop()) end_batch();
  return static_cast<int>(nested.depth());
}

std::uint64_t start_range(const char* batch) noexcept {
  if (batch == nullptr) return 0;
  end_what_others_ended();
  if (this_thread.started.back() != 0) end_started(0);
  if (!begin_batch(batch)) return 0;
  const std::uint64_t range = last_range.fetch_add(1, std::memory_order_relaxed) + 1;
  *std::find(this_thread.started.begin(), this_thread.started.end(), 0U) = range;
  return range;
}

void end_range(std::uint64_t range) noexcept {
  if (range == 0) return;
  const auto place = std::find(this_thread.started.begin(), this_thread.started.end(), range);
  if (place != this_thread.started.end()) {
    end_started(static_cast<std::size_t>(place - this_thread.started.begin()));
  } else {
    word_on(range).store(range, std::memory_order_relaxed);
  }
}

}  // namespace weir::preload
