#include "proto/load_experiment.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "experiment/bounds/fastest_layout.h"
#include "experiment/build_cluster.h"
#include "experiment/experiment.h"
#include "experiment/pass_dispatch.h"
#include "proto/assumed_links.h"
#include "proto/catalog/catalog.h"
#include "proto/catalog/catalog_reference.h"
#include "proto/experiment.pb.h"
#include "proto/hugging_face/hugging_face.h"
#include "proto/key_groups_of_files.h"
#include "proto/messages/message_fields.h"
#include "proto/messages/read_fields.h"
#include "proto/mlp_stack_text.h"
#include "proto/named_files.h"
#include "proto/plan_text.h"
#include "proto/record_fields.h"
#include "proto/to_spec.h"
#include "schedules/plan/balanced_layout.h"
#include "schedules/plan/inference_plan.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/network/transport/transport_network.h"
#include "sim/network/transport/transport_text.h"
#include "sim/program/variation_fields.h"

namespace stepsim {
namespace {

struct Override {
  std::string path;
  std::string value;

  // A reference names the entry that the other overrides then change.
  bool is_reference() const {
    return path.ends_with(".catalog") || path.ends_with(".huggingface") || path == "model.as";
  }
};

// Loaded is a message and the folder in which its paths start. `usable` is false if the source
// could not be read to its end; a missing field then means nothing.
struct Loaded {
  file::Experiment message;
  std::filesystem::path folder;
  bool usable = true;
  std::vector<std::string> moved_keys{};  // of a file of 0.1
};

Loaded load_file(const std::string& experiment, const std::string& text, ProblemList& problems) {
  Loaded loaded;
  if (experiment.empty()) return loaded;
  std::optional<SourceText> source;
  if (!text.empty()) {
    source = SourceText{.name = experiment, .extension = ".textproto", .text = text};
  } else if (looks_like_file(experiment)) {
    source = read_source(experiment, "EXPERIMENT", problems);
    if (source) take_out_of_result(*source);
    loaded.folder = std::filesystem::path(experiment).parent_path();
  } else {
    CatalogAnswer answer = find(CatalogKind::kExperiment, experiment);
    source = std::move(answer.found);
    if (!source) {
      const bool is_keys = experiment.find('=') != std::string::npos;
      problems.add("EXPERIMENT",
                   is_keys ? "is \"" + experiment +
                                 "\", which looks like a key of --plan: join keys by commas, "
                                 "without spaces, as in --plan tp=8,dp=16"
                           : answer.problem + "; or give a file ending in .textproto or .json");
    }
  }
  if (!source) {
    loaded.usable = false;
    return loaded;
  }
  loaded.usable = read_message(*source, "", loaded.message, problems);
  loaded.moved_keys = join_groups(loaded.message, problems);
  if (looks_like_file(experiment) && text.empty()) {
    place_files(loaded.folder, loaded.message, problems);
  }
  if (!loaded.message.has_name()) {
    // A name of the catalog may have a dot: llama3.1-405b.
    loaded.message.set_name(looks_like_file(experiment) ? stem_of(experiment) : experiment);
  }
  return loaded;
}

// A flag replaces its section of a file. Only the keys of --plan go over the section. Returns false
// if the flag names something that could not be read.
bool read_model_flag(const std::string& flag, file::Model& model, ProblemList& problems) {
  model.Clear();
  if (is_mlp_stack_text(flag)) {
    read_mlp_stack_text(flag, model, problems);
    return true;
  }
  if (!looks_like_file(flag)) {
    model.set_catalog(flag);
    return true;
  }
  const std::string path = config_of(flag).string();
  const auto source = read_source(path, "--model", problems);
  if (!source) return false;
  if (is_hugging_face(*source)) {
    model.set_huggingface(std::filesystem::absolute(path).string());
    return true;
  }
  const bool usable = read_message(*source, "model.", model, problems);
  if (!model.has_name()) model.set_name(stem_of(flag));
  return usable;
}

bool read_cluster_flag(const std::string& flag, file::Cluster& cluster, ProblemList& problems) {
  cluster.Clear();
  if (!looks_like_file(flag)) {
    cluster.set_catalog(flag);
    return true;
  }
  const auto source = read_source(flag, "--cluster", problems);
  if (!source) return false;
  const bool usable = read_message(*source, "cluster.", cluster, problems);
  place_files(std::filesystem::path(flag).parent_path(), cluster, problems);
  if (!cluster.has_name()) cluster.set_name(stem_of(flag));
  return usable;
}

// A file of 0.1 may have keys of all groups, which are added to `moved`.
bool read_plan_flag(const std::string& flag, file::Plan& plan, std::vector<std::string>& moved,
                    ProblemList& problems) {
  if (flag.find('=') != std::string::npos) {
    read_keys_text(flag, KeyGroup::kPlan, plan, problems);
    return true;
  }
  clear_group(KeyGroup::kPlan, plan);
  if (!looks_like_file(flag)) {
    plan.set_catalog(flag);
    return true;
  }
  const auto source = read_source(flag, "--plan", problems);
  file::Plan keys;
  if (!source || !read_message(*source, "plan.", keys, problems)) return false;
  place_files(std::filesystem::path(flag).parent_path(), keys, problems);
  for (std::string& key : moved_keys_in(keys)) moved.push_back(std::move(key));
  plan.MergeFrom(keys);
  return true;
}

// "torchtitan", "mine.textproto", "loss=separate", or a name or file with keys behind it. The name
// or the file replaces what an experiment says of its software.
bool read_software_flag(const std::string& flag, file::Plan& plan, ProblemList& problems) {
  if (flag.empty()) return true;
  const std::string first = flag.substr(0, flag.find(','));
  const bool has_base = first.find('=') == std::string::npos;
  if (has_base) {
    clear_group(KeyGroup::kSoftware, plan);
    if (!ends_like_file(first)) {
      plan.set_software(first);
    } else {
      const auto source = read_source(first, "--software", problems);
      file::Experiment keys;
      if (!source || !read_message(*source, "software.", *keys.mutable_software(), problems)) {
        return false;
      }
      join_groups(keys, problems);
      plan.MergeFrom(keys.plan());
    }
  }
  const std::string_view keys =
      has_base ? std::string_view(flag).substr(std::min(first.size() + 1, flag.size())) : flag;
  if (!keys.empty()) read_keys_text(keys, KeyGroup::kSoftware, plan, problems);
  return true;
}

// "dcqcn", "dcqcn,rto=1ms", or fields alone over the transport of the file.
void read_transport_flag(const std::string& flag, file::Transport& transport,
                         ProblemList& problems) {
  std::vector<Problem> wrong;
  const TransportParts parts = split_transport_text(flag, wrong);
  problems.add(std::move(wrong));
  const bool names_one = flag.substr(0, flag.find(',')).find('=') == std::string::npos;
  if (names_one && !parts.kind) problems.mark_reported("transport.name");
  if (parts.kind) {
    transport.Clear();
    transport.set_name(std::string(name_of(*parts.kind)));
  }
  for (const auto& [key, value] : parts.fields) {
    if (const auto problem = set_field(transport, key, value)) {
      problems.add("--transport", key + " " + *problem);
    }
  }
}

std::vector<Override> split_overrides(const std::vector<std::string>& texts,
                                      ProblemList& problems) {
  std::vector<Override> overrides;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      problems.add("--set " + text, "must be path=value, as in plan.tp=8");
      continue;
    }
    overrides.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return overrides;
}

void apply(const Override& change, file::Experiment& message, ProblemList& problems) {
  std::string value = change.value;
  if (change.path.ends_with(".huggingface")) value = std::filesystem::absolute(value).string();
  const JoinedPath joined = joined_path(change.path);
  const auto problem = joined.problem.empty() ? set_field(message, joined.path, value)
                                              : std::optional(joined.problem);
  if (!problem) return;
  problems.add("--set " + change.path, *problem);
  problems.mark_reported(change.path);
}

// Returns places for as many ranks as the plan has, without levels.
Places places_for(const ParallelPlan& plan) {
  constexpr std::int64_t kMostRanks = 1 << 20;
  Places places;
  const std::int64_t ranks = std::min(plan.mesh.ranks(), kMostRanks);
  for (std::int64_t chip = 0; chip < ranks; ++chip) {
    places.chips.emplace_back(static_cast<std::uint32_t>(chip));
  }
  return places;
}

// Returns problems of the plan and the variation. If the cluster cannot be built, the plan is
// checked against one that is just large enough. If the model could not be read, the plan is
// checked for problems with any model. So the rest is reported too.
std::vector<Problem> check_loaded(const Experiment& experiment, bool has_model,
                                  const std::optional<BuiltTopology>& built) {
  if (has_model && built) return check(experiment, built->places);
  ParallelPlan plan = experiment.plan;
  if (!built) plan.mesh.map.clear();
  const Places places = built ? built->places : places_for(plan);
  std::vector<Problem> problems = with_groups(has_model ? check(plan, experiment.model, places)
                                                        : check_without_model(plan, places));
  for (Problem& problem : under("variation", check(experiment.variation, plan.mesh.ranks()))) {
    problems.push_back(std::move(problem));
  }
  return problems;
}

// Returns whether flags give the experiment of a file or of the catalog another model or cluster.
bool replaces_a_part(const ExperimentSource& source, const std::vector<Override>& overrides) {
  const auto names_a_part = [](const Override& change) {
    return change.is_reference() &&
           (change.path.starts_with("model.") || change.path == "cluster.catalog");
  };
  return !source.model.empty() || !source.cluster.empty() ||
         std::ranges::any_of(overrides, names_a_part);
}

// For the record, --chip and --library are written as overrides.
void add_overrides(const ExperimentSource& source, file::Experiment& message) {
  if (!source.chip.empty()) message.add_overrides("cluster.chip.catalog=" + source.chip);
  if (!source.library.empty()) message.add_overrides("cluster.library.catalog=" + source.library);
  for (const std::string& text : source.overrides) message.add_overrides(text);
}

// Returns whether no flag changes what the file or the catalog says.
bool is_as_written(const ExperimentSource& source) {
  return source.model.empty() && source.cluster.empty() && source.plan.empty() &&
         source.software.empty() && source.pass.empty() && source.chip.empty() &&
         source.library.empty() && source.overrides.empty();
}

Publication forget_publication(file::Experiment& message) {
  message.clear_published();
  message.clear_not_published();
  return {};
}

// --chip and --library replace those of the cluster.
void replace_parts(const std::string& chip, const std::string& library, file::Experiment& message) {
  if (!chip.empty()) message.mutable_cluster()->mutable_chip()->set_catalog(chip);
  if (!library.empty()) message.mutable_cluster()->mutable_library()->set_catalog(library);
}

// Requires a section. Returns false if it cannot be used.
bool require(bool has, const char* section, const char* flag, const ExperimentSource& source,
             ProblemList& problems) {
  if (has) return true;
  if (source.experiment.empty()) {
    problems.add(flag, "must be given where there is no EXPERIMENT");
  } else {
    problems.add(section, std::string("must be given, in the file or with ") + flag);
  }
  return false;
}

// Weights are served in the type in which the model was published, where the plan says nothing
// else: those of 4 bits are of the experts, if it has some. The chip computes in that type if it
// can.
void take_published_types(bool gives_type, const ChipSpec& chip, Experiment& experiment) {
  ParallelPlan& plan = experiment.plan;
  const std::optional<DataType>& published = experiment.model.weight_type;
  if (plan.is_inference() && published == DataType::kFp8Block) {
    // "fp8" of a model that was published with scales by block is that.
    const auto take = [&chip](auto& type) {
      if (type == DataType::kFp8 && chip.peak_of(DataType::kFp8Block) > Throughput(0)) {
        type = DataType::kFp8Block;
      }
    };
    take(plan.precision.type);
    take(plan.precision.weight_type);
    take(plan.pass.expert_type);
    take(plan.pass.expert_weight_type);
  }
  if (!plan.is_inference() || !published || plan.precision.weight_type ||
      plan.pass.expert_weight_type)
    return;
  constexpr std::int64_t kByte = 8;
  if (experiment.model.experts.routed > 0 && bits_of(*published) < kByte) {
    plan.pass.expert_weight_type = published;
  } else if (!gives_type && chip.peak_of(*published) > Throughput(0)) {
    plan.precision.type = *published;
  } else {
    plan.precision.weight_type = published;
  }
}

// Works out layout=balanced, if the sizes that it needs make sense.
void balance(const std::optional<BuiltTopology>& built, Experiment& experiment,
             const ProblemList& problems) {
  ParallelPlan& plan = experiment.plan;
  if (!plan.pipeline.balanced || !problems.empty() || plan.batch.sequence < 1 || plan.mesh.pp < 1)
    return;
  if (!check(experiment.model).empty() || !check_schedule(plan).empty()) return;
  if (stages_of(plan) > experiment.model.layers) return;  // reported with the plan's problems
  plan.pipeline.balanced = false;
  plan.pipeline.layout = balanced_layout(plan, experiment.model);
  if (!built || !check(experiment, built->places).empty()) return;
  plan.pipeline.layout = fastest_layout(experiment, cluster_for_steps(experiment));
}

// Chooses dispatch=auto where the plan doesn't say how tokens travel and its software would.
void choose_dispatch(const Places& places, Experiment& experiment) {
  ParallelPlan& plan = experiment.plan;
  if (!plan.is_inference() || !has_quick_dispatch(plan.mesh, experiment.cluster.library)) return;
  plan.experts.dispatch = Dispatch::kAuto;
  if (!check(experiment.model).empty() || !check(experiment, places).empty()) {
    plan.experts.dispatch = Dispatch::kAllToAll;
  }
}

ServedLoad to_served_load(const file::Experiment& message, ProblemList& problems) {
  ServedLoad served;
  if (!message.has_serve()) return served;
  read_fields(message.serve(), served_load_fields(), served, "serve.", problems);
  served.requests = {message.serve().requests().begin(), message.serve().requests().end()};
  if (served.requests.empty()) {
    problems.add("serve.requests",
                 "must be given, as in \"poisson:rate=4,count=1000,input=1024,output=128\"");
  }
  return served;
}

// Returns all but the record, and sets `message`, of which that is made. `has_rules`: the plan must
// keep the rules of plans.
LoadedExperiment load(const ExperimentSource& source, file::Experiment& message,
                      bool has_rules = true) {
  ProblemList problems;
  Loaded loaded = load_file(source.experiment, source.text, problems);
  std::vector<std::string> moved_keys = std::move(loaded.moved_keys);
  message = std::move(loaded.message);
  bool has_model = true;
  bool has_cluster = true;
  bool has_plan = true;
  if (!source.model.empty()) {
    has_model = read_model_flag(source.model, *message.mutable_model(), problems);
  }
  if (!source.cluster.empty()) {
    has_cluster = read_cluster_flag(source.cluster, *message.mutable_cluster(), problems);
  }
  if (!source.plan.empty()) {
    has_plan = read_plan_flag(source.plan, *message.mutable_plan(), moved_keys, problems);
  }
  if (!source.pass.empty()) {
    read_keys_text(source.pass, KeyGroup::kPass, *message.mutable_plan(), problems);
  }
  if (!source.software.empty()) {
    has_plan = read_software_flag(source.software, *message.mutable_plan(), problems) && has_plan;
  }
  if (!source.transport.empty()) {
    read_transport_flag(source.transport, *message.mutable_transport(), problems);
  }
  replace_parts(source.chip, source.library, message);
  const std::vector<Override> overrides = split_overrides(source.overrides, problems);
  for (const Override& change : overrides) {
    if (change.is_reference()) apply(change, message, problems);
  }
  if (replaces_a_part(source, overrides)) message.clear_name();
  if (!loaded.usable) throw_if_any(problems.all());
  if (message.over_size() > 0 && !source.has_axes) {
    problems.add("over", "has axes, which only stepsim sweep follows");
  }

  const file::Chip own_chip = message.cluster().chip();
  has_model = require(message.has_model(), "model", "--model", source, problems) &&
              resolve(*message.mutable_model(), loaded.folder, problems) && has_model;
  has_cluster = require(message.has_cluster(), "cluster", "--cluster", source, problems) &&
                resolve(*message.mutable_cluster(), problems) && has_cluster;
  has_plan = require(message.has_plan(), "plan", "--plan", source, problems) &&
             resolve(*message.mutable_plan(), problems) && has_plan;
  if (has_plan && has_cluster) {
    has_plan = resolve_software(*message.mutable_plan(), *message.mutable_cluster()->mutable_chip(),
                                own_chip, problems);
  }
  for (const Override& change : overrides) {
    if (!change.is_reference()) apply(change, message, problems);
  }
  if (has_cluster) {
    for (std::string& line : assume_links(*message.mutable_cluster())) {
      message.add_overrides(std::move(line));
    }
  }

  Experiment experiment;
  if (has_model) experiment.model = to_model(message.model(), problems);
  std::optional<BuiltTopology> built;
  if (has_cluster) {
    experiment.cluster = to_cluster(message.cluster(), problems);
    if (message.cluster().topology_case() != file::Cluster::TOPOLOGY_NOT_SET) {
      built = build_if_valid(experiment.cluster.topology, experiment.cluster.faults);
    }
  }
  read_fields(message.variation(), variation_fields(), experiment.variation, "variation.",
              problems);
  if (has_plan) {
    experiment.plan = to_plan(message.plan(), problems);
    if (has_rules && has_model) {
      complete_inference(experiment.model, experiment.plan);
      if (has_cluster) {
        take_published_types(message.plan().has_dtype(), experiment.cluster.chip, experiment);
      }
      experiment.plan = with_recompute_habits(std::move(experiment.plan), experiment.model);
      balance(built, experiment, problems);
      const bool may_choose = built && problems.empty() && !message.plan().has_dispatch();
      if (may_choose) choose_dispatch(built->places, experiment);
    }
    if (!built) problems.mark_reported("plan.ranks");
    if (has_rules) problems.add(check_loaded(experiment, has_model, built));
  }
  Publication publication = to_publication(message, problems);
  ServedLoad served = to_served_load(message, problems);
  if (!is_as_written(source)) publication = forget_publication(message);
  experiment.name =
      message.has_name() ? message.name() : experiment.model.name + "-" + experiment.cluster.name;
  const ExperimentOptions simulation = to_simulation(message, problems);
  if (simulation.transport && built && problems.empty()) {
    problems.add(under("transport", check_transport(*simulation.transport, built->fabric)));
  }
  throw_if_any(problems.all());
  return {.experiment = std::move(experiment),
          .topology = std::move(*built),
          .simulation = simulation,
          .record = {},
          .publication = std::move(publication),
          .served = std::move(served),
          .moved_keys = std::move(moved_keys)};
}

}  // namespace

