#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "allocator/base/setting.hpp"
#include "tools/timeline/model/tracks.hpp"
#include "tools/timeline/perfetto/packed.hpp"
#include "tools/timeline/perfetto/perfetto.hpp"
#include "tools/timeline/perfetto/wire.hpp"

namespace weir::timeline {
namespace {

namespace ours = perfetto::ours;
namespace packet = perfetto::packet;

constexpr std::size_t kRead = 1U << 20U;
constexpr std::size_t kMostOfHead = 16;              ///< enough for a key and a length
constexpr std::uint64_t kMostOfRecords = 1U << 20U;  ///< most bytes of one packet of records
constexpr std::uint64_t kLeastPerRecord = 12;        ///< bytes of file that a record usually takes

/// Reads up to `size` bytes of the file; returns 0 at its end.
using Source = std::function<std::size_t(char* to, std::size_t size)>;

/// A file and a window of its bytes.
class Input {
 public:
  explicit Input(Source source) : source_(std::move(source)) {}

  /// Returns the next `size` bytes, fewer at the end of the file. Valid until the next call.
  std::string_view peek(std::size_t size) {
    if (window_.size() - at_ < size) fill(size);
    return std::string_view(window_).substr(at_, size);
  }
  /// Skips bytes. Returns false if the file has fewer.
  bool skip(std::uint64_t size) {
    while (size > 0) {
      const std::size_t here = peek(std::min<std::uint64_t>(size, kRead)).size();
      if (here == 0) return false;
      at_ += here;
      place_ += here;
      size -= here;
    }
    return true;
  }
  [[nodiscard]] std::uint64_t place() const noexcept { return place_; }

 private:
  void fill(std::size_t size) {
    window_.erase(0, at_);
    at_ = 0;
    const std::size_t want = std::max(size, kRead);
    while (window_.size() < size) {
      const std::size_t had = window_.size();
      window_.resize(had + want);
      const std::size_t got = source_(window_.data() + had, want);
      window_.resize(had + got);
      if (got == 0) break;
    }
  }

  Source source_;
  std::string window_;
  std::size_t at_ = 0;
  std::uint64_t place_ = 0;
};

/// Reads one file.
class Reader {
 public:
  Reader(Source source, std::string name, const ReadLimits& limits)
      : input_(std::move(source)), name_(std::move(name)), limits_(limits) {}

