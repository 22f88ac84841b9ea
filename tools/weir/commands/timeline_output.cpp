#include "tools/weir/commands/timeline_output.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "allocator/base/error.hpp"
#include "tools/timeline/files/write.hpp"

namespace weir::cli {
namespace {

/// Writes bytes to an unnamed temporary file, which can then be read as one text.
class SpilledBytes final : public timeline::ByteSink {
 public:
  SpilledBytes() : file_(std::tmpfile()) {
    if (file_ == nullptr) fail(errno);
  }
  ~SpilledBytes() override {
    if (seen_ != nullptr) (void)munmap(seen_, size_);
    (void)std::fclose(file_);
  }
  SpilledBytes(const SpilledBytes&) = delete;
  SpilledBytes& operator=(const SpilledBytes&) = delete;

  void append(std::string_view bytes) noexcept override {
    while (!bytes.empty() && error_ == 0) {
      const ssize_t written = write(fileno(file_), bytes.data(), bytes.size());
      if (written < 0) {
        if (errno != EINTR) error_ = errno;
        continue;
      }
      size_ += static_cast<std::size_t>(written);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  /// Returns all bytes. Throws UsageError if there was no room.
  [[nodiscard]] std::string_view text() {
    if (error_ != 0) fail(error_);
    if (size_ == 0) return {};
    seen_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fileno(file_), 0);
    if (seen_ == MAP_FAILED) {
      seen_ = nullptr;
      fail(errno);
    }
    return {static_cast<const char*>(seen_), size_};
  }

 private:
  [[noreturn]] static void fail(int error) {
    throw UsageError("a temporary file cannot be written (" +
                     std::generic_category().message(error) + ")");
  }

  std::FILE* file_;
  std::size_t size_ = 0;
  int error_ = 0;
  void* seen_ = nullptr;
};

}  // namespace

TimelineOutput::TimelineOutput(const std::string& option, const std::string& path)
    : format_(timeline::require_format(option, path, timeline::FormatUse::kWrite)),
      file_(option, path) {}

void TimelineOutput::commit(const timeline::Timeline& timeline) {
  SpilledBytes bytes;
  timeline::write_timeline(timeline, format_, bytes);
  file_.commit(bytes.text());
}

}  // namespace weir::cli
