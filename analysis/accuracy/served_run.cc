#include "analysis/accuracy/served_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "analysis/accuracy/columns.h"
#include "analysis/accuracy/row_fields.h"
#include "analysis/accuracy/served_model_name.h"
#include "proto/load_experiment.h"
#include "serving/engines/engine_fields.h"
#include "sim/base/field_assignments.h"
#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

// Returns 350 for "h100 (350 W cap)", and leaves "h100" in `chip`.
std::int64_t power_cap(std::string_view& chip) {
  const std::size_t open = chip.find(" (");
  if (open == std::string_view::npos || !chip.ends_with("W cap)")) return 0;
  const auto watts = number_after(chip, " (");
  chip = chip.substr(0, open);
  return watts.value_or(0);
}

constexpr std::int64_t kMeasurable = 10;  // tokens of which a tenth is one

// How many ranks of each kind a replica has.
struct Layout {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  std::int64_t ep = 1;
  std::int64_t ranks() const { return tp * pp * dp; }
};

// A prompt that is never cut needs room beside those that generate, or it waits for them to end.
void leave_room_for_prompts(std::int64_t prompt, EngineOptions& options) {
  if (options.batching.chunked_prefill) return;
  options.batching.budget = std::max(options.batching.budget, prompt + options.batching.sequences);
}

// Where stages don't divide the layers, engines give some one more.
std::string text_of(const Layout& layout, std::int64_t layers, bool has_experts) {
  std::string text = fmt::format("tp={},pp={},dp={}", layout.tp, layout.pp, layout.dp);
  if (layers % layout.pp != 0) text += ",layout=balanced";
  if (!has_experts) return text;
  if (layout.tp > 1) {
    const std::int64_t ep = std::clamp<std::int64_t>(layout.ep, 1, layout.tp);
    return text + fmt::format(",ep={},etp={}", ep, layout.tp / ep);
  }
  return text + fmt::format(",ep={}", layout.ep);
}

class Reading {
 public:
  Reading(RowReader row, ServedRun& run) : row_(std::move(row)), run_(run) {}

  // `plan` has the hardware.
  void read(ServedPlan plan, const Hardware& hardware, const ClusterSpec& cluster,
            const std::vector<ModelSpec>& models) {
    const auto software = serving_software(row_.text("framework"));
    if (!software) return fail(fmt::format("framework \"{}\" is unknown", row_.text("framework")));
    model_ = served_model(row_.text("model"), models);
    if (model_ == nullptr)
      return fail(fmt::format("model \"{}\" is not in the catalog", row_.text("model")));
    software_ = *software;
    run_.chips = row_.need("chips");
    plan.model = model_->name;
    run_.has_experts = has_experts();
    run_.setting = {.chip = cluster.chip.name, .memory = cluster.chip.memory_capacity};
    run_.decode_setting = run_.setting;
    plan.library = collectives_of(software_, cluster.library.name);
    plan.framework = std::string(row_.text("framework"));
    run_.plan = std::move(plan);
    types_ = types(cluster.chip);
    cores_ = hardware.cores_per_chip;
    read_load();
    read_engine();
    read_layouts();
    if (!row_.problem().empty()) run_.problem = row_.problem();  // others may come of it
    std::ranges::copy(row_.assumed(), std::back_inserter(run_.assumed));
  }

 private:
  void fail(std::string problem) { run_.problem = std::move(problem); }
  bool says(std::string_view column, std::string_view word) const {
    return contains(in_small_letters(row_.text(column)), word);
  }

  // Checkpoints of these models have a scale for each block of 128 x 128 weights.
  bool has_block_scales() const {
    const std::string& name = model_->name;
    return contains(name, "deepseek") || (contains(name, "qwen") && says("model_id", "-fp8"));
  }

