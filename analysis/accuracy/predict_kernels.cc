#include "analysis/accuracy/predict_kernels.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>

#include "analysis/accuracy/plan_words.h"
#include "analysis/accuracy/row_fields.h"
#include "proto/load_experiment.h"
#include "sim/base/error.h"
#include "sim/chips/data_type_text.h"
#include "workload/kernels.h"

namespace stepsim {
namespace {

// Returns the type in front of a remark: "bfloat16/kv bfloat16", "fp8 e4m3 1x128/128x128 scaling,
// bf16 out".
std::string_view first_word(std::string_view text) {
  if (text == "fp16/bf16") return text;
  return text.substr(0, text.find_first_of(" /,"));
}

// Kernels of up to so many values and multiplications have times and bytes that fit in 64 bits.
constexpr double kMostWork = 0x1p55;

// Returns whether all sizes are positive and their product is within the limit.
bool can_be_timed(std::initializer_list<std::int64_t> sizes) {
  double product = 1;
  for (const std::int64_t size : sizes) product *= static_cast<double>(size);
  return std::ranges::all_of(sizes, [](std::int64_t size) { return size >= 1; }) &&
         product <= kMostWork;
}

const char* const kNoSizes = "the sizes must be at least 1, and their product at most 2^55";

MeasuredKernel read_gemm(const CsvTable& table, std::size_t record, DataType type,
                         std::optional<DataType> weights) {
  const std::string_view op = table.at(record, "op");
  if (op.find("grouped") != std::string_view::npos) {
    return {.kernel = {}, .problem = "grouped matmuls are several kernels of unknown sizes"};
  }
  const auto m = table.integer(record, "m");
  const auto n = table.integer(record, "n");
  const auto k = table.integer(record, "k");
  if (!m || !n || !k) return {.kernel = {}, .problem = "m, n and k are not given"};
  if (!can_be_timed({*m, *n, *k})) return {.kernel = {}, .problem = kNoSizes};
  // The result of one-byte types is kept in 16 bits.
  const DataType result = size_of(type) == Bytes(1) ? DataType::kBf16 : type;
  const Kernel kernel = matmul("gemm", {.operands = type, .result = result, .weights = weights},
                               {.m = *m, .n = *n, .k = *k});
  MeasuredKernel reading{.kernel = kernel, .problem = {}};
  // The source times the kernel that makes the 16-bit input narrow with the matmul.
  if (op == "gemm" && size_of(type) < size_of(DataType::kBf16)) reading.quantized = *m * *k;
  return reading;
}

MeasuredKernel read_attention(const CsvTable& table, std::size_t record, DataType type) {
  const auto heads = table.integer(record, "heads");
  const auto kv_heads = table.integer(record, "kv_heads");
  const auto queries = table.integer(record, "seq_q");
  const auto keys = table.integer(record, "seq_kv");
  const auto dim = table.integer(record, "head_dim");
  if (!heads || !kv_heads || !queries || !keys || !dim || *kv_heads <= 0 ||
      *heads % *kv_heads != 0) {
    return {.kernel = {}, .problem = "heads, kv_heads, seq_q, seq_kv, head_dim are not all given"};
  }
  const std::int64_t batch = table.integer(record, "batch").value_or(1);
  if (!can_be_timed({batch, *heads, *queries, *keys, *dim})) {
    return {.kernel = {}, .problem = kNoSizes};
  }
  // The last query sees all keys.
  const bool causal = table.at(record, "op").find("causal") != std::string_view::npos;
  const auto q = static_cast<double>(*queries);
  const double unseen = causal ? q * std::min(q, static_cast<double>(*keys)) / 2 : 0;
  const AttentionShape shape{.sequences = batch,
                             .heads = *heads,
                             .kv_heads = *kv_heads,
                             .queries = *queries,
                             .keys = *keys,
                             .qk_dim = *dim,
                             .v_dim = *dim,
                             .pairs = q * static_cast<double>(*keys) - unseen};
  const bool backward = table.at(record, "phase") == "backward";
  const std::string_view named = table.at(record, "library");
  std::optional<AttentionLibrary> library = Text<AttentionLibrary>::read(named);
  if (!library) library = attention_library_of_words(named, std::nullopt);
  if (!named.empty() && !library) {
    return {.kernel = {}, .problem = "library \"" + std::string(named) + "\" is not known"};
  }
  return {.kernel = backward ? attention_backward("attention", type, shape)
                             : attention_forward("attention", type, shape),
          .library = library,
          .problem = {}};
}

}  // namespace

MeasuredKernel read_kernel(const CsvTable& table, std::size_t record) {
  const std::string_view op = table.at(record, "op");
  DataType type = DataType::kBf16;
  std::optional<DataType> weights;
  if (!read_data_types(first_word(table.at(record, "dtype")), type, weights)) {
    return {.kernel = {},
            .problem = "no such data type: " + std::string(table.at(record, "dtype"))};
  }
  if (op.starts_with("gemm")) return read_gemm(table, record, type, weights);
  if (op.starts_with("attention")) return read_attention(table, record, type);
  if (op == "add") {
    const auto m = table.integer(record, "m");
    const auto n = table.integer(record, "n");
    if (!m || !n) return {.kernel = {}, .problem = "m and n are not given"};
    if (!can_be_timed({*m, *n})) return {.kernel = {}, .problem = kNoSizes};
    return {.kernel = elementwise("add", type, {.elements = *m * *n, .reads = 2, .flops = 1}),
            .problem = {}};
  }
  return {.kernel = {},
          .problem = "what \"" + std::string(op) + "\" reads and writes is not known"};
}

Duration time_of(const MeasuredKernel& measured, const ChipSpec& chip) {
  if (measured.library) {
    ChipSpec in_training = chip;
    in_training.efficiency = chip.efficiency.in_training(measured.library);
    return time_of(*measured.kernel, in_training).total;
  }
  Duration total = time_of(*measured.kernel, chip).total;
  if (measured.quantized) {
    total += time_to_quantize(*measured.quantized, measured.kernel->type, chip);
  }
  return total;
}

std::vector<AccuracyRow> predict_kernels(const CsvTable& table,
                                         const std::vector<Hardware>& hardware,
                                         const PredictOptions& options) {
  std::vector<AccuracyRow> rows;
  std::map<std::string, ChipSpec> chips;
  for (std::size_t record = 0; record < table.records.size(); ++record) {
    report(options, record, table.records.size());
    AccuracyRow row = start_row(table, record, hardware, "hardware", "time_s");
    if (is_ended(options)) {
      row.skipped = kInterrupted;
      rows.push_back(std::move(row));
      continue;
    }
    const auto finish = [&](std::string skipped) {
      row.skipped = std::move(skipped);
      rows.push_back(std::move(row));
    };
    const std::optional<double> microseconds = table.number(record, "time_us");
    if (!microseconds || *microseconds <= 0) {
      finish("no time was measured");
      continue;
    }
    row.measured = *microseconds * 1e-6;
    const Hardware* entry = find_hardware(hardware, table.at(record, "hardware"));
    if (entry == nullptr) {
      finish("the catalog has no chip for this hardware");
      continue;
    }
    const MeasuredKernel reading = read_kernel(table, record);
    if (!reading.kernel) {
      finish(reading.problem);
      continue;
    }
    auto found = chips.find(entry->chip);
    if (found == chips.end()) found = chips.emplace(entry->chip, load_chip(entry->chip)).first;
    if (found->second.peak_of(reading.kernel->type) == Throughput(0)) {
      finish(entry->chip + " does not compute in " + std::string(name_of(reading.kernel->type)));
      continue;
    }
    row.predicted = to_seconds(time_of(reading, found->second));
    finish({});
  }
  return rows;
}

}  // namespace stepsim
