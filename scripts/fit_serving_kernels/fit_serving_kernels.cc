// Fits the constants of a chip's serving kernels (sim/chips/decode_attention.h,
// sim/chips/expert_layer.h) to a table of timings, and prints them as a chip's file has them, with
// the errors of the rows and of the fifth of the shapes that is left out.
//
//   g++ -O2 -std=c++20 -I. scripts/fit_serving_kernels/fit_serving_kernels.cc
//     sim/chips/decode_attention.cc sim/chips/expert_layer.cc sim/chips/kernel.cc
//     sim/base/units.cc workload/parts/kernels.cc workload/parts/expert_load.cc -lnlopt -o
//     fit_serving_kernels (Debian: libnlopt-cxx-dev)
//   ./fit_serving_kernels TABLE.csv CHIP UNITS MEMORY_GBPS CACHE_MB CACHE_TBPS TYPE=TFLOPS...
//
// TABLE.csv has kernels in the columns of docs/measured-tables.md; CHIP is a name in its column
// `chip`. The cache is that of data which is read again at once: the table's rows repeat each
// kernel on the same data. The sum of the logarithms of predicted / measured is minimised without
// their signs.
//
// Rows of attention are told apart by library and type of the cache, and by whether query heads
// share keys and by the width of a head where that makes the fit a sixth better: libraries have
// different kernels for them. Rows of the table "attention_beside_prompts" say what requests that
// generate add to a call that computes prompts; beside_prompts is fitted to them, with all else as
// in the rows that have none. Layers of experts are told apart by library and types.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlopt.hpp>
#include <string>
#include <vector>

#include "sim/chips/decode_attention.h"
#include "sim/chips/expert_layer.h"
#include "workload/parts/expert_load.h"
#include "workload/parts/kernels.h"

namespace {

using namespace stepsim;

using Row = std::map<std::string, std::string>;
using Constants = std::vector<double>;

struct Target {
  std::string chip;
  std::int64_t units = 1;
  double bandwidth = 0;
  ChipCache cache;
  std::map<std::string, double> peaks;  // FLOP/s

  ServingChip of_type(DataType type) const {
    const auto own = peaks.find(std::string(name_of(type)));
    return {.peak = own == peaks.end() ? 0 : own->second,
            .bandwidth = bandwidth,
            .units = units,
            .cache = cache,
            .launch_overhead = {}};
  }
};

// Cells may be quoted; none has a quote inside.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

// The keys of the shape become cells of the row.
std::vector<Row> read(const std::string& path, const std::string& chip) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = cells_of(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = cells_of(line);
    Row row;
    for (std::size_t i = 0; i < names.size() && i < cells.size(); ++i) row[names[i]] = cells[i];
    for (const std::string& part : cells_of(row["shape"])) {
      const std::size_t equals = std::min(part.find('='), part.size() - 1);
      if (!part.empty()) row[part.substr(0, equals)] = part.substr(equals + 1);
    }
    if (row["chip"] == chip) rows.push_back(std::move(row));
  }
  return rows;
}

std::int64_t whole(const Row& row, const char* column) {
  const auto found = row.find(column);
  return found == row.end() ? 0 : std::atoll(found->second.c_str());
}

// "12.5us", or seconds.
double seconds_of(const Row& row) {
  const std::string& text = row.at("measured.time");
  return std::atof(text.c_str()) * (text.ends_with("us") ? 1e-6 : 1);
}

DataType type_of(const std::string& name) {
  for (int type = 0; type < kDataTypes; ++type) {
    if (name_of(static_cast<DataType>(type)) == name) return static_cast<DataType>(type);
  }
  std::cerr << "no such type: " << name << "\n";
  std::exit(2);
}

bool is_left_out(const Row& row) {
  unsigned hash = 17;
  const auto add = [&hash](std::int64_t size) {
    hash = hash * 31 + static_cast<unsigned>(size);
    hash = (hash ^ (hash >> 13)) * 2654435761U;
  };
  add(whole(row, "batch"));
  add(whole(row, "seq_kv") - whole(row, "seq_q"));
  for (const char* key : {"heads", "kv_heads", "head_dim", "tokens", "hidden", "intermediate",
                          "experts", "etp", "ep"}) {
    add(whole(row, key));
  }
  return (hash ^ (hash >> 15)) % 5 == 0;
}

