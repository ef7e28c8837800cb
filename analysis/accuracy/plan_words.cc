#include "analysis/accuracy/plan_words.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "analysis/accuracy/columns.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

template <typename Value>
struct Meaning {
  std::string_view word;  // in small letters, without spaces, "-" and "_"
  Value value;
};

// The first that a text has counts.
constexpr std::array<Meaning<std::int64_t>, 23> kZeroWords = {{
    {"optimizer+gradient", 2},  // "FSDP: optimizer+gradient" is PyTorch's SHARD_GRAD_OP
    {"shardgradop", 2},
    {"zero3", 3},
    {"stage3", 3},
    {"fsdp", 3},
    {"hsdp", 3},
    {"fullshard", 3},
    {"fullyshard", 3},
    {"hybridshard", 3},
    {"zero2", 2},
    {"stage2", 2},
    {"zero1", 1},
    {"stage1", 1},
    {"zero0", 0},
    {"stage0", 0},
    {"distributedoptimizer", 1},
    {"distopt", 1},
    {"distributedadam", 1},
    {"distribopt", 1},
    {"shardeddataparallel", 1},  // optimizer state, as fairscale's and Paddle's first stage
    {"zerooptim", 1},
    {"ddp", 0},
    {"zero", 1},  // of Rajbhandari et al. without a stage
}};

constexpr std::array<Meaning<ScheduleName>, 21> kScheduleWords = {{
    {"dualpipev", ScheduleName::kDualPipeV},
    {"dualpipe", ScheduleName::kDualPipe},
    {"chimera", ScheduleName::kChimera},
    {"hanayo", ScheduleName::kHanayo},
    {"breadthfirst", ScheduleName::kBreadthFirst},
    {"interleavedzb", ScheduleName::kInterleavedZeroBubble},
    {"interleavedzero", ScheduleName::kInterleavedZeroBubble},
    {"zb2p", ScheduleName::kZeroBubbleAuto2P},
    {"zb1p", ScheduleName::kZeroBubbleAuto1P},
    {"zbv", ScheduleName::kZeroBubbleVAuto},
    {"zbh2", ScheduleName::kZeroBubbleH2},
    {"zbh1", ScheduleName::kZeroBubbleH1},
    {"zerobubble", ScheduleName::kZeroBubbleH1},
    {"interleaved/1f1bnotstated", ScheduleName::kOneForwardOneBackward},
    {"noninterleaved", ScheduleName::kOneForwardOneBackward},
    {"interleav", ScheduleName::kInterleaved},
    {"vpp", ScheduleName::kInterleaved},
    {"gpipe", ScheduleName::kGPipe},
    {"pipedreamflush", ScheduleName::kOneForwardOneBackward},
    {"dapple", ScheduleName::kOneForwardOneBackward},
    {"1f1b", ScheduleName::kOneForwardOneBackward},
}};

std::string squeezed(std::string_view text) {
  std::string result = in_small_letters(text);
  std::erase_if(result, [](char c) { return c == ' ' || c == '-' || c == '_'; });
  return result;
}

template <typename Value>
std::optional<Value> meaning_of(std::string_view text, std::span<const Meaning<Value>> words) {
  const auto found = std::ranges::find_if(
      words, [text](const Meaning<Value>& one) { return text.find(one.word) != text.npos; });
  return found == words.end() ? std::nullopt : std::optional(found->value);
}

}  // namespace

bool says_yes(std::string_view text) {
  const std::string words = squeezed(text);
  return words == "1" || words == "y" || words == "on" || words.starts_with("yes") ||
         words.starts_with("true");
}

std::optional<std::int64_t> zero_of_words(std::string_view text) {
  const std::string words = squeezed(text);
  const bool is_off = words == "off" || words.ends_with(":off") || words.ends_with("=off") ||
                      words.ends_with("false") || words.ends_with("disabled");
  if (is_blank(text) || words.starts_with("no") || is_off) return 0;
  const bool is_digit = words.size() == 1 || words[1] < '0' || words[1] > '9';
  if (words[0] >= '0' && words[0] <= '3' && is_digit) return words[0] - '0';
  return meaning_of<std::int64_t>(words, kZeroWords);
}

std::optional<ScheduleName> schedule_of_words(std::string_view text) {
  const std::string words = squeezed(text);
  if (is_blank(text) || words == "none" || words.starts_with("1f1b")) {
    return ScheduleName::kOneForwardOneBackward;
  }
  return meaning_of<ScheduleName>(words, kScheduleWords);
}

OverlapWords::OverlapWords(std::string_view text) : text_(squeezed(text)) {}

bool OverlapWords::says(std::string_view word) const {
  return answer(word) == Answer::kYes;
}

bool OverlapWords::denies(std::string_view word) const {
  return answer(word) == Answer::kNo;
}

OverlapWords::Answer OverlapWords::answer(std::string_view word) const {
  constexpr std::array<std::string_view, 6> kNo = {"false", "0",  "notset",
                                                   "none",  "no", "disabled"};
  constexpr std::string_view kBetween = ",;()/+&|";
  const std::string_view text = text_;
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t begin = at == 0 ? 0 : text.find_last_of(kBetween, at - 1) + 1;
    const std::string_view before = text.substr(begin, at - begin);
    if (before == "no" || before.ends_with("without")) return Answer::kNo;
    std::string_view rest = text.substr(at + word.size());
    rest = rest.substr(0, rest.find_first_of(kBetween));
    if (rest.starts_with('s')) rest.remove_prefix(1);
    const std::size_t sign = rest.find_first_of("=:");
    if (sign == rest.npos) return Answer::kYes;
    if (sign > 0) continue;  // another setting, whose name goes on
    const std::string_view value = rest.substr(1);
    if (value == "off") return Answer::kNo;
    const auto begins = [value](std::string_view no) { return value.starts_with(no); };
    return std::ranges::any_of(kNo, begins) ? Answer::kNo : Answer::kYes;
  }
  return Answer::kSilent;
}

}  // namespace stepsim
