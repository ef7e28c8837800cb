#include "analysis/accuracy/training_run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <string>
#include <utility>

#include "analysis/accuracy/columns.h"
#include "analysis/accuracy/plan_words.h"
#include "analysis/accuracy/type_words.h"
#include "analysis/accuracy/words.h"
#include "schedules/plan/key_groups.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/base/error.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostStages = 10'000;

// Transformer Engine's userbuffers cut a pipelined scatter in four
// (transformer_engine/pytorch/module/base.py, num_splits); rings have a piece for each rank.
constexpr std::int64_t kUserbufferPieces = 4;

using PlanKeys = std::vector<std::pair<std::string, std::string>>;

// Sets the plan keys that an entry of the catalog gives. Throws ConfigError.
void set_keys(const std::string& entry, const PlanKeys& keys, ParallelPlan& plan) {
  std::vector<Problem> problems;
  for (const auto& [key, text] : keys) {
    const AnyField* const field = find_key(key);
    if (field == nullptr) throw std::logic_error("no key " + key + " of a plan");
    for (std::string& problem : field->read(text, &plan)) {
      problems.push_back({entry + ".plan." + key, std::move(problem)});
    }
  }
  throw_if_any(std::move(problems));
}

// MaxText counts the batch of a chip, whatever part of a replica a chip is.
bool is_batch_of_a_chip(const RowReader& row) {
  const std::string_view metrics = row.text("other_metrics");
  constexpr std::string_view kKey = "per_device_batch_size=";
  return metrics.starts_with(kKey) || contains(metrics, ";" + std::string(kKey));
}

void read_sizes(RowReader& row, std::int64_t chips, ParallelPlan& plan) {
  plan.mesh.tp = row.integer_or("tp", 1);
  plan.mesh.cp = row.integer_or("cp", 1);
  plan.mesh.pp = row.integer_or("pp", 1);
  plan.mesh.dp = row.integer("dp").value_or(
      chips / std::max<std::int64_t>(1, plan.mesh.tp * plan.mesh.cp * plan.mesh.pp));
  plan.mesh.ep = row.integer_or("ep", 1);
  plan.batch.sequence = row.need("seq_len");
  plan.batch.global_batch = row.need("global_batch");
  plan.batch.microbatch_size = row.integer_or("micro_batch", 1);
  if (row.problem().empty() && plan.mesh.dp > 0 && is_batch_of_a_chip(row)) {
    const std::int64_t of_replica = plan.batch.microbatch_size * plan.mesh.tp * plan.mesh.cp;
    if (plan.batch.global_batch % (plan.mesh.dp * of_replica) == 0)
      plan.batch.microbatch_size = of_replica;
  }
  if (row.text("micro_batch").empty()) row.assume("micro_batch: 1");
}

// FlashAttention came out in May 2022 (arXiv 2205.14135), and its kernels don't run on Volta.
bool could_fuse_attention(const RowReader& row, std::string_view chip) {
  const std::string_view release = row.text("release");
  const bool is_date = release.starts_with("20") && release.size() >= 7 && release[4] == '-';
  return !chip.starts_with("v100") && !(is_date && release.substr(0, 7) < "2022-06");
}

void read_attention(RowReader& row, const ModelSpec& model, std::string_view chip,
                    ParallelPlan& plan) {
  if (plan.mesh.tp == 1) plan.pieces.overlap_tensor = plan.buffers.copy_inputs = false;
  plan.kernels.eager_gate = plan.kernels.eager_gate && model.mlp.gated;
  if (plan.mesh.tp > 1) {
    // Without sequence parallelism all tensor ranks would send the same tokens to the experts,
    // which no training does.
    plan.tensor.sequence_parallel =
        divides_sequence(row.text("sequence_parallel")) || model.experts.routed > 0;
    plan.buffers.copy_inputs = plan.buffers.copy_inputs && !plan.tensor.sequence_parallel;
  }
  const std::string_view attention = row.text("attention");
  if (plan.kernels.fused_attention && !could_fuse_attention(row, chip)) {
    plan.kernels.fused_attention = false;
    if (!fuses_attention(attention, false)) row.assume("attention: not fused");
  }
  plan.kernels.fused_attention = fuses_attention(attention, plan.kernels.fused_attention);
  if (!plan.kernels.fused_attention) {
    plan.kernels.attention_library.reset();
  } else if (const auto named =
                 attention_library_of_words(attention, plan.kernels.attention_library)) {
    plan.kernels.attention_library = named;
  }
}

