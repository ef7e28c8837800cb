#include "analysis/accuracy/training_run_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>

#include "analysis/accuracy/columns.h"
#include "analysis/accuracy/plan_words.h"
#include "analysis/accuracy/words.h"
#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

bool is_decimal(char letter) {
  return letter >= '0' && letter <= '9';
}

// Returns whether `name` contains `part`, but not as the start of a longer number: "nemotron3" does
// not match "nemotron340b".
bool names_it(std::string_view name, std::string_view part) {
  const std::size_t at = name.find(part);
  if (at == std::string_view::npos || part.empty()) return false;
  const std::string_view rest = name.substr(at + part.size());
  return rest.empty() || !is_decimal(part.back()) || !is_decimal(rest.front());
}

// Returns the letters and digits of a name, and of its first words alone: in "DeepSeek-V3 671B" no
// number begins with V3's.
std::vector<std::string> beginnings_of(std::string_view name) {
  std::vector<std::string> result{letters_and_digits(name)};
  for (std::size_t end = name.rfind(' '); end != std::string_view::npos && end > 0;
       end = name.rfind(' ', end - 1)) {
    result.push_back(letters_and_digits(name.substr(0, end)));
  }
  return result;
}

// NeMo's recipes with dropped tokens pad each expert to a capacity factor of 1
// (moe_expert_capacity_factor, moe_pad_expert_input_to_capacity).
bool drops_tokens(const RowReader& row) {
  return contains(row.text("model"), "tokendrop");
}

// Returns the capacity factor of a row, 0 if it has none. MaxText's key stands with the experts or
// among other figures.
double capacity_factor(const RowReader& row) {
  if (drops_tokens(row)) return 1;
  for (const std::string_view column : {"moe_detail", "other_metrics"}) {
    for (const std::string_view key : {"capacity_factor=", "capacity_factor: "}) {
      const std::string_view words = row.text(column);
      const std::size_t at = words.find(key);
      if (at == std::string_view::npos) continue;
      const std::string digits(words.substr(at + key.size()));
      const double factor = std::strtod(digits.c_str(), nullptr);
      if (factor > 0 && factor <= 100) return factor;
    }
  }
  return 0;
}

struct ExpertWords {
  std::optional<std::int64_t> experts{};  // routed ones
  std::optional<std::int64_t> chosen{};   // by each token
  std::optional<std::int64_t> width{};
};

// Returns the number at the end of `text`, behind which only spaces and "routed" may stand: 8 of
// "3 dense layers; 8 routed ".
std::optional<std::int64_t> last_number(std::string_view text) {
  constexpr std::string_view kRouted = "routed";
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (text.ends_with(kRouted)) text.remove_suffix(kRouted.size());
  while (text.ends_with(' ')) text.remove_suffix(1);
  std::size_t begin = text.size();
  while (begin > 0 && is_decimal(text[begin - 1])) --begin;
  return number_in<std::int64_t>(text.substr(begin));
}

// Returns the number after the first of `keys` that has one: "top-2", "top 2", "topk=2".
std::optional<std::int64_t> number_after_any(std::string_view text,
                                             std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (const auto number = number_after(text, key)) return number;
  }
  return std::nullopt;
}

// Returns whether the number at the end of `text` stands behind "top-" or "top ".
bool follows_top(std::string_view text) {
  const std::size_t end = text.find_last_not_of(" 0123456789");
  constexpr std::string_view kTop = "top";
  if (end == std::string_view::npos) return false;
  return text.substr(0, end + 1).ends_with(kTop) || text.substr(0, end + 1).ends_with("top-");
}

