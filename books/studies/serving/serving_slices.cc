// S51 and S52: which slice holds a model and how much it answers, and the curves of latency against
// throughput of PaLM. Caches are counted as an engine finds room for them, steps are passes.

#include <algorithm>
#include <string>
#include <utility>

#include "books/formulas/sources.h"
#include "books/laboratory/study_groups.h"
#include "books/studies/serving/book_serving.h"
#include "proto/load_experiment.h"
#include "serving/passes/kv_room.h"

namespace stepsim {
namespace {

// ---- S51 ----

// Llama-3 70B on the smallest slices of the book's table, by the type of weights and cache.
struct SmallSlice {
  const char* id;
  const char* type;
  std::vector<int> sizes{};
  double bytes_each = 2;
  const char* keys;
  double chips = 16;
};

std::vector<SmallSlice> small_slices() {
  return {{"bf16", "bf16", {4, 4}, 2, "dtype=bf16,tp=16,cache_split=requests", 16},
          {"int8", "int8", {4, 2}, 1, "dtype=bf16,weight_dtype=int8,cache_dtype=int8,tp=8", 8},
          {"int4", "int4", {2, 2}, 0.5, "dtype=bf16,weight_dtype=int4,cache_dtype=int4,tp=4", 4}};
}

constexpr double kCacheTokens = 8192;
constexpr double kAnswerTokens = 512;
constexpr std::int64_t kBuffered = 64;  // tokens of the largest pass

std::int64_t caches_of(const SmallSlice& slice) {
  return caches_that_fit(
      load_model("llama3-70b"), std::string("inference=decode,context=2,batch=1,") + slice.keys,
      book_v5e({.sizes = slice.sizes}), static_cast<std::int64_t>(kCacheTokens), kBuffered);
}

// Serves ten rounds of as many requests as there are caches, whose prompts come computed. Returns
// answers a second and chip.
double answers_per_chip(const Laboratory& laboratory, const SmallSlice& slice) {
  const std::int64_t caches = caches_of(slice);
  constexpr auto kInput = static_cast<std::int32_t>(kCacheTokens - kAnswerTokens);
  constexpr std::int64_t kTurns = 10;
  const RequestList list =
      requests_at_once(kTurns * caches, kInput, static_cast<std::int32_t>(kAnswerTokens));
  EngineOptions engine = book_engine(caches, kInput);
  engine.cache.block = static_cast<std::int64_t>(kCacheTokens);  // a cache is a block
  engine.cache.kv_blocks = caches;
  ServingResult result =
      serve_with_passes(laboratory, list, load_model("llama3-70b"),
                        std::string("inference=decode,context=2,batch=1,") + slice.keys,
                        {.sizes = slice.sizes, .has_links = false}, engine);
  return requests_per_second(list, result) / slice.chips;
}

void add_small_slices(std::vector<StudyRow>& rows) {
  // Parameters are 70.55e9. In bf16 the key and value projections of 8 heads are on 16 chips, 2.7
  // GB more; narrow types leave the tables of 2 x 128,256 x 8,192 in bf16, 2.1 and 3.2 GB more;
  // int4 has a scale of 16 bits for 128 values, 1/32 more of weights and cache. What is left:
  // 112.2, 55.3 and 24.4 GB in caches of 2.684, 1.342 and 0.692 GB: 41.8, 41.2 and 35.3, less
  // buffers of some MB.
  //
  // A step reads weights and caches of 7,936 tokens in the mean, and 35 to 41 requests put 14
  // vectors of 8,192 values a layer through the memory of every chip, 0.8 to 0.9 ms, and those of
  // its part, 0.1 to 0.2 ms. In bf16 41 requests are 3 on the fullest of 16 chips, as if there were
  // 48: 141.7 + 124.8 GB in 20.3 ms, 21.3 ms in all; int8 123.9 GB in 18.9 ms, 19.9; int4 37.4
  // + 23.5 GB in 18.6 ms, 19.5. Answers a second and chip: 41 / (511 x 21.3 ms) / 16 = 0.235,
  // 0.504, 0.878.
  constexpr double kFit[] = {41, 41, 35};
  constexpr double kRate[][2] = {{-0.165, -0.135}, {-0.11, -0.075}, {-0.225, -0.19}};
  const char* const why[] = {
      "1.1 GB more parameters, and key-value heads are projected on two chips each",
      "the tables of 2.1e9 parameters stay in bf16",
      "tables stay in bf16, and every 128 values have a scale"};
  const char* const slower[] = {"41 requests are 3 on some of 16 chips, 2 on the others",
                                "fewer caches, and activations go through the memory, too",
                                "35 caches, and activations go through the memory, too"};
  std::size_t number = 0;
  for (const SmallSlice& slice : small_slices()) {
    const double fit = kFit[number];
    const double formula = predict("I8", {{"Nc", slice.chips},
                                          {"Q", kSliceCapacity},
                                          {"b", slice.bytes_each},
                                          {"P", 70e9},
                                          {"L", 80},
                                          {"K", 8},
                                          {"H", 128},
                                          {"S", kCacheTokens}});
    rows.push_back(
        {.id = std::string("70b-caches-") + slice.id,
         .formula = "I8",
         .regime = std::string("caches of 8,192 tokens beside Llama-3 70B in ") + slice.type +
                   " on " + std::to_string(int(slice.chips)) + " v5e",
         .predicted = formula,
         .unit = "caches",
         .expected = {fit / formula - 1 - 1e-9, fit / formula - 1 + 1e-9},
         .tolerance = 0.05,
         .why = why[number],
         .simulate = [slice](const Laboratory&) { return static_cast<double>(caches_of(slice)); }});
    rows.push_back({.id = std::string("70b-rate-") + slice.id,
                    .formula = "I9",
                    .regime = "answers of 512 tokens a second and chip, served with these caches",
                    .predicted = predict("I9", {{"Nc", slice.chips},
                                                {"Q", kSliceCapacity},
                                                {"b", slice.bytes_each},
                                                {"P", 70e9},
                                                {"L", 80},
                                                {"K", 8},
                                                {"H", 128},
                                                {"S", kCacheTokens},
                                                {"T", 0.019},
                                                {"G", kAnswerTokens}}),
                    .unit = "answers/s",
                    .expected = {kRate[number][0], kRate[number][1]},
                    .tolerance = 0.06,
                    .why = slower[number],
                    .simulate = [slice](const Laboratory& laboratory) {
                      return answers_per_chip(laboratory, slice);
                    }});
    ++number;
  }
}

// What Llama-3 8B, 405B and the ways of making a cache smaller take.
double token_bytes(const char* model, const char* type) {
  const Cluster one = book_v5e({.sizes = {1}, .capacity = 1e15});
  const Experiment experiment =
      pass_of(load_model(model),
              std::string("inference=decode,context=2,batch=1,cache_dtype=") + type, one);
  return static_cast<double>(cache_of_token(experiment.model, experiment.plan).value());
}

// Returns the cache in the memory of a pass whose request has so many tokens.
double cache_of_pass(const Laboratory& laboratory, const char* model, std::int64_t tokens) {
  const Cluster one = book_v5e({.sizes = {1}, .capacity = 1e15});
  const Experiment experiment =
      pass_of(load_model(model), "inference=decode,batch=1,context=" + std::to_string(tokens), one);
  const SimulationResult result = laboratory.simulate(experiment, one);
  const auto cache = static_cast<std::size_t>(MemoryCategory::kCache);
  return static_cast<double>(result.memory_peaks[0].by_category[cache].value());
}

double token_formula(double bytes_each, double layers, double heads, double width) {
  return predict("D9", {{"b", bytes_each}, {"L", layers}, {"K", heads}, {"H", width}});
}

void add_cache_sizes(std::vector<StudyRow>& rows) {
  const auto add = [&rows](std::string id, std::string regime, double predicted,
                           DifferenceRange expected, std::string why,
                           std::function<double(const Laboratory&)> simulate) {
    rows.push_back({.id = std::move(id),
                    .formula = "D9",
                    .regime = std::move(regime),
                    .predicted = predicted,
                    .unit = "B",
                    .expected = expected,
                    .why = std::move(why),
                    .simulate = std::move(simulate)});
  };
  add("8b-token", "a token in the cache of Llama-3 8B, int8", token_formula(1, 32, 8, 128),
      around(0, kToTheLastDigit), "32 layers; the notes take 56 and print 114 kB",
      [](const Laboratory&) { return token_bytes("llama3-8b", "int8"); });
  add("multi-head", "a token of LLaMA-2 13B, 40 key-value heads, bf16",
      token_formula(2, 40, 40, 128), around(0, kToTheLastDigit), "every head keeps its own",
      [](const Laboratory&) { return token_bytes("llama2-13b", "bf16"); });
  add("grouped", "a token of Llama-3 70B, 8 key-value heads for 64 queries, bf16",
      token_formula(2, 80, 64, 128), around(1.0 / 8 - 1, kToTheLastDigit), "8 of 64 heads are kept",
      [](const Laboratory&) { return token_bytes("llama3-70b", "bf16"); });
  add("multi-query", "a token of PaLM 540B, one key-value head for 48 queries, bf16",
      token_formula(2, 118, 48, 256), around(1.0 / 48 - 1, kToTheLastDigit),
      "one of 48 heads is kept",
      [](const Laboratory&) { return token_bytes("palm-540b", "bf16"); });
  // 576 values a layer and token where 128 heads of 128 would be 32,768: 61 x 576 x 2 bytes.
  add("latent", "a token of DeepSeek-V3 (MLA), against 128 heads of 128, bf16",
      token_formula(2, 61, 128, 128), around(576.0 / 32768 - 1, kToTheLastDigit),
      "a latent vector of 512 and 64 rotated values for all heads",
      [](const Laboratory&) { return token_bytes("deepseek-v3", "bf16"); });
  // 18 of 36 layers look back 128 tokens.
  add("local",
      "8,192 tokens of gpt-oss-120b in the memory of a pass, a window in every other layer",
      8192 * token_formula(2, 36, 8, 64), around((8192.0 + 128) / (2 * 8192) - 1, kToTheLastDigit),
      "layers with a window keep 128 tokens",
      [](const Laboratory& laboratory) { return cache_of_pass(laboratory, "gpt-oss-120b", 8192); });
  // 20 of 35 layers read the keys of an earlier one. Of the other 15 each fifth sees everything
  // with heads of 512, the others 512 tokens with heads of 256.
  add("shared", "8,192 tokens of Gemma 4 E2B in the memory of a pass, 20 of 35 layers share keys",
      8192 * token_formula(2, 35, 1, 256),
      around((12 * 512.0 * 256 + 3 * 8192.0 * 512) / (35 * 8192.0 * 256) - 1, kToTheLastDigit),
      "15 layers keep keys: 12 of them 512 tokens, 3 of them twice as wide",
      [](const Laboratory& laboratory) { return cache_of_pass(laboratory, "gemma4-e2b", 8192); });
}

void add_llama_8b(std::vector<StudyRow>& rows) {
  // int8, 2,048 tokens: 134.2 MB a cache. Tables of 1.05e9 parameters stay in bf16: 9.08 GB of
  // weights, 1.08 GB more than the formula's, eight caches. The notes' 4x2 comes from 56 layers.
  for (const int chips : {2, 4}) {
    const double formula = predict("I8", {{"Nc", chips},
                                          {"Q", kSliceCapacity},
                                          {"b", 1},
                                          {"P", 8e9},
                                          {"L", 32},
                                          {"K", 8},
                                          {"H", 128},
                                          {"S", 2048}});
    rows.push_back(
        {.id = "8b-caches-" + std::to_string(chips),
         .formula = "I8",
         .regime = "caches of 2,048 tokens beside Llama-3 8B in int8 on " + std::to_string(chips) +
                   " v5e",
         .predicted = formula,
         .unit = "caches",
         .expected = {-10 / formula, -7 / formula},
         .tolerance = 0.06,
         .why = chips == 2 ? "fewer than 240, so two chips are too few"
                           : "more than 240: a 2x2 is enough, not the 4x2 of the notes",
         .simulate = [chips](const Laboratory&) {
           const std::string keys = chips == 2 ? "tp=2" : "tp=4";
           return static_cast<double>(caches_that_fit(
               load_model("llama3-8b"),
               "inference=decode,context=2,batch=1,dtype=bf16,weight_dtype=int8,cache_dtype=int8," +
                   keys,
               book_v5e({.sizes = chips == 2 ? std::vector{2} : std::vector{2, 2}}), 2048,
               kBuffered));
         }});
  }
}

constexpr double kMemory810GB = 8.1e11;  // B/s, as that chapter counts

double llama_405b(const Laboratory& laboratory, int batch, bool has_links) {
  return pass_seconds(laboratory, load_model("llama3.1-405b"),
                      "inference=decode,tp=64,context=2,dtype=bf16,weight_dtype=int8,batch=" +
                          std::to_string(batch),
                      book_v5e({.sizes = {8, 8}, .memory = kMemory810GB, .has_links = has_links}));
}

void add_llama_405b(std::vector<StudyRow>& rows) {
  const double load = predict("A13", {{"b", 1}, {"P", 405e9}, {"Nc", 64}, {"W", kMemory810GB}});
  // 403.7e9 parameters in int8 and the head's 2.1e9 in bf16: 0.7 % more. 8 key-value heads on 64
  // chips: each chip has the projections of one, 126 x 16,384 x 256 bytes, eight times its share,
  // 0.57 ms more.
  rows.push_back(
      {.id = "405b-load",
       .formula = "A13",
       .regime = "a pass of Llama-3 405B in int8 on 64 v5e, one request, no communication",
       .predicted = load,
       .expected = {0.075, 0.095},
       .why = "each of 8 key-value heads is projected on 8 chips: 7 % more weights",
       .simulate = [](const Laboratory& laboratory) { return llama_405b(laboratory, 1, false); }});
  // 253 all-reduces whose distance doubles: 1 + 2 + 4 hops along each axis, 14 us, and bytes of 33
  // kB that the busiest link carries five times, 3.6 us: 4.46 ms, 0.57 of the pass.
  rows.push_back(
      {.id = "405b-load-with-ici",
       .formula = "A13",
       .regime = "the same with its collectives on an 8x8, which does not wrap",
       .predicted = load,
       .expected = {0.64, 0.72},
       .why = "253 all-reduces of 14 hops of 1 us take half as long as the weights",
       .simulate = [](const Laboratory& laboratory) { return llama_405b(laboratory, 1, true); }});
  // I12: 64 chips x 3.65 tokens = 233 in 15 ms of arithmetic. Norms and additions run whole on
  // every chip: 10 vectors of 16,384 values in 126 layers, 9.6 GB, 11.9 ms. Matmuls that also read
  // and write such vectors take up to 20 % longer than their arithmetic.
  rows.push_back(
      {.id = "405b-b233",
       .formula = "I1",
       .regime = "233 requests, short contexts, no communication: the arithmetic of 15 ms",
       .predicted = predict("I1", {{"B", 233},
                                   {"kv", 2 * 516096.0},
                                   {"V", 405e9},
                                   {"P", 405e9},
                                   {"Nc", 64},
                                   {"W", kMemory810GB},
                                   {"C", kSliceFlops}}),
       .expected = {0.75, 1.05},
       .why =
           "233 is within reach of the arithmetic (not \"out of reach\"), but norms and additions "
           "are not divided by tensor parallelism: 12 ms of memory on every chip",
       .simulate = [](const Laboratory& laboratory) {
         return llama_405b(laboratory, 233, false);
       }});
}

// Returns the batch from which arithmetic takes longer than reading weights: the time of a pass of
// one request whose arithmetic takes no time, over the time that a request adds where memory takes
// none.
double slice_critical_batch(const Laboratory& laboratory, const std::string& types) {
  constexpr double kNone = 1e18;
  const ModelSpec model = load_model("llama3-70b");
  const auto pass = [&](int batch, double flops, double memory) {
    return pass_seconds(
        laboratory, model,
        "inference=decode,tp=8,context=1,batch=" + std::to_string(batch) + "," + types,
        book_v5e({.sizes = {4, 2},
                  .flops = flops,
                  .memory = memory,
                  .capacity = 1e15,
                  .has_links = false}));
  };
  constexpr int kMany = 513;
  const double each = (pass(kMany, kSliceFlops, kNone) - pass(1, kSliceFlops, kNone)) / (kMany - 1);
  return pass(1, kNone, kSliceMemory) / each;
}

void add_critical_batches(std::vector<StudyRow>& rows) {
  // The head stays in bf16: 1.05e9 of 69.5e9 parameters. That makes int8 weights 1.5 % larger. int4
  // has a scale of 16 bits for 128 values, 1/32 more: (68.45 x 0.5156 + 2.1) / 34.75 is 7.6 % more.
  // Norms and attention add up to 1 % to either side.
  for (const auto& [id, beta, types, expected] :
       {std::tuple{"bf16", 1.0, "dtype=bf16", DifferenceRange{-0.012, 0.006}},
        std::tuple{"int8", 0.5, "dtype=bf16,weight_dtype=int8", DifferenceRange{0.003, 0.02}},
        std::tuple{"int4", 0.25, "dtype=bf16,weight_dtype=int4", DifferenceRange{0.066, 0.086}}}) {
    rows.push_back(
        {.id = std::string("critical-") + id,
         .formula = "A6",
         .regime =
             std::string("requests from which a pass of Llama-3 70B is bound by arithmetic, ") +
             id + " weights",
         .predicted = predict("A6", {{"beta", beta}, {"C", kSliceFlops}, {"W", kSliceMemory}}),
         .unit = "requests",
         .expected = expected,
         .tolerance = 0.02,
         .why = beta == 1.0 ? "every parameter is read once and multiplied for every request"
                            : "narrower weights, but the head's stay in bf16",
         .simulate = [types = std::string(types)](const Laboratory& laboratory) {
           return slice_critical_batch(laboratory, types);
         }});
  }
}

std::vector<StudyRow> serving_slice_rows() {
  std::vector<StudyRow> rows;
  add_small_slices(rows);
  add_llama_8b(rows);
  add_llama_405b(rows);
  add_critical_batches(rows);
  add_cache_sizes(rows);
  return rows;
}

// ---- S52 ----

// PaLM 540B in int8 on 48 TPU v4, by which its 48 heads divide (the paper pads them to 64), with
// 2,048 tokens of each request in the cache.
constexpr double kV4Flops = 275e12;
constexpr double kV4Memory = 1.2e12;
constexpr double kV4Chips = 48;
constexpr double kPalm = 540e9;
constexpr double kPalmCache = 2048 * 120832.0;

double palm_pass(const Laboratory& laboratory, int batch, const char* split, bool has_links) {
  return pass_seconds(laboratory, load_model("palm-540b"),
                      "inference=decode,tp=48,context=2048,dtype=bf16,weight_dtype=int8,batch=" +
                          std::to_string(batch) + ",cache_split=" + split,
                      book_v5e({.sizes = {4, 4, 3},
                                .flops = kV4Flops,
                                .memory = kV4Memory,
                                .capacity = 32e9,
                                .has_links = has_links}));
}

double palm_formula(double batch) {
  return predict("I1", {{"B", batch},
                        {"kv", kPalmCache},
                        {"V", kPalm},
                        {"P", kPalm},
                        {"Nc", kV4Chips},
                        {"W", kV4Memory},
                        {"C", kV4Flops}});
}

std::vector<StudyRow> palm_rows() {
  std::vector<StudyRow> rows;
  // A single key-value head: by head, it is on all 48 chips, each of which reads all caches, B x
  // 247 MB; by request each reads a 48th. B = 240: 49.5 ms against 1.0 ms.
  const double caches = 240 * kPalmCache / kV4Memory;
  rows.push_back({.id = "by-head",
                  .formula = "I1",
                  .regime = "a pass of 240 requests, the one key-value head on every chip",
                  .predicted = palm_formula(240),
                  .expected = {caches * 47 / 48 / palm_formula(240) + 0.15,
                               caches * 47 / 48 / palm_formula(240) + 0.5},
                  .why = "48 chips read the same caches",
                  .simulate = [](const Laboratory& laboratory) {
                    return palm_pass(laboratory, 240, "heads", false);
                  }});
  // By request. What the formula leaves out: norm and addition run whole on every chip, 5 vectors
  // of 18,432 values in 118 layers a request (22 MB), and matmuls read and write 3 more (13 MB).
  rows.push_back({.id = "by-request",
                  .formula = "I1",
                  .regime = "the same with caches by request, as the paper divides them",
                  .predicted = palm_formula(240),
                  .expected = {0.15, 0.6},
                  .why = "activations of the model's width go through the memory of every chip",
                  .simulate = [](const Laboratory& laboratory) {
                    return palm_pass(laboratory, 240, "requests", false);
                  }});
  const auto of_token = [](int batch, bool has_links) {
    return [=](const Laboratory& laboratory) {
      return palm_pass(laboratory, batch, "requests", has_links) / batch * kV4Chips;
    };
  };
  // Cost of a token in chip-seconds: below the bend each doubling of the batch halves it, beyond it
  // nothing is gained.
  rows.push_back({.id = "flat",
                  .formula = "I1",
                  .regime = "cost of a token at 1,008 requests, of that at 480 (chip-seconds)",
                  .predicted = 1,
                  .unit = "",
                  .expected = {-0.08, 0.01},
                  .tolerance = 0.08,
                  .why = "beyond B = 240 arithmetic and activations grow with the batch",
                  .simulate = [of_token](const Laboratory& laboratory) {
                    return of_token(1008, true)(laboratory) / of_token(480, true)(laboratory);
                  }});
  rows.push_back({.id = "steep",
                  .formula = "I1",
                  .regime = "cost of a token at 48 requests, of that at 24, as if half",
                  .predicted = 0.5,
                  .unit = "",
                  .expected = {0.02, 0.3},
                  .why = "weights and the latency of collectives divide over more requests; "
                         "activations don't",
                  .simulate = [of_token](const Laboratory& laboratory) {
                    return of_token(48, true)(laboratory) / of_token(24, true)(laboratory);
                  }});
  return rows;
}

std::vector<Sweep> palm_sweeps() {
  Sweep sweep{.name = "S52-palm",
              .title = "PaLM 540B: cost of a token against the requests of a pass",
              .subtitle = "48 TPU v4, int8 weights, 2,048 tokens in each cache",
              .x = PlotAxis{.label = "requests of a pass", .unit = "", .log = true},
              .y = PlotAxis{.label = "chip-seconds of a token", .unit = "s", .log = true},
              .at = {1, 6, 12, 24, 48, 96, 192, 240, 480, 1008},
              .only_there = true};  // whole requests
  const auto curve = [&sweep](const char* label, const char* split, bool has_links, bool line) {
    SweepCurve one{.label = label};
    if (line) {
      one.predict = [](double batch) { return palm_formula(batch) / batch * kV4Chips; };
    }
    one.simulate = [=](const Laboratory& laboratory, double batch) {
      const int requests = static_cast<int>(batch);
      // One request is on one chip, whatever the split.
      return palm_pass(laboratory, requests, split, has_links) / batch * kV4Chips;
    };
    sweep.curves.push_back(std::move(one));
  };
  curve("caches by request", "requests", true, true);
  curve("caches by head", "heads", true, false);
  std::vector<Sweep> sweeps;
  sweeps.push_back(std::move(sweep));
  return sweeps;
}

}  // namespace

std::vector<Study> serving_slice_studies() {
  return {
      {.id = "S51",
       .source = kBookAppliedInference,
       .title = "Smallest slices, caches that fit and critical batches",
       .claim = "a step reads all of the memory in 19 ms, so 16, 8 and 4 chips answer 0.27, 0.66 "
                "and 1.72 requests a second and chip in bf16, int8 and int4",
       .rows = serving_slice_rows,
       .finding = "The book's 0.66 and 1.72 come from 52 and 67 caches; the formula gives 43 for "
                  "each type, hence 0.55 and 1.10. An engine that keeps tables in bf16, as "
                  "checkpoints do, finds room for fewer yet."},
      {.id = "S52",
       .source = kBookInference,
       .title = "Latency and throughput of PaLM",
       .claim =
           "with multi-query attention and caches divided by request, the cost of a token falls "
           "with the batch up to the critical one (240 in bf16, 115 with int8 weights) and is "
           "flat above",
       .rows = palm_rows,
       .sweeps = palm_sweeps,
       .finding =
           "The bend is there, and it takes caches by request: by head, the one key-value "
           "head is on every chip, and nothing is gained above 50 requests. It is softer than "
           "the formula's, because a chip's norms and additions are not divided: the paper's "
           "layouts divide weights in two dimensions and the activations with them, which "
           "passes of inference don't have."}};
}

}  // namespace stepsim
