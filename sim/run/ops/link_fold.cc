#include "sim/run/ops/link_fold.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

namespace stepsim {

TransferLinks LinkFold::fold(std::span<const LinkUse> uses, std::uint32_t count) const {
  TransferLinks links;
  if (!folds()) {
    links.uses.assign(uses.begin(), uses.end());
    return links;
  }
  const Classes<LinkId>& classes = quotient_->links;
  for (const LinkUse& use : uses) {
    links.tracks.push_back(
        {.link = LinkId(classes.class_of[use.link.index()]), .weight = use.weight, .times = count});
  }
  std::ranges::sort(links.tracks, {},
                    [](const LinkTrack& track) { return std::tuple(track.link, track.weight); });
  std::size_t kept = 0;
  for (const LinkTrack& track : links.tracks) {
    LinkTrack* const last = kept == 0 ? nullptr : &links.tracks[kept - 1];
    if (last != nullptr && last->link == track.link && last->weight == track.weight) {
      last->times += track.times;
    } else {
      links.tracks[kept++] = track;
    }
  }
  links.tracks.resize(kept);
  for (LinkTrack& track : links.tracks) {
    const std::uint32_t size = classes.sizes[track.link.index()];
    if (track.times % size != 0) throw std::logic_error("links of a class are used unequally");
    track.times /= size;
    const double load = track.weight * static_cast<double>(track.times);
    if (!links.uses.empty() && links.uses.back().link == track.link) {
      links.uses.back().weight += load;
      links.alone.back() = std::max(links.alone.back(), track.weight);
    } else {
      links.uses.push_back({track.link, load});
      links.alone.push_back(track.weight);
    }
  }
  return links;
}

std::vector<ExactBytes> LinkFold::fold(std::span<const LinkUse> uses,
                                       std::span<const ExactBytes> bytes,
                                       std::uint32_t count) const {
  const Classes<LinkId>& classes = quotient_->links;
  std::map<std::uint32_t, ExactBytes> sums;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    sums[classes.class_of[uses[i].link.index()]] += bytes[i];
  }
  std::vector<ExactBytes> folded;
  for (const auto& [link, sum] : sums) {
    folded.push_back((std::uint64_t{count} * sum) / classes.sizes[link]);
  }
  return folded;
}

}  // namespace stepsim
