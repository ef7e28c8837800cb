#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <stdexcept>

#include "proto/catalog/catalog.h"
#include "proto/catalog/catalog_message.h"
#include "proto/catalog/catalog_reference.h"
#include "proto/catalog/measured_tables.h"
#include "proto/message_fields.h"
#include "proto/software.pb.h"
#include "proto/to_spec.h"

namespace stepsim {
namespace {

// Returns the entry of that name; nullptr if there is none.
const file::Software* find_software(const std::vector<file::Software>& all,
                                    const std::string& name) {
  const auto found = std::ranges::find_if(all, [&name](const file::Software& software) {
    return software_in_dashes(software.name()) == software_in_dashes(name);
  });
  return found == all.end() ? nullptr : &*found;
}

// Returns the entry with what those say that it is like. `entries` are as they are written.
file::Software completed(const file::Software& entry, const std::vector<file::Software>& entries,
                         std::size_t others = 0) {
  if (entry.like().empty()) return entry;
  const file::Software* const other = find_software(entries, entry.like());
  if (other == nullptr || others == entries.size()) {
    throw std::logic_error("software \"" + entry.name() + "\" is like \"" + entry.like() +
                           "\", which is none, or like itself");
  }
  file::Software base = completed(*other, entries, others + 1);
  file::Software own = entry;
  own.mutable_chip()->MergeFrom(base.chip());  // the first that fits is used
  base.clear_chip();
  base.clear_source();
  base.clear_dtype();
  base.clear_also_called();
  base.clear_not_called();
  base.clear_recipe();
  base.clear_tuning();
  base.clear_vocabulary();
  base.MergeFrom(own);
  return base;
}

std::vector<file::Software> software_messages() {
  ProblemList problems;
  std::vector<file::Software> entries;
  for (const SourceText& source : catalog_tables("software")) {
    file::SoftwareTable table;
    read_catalog_message(source, "", table, problems);
    entries.insert(entries.end(), table.software().begin(), table.software().end());
  }
  throw_if_any(problems.all());
  std::vector<file::Software> all;
  for (const file::Software& entry : entries) all.push_back(completed(entry, entries));
  return all;
}

// Returns the value of a plain field as --set takes it: without quotes.
std::string plain_text(const google::protobuf::Message& message,
                       const google::protobuf::FieldDescriptor& field) {
  if (field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING) {
    return message.GetReflection()->GetString(message, &field);
  }
  std::string text;
  google::protobuf::TextFormat::PrintFieldValueToString(message, &field, -1, &text);
  return text;
}

// Returns the fields that are set, in order of their numbers.
std::vector<std::pair<std::string, std::string>> keys_of(const file::Plan& plan) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  plan.GetReflection()->ListFields(plan, &fields);
  std::vector<std::pair<std::string, std::string>> keys;
  for (const google::protobuf::FieldDescriptor* field : fields) {
    keys.emplace_back(std::string(field->name()), plain_text(plan, *field));
  }
  return keys;
}

std::vector<SoftwareRecipe> recipes_of(const file::Software& entry) {
  std::vector<SoftwareRecipe> recipes;
  for (const file::SoftwareRecipe& recipe : entry.recipe()) {
    recipes.push_back(
        {.model = recipe.model(), .chip = recipe.chip(), .plan = keys_of(recipe.plan())});
  }
  return recipes;
}

MemoryFigure memory_figure_of(const file::Software& entry) {
  if (entry.memory_figure() == "allocated") return MemoryFigure::kAllocated;
  if (entry.memory_figure() == "reserved") return MemoryFigure::kReserved;
  return MemoryFigure::kDevice;
}

std::vector<SoftwareRecipe> on_chips(const file::Software& entry) {
  std::vector<SoftwareRecipe> chips;
  for (const file::SoftwareChip& chip : entry.chip()) {
    chips.push_back({.model = "", .chip = chip.begins_with(), .plan = keys_of(chip.plan())});
  }
  return chips;
}

// Returns what the software changes on a chip of that name; nullptr: nothing.
const file::SoftwareChip* change_on(const file::Software& software, const std::string& name) {
  const auto own = std::ranges::find_if(software.chip(), [&name](const file::SoftwareChip& change) {
    return name.starts_with(change.begins_with());
  });
  return own == software.chip().end() ? nullptr : &*own;
}

// Puts the changes that the software makes over the fields of a chip of that name.
void change_chip(const file::Software& software, const std::string& name, file::Chip& chip) {
  const file::SoftwareChip* const own = change_on(software, name);
  if (own != nullptr) chip.MergeFrom(own->fields());
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
  const bool fuses = plan.has_fused_attention()
                         ? plan.fused_attention()
                         : !base.has_fused_attention() || base.fused_attention();
  if (plan.has_inference() || !fuses) base.clear_attention_library();
}

}  // namespace