// 1F1B with several chunks a rank is interleaved; interleaved 1F1B has at least two.
void read_schedule(RowReader& row, std::int64_t layers, ParallelPlan& plan) {
  if (plan.mesh.pp == 1) {
    plan.messages.batch_p2p = false;
    return;
  }
  const std::string_view words = row.text("schedule");
  const std::optional<ScheduleName> known = schedule_of_words(words);
  if (!known) row.assume(fmt::format("schedule \"{}\" is not known: 1F1B", words));
  const ScheduleName name = known.value_or(ScheduleName::kOneForwardOneBackward);
  plan.pipeline.schedule = name;
  const bool is_interleaved = name == ScheduleName::kInterleaved;
  if (!is_interleaved && name != ScheduleName::kOneForwardOneBackward) return;
  const std::int64_t usual = is_interleaved && layers >= 2 * plan.mesh.pp ? 2 : 1;
  const std::optional<std::int64_t> given = row.integer("virtual_stages");
  const std::int64_t chunks = given.value_or(usual);
  plan.pipeline.schedule =
      chunks > 1 ? ScheduleName::kInterleaved : ScheduleName::kOneForwardOneBackward;
  if (chunks > 1) plan.pipeline.chunks = chunks;
  if (chunks > 1 && !given) row.assume(fmt::format("virtual_stages: {}", chunks));
}

// If the layers don't divide into stages, the stages at both ends, which also hold embedding and
// loss, get one layer less: first the last stage, then the first, then the last but one and so on.
void read_layout(RowReader& row, std::int64_t layers, ParallelPlan& plan) {
  const std::int64_t stages = stages_of(plan);
  if (stages < 3 || layers % stages == 0) return;
  if (stages > kMostStages) {
    return row.fail(
        fmt::format("pp x virtual_stages must be at most {} stages, are {}", kMostStages, stages));
  }
  plan.pipeline.layout.assign(static_cast<std::size_t>(stages), (layers + stages - 1) / stages);
  for (std::int64_t spare = plan.pipeline.layout.front() * stages - layers, i = 0; i < spare; ++i) {
    --plan.pipeline.layout[static_cast<std::size_t>(i % 2 == 0 ? stages - 1 - i / 2 : i / 2)];
  }
}

// A table without types is of bf16.
void read_type(RowReader& row, ParallelPlan& plan) {
  const std::string_view text = row.text("dtype");
  if (text.empty() || leaves_type_open(text)) return row.assume("dtype: bf16");
  TypeWords words = type_of_words(text);
  if (!words.type) return row.fail(words.problem);
  // The narrow type of a frozen base is not that of the matmuls.
  if (plan.training.frozen_type && bits_of(*words.type) < bits_of(DataType::kBf16)) {
    words.type = DataType::kBf16;
    words.scale_block.reset();
    words.scale_rows = false;
  }
  plan.precision.type = *words.type;
  if (words.scale_block) plan.narrow.scale_block = words.scale_block;
  if (words.scale_rows) plan.narrow.scale_rows = true;
  const bool half = plan.precision.type == DataType::kBf16 && contains(text, "MP PURE");
  if (half) plan.update.gradient_bytes = 2;  // gradients are reduced in bf16
  // Accelerate makes divided weights fp32 where Hugging Face's Trainer computes in bf16 by
  // autocast, and gathers and reduces in bf16 (its FullyShardedDataParallelPlugin).
  const bool divides =
      plan.state.zero == 3 && contains(in_small_letters(row.text("zero_stage")), "fsdp");
  if (divides && contains(in_small_letters(text), "autocast")) {
    plan.buffers.shared_master = !plan.training.lora_rank;
    plan.update.gradient_bytes = 2;
    return;
  }
  if (is_pure(text) && size_of(plan.precision.type) == Bytes(2)) {
    constexpr std::int64_t kMoments = 4;  // two in 16 bits, no weight beside the one that computes
    plan.update.gradient_bytes = 2;
    plan.update.optimizer_bytes = kMoments;
    if (plan.update.optimizer_scratch_bytes > 0) plan.update.optimizer_scratch_bytes = kMoments / 2;
    plan.buffers.shared_master = false;
  }
}

