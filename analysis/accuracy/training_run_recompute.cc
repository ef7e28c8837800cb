#include "analysis/accuracy/training_run_recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>

#include "analysis/accuracy/columns.h"
#include "analysis/accuracy/words.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"
#include "sim/chips/kernel.h"

namespace stepsim {
namespace {

// Cuts a text at all that is neither a letter nor a digit nor "_", for which "-" stands too.
std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names(1);
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-') {
      names.back() += c == '-' ? '_' : c;
    } else if (!names.back().empty()) {
      names.emplace_back();
    }
  }
  if (names.back().empty()) names.pop_back();
  return names;
}

// Returns the alternative for the plan's type of "save_a (fp8) / save_b (bf16)"; the first if none
// names the type.
std::string_view alternative_for(std::string_view text, DataType type) {
  constexpr std::string_view kBetween = " / ";
  const std::string note = "(" + std::string(name_of(type)) + ")";
  for (std::string_view rest = text;
       rest.find(kBetween) != std::string_view::npos || rest != text;) {
    const std::size_t end = std::min(rest.find(kBetween), rest.size());
    if (rest.substr(0, end).find(note) != std::string_view::npos) return rest.substr(0, end);
    if (end == rest.size()) break;
    rest.remove_prefix(end + kBetween.size());
  }
  return text.substr(0, text.find(kBetween));
}

// ---- JAX ----

struct RematPolicy {
  std::string_view name;
  std::vector<KeptResult> kept;
  bool offloads = false;
};

const std::vector<RematPolicy>& remat_policies() {
  using enum KeptResult;
  static const std::vector<RematPolicy> kPolicies = {
      {"minimal", {kQkv, kOut, kUp, kDown}},
      {"minimal_with_context", {kQkv, kAttention, kOut, kUp, kDown}},
      {"minimal_flash", {kQkv, kAttention, kOut, kUp, kDown}},
      {"minimal_offloaded", {kQkv, kOut, kUp, kDown}, true},
      {"save_dot_with_context_except_mlp", {kQkv, kAttention, kOut}},
      {"save_dot_except_mlpwi", {kQkv, kOut, kDown}},
      {"save_dot_except_mlp", {kQkv, kOut}},
      {"save_qkv_proj", {kQkv}},
      {"qkv_proj_offloaded", {kQkv}, true},
      {"save_out_proj", {kOut}},
      {"save_qkv_out_proj", {kQkv, kOut}},
      {"save_context", {kAttention}},
      {"save_encoded_and_out_proj", {kAttention, kOut}},
      {"save_dot_for_mlperf_200b", {kQkv, kAttention, kOut}},
      {"save_dot_except_logits_ffn1", {kQkv, kAttention, kOut, kDown}},
      {"save_dot_except_logits", {kQkv, kAttention, kOut, kUp, kDown}},
      {"save_dot_only", {kQkv, kOut, kUp, kDown}},
      {"save_dot_with_no_batch_dim", {kQkv, kOut, kUp, kDown}}};
  return kPolicies;
}

std::optional<KeptResult> tensor_named(std::string_view name) {
  using enum KeptResult;
  if (name == "query_proj" || name == "key_proj" || name == "value_proj" || name == "qkv_proj") {
    return kQkv;
  }
  if (name == "context") return kAttention;
  if (name == "out_proj") return kOut;
  if (name == "mlpwo") return kDown;
  if (name.starts_with("mlpwi")) return kUp;
  return std::nullopt;
}

// Reads "all but decoder_layer_input(offload), query_proj(offload), context(remat)". A block's
// input is always kept.
RematPolicy custom_policy(std::string_view list) {
  RematPolicy policy{.name = "custom", .kept = {}};
  std::optional<KeptResult> named;
  const auto keep = [&] {
    if (named && std::ranges::count(policy.kept, *named) == 0) policy.kept.push_back(*named);
    named.reset();
  };
  for (const std::string& name : names_in(list)) {
    if (name == "remat") {
      named.reset();
    } else if (name.starts_with("offload")) {
      policy.offloads = true;
    } else {
      keep();
      named = tensor_named(name);
    }
  }
  keep();
  return policy;
}

std::optional<RematPolicy> remat_policy(const std::string& words) {
  constexpr std::string_view kCustom = "custom";
  if (words.starts_with(kCustom))
    return custom_policy(std::string_view(words).substr(kCustom.size()));
  const std::vector<std::string> names = names_in(words);
  if (names.empty()) return std::nullopt;
  const auto known = std::ranges::find(remat_policies(), names.front(), &RematPolicy::name);
  return known == remat_policies().end() ? std::nullopt : std::optional(*known);
}

