#include "analysis/accuracy/plan_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
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
constexpr std::array<Meaning<std::int64_t>, 28> kZeroWords = {{
    {"optimgradsparams", 3},  // Megatron-FSDP: data_parallel_sharding_strategy
    {"optimgrads", 2},
    {"strategyoptim", 1},
    {"strategy:optim", 1},
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
    {"optimizerstatessharded", 1},
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

constexpr std::array<Meaning<AdapterPlace>, 32> kAdapterWords = {{
    {"q", AdapterPlace::kQkv},          {"k", AdapterPlace::kQkv},
    {"v", AdapterPlace::kQkv},          {"qkv", AdapterPlace::kQkv},
    {"qproj", AdapterPlace::kQkv},      {"kproj", AdapterPlace::kQkv},
    {"vproj", AdapterPlace::kQkv},      {"qkvproj", AdapterPlace::kQkv},
    {"linearqkv", AdapterPlace::kQkv},  {"attentionqkv", AdapterPlace::kQkv},
    {"o", AdapterPlace::kOut},          {"out", AdapterPlace::kOut},
    {"oproj", AdapterPlace::kOut},      {"linearproj", AdapterPlace::kOut},
    {"mlp", AdapterPlace::kMlp},        {"linearfc1", AdapterPlace::kMlp},
    {"linearfc2", AdapterPlace::kMlp},  {"gate", AdapterPlace::kMlp},
    {"up", AdapterPlace::kMlp},         {"down", AdapterPlace::kMlp},
    {"gateupproj", AdapterPlace::kMlp}, {"downproj", AdapterPlace::kMlp},
    {"gateproj", AdapterPlace::kMlp},   {"upproj", AdapterPlace::kMlp},
    {"cattn", AdapterPlace::kQkv},      {"cproj", AdapterPlace::kOut},
    {"w1", AdapterPlace::kMlp},         {"w2", AdapterPlace::kMlp},
    {"query", AdapterPlace::kQkv},      {"key", AdapterPlace::kQkv},
    {"value", AdapterPlace::kQkv},      {"projection", AdapterPlace::kOut},
}};

std::string squeezed(std::string_view text) {
  std::string result = in_small_letters(text);
  std::erase_if(result, [](char c) { return c == ' ' || c == '-' || c == '_'; });
  return result;
}

bool joins_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

// Returns where "lora" ends, if it is a word of its own ("LoRA", "QLoRA", "lora16", "lora_rank=16",
// but not "exploration", and not the "kv_lora_rank" of latent attention).
std::optional<std::size_t> end_of_lora(std::string_view text) {
  constexpr std::string_view kMark = "lora";
  for (std::size_t at = text.find(kMark); at != text.npos; at = text.find(kMark, at + 1)) {
    const std::size_t end = at + kMark.size();
    const bool is_quantized =
        at > 0 && text[at - 1] == 'q' && (at == 1 || !joins_word(text[at - 2]));
    const bool begins =
        at == 0 || is_quantized || (text[at - 1] != '_' && !joins_word(text[at - 1]));
    if (begins && (end == text.size() || !joins_word(text[end]))) return end;
  }
  return std::nullopt;
}

std::vector<AdapterPlace> places_of_word(std::string_view word) {
  if (word == "all") return Adapters{}.places;
  if (word == "attention") return {AdapterPlace::kQkv, AdapterPlace::kOut};
  const auto* const found = std::ranges::find(kAdapterWords, word, &Meaning<AdapterPlace>::word);
  if (found == kAdapterWords.end()) return {};
  return {found->value};
}

// Reads "16", "r8", "r=8" and "rank=8".
std::optional<std::int64_t> rank_of_word(std::string_view word) {
  constexpr std::int64_t kMost = 65'536;
  const std::size_t digit = std::min(word.find_first_of("0123456789"), word.size());
  const std::string_view before = word.substr(0, digit);
  if (before != "" && before != "r" && before != "r=" && before != "rank" && before != "rank=") {
    return std::nullopt;
  }
  std::int64_t rank = 0;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data() + digit, end, rank);
  if (read.ec != std::errc() || read.ptr != end || rank < 1 || rank > kMost) return std::nullopt;
  return rank;
}

// Returns whether a text has the word, and does not set it to false ("zero1=8,fsdpfalse").
bool names(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == text.npos) return false;
  std::string_view rest = text.substr(at + word.size());
  if (rest.starts_with('=') || rest.starts_with(':')) rest.remove_prefix(1);
  return !rest.starts_with("false") && !rest.starts_with("off");
}

// Returns which FlashAttention words without spaces name: "flashattention2", "flashattnv1.0.8",
// "fa3", but none of "useflashattention1", a switch, and "flashattention16k".
std::optional<AttentionLibrary> generation_of_flash(std::string_view words) {
  using enum AttentionLibrary;
  constexpr std::array kGenerations = {kFlash1, kFlash2, kFlash3, kFlash4};
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto generation = [&](std::string_view rest) -> std::optional<AttentionLibrary> {
    if (rest.starts_with('v')) rest.remove_prefix(1);
    const bool counts = rest.size() > 1 && (is_digit(rest[1]) || rest[1] == 'k');
    if (rest.empty() || rest[0] < '1' || rest[0] > '4' || counts) return std::nullopt;
    return kGenerations[static_cast<std::size_t>(rest[0] - '1')];
  };
  for (std::size_t at = words.find('f'); at != words.npos; at = words.find('f', at + 1)) {
    std::string_view rest = words.substr(at);
    const std::string_view before = words.substr(0, at);
    if (rest.starts_with("flash")) {
      rest.remove_prefix(5);
      for (const std::string_view part : {"attention", "attn"}) {
        if (rest.starts_with(part)) rest.remove_prefix(part.size());
      }
      if (before.ends_with("use")) continue;
    } else if (rest.starts_with("fa") && (before.empty() || !is_letter(before.back()))) {
      rest.remove_prefix(2);
    } else {
      continue;
    }
    if (const auto found = generation(rest)) return found;
  }
  return std::nullopt;
}

