#include "allocator/log/allocation_log_reader.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <tuple>

#include "allocator/base/error.hpp"

namespace weir {
namespace {

constexpr std::size_t kHeader = AllocationLogHeader::kBytes;
constexpr double kLongestTick = 1e9;  // ns

std::string contents_of(const std::string& path) {
  struct stat status {};
  // Devices such as /dev/zero have no end.
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    throw UsageError("'" + path + "' cannot be read: it is not a regular file");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.is_open() && !file.bad() && errno != EISDIR) return bytes;
  throw UsageError("'" + path + "' cannot be read (" + std::generic_category().message(errno) +
                   ")");
}

class Reader {
 public:
  Reader(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  [[nodiscard]] AllocationLogContents read() {
    if (bytes_.size() < kHeader) {
      refuse_at(bytes_.size(),
                "an allocation log's header of " + std::to_string(kHeader) + " bytes",
                "the end of the file");
    }
    expect(offsetof(AllocationLogHeader, magic), AllocationLogHeader::kMagic, "an allocation log");
    expect(offsetof(AllocationLogHeader, version), AllocationLogHeader::kVersion, "version");
    expect(offsetof(AllocationLogHeader, header_bytes), AllocationLogHeader::kBytes,
           "header bytes");
    expect(offsetof(AllocationLogHeader, record_bytes), std::uint32_t{sizeof(AllocationRecord)},
           "record bytes");
    const auto chunk = at<std::uint32_t>(offsetof(AllocationLogHeader, chunk_bytes));
    if (chunk < sizeof(AllocationRecord)) {
      refuse_at(offsetof(AllocationLogHeader, chunk_bytes), "a chunk that holds a record",
                std::to_string(chunk) + " bytes");
    }
    AllocationLogContents contents;
    contents.unix_ns = at<std::uint64_t>(offsetof(AllocationLogHeader, unix_ns));
    contents.lost = at<std::uint64_t>(offsetof(AllocationLogHeader, lost));
    contents.complete = at<std::uint32_t>(offsetof(AllocationLogHeader, closed)) == 1;
    began_ = at<std::uint64_t>(offsetof(AllocationLogHeader, began_ticks));
    ns_per_tick_ = at<double>(offsetof(AllocationLogHeader, ns_per_tick));
    if (!(ns_per_tick_ > 0 && ns_per_tick_ <= kLongestTick)) {
      refuse_at(offsetof(AllocationLogHeader, ns_per_tick), "a tick of up to a second",
                std::to_string(ns_per_tick_) + " ns");
    }
    for (std::size_t begin = kHeader; begin < bytes_.size(); begin += chunk) {
      read_chunk(begin, std::min(bytes_.size(), begin + chunk), contents.records);
    }
    std::ranges::sort(contents.records, {},
                      [](const AllocationRecord& r) { return std::tuple(r.pool, r.sequence); });
    // A ring holds the records of its last copy until it overwrites them.
    const auto same = [](const AllocationRecord& a, const AllocationRecord& b) {
      return a.pool == b.pool && a.sequence == b.sequence;
    };
    contents.records.erase(std::unique(contents.records.begin(), contents.records.end(), same),
                           contents.records.end());
    return contents;
  }

 private:
  template <typename T>
  [[nodiscard]] T at(std::size_t offset) const {
    T value{};
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  [[noreturn]] void refuse_at(std::size_t offset, const std::string& expected,
                              const std::string& found) const {
    throw UsageError("'" + path_ + "' at offset " + std::to_string(offset) + ": expected " +
                     expected + ", found " + found);
  }

  template <typename T>
  void expect(std::size_t offset, T wanted, const std::string& what) const {
    const T found = at<T>(offset);
    if (found == wanted) return;
    refuse_at(offset, what + " (" + std::to_string(wanted) + ")", std::to_string(found));
  }

  /// Records fill a chunk from the front; zeros follow. A full disk or a kill may cut the last
  /// record: its event, the last field, is then zero.
  void read_chunk(std::size_t begin, std::size_t end,
                  std::vector<AllocationRecord>& records) const {
    for (std::size_t offset = begin; end - offset >= sizeof(AllocationRecord);
         offset += sizeof(AllocationRecord)) {
      auto record = at<AllocationRecord>(offset);
      if (record.sequence == 0 || record.event == AllocationEvent{}) return;
      const auto event = static_cast<unsigned>(record.event);
      if (event > static_cast<unsigned>(AllocationEvent::kRelease)) {
        refuse_at(offset, "an event from 1 to 7", std::to_string(event));
      }
      // Cores' counters may differ a little.
      const std::uint64_t ticks = record.time > began_ ? record.time - began_ : 0;
      const double ns = static_cast<double>(ticks) * ns_per_tick_;
      record.time = ns < 0x1p63 ? static_cast<std::uint64_t>(ns) : 0;
      records.push_back(record);
    }
  }

  const std::string& path_;
  const std::string_view bytes_;
  std::uint64_t began_ = 0;
  double ns_per_tick_ = 1;
};

}  // namespace

bool is_allocation_log(std::string_view bytes) noexcept {
  std::uint64_t magic = 0;
  if (bytes.size() < sizeof magic) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == AllocationLogHeader::kMagic;
}

AllocationLogContents read_allocation_log(const std::string& path) {
  return parse_allocation_log(path, contents_of(path));
}

AllocationLogContents parse_allocation_log(const std::string& path, std::string_view bytes) {
  return Reader(path, bytes).read();
}

}  // namespace weir