void set_policy(const RematPolicy& policy, ParallelPlan& plan) {
  plan.recomputing.kind = policy.kept.empty() ? Recompute::kFull : Recompute::kAllBut;
  plan.recomputing.keep = policy.kept;
  plan.offload.activations = policy.offloads;
}

// ---- Megatron ----

// Returns an empty list if a name is none of Megatron Core's modules.
std::vector<RecomputeModule> recompute_modules(const std::vector<std::string>& names) {
  using enum RecomputeModule;
  static const std::vector<std::pair<std::string_view, RecomputeModule>> kModules = {
      {"norm", kNorm},
      {"layernorm", kNorm},
      {"act", kActivation},
      {"moe_act", kActivation},
      {"activation", kActivation},
      {"shared_expert", kSharedExperts},
      {"shared_experts", kSharedExperts},
      {"mla_up_proj", kLatentUp},
      {"core_attn", kAttention},
      {"core_attention", kAttention},
      {"attn", kAttention},
      {"attention", kAttention},
      {"mlp", kMlp},
      {"moe", kExperts}};
  std::vector<RecomputeModule> modules;
  for (const std::string& name : names) {
    if (is_word_of(name, {"selective", "select", "and", "only", "core", "modules"})) continue;
    const auto known = std::ranges::find(kModules, name, [](const auto& of) { return of.first; });
    if (known == kModules.end()) return {};
    modules.push_back(known->second);
  }
  return modules;
}

// ---- anybody's words ----

// Names without the words that only say that something is recomputed: "selective activation
// checkpointing" is selective.
std::vector<std::string> without_recompute(const std::vector<std::string>& names) {
  std::vector<std::string> rest;
  for (const std::string& name : names) {
    const bool says_it =
        is_word_of(name, {"checkpointing", "checkpoint", "checkpoints", "ckpt", "recompute",
                          "recomputation", "recomputing", "rematerialization", "remat", "ac", "gc",
                          "activation_checkpointing", "gradient_checkpointing"});
    const bool of_what =
        !rest.empty() && is_word_of(rest.back(), {"activation", "activations", "gradient", "act"});
    if (says_it && of_what) rest.pop_back();
    if (!says_it) rest.push_back(name);
  }
  return rest;
}

std::optional<std::int64_t> leading_number(std::string_view word) {
  const std::size_t end = std::min(word.find_first_not_of("0123456789"), word.size());
  return number_in<std::int64_t>(word.substr(0, end));
}

// A share of the blocks, or a number of them in each stage.
struct SomeBlocks {
  double share = 1;
  std::optional<std::int64_t> count{};
};

// Returns what "8 of 10 layers", "4 layers", "block 10", "every 2nd layer", "50 %", "half" say;
// nullopt if a text says none. Megatron's uniform method recomputes all, some at a time.
std::optional<SomeBlocks> some_blocks(std::string_view words) {
  const std::vector<std::string> names = names_in(words);
  if (std::ranges::count(names, "uniform") > 0) return std::nullopt;
  const auto name = [&](std::size_t i) {
    return i < names.size() ? std::string_view(names[i]) : std::string_view();
  };
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (name(i) == "half") return SomeBlocks{.share = 0.5};
    if (name(i) == "every") {
      const std::int64_t n = name(i + 1) == "other" || name(i + 1) == "second"
                                 ? 2
                                 : leading_number(name(i + 1)).value_or(0);
      if (n > 0) return SomeBlocks{.share = 1.0 / static_cast<double>(n)};
    }
    const std::optional<std::int64_t> number = number_in<std::int64_t>(names[i]);
    if (!number || *number < 1) continue;
    const std::string text(names[i]);
    if (contains(words, text + "%") || contains(words, text + " %")) {
      return SomeBlocks{.share = static_cast<double>(*number) / 100};
    }
    const bool divides =
        name(i + 1) == "of" || contains(words, text + "/" + std::string(name(i + 1)));
    const auto whole = number_in<std::int64_t>(name(i + (name(i + 1) == "of" ? 2 : 1)));
    if (divides && whole && *whole >= *number) {
      return SomeBlocks{.share = static_cast<double>(*number) / static_cast<double>(*whole)};
    }
    if (is_word_of(name(i + 1), {"layer", "layers", "block", "blocks"}) ||
        (i > 0 && is_word_of(name(i - 1), {"block", "blocks", "layers"}))) {
      return SomeBlocks{.count = number};
    }
  }
  return std::nullopt;
}

