#include "cli/rank_list.h"

#include <optional>

#include "sim/base/field_text.h"

namespace stepsim {
std::vector<std::uint32_t> read_rank_list(std::string_view text, const RankListRules& rules,
                                          std::vector<Problem>& problems) {
  std::vector<std::uint32_t> ranks;
  std::vector<bool> taken(rules.count, false);
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string part(text.substr(0, comma));
    const std::size_t dash = part.find('-');
    const auto first = number_in<std::uint32_t>(std::string_view(part).substr(0, dash));
    const auto last = dash == std::string::npos
                          ? first
                          : number_in<std::uint32_t>(std::string_view(part).substr(dash + 1));
    if (!first || !last || *first > *last) {
      problems.push_back({rules.option, "must be ranks as in 0,8-15; has \"" + part + "\""});
    } else if (*last >= rules.count) {
      problems.push_back({rules.option, "must be " + rules.what + ", 0 to " +
                                            std::to_string(rules.count - 1) + "; has " + part});
    } else {
      for (std::uint32_t rank = *first; rank <= *last; ++rank) {
        if (taken[rank]) {
          problems.push_back({rules.option, "names rank " + std::to_string(rank) + " twice"});
        }
        taken[rank] = true;
        ranks.push_back(rank);
      }
    }
    if (comma == std::string_view::npos) return ranks;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace stepsim
