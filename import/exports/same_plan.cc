#include "import/exports/same_plan.h"

#include <algorithm>
#include <map>

#include "schedules/plan/keys/key_groups.h"
#include "schedules/plan/plan_schedule.h"
#include "workload/model/model_fields.h"

namespace stepsim {
namespace {

// The kind of each layer in letters, whatever pattern and counts it comes from.
ModelSpec with_plain_layers(ModelSpec model) {
  std::string mixers;
  std::string mlps;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const BlockKind kind = kind_of(model, layer);
    // Capital letters in the order of Mixer; small ones share.
    constexpr std::string_view kMixerLetters = "-GLSBINXZ";
    const char mixer = kMixerLetters[static_cast<std::size_t>(kind.mixer)];
    mixers += kind.shares ? static_cast<char>(mixer - 'A' + 'a') : mixer;
    mlps += kind.mlp == MlpKind::kNone ? '-' : kind.mlp == MlpKind::kDense ? 'D' : 'E';
  }
  model.mixer_pattern = std::move(mixers);
  model.mlp_pattern = std::move(mlps);
  model.experts.first_dense = 0;
  model.experts.every = 1;
  if (model.mlp_pattern.find('D') == std::string::npos) model.mlp.width = 0;
  return model;
}

// The plan without the keys that act on nothing in it.
ParallelPlan with_acting_keys(ParallelPlan plan, const ModelSpec& model) {
  const ParallelPlan usual;
  plan.mesh.allow_idle_chips = false;
  plan.mesh.chips_per_domain.reset();
  plan.pipeline.schedule_file.clear();
  if (plan.mesh.tp == 1) plan.tensor.sequence_parallel = usual.tensor.sequence_parallel;
  if (plan.mesh.cp == 1) plan.tensor.cp_mode = usual.tensor.cp_mode;
  if (plan.mesh.ep == 1) plan.experts = usual.experts;
  if (plan.mesh.replicas() == 1) {
    plan.state = usual.state;
    plan.overlap.gradients = usual.overlap.gradients;
    plan.overlap.parameters = usual.overlap.parameters;
  }
  if (plan.mesh.pp == 1) {
    plan.pipeline = usual.pipeline;
    plan.overlap.pipeline = usual.overlap.pipeline;
  } else {
    const std::int64_t stages = stages_of(plan);
    if (plan.pipeline.layout.empty() && stages > 0) {
      plan.pipeline.layout.assign(static_cast<std::size_t>(stages), model.layers / stages);
    }
    plan.pipeline.chunks = stages / plan.mesh.pp;
  }
  if (plan.state.zero == 0) plan.state.shard.reset();
  if (plan.state.zero > 0) plan.state.shard = plan.sharded_over();
  if (plan.state.zero < 3) {
    plan.state.prefetch = usual.state.prefetch;
    plan.state.reshard_after_forward = usual.state.reshard_after_forward;
  }
  std::ranges::sort(plan.recomputing.modules);
  std::ranges::sort(plan.recomputing.keep);
  if (plan.precision.weight_type == plan.weights()) plan.precision.weight_type = plan.weights();
  plan.precision.weight_type = plan.weights();
  plan.precision.activation_type = plan.precision.activations();
  plan.precision.communication_type = plan.precision.communicated();
  return plan;
}

using Values = std::vector<FieldValue>;

void add_differences(const std::string& group, const Values& wanted, const Values& written,
                     std::vector<DifferingField>& found) {
  std::map<std::string, std::string> rest;
  for (const FieldValue& value : written) rest[value.path] = value.text;
  const auto compare = [&](const std::string& path, const std::string& here,
                           const std::string& there) {
    if (here != there) found.push_back({group + "." + path, here, there});
  };
  for (const FieldValue& value : wanted) {
    const auto other = rest.find(value.path);
    compare(value.path, value.text, other == rest.end() ? "unset" : other->second);
    if (other != rest.end()) rest.erase(other);
  }
  for (const auto& [path, text] : rest) compare(path, "unset", text);
}

Values fields_of_model(const ModelSpec& model) {
  Values values = model_fields().in_force(with_plain_layers(model));
  std::erase_if(values, [](const FieldValue& value) {
    return value.path == "name" || value.path == "note" || value.path == "weight_type";
  });
  return values;
}

}  // namespace

std::vector<DifferingField> differences(const Experiment& wanted, const Experiment& written) {
  std::vector<DifferingField> found;
  add_differences("model", fields_of_model(wanted.model), fields_of_model(written.model), found);
  const ParallelPlan here = with_acting_keys(wanted.plan, wanted.model);
  const ParallelPlan there = with_acting_keys(written.plan, written.model);
  for (const KeyGroup group : {KeyGroup::kPlan, KeyGroup::kSoftware}) {
    add_differences(std::string(name_of(group)), fields_of(group).in_force(here),
                    fields_of(group).in_force(there), found);
  }
  return found;
}

}  // namespace stepsim
