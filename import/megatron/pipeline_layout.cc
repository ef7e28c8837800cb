#include "import/megatron/pipeline_layout.h"

#include <string>

#include "sim/base/field_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostLayoutLetters = 100'000;

// Writes out "(tt|)*29": what is in parentheses, or one letter, repeated.
class LayoutText {
 public:
  explicit LayoutText(std::string_view text) : text_(text) {}

  std::optional<std::string> expanded() {
    auto all = sequence(0);
    return all && at_ == text_.size() ? all : std::nullopt;
  }

 private:
  static constexpr int kMostDepth = 20;

  std::optional<std::string> sequence(int depth) {
    std::string result;
    while (at_ < text_.size() && text_[at_] != ')') {
      std::string part;
      const char c = text_[at_++];
      if (c == ',' || c == ' ' || c == '"' || c == '\'') continue;
      if (c == '(') {
        if (depth > kMostDepth) return std::nullopt;
        const auto inner = sequence(depth + 1);
        if (!inner || at_ >= text_.size()) return std::nullopt;
        ++at_;
        part = *inner;
      } else {
        part = c;
      }
      const auto times = repeats();
      if (!times || *times * part.size() + result.size() > kMostLayoutLetters) return std::nullopt;
      for (std::size_t i = 0; i < *times; ++i) result += part;
    }
    return result;
  }

  std::optional<std::size_t> repeats() {
    if (at_ >= text_.size() || text_[at_] != '*') return 1;
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    const auto times = number_in<std::size_t>(text_.substr(begin, at_ - begin));
    return times && *times <= kMostLayoutLetters ? times : std::nullopt;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<std::int64_t>> core_layout(std::string_view text) {
  const std::optional<std::string> letters = LayoutText(text).expanded();
  if (!letters) return std::nullopt;
  std::vector<std::int64_t> layers(1);
  for (const char c : *letters) {
    switch (c) {
      case 't':
        ++layers.back();
        break;
      case '|':
        layers.push_back(0);
        break;
      case 'E':
      case 'L':
      case 'm':
        break;
      default:
        return std::nullopt;
    }
  }
  return layers;
}

std::optional<std::vector<std::int64_t>> uneven_layout(const UnevenStages& s) {
  constexpr std::int64_t kMostStages = 10'000;
  const std::int64_t counted = (s.counts_embedding ? 1 : 0) + (s.counts_loss ? 1 : 0);
  const std::int64_t ends = (s.first ? 1 : 0) + (s.last ? 1 : 0);
  if (s.pp < 1 || s.chunks < 1 || s.pp > kMostStages / s.chunks || s.pp < ends) return std::nullopt;
  std::int64_t rest = s.layers + counted - s.first.value_or(0) - s.last.value_or(0);
  const std::int64_t ranks = s.pp - ends;
  if (rest < 0 || (ranks > 0 && rest % ranks != 0) || (ranks == 0 && rest != 0))
    return std::nullopt;
  const std::int64_t of_rank = ranks > 0 ? rest / ranks : 0;
  std::vector<std::int64_t> layers;
  for (std::int64_t chunk = 0; chunk < s.chunks; ++chunk) {
    for (std::int64_t rank = 0; rank < s.pp; ++rank) {
      std::int64_t all = of_rank;
      if (rank == 0 && s.first) all = *s.first;
      if (rank == s.pp - 1 && s.last) all = *s.last;
      if (all % s.chunks != 0) return std::nullopt;
      layers.push_back(all / s.chunks);
    }
  }
  if (s.counts_embedding) --layers.front();
  if (s.counts_loss) --layers.back();
  if (layers.front() < 0 || layers.back() < 0) return std::nullopt;
  return layers;
}

}  // namespace stepsim