  std::string types(const ChipSpec& chip) {
    const auto computes = [&chip](DataType type) { return chip.peak_of(type) > Throughput(0); };
    std::string precision = in_small_letters(row_.text("precision"));
    if (precision.ends_with('?')) precision.pop_back();
    std::string type = precision;
    if (contains(model_->name, "gpt-oss") || precision.empty()) {
      type = "bf16";
    } else if (precision == "fp8") {
      type = has_block_scales() && computes(DataType::kFp8Block) ? "fp8_block" : "fp8";
      if (type == "fp8" && !computes(DataType::kFp8)) type = "int8";
    } else if (precision == "fp4") {
      type = computes(DataType::kNvfp4) ? "nvfp4" : "mxfp4";
    }
    const bool is_narrow = type != "bf16" && type != "fp16";
    std::string text;
    if (type == "nvfp4" && contains(model_->name, "deepseek")) {
      text = "dtype=bf16,expert_dtype=nvfp4";  // NVIDIA's checkpoints keep attention in 16 bits
    } else {
      text = "dtype=" + type + (is_narrow ? ",weight_dtype=" + type : "");
    }
    const bool is_gpt_oss = contains(model_->name, "gpt-oss");
    if (is_gpt_oss && computes(DataType::kMxfp8)) text += ",expert_dtype=mxfp8";
    // One scale a tensor or one a block: the same work, of which the better kernels are known.
    if (type == "fp8" && has_experts() && computes(DataType::kFp8Block) &&
        !computes(DataType::kNvfp4)) {
      text += ",expert_dtype=fp8_block";
    }
    return text + ",cache_dtype=" + cache(is_narrow || is_gpt_oss, chip);
  }

  std::string cache(bool is_narrow, const ChipSpec& chip) {
    const bool can = chip.peak_of(DataType::kFp8) > Throughput(0);
    if (!is_blank(row_.text("kv_dtype"))) return can && says("kv_dtype", "fp8") ? "fp8" : "bf16";
    const bool narrows = can && is_narrow && software_.narrows_cache;
    if (is_narrow) row_.assume(std::string("cache: ") + (narrows ? "fp8" : "bf16"));
    return narrows ? "fp8" : "bf16";
  }

  std::string length(std::string_view column) {
    const std::int64_t most = row_.need(column);
    if (column == "osl" && says("length_dist", "assumed") && most >= kMeasurable) {
      row_.assume("answers: a tenth shorter to longer");
      return fmt::format("uniform:{}-{}", most * 9 / 10, most + most / 10);
    }
    if (!says("length_dist", "uniform")) return std::to_string(most);
    return fmt::format("uniform:{}-{}", most * 8 / 10, most);
  }

  void read_load() {
    const std::string lengths =
        fmt::format("input={},output={},seed=1", length("isl"), length("osl"));
    std::string text;
    if (says("load", "trace")) return fail("requests came as a trace of its own says");
    if (says("mode", "static")) {
      text = fmt::format("burst:count={},", row_.need("batch"));
    } else if (says("load", "offline")) {
      text = fmt::format("burst:count={},", row_.need("num_requests"));
    } else {
      std::int64_t loop = row_.integer_or("concurrency", row_.integer_or("batch", 0));
      if (loop == 0) return fail("concurrency is not given");
      if (!row_.integer("num_requests")) row_.assume("num_requests: 10 x concurrency");
      text = fmt::format("closed:concurrency={},count={},", loop,
                         row_.integer_or("num_requests", 10 * loop));
    }
    if (!row_.problem().empty()) return;
    std::vector<Problem> problems;
    run_.requests = read_request_source(text + lengths, problems);
    if (!problems.empty()) fail(problems.front().field + ": " + problems.front().message);
  }

  void read_engine() {
    ReplicaGroup& group = run_.options.replicas;
    group.engine = software_.engine;
    group.options = software_.options;
    if (says("spec_decode", "mtp")) predict_tokens(group.options);
    const std::int64_t prompt = row_.integer_or("isl", 1);
    if (says("mode", "static")) {
      group = replica_of("static");
      group.options.batching.sequences = row_.integer_or("batch", 1);
      group.options.cache.block = 16;
      group.options.batching.budget = prompt * group.options.batching.sequences;
    }
    run_.prompt = prompt;
    leave_room_for_prompts(prompt, group.options);
  }

  // One module makes one draft. DeepSeek-V3's report (arXiv 2412.19437, section 5.4.3) has 85 to 90
  // % of them accepted.
  void predict_tokens(EngineOptions& options) {
    constexpr double kAccepted = 0.85;
    options.speculation.drafter = Drafter::kMtp;
    options.speculation.drafts = 1;
    options.speculation.acceptance = kAccepted;
    row_.assume("speculation: 1 draft, 85 % accepted");
  }

