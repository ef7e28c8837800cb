#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "proto/catalog/catalog.h"
#include "proto/catalog/catalog_message.h"
#include "proto/catalog/catalog_reference.h"
#include "proto/catalog/measured_tables.h"
#include "proto/messages/message_fields.h"
#include "proto/software.pb.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

std::string in_dashes(std::string name) {
  std::ranges::replace(name, ' ', '-');
  return name;
}

// Returns the entry that is written so; nullptr if there is none.
const file::Software* entry_named(const std::vector<file::Software>& all, std::string_view name) {
  const auto found = std::ranges::find_if(
      all, [name](const file::Software& software) { return in_dashes(software.name()) == name; });
  return found == all.end() ? nullptr : &*found;
}

// Returns the numbers of "2025.03"; empty if it is none.
std::vector<int> release_numbers(std::string_view text) {
  std::vector<int> numbers;
  for (const std::string_view part : split_text(text, '.')) {
    const std::optional<int> number = number_in<int>(part);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

// Returns the entry that a release is of: the one that is written so; one of all its minor releases
// ("nemo-25" of "nemo-25.04"); the first that holds until it or a later one; the one without a
// release. nullptr if there is none.
const file::Software* find_software(const std::vector<file::Software>& all, std::string_view name) {
  if (const file::Software* const same = entry_named(all, name)) return same;
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos) return nullptr;
  const std::vector<int> release = release_numbers(name.substr(dash + 1));
  if (release.empty()) return nullptr;
  const file::Software* const major = entry_named(all, name.substr(0, name.find('.', dash)));
  if (major != nullptr && !major->has_until()) return major;
  const std::string base(name.substr(0, dash));
  const file::Software* next = nullptr;
  for (const file::Software& entry : all) {
    if (!entry.has_until() || in_dashes(entry.name()) != base + "-" + entry.until()) continue;
    const std::vector<int> until = release_numbers(entry.until());
    const auto same = std::ranges::mismatch(until, release).in1 == until.end();  // 2023 has 2023.05
    if ((release <= until || same) && (next == nullptr || until < release_numbers(next->until()))) {
      next = &entry;
    }
  }
  return next == nullptr ? entry_named(all, base) : next;
}

// Returns the entry with what those say that it is like. `entries` are as they are written.
file::Software completed(const file::Software& entry, const std::vector<file::Software>& entries,
                         std::size_t others = 0) {
  if (entry.like().empty()) return entry;
  const file::Software* const other = entry_named(entries, in_dashes(entry.like()));
  if (other == nullptr || others == entries.size()) {
    throw std::logic_error("software \"" + entry.name() + "\" is like \"" + entry.like() +
                           "\", which is none, or like itself");
  }
  file::Software base = completed(*other, entries, others + 1);
  file::Software own = entry;
  own.mutable_chip()->MergeFrom(base.chip());  // the first that fits is used
  base.clear_chip();
  base.clear_recipe();
  base.clear_until();
  base.MergeFrom(own);
  return base;
}

std::vector<file::Software> software_messages() {
  ProblemList problems;
  const auto table = catalog_table<file::SoftwareTable>("software", problems);
  throw_if_any(problems.all());
  const std::vector<file::Software> entries(table.software().begin(), table.software().end());
  std::vector<file::Software> all;
  for (const file::Software& entry : entries) all.push_back(completed(entry, entries));
  return all;
}

// Returns what an entry or a recipe changes on a chip of that name; nullptr: nothing.
template <class Entry>
const file::SoftwareChip* change_on(const Entry& entry, const std::string& name) {
  const auto own = std::ranges::find_if(entry.chip(), [&name](const file::SoftwareChip& change) {
    return name.starts_with(change.begins_with());
  });
  return own == entry.chip().end() ? nullptr : &*own;
}

// Puts the keys of an entry or a recipe, and those of the chip, over earlier ones.
template <class Entry>
void add_keys(const Entry& entry, const std::string& chip, file::Plan& keys) {
  keys.MergeFrom(entry.plan());
  keys.MergeFrom(entry.software());
  if (const file::SoftwareChip* const change = change_on(entry, chip)) {
    keys.MergeFrom(change->plan());
    keys.MergeFrom(change->software());
  }
}

// Returns the recipe of that name; nullptr, with a problem, if there is none.
const file::SoftwareRecipe* find_recipe(const file::Software& software, const std::string& name,
                                        ProblemList& problems) {
  std::vector<std::string> known;
  for (const file::SoftwareRecipe& recipe : software.recipe()) {
    if (std::ranges::count(recipe.name(), name) > 0) return &recipe;
    known.insert(known.end(), recipe.name().begin(), recipe.name().end());
  }
  problems.add("software.catalog",
               known.empty()
                   ? fmt::format("{} has no recipes, so none of \"{}\"", software.name(), name)
                   : fmt::format("must be a recipe of {}: {}; is \"{}\"", software.name(),
                                 fmt::join(known, ", "), name));
  return nullptr;
}

constexpr std::int64_t kStateWithoutGradients = 10;  // bytes a parameter

// Drops keys of the software that other keys of the plan rule out.
void drop_what_does_not_apply(const file::Plan& plan, file::Plan& base) {
  if (plan.has_inference()) base.clear_zero();
  // Software of FSDP divides weights, if the plan doesn't say otherwise.
  const bool divides = base.shared_master() || base.fsdp_copies();
  if (!plan.has_zero() && divides && !plan.has_inference()) base.set_zero(3);
  const std::int64_t zero = plan.has_zero() ? plan.zero() : base.zero();
  if (zero == 3) base.clear_gradient_bucket_parameters();  // FSDP has no buckets
  if (zero == 2) base.clear_overlap_gradients();           // it always does
  if (zero == 0 || zero == 3) base.clear_overlap_parameters();
  const bool sums = plan.gradient_bytes() != 2 && !plan.has_state_bytes() && plan.dtype() != "fp32";
  if (zero >= 2 || plan.lora_rank() > 0 || plan.has_inference() || !sums) {
    base.clear_separate_accumulation();
  }
  if (plan.has_inference() || plan.optimizer() == "none" || plan.offload_optimizer()) {
    base.clear_optimizer_scratch_bytes();
  }
  if (plan.has_inference()) base.clear_clip_gradients();
  if (plan.has_inference() || plan.state_bytes() == kStateWithoutGradients ||
      plan.separate_accumulation()) {
    base.clear_free_gradients();
  }
  if (plan.has_state_bytes() || plan.optimizer() == "none") {
    base.clear_optimizer_bytes();
    base.clear_gradient_bytes();
  }
  const bool copies = plan.loss() == "separate" || plan.loss() == "in_place";
  if (plan.has_loss() && !copies) base.clear_hold_logits();
  if (plan.optimizer() == "none") base.clear_shared_master();
  const bool drops = !plan.has_reshard_after_forward() || plan.reshard_after_forward();
  if (plan.has_inference() || zero != 3 || !drops) {
    base.clear_save_gathered();
    base.clear_keep_root();
  }
  if (plan.has_inference() || (plan.has_zero() && plan.zero() != 3)) {
    base.clear_shared_master();
    base.clear_fsdp_copies();
    base.clear_prefetch();
  }
  const bool batches = !plan.has_overlap_pipeline() || plan.overlap_pipeline();
  if (plan.pp() <= 1 || !batches) base.clear_batch_p2p();
  if (plan.tp() <= 1) base.clear_overlap_tensor();
  const bool shares_inputs = plan.has_sequence_parallel() && !plan.sequence_parallel();
  if (plan.tp() <= 1 || !shares_inputs) base.clear_copy_inputs();
  if (plan.eager_elementwise()) base.clear_eager_gate();
  if (plan.ep() <= 1) base.clear_dispatch();
  if (plan.ep() <= 1) base.clear_overlap_expert_parallel();
  const bool in_shares = !plan.has_sequence_parallel() || plan.sequence_parallel();
  if (plan.tp() <= 1 || !in_shares || plan.lora_rank() > 0 || plan.has_inference()) {
    base.clear_tensor_pieces();
  }
  if (plan.lora_rank() == 0) base.clear_lora_modules();
  if (plan.has_recompute() || plan.has_inference()) {
    base.clear_recompute();
    base.clear_recompute_modules();
    base.clear_recompute_keep();
  }
  if (plan.has_inference()) {
    base.clear_dropout();
    base.clear_document_length();
    base.clear_overlap_expert_parallel();
  }
  const bool fuses = plan.has_fused_attention()
                         ? plan.fused_attention()
                         : !base.has_fused_attention() || base.fused_attention();
  if (plan.has_inference() || !fuses) base.clear_attention_library();
}

}  // namespace