// Megatron Core's precision-aware optimizer keeps of each fp32 weight the 16 bits that the bf16
// weight lacks (store_param_remainders, on by default), and moments in the types that are named
// ("exp_avg_dtype bf16").
void read_optimizer(const RowReader& row, ParallelPlan& plan) {
  const std::string words = letters_and_digits(fmt::format(
      "{};{};{}", row.text("other_metrics"), row.text("overlap"), row.text("zero_stage")));
  if (!contains(words, "precisionawareoptimizer") || plan.offload.optimizer) return;
  const auto bytes_of_moment = [&words](std::string_view moment) {
    const std::string name = std::string(moment) + "dtype";
    if (contains(words, name + "bf16") || contains(words, name + "fp16")) return 2;
    return contains(words, name + "fp8") ? 1 : 4;
  };
  const int of_weight = plan.precision.type == DataType::kBf16 ? 2 : 4;
  plan.update.optimizer_bytes = of_weight + bytes_of_moment("expavg") + bytes_of_moment("expavgsq");
}

// Kernels that take the place of eager ones: Liger's and Unsloth's, losses in chunks.
void read_kernels(const RowReader& row, ParallelPlan& plan) {
  const std::string words =
      in_small_letters(fmt::format("{} {}", row.text("overlap"), row.text("other_metrics")));
  const auto says = [&words](std::string_view part) { return contains(words, part); };
  const bool liger = says("liger") || says("unsloth");
  const bool fast = says("fast-kernels") || says("fast_kernels");
  if (liger || fast) plan.kernels.eager_elementwise = false;
  const bool chunked = says("chunked cross") || says("chunked ce") || says("cut cross") ||
                       says("cut_cross") || says("fused linear cross") ||
                       says("linear_cross_entropy");
  if (fast && plan.loss.kernels == LossKernels::kSeparate) {
    // fms-acceleration's, of Unsloth: the gradient takes the place of the shifted logits, and is
    // padded to all of them, both in fp32.
    plan.loss.kernels = LossKernels::kInPlace;
    plan.loss.hold_logits = true;
  }
  if (liger || chunked) plan.loss.kernels = LossKernels::kChunked;
  if (says("loss not chunked")) plan.loss.kernels = LossKernels::kSeparate;
  if (!has_fp32_copy(plan.loss.kernels)) plan.loss.hold_logits = false;
}

// Reads settings and remarks, in which one word stands for itself ("overlap-grad-reduce") or is
// set ("TP_COMM_OVERLAP=True").
void read_overlap(const RowReader& row, ParallelPlan& plan) {
  const OverlapWords overlap(row.text("overlap"));
  if (overlap.starts_with("nooverlap") || overlap.starts_with("nogradientallreduce")) {
    if (plan.state.zero < 2) plan.overlap.gradients = false;
  }
  if (overlap.says("overlapparamgather") || overlap.says("overlapparamsync")) {
    plan.overlap.parameters = plan.state.zero > 0 && plan.state.zero < 3;
  }
  if (plan.mesh.tp > 1 && overlap.says("overlappedwithweightgrad"))
    plan.pieces.overlap_tensor = true;
  if (overlap.says("tpcommoverlap") || (overlap.says("tp,ppanddpcommunicationoverlap"))) {
    plan.pieces.tensor_pieces = kUserbufferPieces;
  }
  if (overlap.denies("tpcommoverlap")) plan.pieces.tensor_pieces = 1;
  // Megatron-Core's --overlap-moe-expert-parallel-comm.
  const bool experts = overlap.says("1f1boverlap") || overlap.says("1f1ba2aoverlap") ||
                       overlap.says("moea2aoverlap") || overlap.says("overlapmoeexpertparallel");
  if (experts && plan.mesh.ep > 1) plan.overlap.expert_parallel = true;
  if (overlap.says("hybridep") || overlap.says("deepep")) {
    if (plan.mesh.ep > 1) plan.experts.dispatch = Dispatch::kTwoLevel;
  }
  // PyTorch's asynchronous tensor parallelism cuts a gather and its matmul, and a matmul and its
  // scatter, into a chunk for each rank (_pipelined_all_gather_and_consume and
  // _pipelined_produce_and_all2all of torch/distributed/_symmetric_memory/__init__.py).
  if (overlap.says("asynctp") && plan.mesh.tp > 1 && plan.mesh.cp * plan.mesh.ep == 1 &&
      plan.tensor.sequence_parallel) {
    plan.pieces.tensor_chunks = plan.mesh.tp;
  }
  // Nobody quantises without a compiler: the casts would cost more than fp8 brings.
  const bool compiled =
      (overlap.says("compile") && !overlap.says("nocompile") && !overlap.says("notorch.compile")) ||
      size_of(plan.precision.type) < size_of(plan.activations());
  if (compiled) plan.kernels.eager_elementwise = plan.kernels.eager_gate = false;
  read_kernels(row, plan);
}

