#include "trainer/checkpoint/checkpoint_writer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/checksum.hpp"

namespace weir {
namespace {

/// The file has the words as this machine has them.
static_assert(std::endian::native == std::endian::little);

/// Appends contents, and the checksum of all contents so far.
class CheckedOutput {
 public:
  explicit CheckedOutput(OutputFile& file) : file_(file) {}

  void append(std::span<const std::byte> bytes) {
    checksum_.add(bytes);
    file_.append({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  void append_checksum() {
    const auto bytes = std::bit_cast<std::array<char, kChecksumBytes>>(checksum_.value());
    file_.append({bytes.data(), bytes.size()});
  }

 private:
  OutputFile& file_;
  Checksum checksum_;
};

void write_contents(OutputFile& file, const CheckpointHeader& header, const ReadPiece& read) {
  const std::string begin = encode_header(header);
  std::vector<float> chunk(kChunkElements);
  CheckedOutput output(file);
  output.append(std::as_bytes(std::span(begin)));
  output.append_checksum();
  for (std::size_t i = 0; i < header.sections.size(); ++i) {
    const std::size_t elements = elements_of(header.sections[i]);
    for (std::size_t first = 0; first < elements; first += kChunkElements) {
      const auto piece = std::span(chunk).first(std::min(kChunkElements, elements - first));
      read(i, first, piece);
      output.append(std::as_bytes(piece));
      output.append_checksum();
    }
  }
}

}  // namespace

void write_checkpoint(OutputFile& file, const CheckpointHeader& header, const ReadPiece& read) {
  file.begin();
  try {
    write_contents(file, header, read);
  } catch (...) {
    file.discard();
    throw;
  }
  file.commit();
}

}  // namespace weir
