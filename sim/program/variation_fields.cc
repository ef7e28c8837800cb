#include "sim/program/variation_fields.h"

#include <algorithm>

namespace stepsim {

// Ranges of ranks, with both ends included: "0-7,16".
template <>
struct Text<std::vector<RankId>> {
  static std::string accepts() { return "ranks and ranges of ranks, as in 0-7,16"; }

  static std::optional<std::vector<RankId>> read(std::string_view text) {
    std::vector<RankId> ranks;
    for (const std::string_view part : split_text(text, ',')) {
      const std::size_t dash = part.find('-');
      const auto first = number_in<std::uint32_t>(part.substr(0, dash));
      const auto last =
          dash == std::string_view::npos ? first : number_in<std::uint32_t>(part.substr(dash + 1));
      if (!first || !last || *last < *first || *last - *first >= kMostRanks) return std::nullopt;
      for (std::uint32_t rank = *first; rank <= *last; ++rank) ranks.emplace_back(rank);
    }
    return ranks;
  }

  static std::string write(const std::vector<RankId>& ranks) {
    std::string text;
    for (auto at = ranks.begin(); at != ranks.end();) {
      const auto end = std::adjacent_find(
          at, ranks.end(), [](RankId one, RankId next) { return next.index() != one.index() + 1; });
      const auto last = end == ranks.end() ? end - 1 : end;
      text += (text.empty() ? "" : ",") + std::to_string(at->index());
      if (last != at) text += "-" + std::to_string(last->index());
      at = last + 1;
    }
    return text;
  }

  static std::string hint(std::string_view) { return ""; }

 private:
  static constexpr std::uint32_t kMostRanks = 1 << 24;
};

namespace {

constexpr double kMostSlowdown = 1e6;
constexpr double kMostJitter = 0.15;  // times kFarthest of variation.cc: below 1

const FieldTable<Straggler>& straggler_fields() {
  static const FieldTable<Straggler> kTable = [] {
    FieldTable<Straggler> table("Straggler");
    table.add("rank", &Straggler::ranks,
              {.help = "Ranks that are slower than the others.",
               .rules = "Ranks of the plan.",
               .required = true});
    table.add("slowdown", &Straggler::slowdown,
              {.low = 0, .high = kMostSlowdown, .above_low = true},
              {.help = "How many times longer kernels take; 1.2: 20 % longer.", .required = true});
    return table;
  }();
  return kTable;
}

const FieldTable<RankExchange>& exchange_fields() {
  static const FieldTable<RankExchange> kTable = [] {
    FieldTable<RankExchange> table("RankExchange");
    table.add("rank", &RankExchange::ranks,
              {.help = "Ranks that run on the chips of `with`, one by one.",
               .rules = "Ranks of the plan, each once in all exchanges.",
               .required = true});
    table.add("with", &RankExchange::with,
              {.help = "The ranks that run on theirs.",
               .rules = "As many as in `rank`.",
               .required = true});
    return table;
  }();
  return kTable;
}

}  // namespace

const FieldTable<Variation>& variation_fields() {
  static const FieldTable<Variation> kTable = [] {
    FieldTable<Variation> table("Variation");
    table.list("straggler", &Variation::stragglers, straggler_fields(),
               {.help = "Ranks that are slower all the time."});
    table.list("exchange", &Variation::exchanges, exchange_fields(),
               {.help = "Ranks on one another's chips, as where a spare node is far away."});
    table.add("jitter", &Variation::jitter, Limits::between(0, kMostJitter),
              {.help = "Standard deviation of the time of a run of kernels, as a fraction of it.",
               .advice = "0.02 is 2 %. The seed of the run decides who is slow when."});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