// Adapters and schedules that split the backward have no exchange in pieces, and without sequence
// parallelism there is none either: input gradients are then reduced beside weight gradients.
void keep_pieces_where_possible(ParallelPlan& plan) {
  if (plan.pieces.tensor_pieces == 1) return;
  const bool splits = splits_all_backwards(plan);
  if (plan.mesh.tp > 1 && plan.tensor.sequence_parallel && !splits && !plan.training.lora_rank)
    return;
  plan.pieces.tensor_pieces = 1;
  plan.pieces.overlap_tensor = plan.mesh.tp > 1 && !splits;
}

// Sets what the host launches as graphs: Megatron Core's and Transformer Engine's graphs of blocks,
// or of the whole step, in which no expert's number of tokens is read.
void read_graphs(const RowReader& row, const ModelSpec& model, ParallelPlan& plan) {
  if (!plan.launches.host_launch_cost) return;
  const OverlapWords words(row.text("overlap"));
  if (words.denies("cudagraphimpl") || words.denies("fullcudagraph")) return;
  if (words.says("fullcudagraph") || words.says("fulliteration")) {
    plan.launches.cuda_graphs = CudaGraphs::kStep;
    if (model.experts.routed > 0) plan.launches.host_reads_counts = false;
  } else if (words.says("cudagraph")) {
    plan.launches.cuda_graphs = CudaGraphs::kBlocks;
  }
}

// Returns whether a row leaves to the software what overlaps: it says so, or nothing of it.
bool leaves_overlap_open(const RowReader& row) {
  const std::string_view text = row.text("overlap");
  return is_blank(text) || contains(text, "recipe dependent") ||
         !contains(in_small_letters(text), "overlap");
}

// Returns the software's recipe for the row's model on its chip; nullptr if it has none.
const SoftwareRecipe* recipe_of(const RowReader& row, const Software& software) {
  const std::string model = letters_and_digits(row.text("model"));
  const std::string chip = in_small_letters(row.text("chip"));
  const auto own = std::ranges::find_if(software.recipes, [&](const SoftwareRecipe& recipe) {
    return model.find(recipe.model) != std::string::npos && chip.starts_with(recipe.chip);
  });
  return own == software.recipes.end() ? nullptr : &*own;
}

// Sets what the recipe recomputes, where the row leaves that open (there are guesses), and what it
// overlaps, where the row leaves that open, as far as the plan has a use for it. Throws
// ConfigError.
void read_recipe(RowReader& row, const Software& software, ParallelPlan& plan,
                 std::vector<RecomputeGuess>& guesses) {
  const SoftwareRecipe* const recipe = recipe_of(row, software);
  if (recipe == nullptr) return;
  PlanKeys recompute;
  PlanKeys others;
  for (const auto& key : recipe->plan) {
    (key.first.starts_with("recompute") ? recompute : others).push_back(key);
  }
  if (!recompute.empty() && !guesses.empty()) {
    set_keys(software.name + ".recipe", recompute, plan);
    guesses.clear();
    row.assume("recompute: as in the recipes of " + software.name);
  }
  if (!leaves_overlap_open(row)) return;
  set_keys(software.name + ".recipe", others, plan);
  row.assume("overlap: as in the recipes of " + software.name);
  if (plan.state.zero == 0 || plan.state.zero == 3 || plan.replicas() == 1)
    plan.overlap.parameters = false;
  if (plan.mesh.ep == 1) plan.overlap.expert_parallel = false;
}

