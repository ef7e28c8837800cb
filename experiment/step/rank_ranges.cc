#include "experiment/step/rank_ranges.h"

#include <fmt/format.h>

namespace stepsim {

std::string rank_ranges(const std::vector<RankId>& ranks, std::size_t most) {
  std::string text;
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end].index() == ranks[end - 1].index() + 1) ++end;
    if (ranges++ == most) {
      text += fmt::format(" and {} more", ranks.size() - i);
      break;
    }
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[i].index());
    if (end - i > 1) text += fmt::format("-{}", ranks[end - 1].index());
    i = end;
  }
  return text;
}

}  // namespace stepsim