void recompute_some(const SomeBlocks& some, std::int64_t of_stage, ParallelPlan& plan) {
  plan.recomputing.kind = Recompute::kFull;
  const auto share =
      static_cast<std::int64_t>(std::llround(some.share * static_cast<double>(of_stage)));
  const std::int64_t layers = std::max<std::int64_t>(1, some.count.value_or(share));
  if (layers < of_stage) plan.recomputing.layers = layers;
}

// ---- what is left open ----

// Returns what a setting is set to, for "remat_policy=minimal", "CHECKPOINT_POLICY =
// save_dot_only", "activations_checkpoint_granularity: null", "AutodiffCheckpointType.SAVE_NOTHING"
// and
// "--recompute-activations"; other texts as they are.
std::string setting(std::string words) {
  const std::size_t first = words.find_first_not_of("- ");
  words.erase(0, std::min(first, words.size()));
  const std::size_t end = words.find_first_of("=:.");
  const std::string name = words.substr(0, end);
  constexpr std::array kNames = {"polic", "checkpoint", "recompute", "remat", "granularity", "ckp"};
  const bool is_setting =
      end != std::string::npos && names_in(name).size() == 1 &&
      std::ranges::any_of(kNames, [&name](const char* part) { return contains(name, part); });
  if (is_setting) words.erase(0, words.find_first_not_of("= :.", end));
  if (words == "recompute-activations" || words.starts_with("recompute_activations")) {
    return "selective";  // Megatron's first flag for it
  }
  return words;
}

// Reads "cpu_offloading_num_layers=20", "activation_offload_layers 95".
std::optional<std::int64_t> offloaded_layers(const std::string& words) {
  const std::vector<std::string> names = names_in(words);
  if (names.size() < 2 || !contains(names[0], "offload") || !contains(names[0], "layers")) {
    return std::nullopt;
  }
  return number_in<std::int64_t>(names[1]);
}

bool leaves_open(const std::string& words) {
  constexpr std::array kOpen = {"recipe dependent", "as needed", "remat (partial)", "not stated",
                                "not seen",         "not given", "not set"};
  return is_blank(words) ||
         std::ranges::any_of(kOpen, [&words](const char* open) { return words.starts_with(open); });
}

std::int64_t blocks_of_stage(std::int64_t layers, const ParallelPlan& plan) {
  return std::max<std::int64_t>(1, layers / std::max<std::int64_t>(1, stages_of(plan)));
}

// The blocks of each stage that are recomputed, where the row says only that some are: fully
// sharded software recomputes a fraction of them, evenly spread, Megatron's block method the first
// ones.
std::vector<RecomputeGuess> fractions(std::int64_t layers, const ParallelPlan& plan) {
  constexpr std::array<std::pair<int, int>, 5> kFractions = {
      {{1, 4}, {1, 3}, {1, 2}, {2, 3}, {1, 1}}};
  const std::int64_t all = blocks_of_stage(layers, plan);
  std::vector<RecomputeGuess> guesses;
  for (const auto& [part, whole] : kFractions) {
    guesses.push_back({fmt::format("full in {} of {} blocks", part, whole), Recompute::kFull,
                       std::max<std::int64_t>(1, all * part / whole)});
  }
  return guesses;
}

std::vector<RecomputeGuess> kinds(std::int64_t layers, const ParallelPlan& plan) {
  std::vector<RecomputeGuess> guesses;
  for (const Recompute kind : {Recompute::kNone, Recompute::kSelective}) {
    guesses.push_back({std::string(name_of(kind)), kind});
  }
  for (RecomputeGuess& some : fractions(layers, plan)) guesses.push_back(std::move(some));
  guesses.back() = {std::string(name_of(Recompute::kFull)), Recompute::kFull};
  return guesses;
}