// Returns whether a row fine-tunes a model: all of it or adapters.
bool is_tuning(const RowReader& row) {
  const auto says = [&row](std::string_view column) {
    const std::string words = in_small_letters(row.text(column));
    return contains(words, "sft") || contains(words, "finetun") || contains(words, "fine-tun");
  };
  return trains_adapters(row) || says("model") || says("other_metrics") || says("source_locator") ||
         says("source_ref");
}

// Returns what the columns that may name adapters say of them.
AdapterWords adapter_words(const RowReader& row) {
  AdapterWords words;
  for (const char* column : {"model", "other_metrics", "source_locator", "remarks"}) {
    AdapterWords own = adapters_of_words(row.text(column));
    if (!words.rank) words.rank = own.rank;
    if (words.places.empty()) words.places = std::move(own.places);
  }
  return words;
}

// Returns the type of the frozen matrices that a row names: "QLoRA: NF4 base", "int4 base (GPTQ)",
// bitsandbytes.
std::optional<DataType> frozen_type(const RowReader& row) {
  const std::string words = in_small_letters(
      fmt::format("{} {} {}", row.text("dtype"), row.text("model"), row.text("other_metrics")));
  const auto says = [&words](std::string_view part) { return contains(words, part); };
  if (says("int8 base") || says("8-bit base") || says("load_in_8bit")) return DataType::kInt8;
  const bool four = says("qlora") || says("q-lora") || says("nf4") || says("4-bit base") ||
                    says("int4 base") || says("load_in_4bit") || says("peft-bnb") || says("gptq");
  return four ? std::optional(DataType::kInt4) : std::nullopt;
}

// NeMo's LoRA has a rank of 32 unless its recipe says otherwise
// (nemo/collections/llm/peft/lora.py).
void read_adapters(RowReader& row, ParallelPlan& plan) {
  constexpr std::int64_t kUsualRank = 32;
  if (!trains_adapters(row)) return;
  const AdapterWords words = adapter_words(row);
  plan.training.lora_rank = words.rank.value_or(kUsualRank);
  if (!words.rank) row.assume(fmt::format("lora_rank: {}", kUsualRank));
  if (!words.places.empty()) plan.training.lora_modules = words.places;
  if (const std::optional<DataType> frozen = frozen_type(row)) {
    plan.training.frozen_type = frozen;
    row.assume("frozen_dtype: " + std::string(name_of(*frozen)));
  }
}

// Sets what the software's recipes of fine-tuning have and the row leaves open.
void read_tuning(RowReader& row, const ModelSpec& model, const Software& software,
                 ParallelPlan& plan) {
  if (!is_tuning(row)) return;
  const AdapterWords words = adapter_words(row);
  PlanKeys keys;
  for (const auto& key : software.tuning) {
    const bool is_given = key.first == "lora_modules" ? !words.places.empty()
                                                      : key.first == "lora_rank" && words.rank;
    const bool of_adapters = key.first.starts_with("lora_");
    const bool of_documents = key.first == "document_length";
    if (is_given || (of_adapters && !plan.training.lora_rank)) continue;
    if (of_documents && model.indexer.heads > 0) continue;
    keys.push_back(key);
  }
  if (keys.empty()) return;
  set_keys(software.name + ".tuning", keys, plan);
  plan.batch.document_length = std::min(plan.batch.document_length, plan.batch.sequence);
  for (const auto& [key, value] : keys) row.assume(key + ": " + value);
}

// State on the host, as DeepSpeed and Megatron Core have it: the host updates it.
void read_offload(const RowReader& row, ParallelPlan& plan) {
  const std::string words = in_small_letters(row.text("zero_stage"));
  const bool offloads = contains(words, "offload_optimizer") || contains(words, "cpu_offload") ||
                        contains(words, "cpu offload") || contains(words, "offloaded to cpu") ||
                        contains(words, "offloaded to the cpu");
  if (!offloads || plan.buffers.shared_master) return;
  plan.offload.optimizer = plan.update.host_optimizer = true;
  plan.overlap.parameters = false;
  plan.update.optimizer_scratch_bytes = 0;
}