// A row as the model sees it: predict(constants) in seconds.
struct Timing {
  double seconds = 0;
  bool left_out = false;
  std::function<double(const Constants&)> predict;
};

// What is fitted: where to begin, and within which limits.
struct Search {
  std::vector<Constants> starts;
  Constants low, high;
};

struct Found {
  Constants x;
  double loss = 0;  // mean over the rows that were fitted
};

double loss_of(double predicted, double measured) {
  const double error = std::abs(std::log(predicted / measured));
  return error + 0.5 * error * error / (0.1 + error);
}

double objective(const Constants& x, Constants&, void* data) {
  double sum = 0, count = 0;
  for (const Timing& timing : *static_cast<const std::vector<Timing>*>(data)) {
    if (timing.left_out) continue;
    sum += loss_of(timing.predict(x), timing.seconds);
    ++count;
  }
  return sum / count;
}

Found fit(std::vector<Timing>& timings, const Search& search) {
  Found best{.x = {}, .loss = 1e9};
  for (const Constants& start : search.starts) {
    nlopt::opt method(nlopt::LN_SBPLX, static_cast<unsigned>(start.size()));
    method.set_lower_bounds(search.low);
    method.set_upper_bounds(search.high);
    method.set_min_objective(objective, &timings);
    method.set_maxeval(2500);
    method.set_ftol_rel(1e-5);
    Constants x = start;
    double value = 0;
    method.optimize(x, value);
    if (value < best.loss) best = {.x = x, .loss = value};
  }
  return best;
}

std::string errors_of(const std::vector<Timing>& timings, const Constants& x, bool left_out) {
  std::vector<double> errors;
  for (const Timing& timing : timings) {
    if (timing.left_out != left_out) continue;
    errors.push_back(std::abs(timing.predict(x) / timing.seconds - 1));
  }
  if (errors.empty()) return "no rows";
  std::ranges::sort(errors);
  char text[80];
  std::snprintf(text, sizeof text, "%zu rows, %.1f %% / %.1f %%", errors.size(),
                100 * errors[errors.size() / 2], 100 * errors[errors.size() * 9 / 10]);
  return text;
}

void print_errors(const std::vector<Timing>& timings, const Constants& x) {
  std::cout << "    # fitted " << errors_of(timings, x, false) << "; left out "
            << errors_of(timings, x, true) << "\n";
}

