// libFuzzer's target: the reader of checkpoints. Whatever the bytes: a checkpoint, of which each
// element is read once and in order, or a refusal of one line.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/error.hpp"
#include "fuzz.hpp"
#include "trainer/checkpoint/checkpoint_reader.hpp"

namespace weir::testing {
namespace {

/// Reads the file; whether it is a checkpoint.
bool read_checkpoint(const std::string& path) {
  try {
    const CheckpointReader reader("f", path);
    const CheckpointHeader& header = reader.header();
    require(!encode_header(header).empty());
    reader.require(header.settings, header.sections);
    std::vector<std::size_t> read(header.sections.size());
    reader.read([&](std::size_t section, std::size_t first, std::span<const float> elements) {
      require(section < read.size() && read[section] == first);
      read[section] += elements.size();
    });
    for (std::size_t i = 0; i < read.size(); ++i) {
      require(read[i] == elements_of(header.sections[i]));
    }
    return true;
  } catch (const UsageError& refusal) {
    const std::string_view text = refusal.what();
    require(text.starts_with("f: /proc/self/fd/") && text.size() < 1000);
    for (const char c : text) require(static_cast<unsigned char>(c) >= ' ');
    return false;
  }
}

/// The fuzzer's file, in memory.
class File {
 public:
  File() : descriptor_(memfd_create("checkpoint", MFD_CLOEXEC)) { require(descriptor_ >= 0); }
  ~File() { close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void set(std::string_view bytes) const {
    require(ftruncate(descriptor_, 0) == 0);
    const auto size = static_cast<ssize_t>(bytes.size());
    require(pwrite(descriptor_, bytes.data(), bytes.size(), 0) == size);
  }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  const int descriptor_;
};

/// Returns the bytes with the lengths and checksums that a writer would give them, as far as there
/// are any: chance does not find those.
std::string made_right(std::string bytes) {
  constexpr std::size_t kLengthOffset = kLinesOffset - 4;
  const auto word_at = [&](std::size_t offset) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + offset, sizeof word);
    return word;
  };
  const auto set_word = [&](std::size_t offset, std::uint32_t word) {
    std::memcpy(bytes.data() + offset, &word, sizeof word);
  };
  if (bytes.size() < kLinesOffset + kChecksumBytes) return bytes;
  std::memcpy(bytes.data(), kCheckpointMagic.data(), kCheckpointMagic.size());
  set_word(kCheckpointMagic.size(), kCheckpointVersion);
  std::size_t offset = kLinesOffset + word_at(kLengthOffset);
  if (offset + kChecksumBytes > bytes.size()) {
    offset = bytes.size() - kChecksumBytes;
    set_word(kLengthOffset, static_cast<std::uint32_t>(offset - kLinesOffset));
  }
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(bytes).first(offset)));
  set_word(offset, checksum.value());
  offset += kChecksumBytes;
  CheckpointHeader header;
  HeaderFault fault;
  const std::size_t lines = word_at(kLengthOffset);
  if (!decode_lines(std::string_view(bytes).substr(kLinesOffset, lines), header, fault)) {
    require(fault.offset <= lines && !fault.expected.empty() && !fault.found.empty());
    return bytes;
  }
  constexpr std::size_t kMost = 1U << 16U;  // one chunk, and no large file of zeros
  for (const Section& section : header.sections) {
    const std::size_t size = elements_of(section) * sizeof(float);
    if (size > kMost || offset > kMost) return bytes;
    bytes.resize(std::max(bytes.size(), offset + size + kChecksumBytes));
    checksum.add(std::as_bytes(std::span(bytes).subspan(offset, size)));
    set_word(offset + size, checksum.value());
    offset += size + kChecksumBytes;
  }
  bytes.resize(offset);
  return bytes;
}

}  // namespace

void fuzz(std::string_view bytes) {
  static const File kFile;
  kFile.set(std::string(bytes));
  (void)read_checkpoint(kFile.path());
  kFile.set(made_right(std::string(bytes)));
  (void)read_checkpoint(kFile.path());
}

}  // namespace weir::testing