  Timeline read(std::uint64_t size) {
    size_ = size;
    while (read_packet()) {
    }
    if (timeline_.processes.empty()) {
      fail("is no .pftrace that Weir wrote, and Weir reads no others");
    }
    for (Process& process : timeline_.processes) {
      repair(process);
      put_in_order(process);
    }
    return std::move(timeline_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError(shown_text(name_) + ": byte " + std::to_string(input_.place()) + ": " + what);
  }
  /// Returns true until the file ends.
  bool read_packet();
  void read_ours(std::uint32_t field, std::string_view message, bool whole);
  void begin_process(std::string_view message);
  void add_name(std::string_view message);
  void add_records(std::string_view message, bool whole);
  void end_process(std::string_view message);
  Process& current() {
    if (timeline_.processes.empty()) fail("records whose process is not named before them");
    return timeline_.processes.back();
  }
  std::optional<wire::Field> next(std::string_view& message) const {
    if (message.empty()) return std::nullopt;
    const auto field = wire::take_field(message);
    if (!field) fail("a field that ends early; the file is damaged");
    return field;
  }
  std::string text(std::string_view bytes) const {
    if (bytes.size() > limits_.max_string) {
      fail("a text of " + std::to_string(bytes.size()) + " bytes; at most " +
           std::to_string(limits_.max_string) + " are read");
    }
    return std::string(bytes);
  }
  static void repair(Process& process) noexcept;
  static void put_in_order(Process& process);

  Input input_;
  std::string name_;
  ReadLimits limits_;
  std::uint64_t size_ = 0;
  Timeline timeline_;
  std::unique_ptr<Packed> packed_;
  std::uint64_t records_ = 0, name_bytes_ = 0;
};

bool Reader::read_packet() {
  std::string_view head = input_.peek(kMostOfHead);
  if (head.empty()) return false;
  const std::size_t seen = head.size();
  const auto key = wire::take_varint(head);
  const auto size = key ? wire::take_varint(head) : std::nullopt;
  if (!size || (*key & 7U) != static_cast<std::uint64_t>(wire::Type::kBytes)) {
    // Fewer bytes than a head can have, so the file was truncated in it.
    if (seen < kMostOfHead && (!key || !size) && seen < 11) return false;
    fail("is not a packet of a trace; the file is damaged or not a .pftrace");
  }
  (void)input_.skip(seen - head.size());
  if (input_.place() > limits_.max_bytes) fail("more bytes than this program reads");
  std::string_view start = input_.peek(kMostOfHead);
  start = start.substr(0, std::min<std::uint64_t>(*size, start.size()));
  const auto field = *key >> 3U == perfetto::kTracePacket ? wire::take_varint(start) : std::nullopt;
  const std::uint64_t number = field.value_or(0) >> 3U;
  if (number < packet::kOurProcess || number > packet::kOurEnd) return input_.skip(*size);

  if (*size > limits_.max_string + kMostOfRecords) fail("a packet that is too large");
  std::string_view message = input_.peek(*size);
  const bool whole = message.size() == *size;
  (void)wire::take_varint(message);
  const auto inside = wire::take_varint(message);
  if (!inside || (whole && *inside != message.size())) {
    if (!whole) return false;
    fail("a packet of the wrong length; the file is damaged");
  }
  read_ours(static_cast<std::uint32_t>(number), message, whole);
  return input_.skip(*size) && whole;
}

void Reader::read_ours(std::uint32_t field, std::string_view message, bool whole) {
  if (field == packet::kOurRecords) return add_records(message, whole);
  if (!whole) return;
  switch (field) {
    case packet::kOurProcess:
      return begin_process(message);
    case packet::kOurName:
      return add_name(message);
    default:
      return end_process(message);
  }
}

void Reader::begin_process(std::string_view message) {
  if (timeline_.processes.size() >= limits_.max_processes)
    fail("more processes than this program reads");
  Process process;
  std::uint64_t version = 0;
  while (const auto field = next(message)) {
    switch (field->number) {
      case ours::kVersionField:
        version = field->value;
        break;
      case ours::kPid:
        process.info.pid = static_cast<std::uint32_t>(field->value);
        break;
      case ours::kRank:
        process.info.rank = static_cast<std::uint32_t>(field->value);
        break;
      case ours::kProgram:
        process.info.program = text(field->bytes);
        break;
      case ours::kHost:
        process.info.host = text(field->bytes);
        break;
      case ours::kBoot:
        process.info.boot = text(field->bytes);
        break;
      case ours::kMonotonic:
        process.info.monotonic_ns = field->value;
        break;
      case ours::kUnix:
        process.info.unix_ns = field->value;
        break;
      default:
        break;
    }
  }
  if (version != ours::kVersion) {
    fail("version " + std::to_string(version) + " of the format; this program reads version " +
         std::to_string(ours::kVersion));
  }
  if (timeline_.processes.empty()) {
    // Pages beyond the last record are never touched.
    process.records.reserve(std::min(size_ / kLeastPerRecord, limits_.max_records));
  }
  timeline_.processes.push_back(std::move(process));
  packed_ = std::make_unique<Packed>();
  name_bytes_ = 0;
}

void Reader::add_name(std::string_view message) {
  Process& process = current();
  std::uint64_t number = 0;
  std::string name;
  while (const auto field = next(message)) {
    if (field->number == ours::kNumber) number = field->value;
    if (field->number == ours::kText) name = text(field->bytes);
  }
  if (number == 0 || number > limits_.max_names) {
    fail("a name of number " + std::to_string(number) + "; from 1 to " +
         std::to_string(limits_.max_names) + " is allowed");
  }
  name_bytes_ += name.size();
  if (name_bytes_ > limits_.max_name_bytes) fail("more bytes of names than this program reads");
  if (process.names.size() <= number) process.names.resize(number + 1);
  process.names[number] = std::move(name);
}

void Reader::add_records(std::string_view message, bool whole) {
  Process& process = current();
  TimelineRecord record;
  for (;;) {
    const Packed::Found found = packed_->unpack(message, record);
    if (found == Packed::Found::kNonsense) fail("a record of an unknown kind; the file is damaged");
    if (found == Packed::Found::kCut) {
      if (whole && !message.empty()) fail("a record that ends early; the file is damaged");
      return;
    }
    if (++records_ > limits_.max_records) {
      fail("more than " + std::to_string(limits_.max_records) + " records; no more are read");
    }
    process.records.push_back(record);
  }
}

void Reader::end_process(std::string_view message) {
  Process& process = current();
  process.complete = true;
  while (const auto field = next(message)) {
    if (field->number == ours::kLost) process.lost = field->value;
    if (field->number == ours::kCut && field->value != 0) process.complete = false;
  }
}

/// Corrects what no recorder writes but a damaged file may contain: ends before begins, undefined
/// names.
void Reader::repair(Process& process) noexcept {
  for (TimelineRecord& record : process.records) {
    record.end = std::max(record.begin, record.end);
    if (record.name >= process.names.size()) record.name = 0;
    if (record.site >= process.names.size()) record.site = 0;
    record.reserved = 0;
  }
}

void Reader::put_in_order(Process& process) {
  const auto before = [](const TimelineRecord& a, const TimelineRecord& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.sequence < b.sequence;
  };
  if (std::is_sorted(process.records.begin(), process.records.end(), before)) return;
  std::stable_sort(process.records.begin(), process.records.end(), before);
}

}  // namespace

Timeline read_perfetto_bytes(std::string_view bytes, const std::string& name,
                             const ReadLimits& limits) {
  std::string_view rest = bytes;
  const auto source = [&](char* to, std::size_t size) {
    const std::size_t taken = std::min(size, rest.size());
    std::copy_n(rest.data(), taken, to);
    rest.remove_prefix(taken);
    return taken;
  };
  return Reader(source, name, limits).read(bytes.size());
}

Timeline read_perfetto(const std::string& path, const ReadLimits& limits) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             &std::fclose);
  if (file == nullptr) {
    throw UsageError(shown_text(path) + " cannot be opened: " + std::strerror(errno));
  }
  std::uint64_t size = 0;
  if (std::fseek(file.get(), 0, SEEK_END) == 0) {
    size = static_cast<std::uint64_t>(std::max(0L, std::ftell(file.get())));
  }
  std::rewind(file.get());
  const auto source = [&](char* to, std::size_t want) {
    const std::size_t got = std::fread(to, 1, want, file.get());
    if (got == 0 && std::ferror(file.get()) != 0) {
      throw UsageError(shown_text(path) + " cannot be read: " + std::strerror(errno));
    }
    return got;
  };
  return Reader(source, path, limits).read(size);
}

}  // namespace weir::timeline

namespace weir::timeline::perfetto {

bool recognises(std::string_view front) {
  return front.starts_with('\n');  // the tag of the first packet
}

bool recognises_ours(std::string_view front) {
  constexpr auto kMessage = static_cast<std::uint64_t>(wire::Type::kBytes);
  if (wire::take_varint(front) != (std::uint64_t{kTracePacket} << 3U | kMessage)) return false;
  (void)wire::take_varint(front);  // the packet's length
  return wire::take_varint(front) == (std::uint64_t{packet::kOurProcess} << 3U | kMessage);
}

}  // namespace weir::timeline::perfetto
