#pragma once

// Writes a whole timeline with any writer or in any format.

#include "tools/timeline/files/formats.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// The names of a process that was read. Refers to that process.
class ProcessNames final : public Names {
 public:
  explicit ProcessNames(const Process& process) : process_(process) {}
  [[nodiscard]] std::string_view text(std::uint32_t number) const override {
    return process_.name(number);
  }

 private:
  const Process& process_;
};

/// Writes all processes and ends the file.
void write_timeline(const Timeline& timeline, Writer& writer);
/// Writes a file's bytes, compressed if the suffix says so.
void write_timeline(const Timeline& timeline, const NamedFormat& as, ByteSink& sink);

}  // namespace weir::timeline
