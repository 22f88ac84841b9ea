#include "tools/timeline/recorder/name_table.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <new>

#include "allocator/base/utf8.hpp"

namespace weir::timeline {
namespace {

constexpr std::size_t kPage = std::size_t{64} * 1024;

std::atomic<NameTable*> table_of_process{nullptr};

}  // namespace

NameTable::NameTable(NameLimits limits)
    : limits_(limits), blocks_((limits.names + 1) / kBlock + 1) {
  (void)number(kOthers);
}

std::uint32_t NameTable::number(std::string_view text) noexcept {
  if (text.empty()) return 0;
  text = cut_between_characters(text, kLongest);
  const Lock lock(mutex_);
  const auto known = numbers_.find(text);
  if (known != numbers_.end()) return known->second;
  if (count_.load(std::memory_order_relaxed) > limits_.names ||
      bytes_ + Bytes{text.size()} > limits_.bytes) {
    return kOther;
  }
  try {
    return add(text);
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

std::uint32_t NameTable::add(std::string_view text) {
  const std::uint32_t number = count_.load(std::memory_order_relaxed);
  std::unique_ptr<Block>& block = blocks_[number / kBlock];
  if (block == nullptr) block = std::make_unique<Block>();
  const std::string_view kept = keep(text);
  numbers_.emplace(kept, number);
  (*block)[number % kBlock] = kept;
  count_.store(number + 1, std::memory_order_release);
  return number;
}

std::string_view NameTable::keep(std::string_view text) {
  if (pages_.empty() || page_used_ + text.size() > kPage) {
    pages_.push_back(std::unique_ptr<char[]>(new char[kPage]));
    page_used_ = 0;
  }
  char* const place = pages_.back().get() + page_used_;
  std::memcpy(place, text.data(), text.size());
  page_used_ += text.size();
  bytes_ += Bytes{text.size()};
  return {place, text.size()};
}

std::string_view NameTable::text(std::uint32_t number) const {
  if (number == 0 || number >= count_.load(std::memory_order_acquire)) return {};
  return (*blocks_[number / kBlock])[number % kBlock];
}

NameTable& NameTable::of_process() {
  NameTable* table = table_of_process.load(std::memory_order_acquire);
  if (table != nullptr) return *table;
  auto made = std::make_unique<NameTable>();
  if (table_of_process.compare_exchange_strong(table, made.get())) return *made.release();
  return *table;
}

void NameTable::leave_to_parent() noexcept { table_of_process.store(nullptr); }

void NameCache::use(NameTable& table) noexcept {
  if (table_ == &table) return;
  names_ = {};
  sites_ = {};
  table_ = &table;
}

std::uint32_t NameCache::name(NameTable& table, std::string_view text) noexcept {
  if (text.empty()) return 0;
  if (text.size() > NameTable::kLongest) return table.number(text);
  use(table);
  const std::size_t hash = std::hash<std::string_view>{}(text);
  NameEntry& entry = names_[hash % names_.size()];
  if (entry.number != 0 && entry.hash == hash && table.text(entry.number) == text) {
    return entry.number;
  }
  const std::uint32_t number = table.number(text);
  if (number != NameTable::kOther) entry = {hash, number};
  return number;
}

std::uint32_t NameCache::site(NameTable& table, const char* file, int line) noexcept {
  if (file == nullptr || *file == '\0') return 0;
  use(table);
  constexpr std::size_t kSpread = 31;
  const std::size_t hash =
      std::hash<const char*>{}(file) / 8 + static_cast<std::size_t>(line) * kSpread;
  SiteEntry& entry = sites_[hash % sites_.size()];
  if (entry.file == file && entry.line == line && entry.number != 0) return entry.number;

  // A colon and a line number take at most twelve characters. Keep the end of the file name, which
  // is more specific than its beginning.
  constexpr std::size_t kLine = 12;
  std::array<char, NameTable::kLongest> text;
  std::string_view path = file;
  if (path.size() > text.size() - kLine) path.remove_prefix(path.size() - (text.size() - kLine));
  char* end = std::ranges::copy(path, text.data()).out;
  *end++ = ':';
  end = std::to_chars(end, text.data() + text.size(), line).ptr;
  const std::uint32_t number =
      table.number({text.data(), static_cast<std::size_t>(end - text.data())});
  entry = {file, line, number};
  return number;
}

}  // namespace weir::timeline
