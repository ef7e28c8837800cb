#include "cli/help/field_topics.h"

#include <fmt/format.h>

#include "experiment/cluster_fields.h"
#include "experiment/simulation_fields.h"
#include "goodput/failure_table.h"
#include "schedules/plan/keys/key_groups.h"
#include "serving/engines/engine_fields.h"
#include "serving/engines/engine_table.h"
#include "serving/requests/request_source.h"
#include "sim/base/error.h"
#include "sim/base/suggestion.h"
#include "sim/chips/chip_fields.h"
#include "sim/collectives/library_fields.h"
#include "sim/fields/field_help.h"
#include "sim/hardware/host_fields.h"
#include "sim/network/transport/transport_table.h"
#include "workload/model/model_fields.h"

namespace stepsim {
namespace {

constexpr const char* kPlanHead =
    R"(Keys of a plan, as in --plan tp=8,dp=16,global-batch=1024,sequence=8192: joined by
commas, without spaces, with dashes or underscores. --set plan.tp=8 and the group
`plan` of a file set the same keys. `stepsim help plan KEY` shows one.

)";

constexpr const char* kSoftwareHead =
    R"(Keys of the software that runs a plan: which kernels, copies, buffers, messages and
launches it brings. --software torchtitan takes those of an entry of catalog/software,
with the efficiencies of its kernels; keys behind it, or alone, go over them:
--software torchtitan,loss=fused. --set software.loss=fused and the group `software` of
a file (its `catalog` names an entry) set the same keys. Without any, kernels are the
best that were measured on the chip, and keys have the defaults below.
`stepsim help software KEY` shows one.

)";

constexpr const char* kPassHead =
    R"(Keys of one pass of inference, as in --pass decode,batch=64,context=8192: what the
plan computes in place of a training step. --set pass.batch=64 and the group `pass` of a
file set the same keys. `stepsim help pass KEY` shows one.

)";

constexpr const char* kTransportHead =
    R"(A transport moves packets: --transport dcqcn, or --transport dcqcn,rto=1ms,queue=1MB
with fields over the defaults of the kind, of run, sweep and collective with --fidelity
packet, and of network. The group `transport` of an experiment and the object `transport`
of a network case have the same fields. `stepsim help transport FIELD` shows one.
Defaults below are those of go-back-n; where a kind differs, docs/transports.md says how.
Kinds:

)";

constexpr const char* kSimulationHead =
    R"(Fields that say how an experiment is simulated: the group `simulation` of a file, and
options of `stepsim run` with dashes, which override it: --packet-bytes 1024.

)";

constexpr const char* kChipHead =
    R"(Fields of a chip: a file in catalog/chips, and `chip` in a cluster. On the command
line: --set cluster.chip.memory_bandwidth=4TB/s. `stepsim help chip FIELD` shows one.
A chip also has `catalog`, the chip of the catalog that it is based on; `library`, the
communication library of its clusters; and `host`, the machine that it is built into
(`stepsim help host`).

)";

constexpr const char* kModelHead =
    R"(Fields of a model: a file in catalog/models, and `model` in an experiment. On the
command line: --set model.layers=40. `stepsim help model FIELD` shows one. A model also
has `catalog`, the model of the catalog that it is based on, or `huggingface`, a
config.json, and `as`, the family as which that file is read.

)";

constexpr const char* kHostHead =
    R"(Fields of the host that chips are attached to: `host` in a chip, and `host` in a
cluster, whose fields override those of the chip. On the command line:
--set cluster.host.chips=4. Chips reach a host by links of their own, which the
network doesn't use.

)";

constexpr const char* kLibraryHead =
    R"(Fields of a communication library: a file in catalog/libraries, and `library` in a
cluster. On the command line: --set cluster.library.most_channels=4, or
--library NAME for another library of the catalog. docs/collectives.md has the
formula that uses the constants.

)";

constexpr const char* kFailuresHead =
    R"(Fields of a table of failures: a file in catalog/failures, and the file of stepsim
goodput --failures. The keys of --checkpoint and --restart are those of its groups.
`stepsim help failures FIELD` shows one.

)";

constexpr const char* kClusterHead =
    R"(Fields of a cluster: a file in catalog/clusters, and `cluster` in an experiment. On
the command line: --set cluster.switch_adders=2.7TB/s. A cluster also has `catalog`,
the cluster of the catalog that it is based on.

)";

constexpr const char* kEngineHead =
    R"(Engines of `stepsim serve` and their keys, as in --engine sglang,chunk=4096,mixed-chunk=true:
a name (vllm if there is none), then keys joined by commas, with dashes or underscores.
An engine refuses keys that it does not have. The defaults below are those of vllm, or of the
only engine that has the key; what others change is listed with them. `stepsim help engine KEY` shows one key.

)";

constexpr const char* kRequestsHead =
    R"(Keys of --requests, as in --requests poisson:rate=4,count=1000,input=1024,output=128.
Each kind of requests has some of them: `stepsim help serve`. `stepsim help requests KEY`
shows one.

)";

constexpr const char* kTopologyHead =
    R"(Topologies that a cluster can have. `stepsim help topologies KIND` shows the fields of
one, `stepsim help topologies KIND FIELD` one field.

)";