std::string software_in_dashes(std::string name) {
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::vector<Software> load_software() {
  std::vector<Software> table;
  for (const file::Software& entry : software_messages()) {
    table.push_back({.name = entry.name(),
                     .sources = {entry.source().begin(), entry.source().end()},
                     .plan = keys_of(entry.plan()),
                     .dropout = entry.dropout(),
                     .recomputes_as_needed = entry.recomputes_as_needed(),
                     .recomputes_cudnn = entry.recomputes_cudnn(),
                     .dtypes = {entry.dtype().begin(), entry.dtype().end()},
                     .pads_vocabulary = std::max<std::int64_t>(1, entry.pads_vocabulary()),
                     .recipes = recipes_of(entry)});
    table.back().tuning = keys_of(entry.tuning());
    table.back().on_chips = on_chips(entry);
    table.back().also_called = {entry.also_called().begin(), entry.also_called().end()};
    table.back().not_called = {entry.not_called().begin(), entry.not_called().end()};
    table.back().memory_figure = memory_figure_of(entry);
    if (entry.has_unused_memory()) table.back().unused_memory = entry.unused_memory();
    table.back().flat_gradient_bytes = entry.flat_gradient_bytes();
    if (entry.has_vocabulary()) table.back().vocabulary = entry.vocabulary();
  }
  return table;
}

bool resolve_software(file::Plan& plan, file::Chip& chip, const file::Chip& own,
                      ProblemList& problems) {
  if (plan.software().empty()) return true;
  const std::vector<file::Software> all = software_messages();
  const file::Software* const software = find_software(all, plan.software());
  if (software == nullptr) {
    std::string names;
    for (const file::Software& known : all) {
      names += (names.empty() ? "" : ", ") + software_in_dashes(known.name());
    }
    problems.add("software.catalog",
                 "must be one of " + names + "; is \"" + plan.software() + "\"");
    return false;
  }
  file::Plan base = software->plan();
  const file::SoftwareChip* const on_chip = change_on(*software, chip.name());
  if (on_chip != nullptr) base.MergeFrom(on_chip->plan());
  drop_what_does_not_apply(plan, base);
  put_over(base, plan);
  if (software->recomputes_cudnn() && base.recompute() == "alternate" &&
      base.attention_library() == "cudnn") {
    base.set_recompute("alternate_matmuls");
  }
  base.set_software(software_in_dashes(software->name()));
  plan = std::move(base);
  change_chip(*software, chip.name(), chip);
  file::Chip given = own;
  given.clear_catalog();
  put_over(chip, given);
  return true;
}

ClusterSpec load_measured_cluster(const MeasuredCluster& measured) {
  ProblemList problems;
  file::Cluster message;
  message.set_catalog(measured.cluster);
  message.mutable_chip()->set_catalog(measured.chip);
  const std::vector<file::Software> all = software_messages();
  if (const file::Software* const software = find_software(all, measured.software)) {
    change_chip(*software, measured.chip, *message.mutable_chip());
  }
  if (!measured.library.empty()) message.mutable_library()->set_catalog(measured.library);
  ClusterSpec spec;
  if (resolve(message, problems)) spec = to_cluster(message, problems);
  throw_if_any(problems.all());
  return spec;
}

}  // namespace stepsim