std::vector<std::string> software_names() {
  std::vector<std::string> names;
  for (const file::Software& entry : software_messages()) {
    names.push_back(in_dashes(entry.name()));
    for (const file::SoftwareRecipe& recipe : entry.recipe()) {
      for (const std::string& name : recipe.name()) {
        names.push_back(in_dashes(entry.name()) + "/" + name);
      }
    }
  }
  return names;
}

bool resolve_software(file::Plan& plan, file::Chip& chip, const file::Chip& own,
                      ProblemList& problems) {
  if (plan.software().empty()) return true;
  const std::vector<file::Software> all = software_messages();
  const std::string asked = in_dashes(plan.software());
  const std::size_t slash = std::min(asked.find('/'), asked.size());
  const file::Software* const software = find_software(all, asked.substr(0, slash));
  if (software == nullptr) {
    std::vector<std::string> names;
    for (const file::Software& known : all) names.push_back(in_dashes(known.name()));
    problems.add("software.catalog",
                 fmt::format("must be one of {}; is \"{}\"", fmt::join(names, ", "), asked));
    return false;
  }
  file::Plan base;
  add_keys(*software, chip.name(), base);
  std::string name = in_dashes(software->name());
  if (slash < asked.size()) {
    const auto* const recipe = find_recipe(*software, asked.substr(slash + 1), problems);
    if (recipe == nullptr) return false;
    add_keys(*recipe, chip.name(), base);
    name += asked.substr(slash);
  }
  drop_what_does_not_apply(plan, base);
  put_over(base, plan);
  base.set_software(name);
  plan = std::move(base);
  if (const file::SoftwareChip* const change = change_on(*software, chip.name())) {
    chip.MergeFrom(change->fields());
  }
  file::Chip given = own;
  given.clear_catalog();
  put_over(chip, given);
  return true;
}

}  // namespace stepsim
