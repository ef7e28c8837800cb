#include "sim/collectives/library.h"

#include <algorithm>

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
  std::vector<Problem> problems;
  if (library.ideal()) return problems;
  for (std::size_t i = 0; i < library.timings.size(); ++i) {
    const ProtocolTiming& timing = library.timings[i];
    const std::string field = "timing[" + std::to_string(i) + "]";
    for (const double fraction : timing.link_fraction) {
      if (!(fraction > 0 && fraction <= 1)) {
        problems.push_back({field, "link fractions must be above 0 and at most 1, one is " +
                                       std::to_string(fraction)});
      }
    }
    const ProtocolChannels& channels = timing.channels;
    if (std::min({channels.most, channels.network, channels.network_most}) < 0) {
      problems.push_back({field + ".channels", "must have no negative number of channels"});
    }
    if (std::min(channels.bytes, channels.member_bytes) < Bytes(0) || channels.rate.value() < 0 ||
        !(channels.accesses >= 0)) {
      problems.push_back({field + ".channels", "must have no negative bytes, rate or accesses"});
    }
    if (timing.fill_bytes <= Bytes(0)) {
      problems.push_back({field + ".fill_bytes", "must be positive"});
    }
    if (library.find(timing.path, timing.protocol) != &timing) {
      problems.push_back({field, "is the second of " + std::string(name_of(timing.path)) + " " +
                                     std::string(name_of(timing.protocol))});
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
  if (library.tuner.messages_ll_up_to > Bytes(0)) {
    need(LibraryPath::kMessages, Protocol::kLl, "tuner.messages_ll_up_to is given");
  }
  if (library.most_channels < 0) {
    problems.push_back(
        {"most_channels", "must not be negative, is " + std::to_string(library.most_channels)});
  }
  for (const ProtocolTuning& tuning : library.tuner.protocols) {
    need(tuning.path, tuning.protocol, "it is tuned");
  }
  return problems;
}

}  // namespace stepsim
