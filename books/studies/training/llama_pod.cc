// S19: LLaMA-3 70B on a pod of v5p, the MLP's two matmuls alone and the whole model.
//
// Symbols for one layer in the derivations: m = the arithmetic of its forward (the backward takes 2
// m); f = one pass of its weights or gradients over the FSDP group; k = the gather and the
// reduce-scatter of its activations in one pass.
//
// A slice of 64 chips represents the pod, with the same 4 ways of tensor parallelism and the same
// 512 tokens per chip. m and k are those of the pod. So is f, except that (X-1)/X is 15/16 for 16
// ways instead of 2047/2048.

#include <algorithm>
#include <iterator>
#include <utility>

#include "books/formulas/sources.h"
#include "books/laboratory/pod_terms.h"
#include "books/laboratory/stack_step.h"
#include "books/laboratory/study_groups.h"
#include "proto/load_experiment.h"

namespace stepsim {
namespace {

constexpr double kLlamaF = 28672;
constexpr double kLlamaLayers = 80;
constexpr double kLlamaTokens = 512;  // per chip: 4.19e6 over 8192

struct LlamaMesh {
  std::int64_t fsdp;
  std::int64_t tensor;
  double axes;
  const char* map;
};
// 4 ways on z, with FSDP over x and y (16 ways instead of 2048); or FSDP over all chips.
constexpr LlamaMesh kLlamaMixed = {16, 4, 2, "dp:x+y/tp:z"};
constexpr LlamaMesh kLlamaSharded = {64, 1, 3, "dp:x+y+z"};

StackStep llama_step(const LlamaMesh& mesh, double chunks) {
  StackStep step{.mlp_width = static_cast<std::int64_t>(kLlamaF),
                 .layers = static_cast<std::int64_t>(kLlamaLayers),
                 .tokens = static_cast<std::int64_t>(kLlamaTokens) * mesh.tensor,
                 .map = mesh.map};
  step.plan.mesh.dp = mesh.fsdp;
  step.plan.mesh.tp = mesh.tensor;
  step.plan.state.zero = 3;
  step.plan.update.gradient_bytes = 2;
  step.plan.pieces.tensor_chunks = static_cast<std::int64_t>(chunks);
  return step;
}

// Simulated: the utilisation of a step. Predicted: arithmetic over the greatest term.
void add_layers(std::vector<StudyRow>& rows) {
  const double m = pod_math(kLlamaTokens, kLlamaF);
  const auto add = [&rows, m](std::string id, std::string regime, std::string why,
                              const LlamaMesh& mesh, double chunks, double low, double high) {
    const auto ways = static_cast<double>(mesh.tensor);
    const double weights = pod_weights(ways, kLlamaF, mesh.axes);
    const double activations = mesh.tensor > 1 ? pod_activations(kLlamaTokens, ways) : 0;
    const double work = 3 * kLlamaLayers * m;
    const double step = kLlamaLayers * (std::max({m, weights, activations}) +
                                        std::max({2 * m, 2 * weights, activations}));
    const double predicted = work / step;
    rows.push_back(
        {.id = std::move(id),
         .formula = "E7.math",
         .regime = std::move(regime),
         .predicted = predicted,
         .unit = "",
         .expected = {work / high / predicted - 1 - 5e-4, work / low / predicted - 1 + 5e-4},
         .tolerance = 0.02,
         .why = std::move(why),
         .simulate = [=](const Laboratory& laboratory) {
           return work / seconds(laboratory, llama_step(mesh, chunks));
         }});
  };
  const double f = pod_weights(4, kLlamaF, 2) * of_a_ring(16);
  const double k = pod_activations(kLlamaTokens, 4) * of_a_ring(4);
  // k is 0.27 m, less than m / 2. So each pass leaves one chunk, and 2 f stands between two steps
  // (S16).
  const double overlapped = kLlamaLayers * (3 * m + 2 * k / kChunks) + 2 * f;
  add("mixed", "4 ways of tensor parallelism in collective matmuls: utilisation",
      "chunks, the first gather and the last reduce-scatter are left", kLlamaMixed, kChunks,
      overlapped, overlapped);
  const auto [least, most] = collective_matmuls_on_packets(kLlamaLayers, m, k, kChunks, 2 * f);
  rows.back().expected_packets = {3 * kLlamaLayers * m / most - 1 - 5e-4,
                                  3 * kLlamaLayers * m / least - 1 + 5e-4};
  // Unshared, the backward's chunk has the whole ring.
  rows.back().expected_unshared =
      around(3 * kLlamaLayers * m / (kLlamaLayers * (3 * m + 1.5 * k / kChunks) + 2 * f) - 1, 5e-4);
  const double added = kLlamaLayers * (3 * m + 2 * k) + 2 * f - k / 2;
  add("mixed-unoverlapped", "4 ways of tensor parallelism, nothing overlapped: utilisation",
      "activations add to the arithmetic: 85 %, the lower end of what a run could reach",
      kLlamaMixed, 1, added, added);
  // 512 tokens per chip are fewer than 850: links carry 3 L f and idle for at most 2 m.
  const double whole = pod_weights(1, kLlamaF, 3) * of_a_ring(64);
  add("fsdp-only", "FSDP over all chips and three axes: utilisation",
      "512 tokens a chip are too few for FSDP alone; 63/64 of the weights move", kLlamaSharded, 1,
      3 * kLlamaLayers * whole, 3 * kLlamaLayers * whole + 2 * m);
  // Without link sharing, gathers and reduce-scatters of a backward run side by side behind its 2
  // m.
  const double alone = kLlamaLayers * (whole + 2 * m);
  const double work = 3 * kLlamaLayers * m;
  const double predicted = rows.back().predicted;
  rows.back().expected_unshared = {work / (alone + 2 * whole + 2 * m) / predicted - 1,
                                   work / alone / predicted - 1};
}

// ---- the whole model ----

constexpr double kModel = 70.55e9;          // parameters
constexpr double kTable = 128256 * 8192.0;  // the embedding's; the head has as many
constexpr double kBlock = 855.65e6;
constexpr double kSequence = 2048;  // tokens: a replica of 4 chips has 2,048
constexpr double kHidden = 8192;

struct LlamaRun {
  std::vector<int> slice = {4, 4, 4};
  std::int64_t fsdp = 16;
  std::int64_t tensor = 4;
  std::vector<std::string> fsdp_levels = {"x", "y"};
  std::int64_t chunks = 1;
  std::int64_t layers = 80;
  ChipSpec chip = ideal_v5p({4}).chip;
};

double seconds(const Laboratory& laboratory, const LlamaRun& llama) {
  ModelSpec model = load_model("llama3-70b");
  model.layers = llama.layers;
  Cluster cluster = ideal_v5p(llama.slice);
  cluster.chip = llama.chip;
  ParallelPlan plan;
  plan.mesh.dp = llama.fsdp;
  plan.mesh.tp = llama.tensor;
  plan.state.zero = 3;
  plan.update.gradient_bytes = 2;
  plan.pieces.tensor_chunks = llama.chunks;
  plan.training.optimizer = Optimizer::kNone;
  plan.batch.global_batch = llama.fsdp;
  plan.batch.sequence = static_cast<std::int64_t>(kLlamaTokens) * llama.tensor;
  plan.mesh.map = {{.axis = PlanAxis::kData, .levels = llama.fsdp_levels}};
  if (llama.tensor > 1) plan.mesh.map.push_back({.axis = PlanAxis::kTensor, .levels = {"z"}});
  return to_seconds(simulate(laboratory, model, plan, cluster).step_time);
}

// Terms of one chip's step, in seconds.
struct LlamaTerms {
  double work;         // 6 P tokens / C, as in D15
  double arithmetic;   // arithmetic of the model
  double activations;  // gathers and reduce-scatters of tensor parallelism
  double weights;      // a pass of all blocks over the FSDP group
  double tables;       // one pass of the embedding, as long as one of the head
};

LlamaTerms llama_terms(double layers, double fsdp, double tensor, double axes) {
  // FLOPs per token: 6 per parameter, except the embedding's, which is looked up; causal attention
  // takes 4 s D / 2 in the forward of a layer and 2.5 times that in its backward.
  const double parameters = layers * kBlock + kTable;
  const double attention = 3.5 * 2 * kSequence * kHidden * layers;
  const double part = of_a_ring(fsdp) * 2 / tensor / (axes * kV5pAxis);
  // Each pass has two gathers and two reduce-scatters per block.
  const double activations =
      tensor > 1 ? layers * 2 * 4 * of_a_ring(tensor) * 2 * kSequence * kHidden / kV5pAxis : 0;
  return {.work = predict("D15", {{"P", layers * kBlock + 2 * kTable},
                                  {"tokens", kLlamaTokens},
                                  {"Nc", 1},
                                  {"C", kV5pFlops},
                                  {"MFU", 1}}),
          .arithmetic = (6 * parameters + attention) * kLlamaTokens / kV5pFlops,
          .activations = activations,
          .weights = layers * kBlock * part,
          .tables = kTable * part};
}

void add_model(std::vector<StudyRow>& rows) {
  const auto add = [&rows](std::string id, std::string regime, std::string why,
                           const LlamaRun& llama, double work, double low, double high) {
    rows.push_back({.id = std::move(id),
                    .formula = "D15",
                    .regime = std::move(regime),
                    .predicted = 1,
                    .unit = "",
                    .expected = {work / high - 1, work / low - 1},
                    .tolerance = 0.02,
                    .why = std::move(why),
                    .simulate = [llama, work](const Laboratory& laboratory) {
                      return work / seconds(laboratory, llama);
                    }});
    rows.back().not_on_packets =
        "gathers of the whole model are 10^8 packet-hops; the rows of its layers run";
  };
  // Utilisation, relative to 1 for a compute-bound run. Upper end: only arithmetic, one block's
  // pass and the embedding's at both ends. Lower end: also all communication of tensor parallelism,
  // to which the loss adds a little, and gathers of the head that a block does not hide: 4 passes
  // of a table.
  const auto add_mixed = [&](std::string id, std::string regime, std::string why,
                             const LlamaRun& llama, bool exposed) {
    const auto layers = static_cast<double>(llama.layers);
    const LlamaTerms terms = llama_terms(layers, static_cast<double>(llama.fsdp), 4, 2);
    const double ends = 2 * (terms.weights / layers + terms.tables);
    const double least = terms.arithmetic + ends / 2 + (exposed ? 0.95 * terms.activations : 0);
    const double most =
        terms.arithmetic + ends + 4 * terms.tables + (exposed ? 1.05 : 0.4) * terms.activations;
    add(std::move(id), std::move(regime), std::move(why), llama, terms.work, least, most);
  };
  add_mixed(
      "model", "the whole model, nothing overlapped: utilisation",
      "tensor parallelism adds its activations: two gathers and two reduce-scatters a block in "
      "each pass",
      {}, true);
  // With collective matmuls each pair leaves one chunk in the forward, and the backward gathers two
  // arrays on one ring (S15): at most 0.4 of all activations.
  add_mixed("model-overlapped", "the whole model, collective matmuls in 32 chunks: utilisation",
            "only attention, embedding and the ends of a step remain", {.chunks = 32}, false);
  // The pod itself, 2048 x 4 on 32x64x4, with 4 of the 80 blocks. It differs only by 2047/2048, and
  // loss and tables weigh twenty times as much.
  add_mixed("pod-2048x4", "2048 x 4 on all 8,192 chips, 4 of the 80 blocks: utilisation",
            "with 128 times the chips, only (X-1)/X changes",
            {.slice = {32, 64, 4}, .fsdp = 2048, .fsdp_levels = {"x", "y"}, .layers = 4}, true);
  // FSDP alone: the weights of all blocks pass three times, the embedding's twice, the head's three
  // times. At most one backward of a block delays them.
  const LlamaTerms alone = llama_terms(80, 64, 1, 3);
  const double carried = 3 * alone.weights + 5 * alone.tables;
  add("model-fsdp-only", "the whole model with FSDP alone over 64 chips: utilisation",
      "512 tokens a chip are too few for FSDP alone: mixed is faster",
      {.fsdp = 64, .tensor = 1, .fsdp_levels = {"x", "y", "z"}}, alone.work, carried * 0.985,
      carried * 1.04);
  // Without link sharing, gathers and reduce-scatters of a backward run side by side behind its
  // arithmetic.
  const double beside = alone.weights + alone.arithmetic * 2 / 3;
  rows.back().expected_unshared = {alone.work / (beside + 8 * alone.tables) - 1,
                                   alone.work / beside - 1};
}

// 15e12 tokens, 4.19e6 per step.
void add_days(std::vector<StudyRow>& rows) {
  constexpr double kChips = 8192;
  const auto days = [](double mfu) {
    return predict("D15",
                   {{"P", 70e9}, {"tokens", 15e12}, {"Nc", 8960}, {"C", kV5pFlops}, {"MFU", mfu}}) /
           86400;
  };
  const auto simulated = [](const LlamaRun& llama) {
    return [llama](const Laboratory& laboratory) {
      return seconds(laboratory, llama) * 15e12 / (kLlamaTokens * kChips) / 86400;
    };
  };
  const auto add = [&](std::string id, std::string regime, double mfu, DifferenceRange expected,
                       std::string why, const LlamaRun& llama) {
    rows.push_back({.id = std::move(id),
                    .formula = "D15",
                    .regime = std::move(regime),
                    .predicted = days(mfu),
                    .unit = "days",
                    .expected = expected,
                    .tolerance = 0.02,
                    .why = std::move(why),
                    .simulate = simulated(llama)});
    rows.back().not_on_packets = rows.front().not_on_packets;
  };
  // Chips always reach their peak. 2048 x 4 is 8,192 of the pod's 8,960 chips: 9.4 % longer.
  // 70.55e9 parameters are 0.8 % more than 70e9. Collective matmuls leave the same as in
  // model-overlapped.
  const LlamaTerms terms = llama_terms(80, 16, 4, 2);
  const double idle = 8960 / kChips * kModel / 70e9;
  add("days-at-peak", "15e12 tokens on 8,192 of 8,960 chips at 100 % of peak", 1,
      {idle * terms.arithmetic / terms.work - 1,
       idle * (terms.arithmetic + 0.4 * terms.activations + 8 * terms.tables) / terms.work - 1},
      "2048 x 4 leaves 768 chips idle, and a step is not all arithmetic", {.chunks = 32});
  // The catalog's v5p: matmuls at 0.9 of peak, causal attention at 0.45 and 0.4, nothing
  // overlapped. Arithmetic takes 1 / 0.9 of its time at peak, with 1.3 % more for short inner
  // dimensions; attention's 2.2 % take 2.3 times as long; activations add 19 %. Norms, activation
  // functions and the loss move 10 to 30 arrays of tokens x D per block through HBM: 3 to 9 %.
  // Together 1.36 to 1.45 of the work, an MFU of 69 to 73 %, and up to 5 points less for kernel
  // starts. The book's 40 % allows for everything that goes wrong in a year of chips.
  const double least = idle * 0.4 / 0.735;
  const double most = idle * 0.4 / 0.64;
  add("days", "the same with what a v5p reaches: 44 days at the book's 40 %", 0.4,
      {least - 1, most - 1},
      "the book assumes 40 %; kernels and exposed communication alone leave two thirds",
      {.chip = load_chip("tpu-v5p")});
}

std::vector<StudyRow> llama_rows() {
  std::vector<StudyRow> rows;
  add_layers(rows);
  std::vector<StudyRow> model;
  add_model(model);
  add_days(model);
  std::ranges::move(model, std::back_inserter(rows));
  return rows;
}

}  // namespace

std::vector<Study> llama_pod_studies() {
  return {{.id = "S19",
           .source = kBookAppliedTraining,
           .title = "LLaMA-3 70B on a pod: 2048 ways of FSDP, 4 of tensor parallelism",
           .claim =
               "4.19e6 tokens on 8192 v5p are compute-bound with 4 ways of tensor parallelism, "
               "and not with FSDP alone",
           .rows = llama_rows}};
}

}  // namespace stepsim
