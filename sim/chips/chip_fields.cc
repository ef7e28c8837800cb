#include "sim/chips/chip_fields.h"

#include "sim/base/quantity_field.h"
#include "sim/chips/data_type_text.h"

namespace stepsim {

// Files do not list kPlain: the chip's memory_fraction holds for plain kernels.
template <>
struct Text<ElementwiseKind> {
  static std::vector<std::string> names() {
    std::vector<std::string> names;
    for (std::size_t kind = 1; kind < kElementwiseKinds; ++kind) {
      names.emplace_back(name_of(static_cast<ElementwiseKind>(kind)));
    }
    return names;
  }
  static std::string accepts() { return either_of(names()); }
  static std::optional<ElementwiseKind> read(std::string_view text) {
    for (std::size_t kind = 1; kind < kElementwiseKinds; ++kind) {
      if (name_of(static_cast<ElementwiseKind>(kind)) == text) {
        return static_cast<ElementwiseKind>(kind);
      }
    }
    return std::nullopt;
  }
  static std::string write(ElementwiseKind kind) { return std::string(name_of(kind)); }
  static std::string hint(std::string_view text) { return hint_for_name(text, names()); }
};

namespace {

FieldTable<Peak> make_peak_fields() {
  FieldTable<Peak> table("Peak");
  table.add("type", &Peak::type, {.help = "The data type.", .required = true});
  table.add(
      "throughput", &Peak::throughput, Limits::positive(),
      {.help = "Dense peak: operations a second, where a multiplication and an addition are "
               "two.",
       .advice = "Data sheets often state twice as much, with sparsity. Give fp32 outside the "
                 "tensor cores: elementwise kernels compute in it.",
       .required = true});
  return table;
}

FieldTable<MatmulEfficiency> make_matmul_fields() {
  using Matmul = MatmulEfficiency;
  FieldTable<Matmul> table("MatmulEfficiency");
  table.add("type", &Matmul::type,
            {.help = "The data type that these values are for.", .rules = "In matmul_of only."});
  table.add("peak_fraction", &Matmul::peak_fraction, Limits::fraction(),
            {.help = "Fraction of the peak that a large, well-shaped matmul reaches.",
             .advice = "Fit it to the largest matmuls of a benchmark, after the tile sizes, "
                       "because the losses of tiles and ramps are counted in addition."});
  table.add("tile_m", &Matmul::tile_m, Limits::at_least(1),
            {.help = "Rows of the output tile that one compute unit works on.",
             .advice = "Take it from the names of the library's kernels. Rows that don't fill a "
                       "tile cost as much as a full one. 1 loses nothing."});
  table.add("tile_n", &Matmul::tile_n, Limits::at_least(1),
            {.help = "Columns of the output tile.", .advice = "As tile_m."});
  table.add("compute_units", &Matmul::compute_units, Limits::at_least(1),
            {.help = "Tiles that are computed at a time, one on each unit (a GPU's streaming "
                     "multiprocessor).",
             .advice = "Give the units of the chip: a last wave of few tiles takes as long as a "
                       "full one. 1 turns this loss off."});
  table.add("inner_ramp", &Matmul::inner_ramp, Limits::at_least(0),
            {.help = "Inner dimension k at which half of the throughput is reached: k / (k + "
                     "ramp).",
             .advice = "Fit it to matmuls with small k. 0 loses nothing."});
  table.add("least_split", &Matmul::least_split, Limits::at_least(0),
            {.help = "Where there are fewer tiles than units, k is split over the idle ones, in "
                     "parts of at least this many.",
             .advice = "Fit it to small matmuls with large k (split-k kernels). 0: never."});
  table.add("accumulating", &Matmul::accumulating, Limits::fraction(),
            {.help = "Fraction of this efficiency that a matmul reaches if it adds its result to "
                     "memory, as weight gradients do.",
             .advice = "Fit it to matmuls that accumulate in fp32."});
  return table;
}

FieldTable<ElementwiseEfficiency> make_elementwise_fields() {
  FieldTable<ElementwiseEfficiency> table("ElementwiseEfficiency");
  table.add("kind", &ElementwiseEfficiency::kind,
            {.help = "Kernels that this is for: norms, rotations of queries and keys, or roundings "
                     "to one byte with scales of blocks.",
             .required = true});
  table.add(
      "memory_fraction", &ElementwiseEfficiency::memory_fraction, Limits::fraction(),
      {.help =
           "Fraction of the memory's peak that they reach. Their limit is the data that the units "
           "keep in flight, not the memory, so they are slower while communication holds units.",
       .advice = "Fit it to such kernels on a large tensor.",
       .required = true});
  return table;
}

void add_attention_rows(FieldTable<Efficiency>& table) {
  table.add("attention_forward_fraction", &Efficiency::attention_forward_fraction,
            Limits::fraction(),
            {.help = "Fraction of the peak that the fused forward kernel of attention reaches on "
                     "long sequences with heads of 128.",
             .advice = "Fit this and the ramps to attention kernels of many shapes."});
  table.add("attention_backward_fraction", &Efficiency::attention_backward_fraction,
            Limits::fraction(),
            {.help = "The same of the backward kernel, which computes the scores again.",
             .advice = "It is usually lower than the forward's."});
  table.add("attention_length_ramp", &Efficiency::attention_length_ramp, Limits::at_least(0),
            {.help = "Keys at which half of it is reached: s / (s + ramp).",
             .advice = "Fit it to short sequences. 0 loses nothing."});
  table.add("attention_tile_ramp", &Efficiency::attention_tile_ramp, Limits::at_least(0),
            {.help = "Blocks of 128 queries, counted over sequences and heads, for each of "
                     "matmul.compute_units, at which half of it is reached.",
             .advice = "Fit it to small batches. 0 loses nothing."});
  table.add("attention_head_ramp", &Efficiency::attention_head_ramp, Limits::at_least(0),
            {.help = "Ramp of the head dimension d: d / (d + ramp), scaled to 1 at d = 128.",
             .advice = "Fit it to heads of 64. 0: heads of every size are equally efficient."});
}

void add_memory_rows(FieldTable<Efficiency>& table) {
  static const FieldTable<ElementwiseEfficiency> kElementwise = make_elementwise_fields();
  table.add("elementwise_fraction", &Efficiency::elementwise_fraction, Limits::fraction(),
            {.help = "Fraction of the fp32 peak that elementwise arithmetic reaches.",
             .advice = "It rarely matters: memory bounds such kernels."});
  table.add("memory_fraction", &Efficiency::memory_fraction, Limits::fraction(),
            {.help = "Fraction of memory_bandwidth that large kernels reach.",
             .advice = "About 0.9 on GPUs. Fit it to copies or additions of large tensors."});
  table.add("memory_ramp", &Efficiency::memory_ramp,
            {.help = "Kernel size, in bytes read and written, at which half of that is reached: "
                     "bytes / (bytes + ramp).",
             .advice = "Fit it to small elementwise kernels, beside launch_overhead."});
  table.list("elementwise_of", &Efficiency::elementwise_of, kElementwise,
             {.help = "Kinds of elementwise kernels that reach less of the memory than "
                      "memory_fraction.",
              .advice = "Give those that a trace shows to be slower."});
}

FieldTable<Efficiency> make_efficiency_fields() {
  static const FieldTable<MatmulEfficiency> kMatmul = make_matmul_fields();
  FieldTable<Efficiency> table("Efficiency");
  table.group("matmul", &Efficiency::matmul, kMatmul,
              {.help = "Matrix multiplications of every type that matmul_of doesn't have."});
  table.list<MatmulEfficiency>(
      "matmul_of", &Efficiency::matmul_of, kMatmul,
      [](const Efficiency& spec) { return spec.matmul; },
      {.help = "Matmuls of one data type. Fields that are left out are those of matmul.",
       .advice = "Give it for a type whose kernels differ, as those of fp8 do.",
       .rules = "Each has a type, and no two the same."});
  add_attention_rows(table);
  add_memory_rows(table);
  return table;
}

FieldTable<Reduction> make_reduction_fields() {
  FieldTable<Reduction> table("Reduction");
  table.add("type", &Reduction::type, {.help = "The data type.", .required = true});
  table.add(
      "throughput", &Reduction::throughput,
      {.help = "Bytes of sums that one unit makes a second.",
       .advice = "Derive it from the unit's additions per clock; fp8 has to be converted, too. A "
                 "small value slows reductions only if it is below the links' bandwidth.",
       .required = true});
  return table;
}

FieldTable<CommunicationUnits> make_communication_fields() {
  using Units = CommunicationUnits;
  static const FieldTable<Reduction> kReduction = make_reduction_fields();
  FieldTable<Units> table("Communication");
  table.add("units", &Units::units, Limits::at_least(0),
            {.help = "Units of the chip, of which each channel of a collective holds one (a GPU's "
                     "streaming multiprocessors).",
             .advice = "0, the default, means that DMA drives the links: collectives take nothing "
                       "from kernels, as on TPUs. Otherwise compute is slower beside "
                       "communication."});
  table.add("nvls", &Units::nvls,
            {.help = "The switch between the chips of a node adds up and copies (NVLink SHARP).",
             .advice = "True since NVLink 4 (H100)."});
  table.list("reduction", &Units::reduction, kReduction,
             {.help = "How fast one unit adds up values, by data type. A type that is left out is "
                      "added as fast as it arrives."});
  table.add_inner(
      "compute_share", &Units::fixed, &CommunicationCost::compute_share, Limits::share(),
      {.help = "Share of the arithmetic throughput that every collective takes while it "
               "runs, in place of the units that the library says.",
       .advice = "Give it with memory_share to describe a chip by one measured "
                 "slow-down.",
       .unset = "as the library says"});
  table.add_inner("memory_share", &Units::fixed, &CommunicationCost::memory_share, Limits::share(),
                  {.help = "The same of the memory bandwidth.", .unset = "as the library says"});
  return table;
}

void add_memory_and_overheads(FieldTable<ChipSpec>& table) {
  table.add("memory_bandwidth", &ChipSpec::memory_bandwidth, Limits::positive(),
            {.help = "Peak of the chip's memory, reads and writes together.",
             .advice = "As the data sheet states it; efficiency.memory_fraction says what kernels "
                       "reach.",
             .required = true});
  table.add("memory_capacity", &ChipSpec::memory_capacity, Limits::positive(),
            {.help = "Memory that programs see, as the driver reports it.",
             .advice = "An \"80 GB\" H100 has 81559MiB. What a plan needs beyond it doesn't fit.",
             .required = true});
  table.add("launch_overhead", &ChipSpec::launch_overhead,
            {.help = "Time that each kernel takes beyond its work.",
             .advice = "About 2us in a full stream of a GPU. It counts for small kernels."});
  table.add("fixed_memory", &ChipSpec::fixed_memory,
            {.help = "Memory that is taken before the model: context, library workspaces, buffers "
                     "of the communication library.",
             .advice = "1 to 2GiB on GPUs.",
             .rules = "Not more than memory_capacity."});
  table.add("sustained_clock", &ChipSpec::sustained_clock, Limits::fraction(),
            {.help = "Clock in a long run over the clock in the short runs to which efficiency is "
                     "fitted: power and heat limit it.",
             .advice = "Lower it for chips that throttle under load. It slows 16-bit arithmetic in "
                       "steps; kernels by themselves are not slowed."});
}

}  // namespace

const FieldTable<ChipSpec>& chip_fields() {
  static const FieldTable<ChipSpec> kTable = [] {
    static const FieldTable<Peak> kPeak = make_peak_fields();
    static const FieldTable<Efficiency> kEfficiency = make_efficiency_fields();
    static const FieldTable<CommunicationUnits> kCommunication = make_communication_fields();
    FieldTable<ChipSpec> table("Chip");
    table.theme("Peaks, memory and overheads");
    table.add("name", &ChipSpec::name, {.help = "The chip's name in results."});
    table.add(
        "kernel_constants_of", &ChipSpec::kernel_constants_of,
        {.help = "The chip of the catalog whose measured kernels `efficiency` was fitted to.",
         .advice = "Give it for a chip of which no kernels were measured: its predictions are "
                   "less certain. Changes nothing in a run.",
         .unset = "the chip's own, or assumed"});
    table.list("peak", &ChipSpec::peak, kPeak,
               {.help = "Peak throughput, one for each data type that the chip computes in.",
                .rules = "There must be one of type fp32. No two have the same type.",
                .required = true});
    add_memory_and_overheads(table);
    table.theme("Efficiency",
                "How much of the peaks kernels reach. A field that is left out costs nothing. Fit "
                "each to measured kernels, never to a whole step.");
    table.group("efficiency", &ChipSpec::efficiency, kEfficiency,
                {.help = "How much of the peaks kernels reach."});
    table.theme("Communication");
    table.group("communication", &ChipSpec::communication, kCommunication,
                {.help = "The chip's resources for communication kernels. The communication "
                         "library decides how much of them is used."});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