// Reads "experts=8 topk=2 moe_ffn=14336", "256 routed experts top-8 + 1 shared, expert ffn 2048",
// "top-2 experts of 8", "8 experts, 2 experts per token".
ExpertWords expert_words(std::string_view detail) {
  const std::string text = in_small_letters(detail);
  ExpertWords words{.experts = number_after(text, "experts="),
                    .chosen = number_after_any(text, {"topk=", "top-k=", "top_k=", "top-", "top "}),
                    .width = number_after_any(text, {"moe_ffn=", "expert ffn ", "expert_ffn="})};
  for (std::size_t at = text.find("expert"); at != std::string::npos;
       at = text.find("expert", at + 1)) {
    const std::string_view before = std::string_view(text).substr(0, at);
    const std::string_view after = std::string_view(text).substr(at);
    const std::optional<std::int64_t> number = last_number(before);
    if (!number) continue;
    const bool is_of_a_token = after.starts_with("experts per token") ||
                               after.starts_with("experts a token") ||
                               after.starts_with("experts/token") || follows_top(before);
    if (!is_of_a_token && !words.experts) words.experts = number;
    if (is_of_a_token && !words.chosen) words.chosen = number;
  }
  if (!words.experts) words.experts = number_after(text, "experts of ");
  return words;
}

void read_experts(RowReader& row, const MeasuredModel& known, ModelSpec& model) {
  const std::string_view detail = row.text("moe_detail");
  const ExpertWords words = expert_words(detail);
  const ExpertSpec* const of_model = known.sizes ? &known.sizes->experts : nullptr;
  const bool is_known = of_model != nullptr && of_model->routed > 0;
  if (!words.experts && !is_known) return row.fail("the number of experts is not given");
  if (!words.chosen && !is_known) return row.fail("how many experts a token visits is not given");
  ExpertSpec& spec = model.experts;
  spec.routed = words.experts ? *words.experts : of_model->routed;
  spec.per_token = words.chosen ? *words.chosen : of_model->per_token;
  if (words.width) {
    spec.intermediate = *words.width;
  } else {
    spec.intermediate = is_known ? of_model->intermediate : row.integer_or("ffn", 0);
  }
  spec.shared_intermediate =
      number_after(detail, "shared_ffn=").value_or(known.shared_experts * spec.intermediate);
  spec.first_dense = number_after(detail, "dense_layers=").value_or(known.first_dense);
  spec.capacity_factor = capacity_factor(row);
}

// Tables only say "MLA".
bool is_latent(const RowReader& row) {
  return contains(row.text("moe_detail"), "MLA") || row.text("attention") == "MLA";
}

void read_head_dim(RowReader& row, const MeasuredModel& known, ModelSpec& model) {
  if (is_latent(row)) {
    const LatentSpec latent =
        known.latent.kv_rank == 0 && known.sizes ? known.sizes->latent : known.latent;
    model.latent = latent;
    model.attention.head_dim = latent.nope_dim + latent.rope_dim;
    if (latent.kv_rank == 0) {
      row.fail("has latent attention (MLA), whose sizes the catalog doesn't know for this model");
    }
    return;
  }
  model.attention.head_dim =
      row.integer_or("head_dim", model.hidden / std::max<std::int64_t>(1, model.attention.heads));
  if (!row.integer("head_dim") &&
      model.attention.head_dim * model.attention.heads != model.hidden) {
    row.fail(fmt::format("model.heads: must divide hidden ({}) if head_dim is not given, is {}",
                         model.hidden, model.attention.heads));
  }
}

bool gives_sizes(const RowReader& row) {
  return !is_blank(row.text("layers")) || !is_blank(row.text("hidden"));
}

// Returns the whole model as the catalog has it, for a row that gives no more than its name.
ModelSpec model_by_name(RowReader& row, const ModelSpec& sizes, bool dropout) {
  row.assume("sizes: those of " + sizes.name);
  ModelSpec model = sizes;
  model.embedding.vocabulary = row.integer_or("vocab", model.embedding.vocabulary);
  if (model.embedding.learned_positions > 0)
    model.embedding.learned_positions = row.need("seq_len");
  model.dropout = dropout && !model.mlp.gated;
  return model;
}

