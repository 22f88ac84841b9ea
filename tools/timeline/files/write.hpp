#pragma once

// Writes a whole timeline with any writer.

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

}  // namespace weir::timeline