  Layout layout(std::string_view prefix) {
    const auto column = [&](std::string_view name) {
      return std::string(prefix) + std::string(name);
    };
    Layout result{.tp = row_.integer_or(column("tp"), 1), .pp = row_.integer_or(column("pp"), 1)};
    // Some tables write 0 where nothing is divided.
    if (row_.text(column("ep")) != "0") result.ep = row_.integer_or(column("ep"), 1);
    result.dp = row_.integer_or(prefix.empty() ? "attention_dp" : column("dp"), 1);
    // Data-parallel attention takes the chips of the tensor group.
    if (result.dp > 1) {
      result.tp = std::max<std::int64_t>(1, result.tp / result.dp);
      if (has_experts()) result.ep = result.dp;
    }
    return result;
  }

  bool has_experts() const { return model_->experts.routed > 0; }

  std::int64_t chips_of_worker(std::string_view prefix) {
    const std::int64_t workers = row_.integer_or(std::string(prefix) + "workers", 1);
    return row_.need(std::string(prefix) + "chips") / std::max<std::int64_t>(1, workers);
  }

  // What workers of more chips than tp and dp say do: those of the size of a node or less, which
  // are chosen for low latency, divide every layer; wider ones divide attention by requests and
  // spread the experts, as do the prefill workers that feed them.
  Layout worker(std::string_view prefix) {
    constexpr std::int64_t kMostOfNode = 8;
    Layout result = layout(prefix);
    const std::int64_t chips = chips_of_worker(prefix);
    if (chips <= result.ranks()) return result;
    const std::int64_t more = chips / result.ranks();
    const bool divides_layers = chips_of_worker("decode_") <= kMostOfNode;
    row_.assume(fmt::format("{}{}: {}", prefix, divides_layers ? "tp" : "dp", more));
    (divides_layers ? result.tp : result.dp) *= more;
    if (!divides_layers && has_experts()) result.ep = result.dp;
    return result;
  }

  // Experts that don't divide over the ranks have copies, as many as the next multiple needs.
  void set_layout(const Layout& layout, ServedPlan& plan) {
    plan.plan = text_of(layout, model_->layers, has_experts()) + "," + types_;
    const std::int64_t experts = model_->experts.routed;
    if (layout.tp > 1 || experts == 0 || experts % layout.ep == 0) return;
    plan.experts = (experts + layout.ep - 1) / layout.ep * layout.ep;
    row_.assume(fmt::format("experts: {}, with copies", *plan.experts));
  }

  static void set_ranks(const Layout& layout, EngineSetting& setting) {
    setting.tp = layout.tp;
    setting.pp = layout.pp;
  }

  void read_layouts() {
    if (says("mode", "disagg")) {
      const std::int64_t prefills = row_.need("prefill_workers");
      const std::int64_t decodes = row_.need("decode_workers");
      run_.decode = run_.plan;
      const Layout prefill = worker("prefill_");
      const Layout decode = worker("decode_");
      set_layout(prefill, run_.plan);
      set_layout(decode, *run_.decode);
      set_ranks(prefill, run_.setting);
      set_ranks(decode, run_.decode_setting);
      run_.options.decode = run_.options.replicas;
      run_.options.replicas.count = prefills;
      run_.options.decode->count = decodes;
      return;
    }
    Layout own = layout("");
    if (cores_ > 1) own.tp = std::max<std::int64_t>(1, own.tp / cores_);
    if (is_blank(row_.text("ep")) && has_experts() && says("remarks", "attention data parallel")) {
      row_.assume("attention: data parallel, experts over all ranks");
      own = {.tp = 1, .pp = own.pp, .dp = own.tp, .ep = own.tp};
    }
    if (own.ranks() > run_.chips * 1) {
      return fail(fmt::format("{} ranks on {} chips", own.ranks(), run_.chips));
    }
    run_.options.replicas.count = std::max<std::int64_t>(1, run_.chips / own.ranks());
    set_layout(own, run_.plan);
    set_ranks(own, run_.setting);
  }

  RowReader row_;
  ServedRun& run_;
  const ModelSpec* model_ = nullptr;
  std::string types_{};
  ServingSoftware software_{};
  std::int64_t cores_ = 1;
};