// What the first word of `words` that is known says: "activation_recomputation 2 (full) in
// run_train.sh". If none is, what was recomputed is not known.
std::vector<RecomputeGuess> by_one_word(RowReader& row, const std::string& words,
                                        std::int64_t layers, ParallelPlan& plan) {
  for (const std::string& name : names_in(words)) {
    if (is_word_of(name, {"false", "none", "null", "disabled"})) return {};
    const bool selective = contains(name, "selective");
    if (!selective &&
        !is_word_of(name, {"full", "fullac", "full_ac", "true", "checkpoint_activations", "all"}))
      continue;
    plan.recomputing.kind = selective ? Recompute::kSelective : Recompute::kFull;
    row.assume(
        fmt::format("recompute \"{}\": {}", row.text("recompute"), name_of(plan.recomputing.kind)));
    return {};
  }
  // Whoever says no more than that activations are checkpointed checkpoints every block.
  constexpr std::array kChecks = {"checkpoint", "ckpt", "recompute", "remat"};
  if (std::ranges::any_of(kChecks, [&](const char* part) { return contains(words, part); })) {
    plan.recomputing.kind = Recompute::kFull;
    plan.offload.activations = contains(words, "offload");
    row.assume(fmt::format("recompute \"{}\": full", row.text("recompute")));
    return {};
  }
  row.assume(fmt::format("recompute \"{}\" is not known", row.text("recompute")));
  return kinds(layers, plan);
}

}  // namespace

std::vector<RecomputeGuess> read_recompute(RowReader& row, std::int64_t layers,
                                           ParallelPlan& plan) {
  const std::string_view text = row.text("recompute");
  const std::string words = setting(in_small_letters(alternative_for(text, plan.precision.type)));
  if (leaves_open(words)) return kinds(layers, plan);
  if (contains(words, "fraction of blocks not stated")) return fractions(layers, plan);
  const std::vector<std::string> names = without_recompute(names_in(words));
  const std::string_view first = names.empty() ? "full" : std::string_view(names.front());
  if (is_word_of(first, {"none", "no", "false", "off", "disabled", "without", "0", "null"}))
    return {};
  if (names.size() == 2 && is_word_of(names[1], {"false", "off", "disabled", "null"})) return {};
  if (const auto share = number_in<double>(words); share && *share > 0 && *share < 1) {
    recompute_some({.share = *share}, blocks_of_stage(layers, plan), plan);
    return {};
  }
  if (const auto offloaded = offloaded_layers(words)) {
    plan.offload.activations = *offloaded > 0;
    if (*offloaded > 0 && *offloaded < blocks_of_stage(layers, plan))
      plan.offload.layers = offloaded;
    return {};
  }
  const bool selective = is_word_of(first, {"selective", "sac"});
  const bool by_ops = first == "sac" || contains(words, "(op") || contains(words, "per-op") ||
                      contains(words, "(llama3") ||
                      (selective && contains(in_small_letters(row.text("software")), "titan"));
  const auto every =
      selective && names.size() == 2 ? number_in<std::int64_t>(names[1]) : std::nullopt;
  const std::int64_t all = blocks_of_stage(layers, plan);
  if (selective && names.size() == 2 && names[1] == "layer") {
    recompute_some({.share = 0.5}, all, plan);  // torchtitan: every second block
  } else if (every && *every > 0) {
    recompute_some({.share = 1.0 / static_cast<double>(*every)}, all, plan);  // torchtitan's option
  } else if (const auto some = some_blocks(words); some && !selective) {
    recompute_some(*some, all, plan);
    plan.offload.activations = contains(words, "offload");
  } else if (is_word_of(first, {"full", "yes", "true", "on", "1", "enabled", "all", "uniform"})) {
    plan.recomputing.kind = Recompute::kFull;
    plan.offload.activations = contains(words, "offload");
  } else if (by_ops) {
    plan.recomputing.kind = Recompute::kAlternate;  // torchtitan: results of operations
  } else if (selective && names.size() == 1) {
    plan.recomputing.kind = Recompute::kSelective;
  } else if (const auto policy = remat_policy(words)) {
    set_policy(*policy, plan);
  } else if (const auto modules = recompute_modules(names); !modules.empty()) {
    plan.recomputing.modules = modules;
    plan.recomputing.kind = Recompute::kSelective;
  } else {
    return by_one_word(row, words, layers, plan);
  }
  return {};
}

void recompute_as_needed(ParallelPlan& plan, std::vector<RecomputeGuess>& guesses) {
  const auto leave_out = [](Recompute& kind, std::vector<KeptResult>& keep) {
    if (kind != Recompute::kFull) return;
    kind = Recompute::kAllBut;
    keep = {KeptResult::kDown};
  };
  leave_out(plan.recomputing.kind, plan.recomputing.keep);
  for (RecomputeGuess& guess : guesses) leave_out(guess.kind, guess.keep);
}

}  // namespace stepsim