// The rows of a cluster that are topologies.
std::vector<const AnyField*> topologies() {
  std::vector<const AnyField*> kinds;
  for (const auto& field : cluster_fields().fields()) {
    const bool is_kind = field->doc().see.starts_with("stepsim help topologies");
    if (is_kind) kinds.push_back(field.get());
  }
  return kinds;
}

std::string changed_defaults(const EngineRow& engine) {
  std::string changes;
  for (const FieldValue& value : engine_fields().changed(engine.defaults)) {
    changes += (changes.empty() ? "" : ",") + value.path + "=" + value.text;
  }
  return changes;
}

// Returns a line for each engine: what it is, and what its defaults change.
std::string list_of_engines() {
  std::string text;
  for (const EngineRow& row : engine_table()) {
    const std::string changes = changed_defaults(row);
    text += fmt::format("  {:<11}{}\n{}", row.name, row.summary,
                        changes.empty() ? "" : fmt::format("  {:<11}{}\n", "", changes));
  }
  return text + "\n";
}

std::string engines_in_markdown() {
  std::string text =
      "## Engines\n\n| engine | what it is | defaults that differ |\n|---|---|---|\n";
  for (const EngineRow& row : engine_table()) {
    const std::string changes = changed_defaults(row);
    text += fmt::format("| `{}` | {} | {} |\n", row.name, row.summary,
                        changes.empty() ? "" : "`" + changes + "`");
  }
  return text + "\n";
}

// Returns the help of the field with that path; if there is none, of every field whose path ends
// like that: "tile_m".
std::string help_of_field(std::string_view topic, const AnyFieldTable& table,
                          const std::string& field) {
  if (const auto text = help_text_of(table, field)) return *text;
  const std::vector<std::string> paths = field_paths(table);
  std::string text;
  for (const std::string& path : paths) {
    if (path.ends_with("." + field)) {
      text += (text.empty() ? "" : "\n") + *help_text_of(table, path);
    }
  }
  if (!text.empty()) return text;
  const std::string all = "`stepsim help " + std::string(topic) + "` lists all fields";
  throw ConfigError({{field, "is no such field" + did_you_mean(field, paths, all)}});
}

std::string field_help(std::string_view topic, const char* head, const AnyFieldTable& table,
                       std::span<const std::string> fields) {
  if (fields.empty()) return head + help_text_of(table);
  if (fields[0] == "--markdown") return markdown_of(table);
  std::string text;
  for (const std::string& field : fields) {
    text += (text.empty() ? "" : "\n") + help_of_field(topic, table, field);
  }
  return text;
}

}  // namespace

std::string plan_help(std::span<const std::string> keys) {
  return field_help("plan", kPlanHead, plan_fields(), keys);
}

std::string software_help(std::span<const std::string> keys) {
  return field_help("software", kSoftwareHead, software_fields(), keys);
}

std::string pass_help(std::span<const std::string> keys) {
  return field_help("pass", kPassHead, pass_fields(), keys);
}

std::string transport_help(std::span<const std::string> fields) {
  std::string head = kTransportHead;
  for (const TransportRow& row : transport_table()) {
    head += fmt::format("  {:<17} {}\n  {:<17} ({})\n", row.name, row.help, "", row.source);
  }
  head += '\n';
  return field_help("transport", head.c_str(), transport_fields(), fields);
}

std::string simulation_help(std::span<const std::string> fields) {
  return field_help("simulation", kSimulationHead, simulation_fields(), fields);
}

std::string chip_help(std::span<const std::string> fields) {
  return field_help("chip", kChipHead, chip_fields(), fields);
}

std::string model_help(std::span<const std::string> fields) {
  return field_help("model", kModelHead, model_fields(), fields);
}

std::string host_help(std::span<const std::string> fields) {
  return field_help("host", kHostHead, host_fields(), fields);
}

std::string library_help(std::span<const std::string> fields) {
  return field_help("library", kLibraryHead, library_fields(), fields);
}

std::string cluster_help(std::span<const std::string> fields) {
  return field_help("cluster", kClusterHead, cluster_fields(), fields);
}

std::string engine_help(std::span<const std::string> keys) {
  const bool is_markdown = !keys.empty() && keys[0] == "--markdown";
  const std::string head = kEngineHead + list_of_engines();
  return (is_markdown ? engines_in_markdown() : "") +
         field_help("engine", head.c_str(), engine_fields(), keys);
}

std::string requests_help(std::span<const std::string> keys) {
  return field_help("requests", kRequestsHead, request_fields(), keys);
}

std::string failures_help(std::span<const std::string> fields) {
  return field_help("failures", kFailuresHead, failure_fields(), fields);
}

std::string topology_help(std::span<const std::string> words) {
  const std::vector<const AnyField*> kinds = topologies();
  if (words.empty()) {
    std::string text = kTopologyHead;
    for (const AnyField* kind : kinds) {
      text += fmt::format("  {:<16}{}\n", kind->name(), kind->doc().help);
    }
    return text;
  }
  std::vector<std::string> names;
  for (const AnyField* kind : kinds) {
    if (kind->name() == words[0]) {
      return field_help("topologies " + words[0], "", *kind->fields(), words.subspan(1));
    }
    names.emplace_back(kind->name());
  }
  throw ConfigError({{words[0], "is no topology" + did_you_mean(words[0], names,
                                                                "`stepsim help topologies` lists "
                                                                "them")}});
}

}  // namespace stepsim