// Some tables name the dispatcher of tokens beside their other figures.
void read_dispatcher(const RowReader& row, ParallelPlan& plan) {
  const std::string_view words = row.text("other_metrics");
  if (plan.mesh.ep > 1 && contains(words, "dispatcher=A2A"))
    plan.experts.dispatch = Dispatch::kAllToAll;
  if (plan.mesh.ep > 1 && contains(words, "dispatcher=DeepEP"))
    plan.experts.dispatch = Dispatch::kTwoLevel;
}

// MaxText without its grouped kernels (sparse_matmul; before it, megablox) places tokens by masks.
void read_masks(const RowReader& row, const ModelSpec& model, ParallelPlan& plan) {
  if (model.experts.routed == 0 || model.experts.capacity_factor == 0) return;
  const std::string words =
      in_small_letters(fmt::format("{};{}", row.text("moe_detail"), row.text("other_metrics")));
  const auto is_off = [&words](const std::string& key) {
    return contains(words, key + "=false") || contains(words, key + ": false");
  };
  const bool is_sparse =
      contains(words, "sparse_matmul=true") || contains(words, "sparse_matmul: true");
  plan.kernels.mask_dispatch = plan.experts.dispatch == Dispatch::kAllToAll &&
                               (is_off("sparse_matmul") || (is_off("megablox") && !is_sparse));
  if (plan.kernels.mask_dispatch) plan.kernels.sort_copies = false;
}

void read_zero(RowReader& row, ParallelPlan& plan) {
  const std::string_view words = row.text("zero_stage");
  if (leaves_zero_open(words)) {
    if (plan.state.zero > 0 && plan.replicas() > 1) {
      return row.assume(fmt::format("zero_stage: {}, as its software has it", plan.state.zero));
    }
    const bool divides = plan.buffers.shared_master || plan.buffers.fsdp_copies;
    plan.state.zero = divides && plan.replicas() > 1 ? 3 : 0;
    if (plan.state.zero == 3) row.assume("zero_stage: 3, as its software divides weights");
    return;
  }
  const auto zero = zero_of_words(words);
  if (!zero) row.assume(fmt::format("zero_stage \"{}\" is not known: 0", words));
  plan.state.zero = static_cast<int>(zero.value_or(0));
  if (contains(in_small_letters(words), "reshard never")) {
    plan.state.reshard_after_forward = plan.buffers.save_gathered = plan.buffers.keep_root = false;
  }
  // PyTorch's SHARD_GRAD_OP: what FSDP has gathered for the forward stays until the backward.
  if (plan.state.zero == 2 && plan.buffers.shared_master) {
    plan.state.zero = 3;
    plan.state.reshard_after_forward = plan.buffers.keep_root = false;
  }
}

// DeepSpeed without ZeRO divides the optimizer's state in bf16 all the same, and keeps gradients in
// fp32 beside those of a micro-batch (deepspeed/runtime/bf16_optimizer.py).
void read_bf16_optimizer(RowReader& row, ParallelPlan& plan) {
  const bool is_deepspeed = contains(in_small_letters(row.text("software")), "deepspeed") ||
                            contains(in_small_letters(row.text("zero_stage")), "deepspeed");
  if (!is_deepspeed || plan.state.zero != 0 || plan.precision.type != DataType::kBf16 ||
      plan.replicas() == 1 || plan.training.lora_rank || is_pure(row.text("dtype"))) {
    return;
  }
  plan.state.zero = 1;
  if (leaves_zero_open(row.text("zero_stage"))) {
    return row.assume("zero_stage: 1, as DeepSpeed divides states in bf16");
  }
  plan.update.gradient_bytes = 4;
  plan.update.separate_accumulation = true;
  plan.update.free_gradients = false;
  row.assume("zero_stage: 1, as DeepSpeed's BF16_Optimizer");
}

// Returns "NeMo" for the key "framework=" in "framework=NeMo;release=24.11".
std::string metric_text(const RowReader& row, std::string_view key) {
  const std::string_view metrics = row.text("other_metrics");
  const std::size_t at = metrics.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = metrics.substr(at + key.size());
  return std::string(rest.substr(0, rest.find(';')));
}