// Returns the catalog's model of this name: the longest name that the row's begins with, or else
// the shortest that begins with the row's.
std::optional<ModelSpec> catalog_model(const std::string& name,
                                       const std::vector<ModelSpec>& catalog) {
  const ModelSpec* best = nullptr;
  std::size_t length = 0;
  bool is_whole = false;
  for (const ModelSpec& model : catalog) {
    const std::string own = letters_and_digits(model.name);
    const bool begins_with = names_it(name, own) && name.starts_with(own);
    const bool is_longer = names_it(own, name) && own.starts_with(name);
    if (!begins_with && (!is_longer || is_whole)) continue;
    const bool is_better = best == nullptr || (begins_with && !is_whole) ||
                           (begins_with ? own.size() > length : own.size() < length);
    if (!is_better) continue;
    best = &model;
    length = own.size();
    is_whole = begins_with;
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

// Returns whether columns can't describe the model's layers, and the row's sizes are the model's.
bool is_better_described(RowReader& row, const ModelSpec& model) {
  const bool alike =
      model.mixer_pattern.empty() && model.mlp_pattern.empty() && model.attention.window == 0;
  return !alike && row.integer_or("layers", model.layers) == model.layers &&
         row.integer_or("hidden", model.hidden) == model.hidden;
}

// Takes what columns don't say from the model of that name, if the row's sizes are its own.
void take_unsaid(const MeasuredModel& known, ModelSpec& model) {
  if (!known.sizes) return;
  const ModelSpec& own = *known.sizes;
  const bool is_it = own.layers == model.layers && own.hidden == model.hidden &&
                     own.attention.heads == model.attention.heads &&
                     own.mlp.width == model.mlp.width &&
                     own.embedding.vocabulary == model.embedding.vocabulary;
  if (!is_it || own.kind != model.kind) return;
  model.embedding.tied = own.embedding.tied;
  model.attention.qkv_bias = own.attention.qkv_bias;
  model.attention.qk_norm = own.attention.qk_norm;
  model.attention.qk_norm_whole = own.attention.qk_norm_whole;
}

// Heads are 128 features wide nearly everywhere, 64 in GPT-2 and its like.
std::int64_t heads_of_row(RowReader& row, std::int64_t hidden) {
  if (!is_blank(row.text("heads"))) return row.need("heads");
  for (const std::int64_t width : {128, 64}) {
    if (hidden % width != 0) continue;
    row.assume(fmt::format("heads: {}, each of {} features", hidden / width, width));
    return hidden / width;
  }
  return row.need("heads");
}

}  // namespace

MeasuredModel known_model(const RowReader& row, const std::vector<MeasuredModel>& known,
                          const std::vector<ModelSpec>& catalog) {
  const std::string name = letters_and_digits(row.text("model"));
  const std::vector<std::string> beginnings = beginnings_of(row.text("model"));
  MeasuredModel result;
  for (const MeasuredModel& model : known) {
    const auto fits = [&beginnings](const std::string& part) {
      return std::ranges::any_of(
          beginnings, [&part](const std::string& beginning) { return names_it(beginning, part); });
    };
    if (std::ranges::none_of(model.names, fits)) continue;
    result = model;
    break;
  }
  if (!result.sizes) result.sizes = catalog_model(name, catalog);
  return result;
}

ModelSpec model_of_row(RowReader& row, const MeasuredModel& known, const Software& software) {
  const bool dropout = software.dropout;
  if (known.sizes && (!gives_sizes(row) || is_better_described(row, *known.sizes))) {
    ModelSpec model = model_by_name(row, *known.sizes, dropout);
    if (model.experts.routed > 0) model.experts.capacity_factor = capacity_factor(row);
    return model;
  }
  ModelSpec model{.name = std::string(row.text("model"))};
  model.layers = row.need("layers");
  model.hidden = row.need("hidden");
  model.mlp.width = row.integer_or("ffn", 4 * model.hidden);
  model.attention.heads = heads_of_row(row, model.hidden);
  model.attention.kv_heads = row.integer_or("kv_heads", model.attention.heads);
  model.embedding.vocabulary = row.integer_or("vocab", software.vocabulary);
  if (row.text("vocab").empty()) row.assume(fmt::format("vocab: {}", software.vocabulary));
  model.mlp.gated = !row.text("gated_mlp").starts_with("no");
  read_head_dim(row, known, model);
  if (!model.mlp.gated) {
    model.embedding.learned_positions = row.need("seq_len");
    model.embedding.tied = true;
    model.attention.bias = true;
    model.mlp.bias = true;
    model.norms.kind = NormKind::kLayer;
    model.dropout = dropout;
  }
  model.attention.sinks = known.attention_sinks;
  take_unsaid(known, model);
  if (says_yes(row.text("moe"))) read_experts(row, known, model);
  return model;
}

}  // namespace stepsim
