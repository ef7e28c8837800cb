#include "tests/fuzz/random/random_experiment.h"

#include <utility>
#include <vector>

#include "proto/messages/json_value.h"
#include "schedules/plan/keys/key_groups.h"
#include "tests/fuzz/random/random_cluster.h"
#include "tests/fuzz/random/random_plan.h"
#include "workload/model/model_fields.h"

namespace stepsim {
namespace {

// Returns a number or truth value as such, and everything else as a text.
Json value_of(const std::string& text) {
  JsonOrProblem read = parse_json(text);
  return read.value && read.value->is_primitive() ? std::move(*read.value) : Json(text);
}

// Returns the object with the fields at paths such as "latent.q_rank".
Json object_of(const std::vector<FieldValue>& values) {
  Json object = Json::object();
  for (const FieldValue& value : values) {
    const std::size_t dot = value.path.find('.');
    if (dot == std::string::npos) {
      object[value.path] = value_of(value.text);
    } else {
      object[value.path.substr(0, dot)][value.path.substr(dot + 1)] = value_of(value.text);
    }
  }
  return object;
}

Json json_of(const ModelSpec& model) {
  Json object = object_of(model_fields().changed(model));
  if (!model.experts.load.empty()) object["experts"]["load"] = model.experts.load;
  if (!model.mlp.widths.empty()) object["mlp_widths"] = model.mlp.widths;
  return object;
}

// A pass of inference has other defaults than the struct, which a file has to say then.
Json keys_of(KeyGroup group, const ParallelPlan& plan) {
  Json object = object_of(fields_of(group).changed(plan));
  if (!plan.is_inference() || group != KeyGroup::kPlan) return object;
  object["sequence_parallel"] = plan.tensor.sequence_parallel;
  if (plan.mesh.cp > 1) object["cp_mode"] = name_of(plan.tensor.cp_mode);
  if (plan.mesh.ep > 1) object["dispatch"] = name_of(plan.experts.dispatch);
  return object;
}

Json random_variation(Choices& choices, std::int64_t ranks) {
  Json variation = Json::object();
  if (choices.one_in(2)) variation["jitter"] = choices.pick({0.02, 0.1});
  if (choices.one_in(2)) {
    variation["straggler"] = {
        {{"rank", {choices.between(0, ranks - 1)}}, {"slowdown", choices.pick({1.5, 1.05, 4.0})}}};
  }
  return variation;
}

void add_packets(Choices& choices, Json& simulation) {
  simulation["packet_bytes"] = choices.pick({65536, 1048576, 4096});
  if (choices.one_in(3)) simulation["switching"] = "cut-through";
  if (choices.one_in(5)) simulation["buffer_bytes"] = choices.pick({8 << 20, 1 << 20});
  if (choices.one_in(5)) simulation["spraying"] = choices.between(1, 8);
}

Json random_simulation(Choices& choices) {
  Json simulation = Json::object();
  const char* const fidelity =
      choices.pick({"flow", "flow", "latency-bandwidth", "packet", "flow"});
  simulation["fidelity"] = Json::array({fidelity});
  const bool has_packets = std::string_view(fidelity) == "packet";
  if (has_packets || choices.one_in(3)) simulation["granularity"] = "stepped";
  if (has_packets) add_packets(choices, simulation);
  if (choices.one_in(5)) simulation["steps"] = choices.between(1, 3);
  if (choices.one_in(6)) simulation["explain"] = true;
  if (choices.one_in(8)) simulation["attention_flops"] = "full";
  return simulation;
}

}  // namespace

std::string random_experiment(Choices& choices) {
  const RandomCluster cluster = random_cluster(choices);
  RandomJob job;
  choose_mesh(choices, cluster, job);
  choose_model(choices, job);
  choose_keys(choices, cluster, job);
  Json experiment;
  experiment["name"] = "random";
  experiment["cluster"] = cluster.json;
  if (choices.one_in(4)) experiment["variation"] = random_variation(choices, job.plan.mesh.ranks());
  experiment["simulation"] = random_simulation(choices);
  experiment["seed"] = choices.below(1000);
  choose_late(choices, job);
  experiment["model"] = json_of(job.model);
  for (const KeyGroup group : kKeyGroups) {
    experiment[std::string(name_of(group))] = keys_of(group, job.plan);
  }
  return experiment.dump(2) + '\n';
}

}  // namespace stepsim