// A year, or a month of one: "2024", "2024.12".
bool is_date(const std::string& word) {
  const bool has_month = word.size() == 7 && word[4] == '.';
  return (word.size() == 4 || has_month) && word.starts_with("20") &&
         word.find_first_not_of("0123456789.") == std::string::npos;
}

// Cuts "Megatron-LM core v0.8, 2024-12" into megatron, lm, core, 0.8 and 2024.12.
std::vector<std::string> name_words(std::string_view name) {
  const auto is_digit = [name](std::size_t at) {
    return at < name.size() && std::isdigit(static_cast<unsigned char>(name[at])) != 0;
  };
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool is_year = words.back().size() == 4 && is_date(words.back());
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.') {
      if (is_digit(i) && words.back() == "v") words.back().clear();
      words.back() += small_letter(c);
    } else if (c == '-' && is_year && is_digit(i + 1) && is_digit(i + 2)) {
      words.back() += '.';
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Returns whether a row's word is that of an entry: the same, a release of it ("25.04" of "25"), or
// a date up to it (an entry of 2023 is of software until then, one of 2024.12 until that month).
// A year alone is not before a month of it.
bool is_release_or_word(const std::string& word, const std::string& of_entry) {
  if (is_date(of_entry) && is_date(word)) {
    const std::string as_long = word.substr(0, of_entry.size());
    return as_long.size() == of_entry.size() ? as_long <= of_entry
                                             : as_long < of_entry.substr(0, as_long.size());
  }
  return word == of_entry || (std::isdigit(static_cast<unsigned char>(of_entry[0])) != 0 &&
                              word.starts_with(of_entry + "."));
}

// Returns how well the catalog's entry fits the words of a row: by how many words it has, if the
// row has all of them in this order ("nemo" fits "NeMo 24.07"), or least if the row has only its
// beginning ("torchtitan" before "torchtitan 2024.12"). 0: it is another software.
std::size_t likeness(const std::vector<std::string>& row, const std::vector<std::string>& entry) {
  auto next = row.begin();
  const bool row_has_all = std::ranges::all_of(entry, [&](const std::string& word) {
    next = std::find_if(next, row.end(), [&word](const std::string& given) {
      return is_release_or_word(given, word);
    });
    return next != row.end();
  });
  if (row_has_all) return 2 * entry.size();
  const bool begins =
      row.size() < entry.size() && std::equal(row.begin(), row.end(), entry.begin());
  return begins ? 1 : 0;
}

// The same of the best of the entry's names.
std::size_t likeness(const std::vector<std::string>& row, const Software& software) {
  const bool is_other = std::ranges::any_of(software.not_called, [&row](const std::string& word) {
    return std::ranges::count(row, word) > 0;
  });
  if (is_other) return 0;
  std::size_t best = likeness(row, name_words(software.name));
  for (const std::string& name : software.also_called) {
    best = std::max(best, likeness(row, name_words(name)));
  }
  return best;
}

// Returns whether a row's software may be an entry's: it is called by the same first word, and of
// the entry's release if that has one.
bool may_be(const std::vector<std::string>& row, const std::vector<std::string>& entry) {
  const auto is_in_row = [&row](const std::string& part) {
    const bool is_release = std::isdigit(static_cast<unsigned char>(part[0])) != 0;
    return !is_release || std::ranges::any_of(row, [&part](const std::string& word) {
      return is_release_or_word(word, part);
    });
  };
  return std::ranges::count(row, entry.front()) > 0 && std::ranges::all_of(entry, is_in_row);
}

}  // namespace

bool leaves_zero_open(std::string_view words) {
  const std::string small = in_small_letters(words);
  return is_blank(words) || small.starts_with("not stated") || small.starts_with("not seen");
}

bool trains_adapters(const RowReader& row) {
  const auto says = [&row](std::string_view column) { return says_lora(row.text(column)); };
  return says("model") || says("other_metrics") || says("source_locator") ||
         contains(row.text("remarks"), "LoRA: frozen base");
}