ExperimentSource with_keys(ExperimentSource source, std::string_view keys) {
  KeyTexts texts = split_keys_text(keys);
  source.plan = std::move(texts.plan);
  source.software = std::move(texts.software);
  source.pass = std::move(texts.pass);
  return source;
}

LoadedExperiment load_with_topology(const ExperimentSource& source) {
  file::Experiment message;
  LoadedExperiment loaded = load(source, message);
  add_overrides(source, message);
  loaded.record = record_of(message, loaded.experiment);
  return loaded;
}

AxesOfFile load_axes(const std::string& experiment) {
  if (!looks_like_file(experiment)) return {};
  ProblemList problems;
  Loaded loaded = load_file(experiment, "", problems);
  throw_if_any(problems.all());
  return {.over = {loaded.message.over().begin(), loaded.message.over().end()},
          .moved_keys = std::move(loaded.moved_keys)};
}

LoadedExperiment load_start(const ExperimentSource& source) {
  file::Experiment message;
  return load(source, message, false);
}

Experiment load_experiment(const ExperimentSource& source) {
  file::Experiment message;
  return load(source, message).experiment;
}

ClusterSpec load_cluster(const std::string& cluster, const std::string& library,
                         const std::string& chip) {
  ProblemList problems;
  file::Experiment experiment;  // contains only its cluster
  file::Cluster& message = *experiment.mutable_cluster();
  ClusterSpec spec;
  const bool usable = read_cluster_flag(cluster, message, problems);
  replace_parts(chip, library, experiment);
  if (usable && resolve(message, problems)) {
    assume_links(message);
    spec = to_cluster(message, problems);
  }
  throw_if_any(problems.all());
  return spec;
}

