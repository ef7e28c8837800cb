#include "sim/base/suggestion.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

std::string plain(std::string_view name) {
  std::string result;
  for (const char letter : name) {
    if (letter == '-' || letter == '_' || letter == ' ') continue;
    result += small_letter(letter);
  }
  return result;
}

// Returns the Levenshtein distance, counting a swap of neighbours as one edit. O(a * b).
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> now(b.size() + 1);
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({replaced, last[j] + 1, now[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before = std::move(last);
    last = std::move(now);
  }
  return last[b.size()];
}

// "zbv_hand or zbv_auto" for "zbv".
std::string names_that_begin_with(const std::string& wanted,
                                  std::span<const std::string> candidates) {
  constexpr std::size_t kShortest = 3;
  constexpr std::size_t kMostNames = 4;
  if (wanted.size() < kShortest) return "";
  std::string names;
  std::size_t count = 0;
  for (const std::string& candidate : candidates) {
    if (!plain(candidate).starts_with(wanted)) continue;
    if (++count > kMostNames) return "";
    names += (names.empty() ? "" : " or ") + candidate;
  }
  return names;
}

}  // namespace

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  constexpr std::size_t kLongestName = 200;  // comparing takes the product of lengths
  if (name.size() > kLongestName) return "";
  const std::string wanted = plain(name);
  std::size_t best = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  const std::string* meant = nullptr;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edits(wanted, plain(candidate));
    if (distance < best) {
      best = distance;
      meant = &candidate;
    }
  }
  const std::string names = meant != nullptr ? *meant : names_that_begin_with(wanted, candidates);
  return names.empty() ? "" : "; did you mean " + names + "?";
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates,
                         std::string more) {
  const std::string hint = did_you_mean(name, candidates);
  if (hint.empty()) more.front() = small_letter(more.front());
  return (hint.empty() ? "; " : hint + " ") + more;
}

std::string comma_separated(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace stepsim