Software software_of(RowReader& row, const std::vector<Software>& known) {
  const auto is_of_type = [&row](const Software& software) {
    return software.dtypes.empty() ||
           std::ranges::any_of(software.dtypes, [&row](const std::string& part) {
             return contains(row.text("dtype"), part) || contains(row.text("release"), part);
           });
  };
  std::string name(row.text("software"));
  const bool is_named = !is_blank(name);
  if (!is_named) name = metric_text(row, "framework=");
  const std::string release(is_named ? row.text("release") : metric_text(row, "release="));
  const std::vector<std::string> words = name_words(name + " " + release);
  const auto is_of_source = [&](const Software& software) {
    const std::vector<std::string> entry = name_words(software.name);
    return std::ranges::any_of(software.sources, [&](const std::string& listed) {
      // A source id that is the software's name proves nothing beyond the row's name.
      if (is_named && std::ranges::count(entry, listed) > 0) return false;
      return row.text("source_id").starts_with(listed) || contains(row.text("source_ref"), listed);
    });
  };
  const auto by_source = std::ranges::find_if(known, [&](const Software& software) {
    return is_of_source(software) && is_of_type(software) &&
           (!is_named || may_be(words, name_words(software.name)));
  });
  if (by_source != known.end()) return *by_source;
  if (is_blank(name)) return {};
  const auto by_likeness = [&](const Software& software) {
    return is_of_type(software) ? likeness(words, software) : 0;
  };
  const auto most = std::ranges::max_element(known, {}, by_likeness);
  if (most != known.end() && by_likeness(*most) > 0) return *most;
  row.assume(fmt::format("software \"{}\" is not known: as if none were given", name));
  return {};
}

ParallelPlan plan_of_row(RowReader& row, const ModelSpec& model, const Software& software,
                         std::int64_t chips, const Hardware& hardware,
                         std::vector<RecomputeGuess>& guesses) {
  ParallelPlan plan;
  set_keys(software.name, software.plan, plan);
  const auto on_chip = std::ranges::find_if(software.on_chips, [&](const SoftwareRecipe& keys) {
    return hardware.chip.starts_with(keys.chip);
  });
  if (on_chip != software.on_chips.end()) set_keys(software.name + ".chip", on_chip->plan, plan);
  read_sizes(row, chips, plan);
  read_attention(row, model, hardware.chip, plan);
  read_adapters(row, plan);
  read_tuning(row, model, software, plan);
  plan.mesh.allow_idle_chips = plan.ranks() % hardware.chips_per_node != 0;
  read_zero(row, plan);
  if (plan.state.zero == 3)
    plan.messages.gradient_bucket_parameters.reset();       // FSDP has no buckets
  if (plan.state.zero == 2) plan.overlap.gradients = true;  // it always does
  if (plan.state.zero != 3) {
    plan.buffers.shared_master = plan.buffers.fsdp_copies = plan.buffers.save_gathered =
        plan.buffers.keep_root = false;
    plan.state.prefetch = ParallelPlan{}.state.prefetch;
  }
  read_offload(row, plan);
  if (plan.state.zero >= 2 || plan.training.lora_rank) plan.update.separate_accumulation = false;
  read_schedule(row, model.layers, plan);
  read_layout(row, model.layers, plan);
  read_type(row, plan);
  read_bf16_optimizer(row, plan);
  read_optimizer(row, plan);
  guesses = read_recompute(row, model.layers, plan);
  if (software.recomputes_as_needed && model.experts.routed == 0) {
    recompute_as_needed(plan, guesses);
  }
  if (software.recomputes_cudnn && plan.recomputing.kind == Recompute::kAlternate &&
      plan.kernels.attention_library == AttentionLibrary::kCudnn) {
    plan.recomputing.kind = Recompute::kAlternateMatmuls;
  }
  read_overlap(row, plan);
  read_recipe(row, software, plan, guesses);
  keep_pieces_where_possible(plan);
  read_graphs(row, model, plan);
  read_dispatcher(row, plan);
  read_masks(row, model, plan);
  if (plan.overlap.expert_parallel && plan.mesh.dp > 0 && plan.microbatches() == 1) {
    plan.overlap.expert_parallel = false;
    row.assume("overlap_expert_parallel: false, as one micro-batch has no other beside it");
  }
  // Padded to their capacity, experts have as many tokens in every layer.
  if (plan.launches.host_launch_cost && model.experts.capacity_factor > 0)
    plan.launches.host_reads_counts = false;
  return plan;
}

}  // namespace stepsim