std::vector<std::string> assumed_links_of(const std::string& cluster) {
  ProblemList problems;
  file::Cluster message;
  if (!read_cluster_flag(cluster, message, problems) || !resolve(message, problems)) return {};
  return assume_links(message);
}

ChipSpec load_chip(const std::string& name) {
  ProblemList problems;
  file::Cluster message;  // contains only its chip
  message.mutable_chip()->set_catalog(name);
  ChipSpec chip;
  if (resolve(message, problems)) chip = to_cluster(message, problems).chip;
  std::vector<Problem> own;
  for (const Problem& problem : problems.all()) {
    if (problem.field.starts_with("cluster.chip")) own.push_back({"chip", problem.message});
  }
  throw_if_any(std::move(own));
  return chip;
}

ModelSpec load_model(const std::string& model) {
  ProblemList problems;
  file::Model message;
  ModelSpec spec;
  if (read_model_flag(model, message, problems) && resolve(message, {}, problems)) {
    spec = to_model(message, problems);
  }
  throw_if_any(problems.all());
  return spec;
}

ParallelPlan load_plan(const std::string& plan) {
  ProblemList problems;
  file::Plan message;
  ParallelPlan read;
  std::vector<std::string> moved;
  const bool is_keys = plan.find('=') != std::string::npos;
  const KeyTexts keys = is_keys ? split_keys_text(plan) : KeyTexts{.plan = plan};
  const bool usable = keys.plan.empty() || read_plan_flag(keys.plan, message, moved, problems);
  if (!keys.pass.empty()) read_keys_text(keys.pass, KeyGroup::kPass, message, problems);
  if (usable && read_software_flag(keys.software, message, problems) &&
      resolve(message, problems)) {
    // Another part of the question may give them.
    if (!message.has_global_batch() && !message.has_batch()) message.set_global_batch(1);
    if (!message.has_sequence()) message.set_sequence(1);
    read = to_plan(message, problems);
  }
  throw_if_any(problems.all());
  return read;
}

}  // namespace stepsim