template <typename Value>
std::optional<Value> meaning_of(std::string_view text, std::span<const Meaning<Value>> words) {
  const auto found = std::ranges::find_if(
      words, [text](const Meaning<Value>& one) { return names(text, one.word); });
  return found == words.end() ? std::nullopt : std::optional(found->value);
}

}  // namespace

bool says_yes(std::string_view text) {
  const std::string words = squeezed(text);
  return words == "1" || words.starts_with("1(") || words == "y" || words == "on" ||
         words.starts_with("yes") || words.starts_with("true") || words.starts_with("enabled");
}

bool divides_sequence(std::string_view text) {
  constexpr std::string_view kName = "sequenceparallel";
  const std::string words = squeezed(text);
  const std::size_t at = words.find(kName);
  if (says_yes(text) || words.starts_with("flagpassed")) return true;
  if (at == words.npos || words.starts_with("no")) return false;
  std::string_view value = std::string_view(words).substr(at + kName.size());
  if (value.starts_with("ism")) value.remove_prefix(3);
  if (value.starts_with('=') || value.starts_with(':')) value.remove_prefix(1);
  return value.empty() || value.starts_with('(') || says_yes(value);
}

std::optional<std::int64_t> zero_of_words(std::string_view text) {
  std::string words = squeezed(text);
  if (words.starts_with("z=")) words.erase(0, 2);
  const bool is_off = words == "off" || words.ends_with(":off") || words.ends_with("=off") ||
                      words.ends_with("false") || words.ends_with("disabled");
  const bool is_whole = words.find("noshard") != words.npos;  // of FSDP: DDP by another name
  if (is_blank(text) || words.starts_with("no") || is_off || is_whole) return 0;
  const bool is_digit = words.size() == 1 || words[1] < '0' || words[1] > '9';
  if (words[0] >= '0' && words[0] <= '3' && is_digit) return words[0] - '0';
  return meaning_of<std::int64_t>(words, kZeroWords);
}

bool fuses_attention(std::string_view text, bool usual) {
  constexpr std::array<std::string_view, 9> kApart = {
      "standard",          "eager", "noflash",      "unfused", "vanilla",
      "useflashattnfalse", "math",  "withoutflash", "naive"};
  constexpr std::array<std::string_view, 9> kFused = {
      "flash", "sdpa", "scaleddotproduct", "fused", "cudnn", "splash", "xformers", "mla", "te+"};
  const std::string words = squeezed(text);
  const auto says = [&words](std::string_view word) { return words.find(word) != words.npos; };
  if (std::ranges::any_of(kApart, says)) return false;
  return words == "te" || std::ranges::any_of(kFused, says) || usual;
}

std::optional<AttentionLibrary> attention_library_of_words(std::string_view text,
                                                           std::optional<AttentionLibrary> usual) {
  const std::string words = squeezed(text);
  const auto says = [&words](std::string_view word) { return words.find(word) != words.npos; };
  if (says("cudnn")) return AttentionLibrary::kCudnn;
  if (const auto flash = generation_of_flash(words)) return flash;
  if (!says("sdpa") && !says("scaleddotproduct")) return std::nullopt;
  return usual.value_or(AttentionLibrary::kFlash2);
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

bool says_lora(std::string_view text) {
  return end_of_lora(in_small_letters(text)).has_value();
}

AdapterWords adapters_of_words(std::string_view text) {
  const std::string all = in_small_letters(text);
  const std::optional<std::size_t> begin = end_of_lora(all);
  AdapterWords found;
  if (!begin) return found;
  const std::string words = all.substr(0, all.find_first_of(");", *begin));
  bool may_be_rank = true;  // of the first word, and of one behind "rank"
  bool after_rank = false;
  for (std::size_t at = *begin; at < words.size();) {
    const std::size_t end = std::min(words.find_first_of(" ,+([]/:", at), words.size());
    const std::string word = squeezed(std::string_view(words).substr(at, end - at));
    const std::size_t start = std::exchange(at, end + 1);
    if (word.empty() || word == "on" || word == "and") continue;
    const bool is_number = word.find_first_not_of("0123456789") == std::string::npos;
    const bool follows = words.substr(*begin, start - *begin).find(',') == std::string::npos;
    const bool says_rank = word == "rank" || word == "r" || word == "lorar" || word == "lorarank";
    const bool names_rank =
        std::exchange(may_be_rank, says_rank) && (follows || !is_number || after_rank);
    after_rank = says_rank;
    const std::optional<std::int64_t> rank = names_rank ? rank_of_word(word) : std::nullopt;
    const std::vector<AdapterPlace> places = places_of_word(word);
    if (rank) {
      found.rank = rank;
    } else if (places.empty() && !says_rank) {
      break;  // of other things
    }
    for (const AdapterPlace place : places) {
      if (std::ranges::count(found.places, place) == 0) found.places.push_back(place);
    }
  }
  return found;
}

}  // namespace stepsim