Duration microseconds(double us) {
  return duration_from_seconds(us * 1e-6);
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

// ---- attention ----

// start, block_start (us), block_bandwidth (GB/s), blocks_per_unit, memory_fraction, split_start
// (us), query_bytes, peak_fraction
DecodeEfficiency decode_efficiency(const Constants& x, std::int64_t narrow_rows,
                                   std::int64_t row_tile) {
  DecodeEfficiency result{.start = microseconds(x[0]),
                          .block_start = microseconds(x[1]),
                          .blocks_per_unit = x[3],
                          .block_bandwidth = Bandwidth(x[2] * 1e9),
                          .memory_fraction = x[4],
                          .split_start = microseconds(x[5]),
                          .peak_fraction = x[7],
                          .row_tile = row_tile,
                          .narrow_rows = narrow_rows,
                          .query_bytes = x[6]};
  return result;
}

Kernel kernel_of(const Row& row) {
  const DecodeKernel kernel{.type = type_of(row.at("dtype")),
                            .stored = type_of(row.at("cache_dtype")),
                            .library = {},
                            .repeated = true};
  const std::int64_t keys = whole(row, "seq_kv");
  if (row.at("op") == "latent_decode") {
    return latent_decode(
        "mla", kernel,
        {.sequences = whole(row, "batch"), .heads = whole(row, "heads"), .keys = keys});
  }
  return attention_decode("attention", kernel,
                          {.sequences = whole(row, "batch"),
                           .heads = whole(row, "heads"),
                           .kv_heads = whole(row, "kv_heads"),
                           .keys = keys,
                           .window = whole(row, "window"),
                           .qk_dim = whole(row, "head_dim"),
                           .v_dim = whole(row, "head_dim")});
}

struct RowTiles {
  std::int64_t narrow_rows = 0;
  std::int64_t row_tile = 64;
};

std::vector<Timing> decode_timings(const std::vector<Row>& rows, const Target& target,
                                   RowTiles tiles) {
  std::vector<Timing> timings;
  for (const Row& row : rows) {
    const Kernel kernel = kernel_of(row);
    ServingChip chip = target.of_type(*kernel.stored);
    timings.push_back({.seconds = seconds_of(row),
                       .left_out = is_left_out(row),
                       .predict = [kernel, chip, tiles](const Constants& x) {
                         const DecodeTime time = time_of_decode(
                             kernel, decode_efficiency(x, tiles.narrow_rows, tiles.row_tile), chip);
                         return time.overlapped_s + to_seconds(time.around);
                       }});
  }
  return timings;
}

const Search& decode_search() {
  static const Search kSearch{
      .starts = {{7, 2, 30, 1.5, 0.9, 2, 1, 0.6},
                 {9, 1.8, 150, 1.2, 0.85, 5, 0.5, 0.9},
                 {5, 3, 25, 0.8, 0.93, 4, 2, 0.6}},
      .low = {0, 0, 1, 0.5, 0.4, 0, 0, 0.05},  // no kernel reads more than 0.945 of HBM
      .high = {30, 20, 500, 8, 0.945, 30, 40, 1}};
  return kSearch;
}

struct DecodeFit {
  std::vector<Timing> timings;
  Found found;
  RowTiles tiles;
};

DecodeFit fit_decode(const std::vector<Row>& rows, const Target& target) {
  DecodeFit best;
  best.found.loss = 1e9;
  const bool latent = rows.front().at("op") == "latent_decode";
  // Heads that share keys are up to 8 but for latents, so tiles of rows matter for those alone.
  const std::vector<RowTiles> menu =
      latent ? std::vector<RowTiles>{{0, 64}, {0, 128}, {32, 128}} : std::vector<RowTiles>{{0, 64}};
  for (const RowTiles& tiles : menu) {
    DecodeFit fitted{.timings = decode_timings(rows, target, tiles), .found = {}, .tiles = tiles};
    fitted.found = fit(fitted.timings, decode_search());
    if (fitted.found.loss < best.found.loss) best = std::move(fitted);
  }
  return best;
}

void print_decode(const DecodeFit& fitted, const std::string& keys, bool latent) {
  const Constants& x = fitted.found.x;
  print_errors(fitted.timings, x);
  std::cout << "  " << (latent ? "latent_decode" : "decode") << " {\n    " << keys
            << "\n    start: \"" << number(x[0]) << "us\" block_start: \"" << number(x[1])
            << "us\" blocks_per_unit: " << number(x[3]) << " block_bandwidth: \"" << number(x[2])
            << "GB/s\"\n    memory_fraction: " << number(x[4]) << " split_start: \"" << number(x[5])
            << "us\" query_bytes: " << number(x[6]) << " peak_fraction: " << number(x[7]);
  if (latent) {
    std::cout << " row_tile: " << fitted.tiles.row_tile
              << " narrow_rows: " << fitted.tiles.narrow_rows;
  }
  std::cout << "\n  }\n";
}

struct Part {
  std::string keys;
  std::vector<Row> rows;
};

// Returns the rows by whether heads share keys, or by the width of a head. The constants of the
// widest heads are for all widths that no other part has.
std::vector<Part> parts_of(const Part& part, const std::string& key) {
  std::map<std::int64_t, std::vector<Row>> rows;
  for (const Row& row : part.rows) {
    rows[key == "head_dim" ? whole(row, "head_dim") : row.at("heads") == row.at("kv_heads")]
        .push_back(row);
  }
  std::vector<Part> parts;
  for (auto& [value, own] : rows) {
    std::string text = " " + key + ": ";
    if (key == "own_heads") text += value == 1 ? "true" : "false";
    if (key == "head_dim") text += std::to_string(value);
    if (key == "head_dim" && value == rows.rbegin()->first) text.clear();
    parts.push_back({part.keys + text, std::move(own)});
  }
  return parts;
}

// Prints the constants of the rows, of parts of them where that is a sixth better.
void fit_and_print(const Part& part, const Target& target, std::vector<std::string> keys) {
  DecodeFit whole = fit_decode(part.rows, target);
  for (; !keys.empty(); keys.erase(keys.begin())) {
    const std::vector<Part> parts = parts_of(part, keys.front());
    double loss = 0;
    for (const Part& own : parts) {
      loss += fit_decode(own.rows, target).found.loss * static_cast<double>(own.rows.size());
    }
    if (parts.size() < 2 ||
        loss / static_cast<double>(part.rows.size()) > whole.found.loss * 5 / 6) {
      continue;
    }
    const std::vector<std::string> rest(keys.begin() + 1, keys.end());
    for (const Part& own : parts) fit_and_print(own, target, rest);
    return;
  }
  print_decode(whole, part.keys, part.rows.front().at("op") == "latent_decode");
}

// ---- requests that generate beside prompts ----

// Fits start (us) and bandwidth (GB/s) of blocks of one query head, beside the constants `alone`.
void fit_and_print_single_heads(const std::vector<Row>& rows, const Target& target,
                                const DecodeFit& alone) {
  std::vector<Timing> timings;
  for (const Row& row : rows) {
    Kernel kernel = kernel_of(row);
    kernel.beside_prompts = true;
    const ServingChip chip = target.of_type(*kernel.stored);
    timings.push_back({.seconds = seconds_of(row),
                       .left_out = is_left_out(row),
                       .predict = [kernel, chip, &alone](const Constants& x) {
                         DecodeEfficiency efficiency = decode_efficiency(
                             alone.found.x, alone.tiles.narrow_rows, alone.tiles.row_tile);
                         efficiency.beside_prompts = {.start = microseconds(x[0]),
                                                      .bandwidth = Bandwidth(x[1] * 1e9)};
                         const DecodeTime time = time_of_decode(kernel, efficiency, chip);
                         return time.overlapped_s + to_seconds(time.around);
                       }});
  }
  const Search search{.starts = {{8, 20}, {2, 60}}, .low = {0, 1}, .high = {60, 1000}};
  const Found found = fit(timings, search);
  print_errors(timings, found.x);
  std::cout << "    beside_prompts { start: \"" << number(found.x[0]) << "us\" bandwidth: \""
            << number(found.x[1]) << "GB/s\" }\n";
}

// ---- experts ----

// start (us), peak_fraction, inner_ramp, operand_bandwidth (TB/s), memory_fraction, row_bytes,
// remote_rows, expert_start (ns), remote_start (us)
ExpertEfficiency expert_efficiency(const Constants& x, std::int64_t least_rows) {
  ExpertEfficiency result{.start = microseconds(x[0]),
                          .peak_fraction = x[1],
                          .inner_ramp = x[2],
                          .least_rows = least_rows,
                          .operand_bandwidth = Bandwidth(x[3] * 1e12),
                          .memory_fraction = x[4],
                          .row_bytes = x[5],
                          .remote_rows = x[6],
                          .expert_start = microseconds(x[7] * 1e-3),
                          .remote_start = microseconds(x[8])};
  return result;
}

struct ExpertTypes {
  DataType type;
  DataType weights;
};

ExpertTypes types_of(const Row& row) {
  const auto narrow = row.find("weight_dtype");
  const DataType type = type_of(row.at("dtype"));
  return {type, narrow == row.end() || narrow->second.empty() ? type : type_of(narrow->second)};
}

ExpertLayer layer_of(const Row& row) {
  const ExpertTypes types = types_of(row);
  const ExpertShare share{.tokens = whole(row, "tokens"),
                          .experts = whole(row, "experts"),
                          .top_k = whole(row, "top_k"),
                          .members = whole(row, "ep")};
  const std::string& law = row.at("routing");  // "power_law:1.01"
  ExpertLayer layer{.tokens = share.tokens,
                    .top_k = share.top_k,
                    .hidden = whole(row, "hidden"),
                    .inter = whole(row, "intermediate") / whole(row, "etp"),
                    .type = types.type,
                    .weights = types.weights,
                    .repeated = true};
  layer.load = law == "balanced" ? balanced_load(share)
                                 : power_law_load(share, std::atof(law.substr(10).c_str()));
  return layer;
}

std::vector<Timing> expert_timings(const std::vector<Row>& rows, const Target& target,
                                   std::int64_t least_rows) {
  std::vector<Timing> timings;
  for (const Row& row : rows) {
    const ExpertLayer layer = layer_of(row);
    const ServingChip chip = target.of_type(layer.type);
    timings.push_back({.seconds = seconds_of(row),
                       .left_out = is_left_out(row),
                       .predict = [layer, chip, least_rows](const Constants& x) {
                         return to_seconds(
                             time_of_experts(layer, expert_efficiency(x, least_rows), chip).total);
                       }});
  }
  return timings;
}

void fit_and_print_experts(const std::string& library, const std::vector<Row>& rows,
                           const Target& target) {
  static const Search kSearch{.starts = {{25, 0.7, 200, 12, 0.85, 4, 0.5, 5, 5},
                                         {20, 0.9, 500, 20, 0.9, 4, 0.5, 20, 5},
                                         {40, 0.3, 50, 8, 0.8, 10, 0.2, 100, 5},
                                         {27, 0.21, 5, 10.5, 0.94, 9, 0.95, 30, 5},
                                         {18, 0.95, 850, 20, 0.9, 4.3, 0.5, 6, 5},
                                         {50, 0.5, 3000, 25, 0.5, 7, 0.35, 150, 5}},
                              .low = {2, 0.05, 0, 1, 0.3, 0, 0, 0, 0},
                              .high = {90, 1, 4000, 80, 0.945, 40, 1, 2000, 90}};
  Found best{.x = {}, .loss = 1e9};
  std::int64_t least = 16;
  std::vector<Timing> timings;
  for (const std::int64_t rows_of_tile : {16, 128}) {
    std::vector<Timing> own = expert_timings(rows, target, rows_of_tile);
    const Found found = fit(own, kSearch);
    if (found.loss >= best.loss) continue;
    best = found;
    least = rows_of_tile;
    timings = std::move(own);
  }
  const ExpertTypes types = types_of(rows.front());
  const Constants& x = best.x;
  print_errors(timings, x);
  std::cout << "  experts {\n    library: \"" << library << "\" type: \"" << name_of(types.type)
            << "\"";
  if (types.weights != types.type) std::cout << " weights: \"" << name_of(types.weights) << "\"";
  std::cout << "\n    start: \"" << number(x[0]) << "us\" peak_fraction: " << number(x[1])
            << " inner_ramp: " << number(x[2]) << " least_rows: " << least
            << " operand_bandwidth: \"" << number(x[3])
            << "TB/s\"\n    memory_fraction: " << number(x[4]) << " row_bytes: " << number(x[5])
            << " remote_rows: " << number(x[6]) << " expert_start: \"" << number(x[7])
            << "ns\" remote_start: \"" << number(x[8]) << "us\"\n  }\n"
            << std::flush;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 8) {
    std::cerr << "usage: fit_serving_kernels TABLE.csv CHIP UNITS MEMORY_GBPS CACHE_MB CACHE_TBPS "
                 "TYPE=TFLOPS...\n";
    return 2;
  }
  Target target{.chip = arguments[2],
                .units = std::atoll(arguments[3]),
                .bandwidth = std::atof(arguments[4]) * 1e9,
                .cache = {.capacity = Bytes(std::llround(std::atof(arguments[5]) * 1e6)),
                          .bandwidth = Bandwidth(std::atof(arguments[6]) * 1e12)},
                .peaks = {}};
  for (int i = 7; i < count; ++i) {
    const std::string pair = arguments[i];
    const std::size_t sign = pair.find('=');
    target.peaks[pair.substr(0, sign)] = std::atof(pair.substr(sign + 1).c_str()) * 1e12;
  }
  std::map<std::vector<std::string>, std::vector<Row>> attention, beside, latent, experts;
  for (Row& row : read(arguments[1], target.chip)) {
    const std::string& op = row["op"];
    if (op == "experts") {
      experts[{row["library"], row["dtype"], row["weight_dtype"]}].push_back(std::move(row));
    } else if (op == "decode_attention" || op == "latent_decode" ||
               op == "decode_attention_beside_prompts") {
      auto& group = op == "latent_decode" ? latent : op == "decode_attention" ? attention : beside;
      group[{row["library"], row["cache_dtype"]}].push_back(std::move(row));
    }
  }
  for (const auto* group : {&attention, &latent}) {
    for (const auto& [key, rows] : *group) {
      const Part part{
          "library: \"" + key[0] + "\" stored: \"" + std::string(name_of(type_of(key[1]))) + "\"",
          rows};
      fit_and_print(part, target,
                    group == &latent ? std::vector<std::string>{}
                                     : std::vector<std::string>{"own_heads", "head_dim"});
      std::cout << std::flush;
    }
  }
  for (const auto& [key, rows] : beside) {
    fit_and_print_single_heads(rows, target, fit_decode(attention.at(key), target));
  }
  for (const auto& [key, rows] : experts) fit_and_print_experts(key[0], rows, target);
}
