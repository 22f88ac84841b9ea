#include "tools/weir/doctor/checks/places.hpp"

namespace weir::cli::doctor {

std::string page(const Places& places, const std::string& name) {
  if (places.pages.empty()) return "the page " + name + " in the docs of Weir's source";
  return places.pages + "/" + name;
}

std::string build_a_plug(const Places& places) {
  return "build one as " + page(places, "packages.md") +
         " says under \"A version of PyTorch that came later\"";
}

}  // namespace weir::cli::doctor