// Slices of three axes are as flat as they can be: 4 chips are 2x2x1.
std::string serving_cluster(const Hardware& hardware, std::int64_t chips) {
  if (hardware.cluster != "v7") return cluster_of(hardware, chips);
  const std::int64_t x = chips >= 2 ? 2 : 1;
  const std::int64_t y = chips >= 4 ? 2 : 1;
  return fmt::format("{}-{}x{}x{}", hardware.cluster, x, y,
                     std::max<std::int64_t>(1, chips / x / y));
}

std::string_view key_of(std::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

// Returns the keys of both; those of `more` count.
std::string merged(std::string_view keys, std::string_view more, bool has_experts) {
  std::string result;
  const std::vector<std::string_view> added = split_text(more, ',');
  for (const std::string_view part : split_text(keys, ',')) {
    if (std::ranges::count(added, key_of(part), key_of) > 0) continue;
    result += (result.empty() ? "" : ",") + std::string(part);
  }
  for (const std::string_view part : added) {
    if (part.starts_with("expert_") && !has_experts) continue;
    result += "," + std::string(part);
  }
  return result;
}

// Keys behind the name of a release: "vllm@0.11,block=32" has "budget=8192,...,block=32".
std::string keys_of_release(const std::string& text, const EngineSetting& setting) {
  std::vector<Problem> problems;
  const std::string whole = with_release(text, "--engine", setting, problems);
  throw_if_any(std::move(problems));
  const std::size_t comma = whole.find(',');
  return comma == std::string::npos ? "" : whole.substr(comma + 1);
}

void add_engine_keys(const std::string& text, const EngineSetting& setting, std::int64_t prompt,
                     ReplicaGroup& group) {
  const std::size_t at = text.find('@');
  const bool names_release = at < text.find_first_of(",=:");
  std::string keys = text;
  if (names_release) {
    keys = keys_of_release(text, setting);
    if (text.substr(0, at) != group.engine->name) return;
  }
  std::vector<Problem> problems;
  read_assignments(keys, engine_fields(), &group.options, {.option = "--engine"}, problems);
  throw_if_any(std::move(problems));
  if (names_release) leave_room_for_prompts(prompt, group.options);
}

}  // namespace

void change_keys(const std::string& plan, const std::string& engine, ServedRun& run) {
  if (!plan.empty()) {
    run.plan.plan = merged(run.plan.plan, plan, run.has_experts);
    if (run.decode) run.decode->plan = merged(run.decode->plan, plan, run.has_experts);
  }
  if (engine.empty()) return;
  ServingOptions& options = run.options;
  add_engine_keys(engine, run.setting, run.prompt, options.replicas);
  if (options.decode) add_engine_keys(engine, run.decode_setting, run.prompt, *options.decode);
}

ServedRunReader::ServedRunReader(const CsvTable& table, const std::vector<Hardware>& hardware)
    : table_(table), hardware_(hardware), models_(load_catalog_models()) {}

const ClusterSpec& ServedRunReader::cluster(const ServedPlan& plan) {
  const auto known = clusters_.find(plan.cluster);
  if (known != clusters_.end()) return known->second;
  return clusters_.emplace(plan.cluster, load_cluster(plan.cluster, {}, plan.chip)).first->second;
}

ServedRun ServedRunReader::read(std::size_t record) {
  ServedRun run;
  RowReader row(table_, record);
  std::string_view name = row.text("chip");
  ServedPlan plan;
  plan.power_limit = power_cap(name);
  const Hardware* hardware = find_hardware(hardware_, name);
  if (hardware == nullptr || hardware->cluster.empty()) {
    run.problem = fmt::format("the catalog has no cluster of \"{}\"", name);
    return run;
  }
  plan.chip = hardware->chip;
  plan.cluster = serving_cluster(*hardware, row.integer_or("chips", 1));
  try {
    const ClusterSpec& spec = cluster(plan);
    Reading(std::move(row), run).read(std::move(plan), *hardware, spec, models_);
  } catch (const ConfigError& error) {
    run.problem = error.problems().front().field + ": " + error.problems().front().message;
  }
  return run;
}

}  // namespace stepsim
