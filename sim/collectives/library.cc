#include "sim/collectives/library.h"

#include <algorithm>

#include "sim/collectives/library_fields.h"

namespace stepsim {

std::string_view name_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::kLl:
      return "LL";
    case Protocol::kLl128:
      return "LL128";
    case Protocol::kSimple:
      break;
  }
  return "Simple";
}

std::string_view name_of(LibraryPath path) {
  switch (path) {
    case LibraryPath::kRing:
      return "ring";
    case LibraryPath::kTree:
      return "tree";
    case LibraryPath::kNvls:
      return "nvls";
    case LibraryPath::kNvlsTree:
      return "nvls-tree";
    case LibraryPath::kRelay:
      return "relay";
    case LibraryPath::kMessages:
      break;
  }
  return "messages";
}

const ProtocolTiming* CommunicationLibrary::find(LibraryPath path, Protocol protocol) const {
  const auto found = std::ranges::find_if(timings, [&](const ProtocolTiming& timing) {
    return timing.path == path && timing.protocol == protocol;
  });
  return found == timings.end() ? nullptr : &*found;
}

std::vector<Problem> check(const CommunicationLibrary& library) {
  std::vector<Problem> problems = library_fields().problems(library);
  if (library.ideal()) return problems;
  for (std::size_t i = 0; i < library.timings.size(); ++i) {
    const ProtocolTiming& timing = library.timings[i];
    const std::string field = "timing[" + std::to_string(i) + "]";
    if (library.find(timing.path, timing.protocol) != &timing) {
      problems.push_back({field, "is the second of " + std::string(name_of(timing.path)) + " " +
                                     std::string(name_of(timing.protocol))});
    }
    const auto takes_all = [&](const ProtocolTiming& other) {
      return other.path == timing.path && !other.most_bytes;
    };
    if (timing.most_bytes && std::ranges::none_of(library.timings, takes_all)) {
      problems.push_back({field + ".most_bytes",
                          "is set for each protocol of the path: leave it out for one of them"});
    }
  }
  const auto need = [&](LibraryPath path, Protocol protocol, const char* why) {
    if (library.find(path, protocol) != nullptr) return;
    problems.push_back({"timing", "must have one of path \"" + std::string(name_of(path)) +
                                      "\" and protocol \"" + std::string(name_of(protocol)) +
                                      "\": " + why});
  };
  need(LibraryPath::kRing, Protocol::kSimple, "large collectives take it");
  need(LibraryPath::kMessages, Protocol::kSimple, "large messages take it");
  return problems;
}

}  // namespace stepsim
