#include "sim/chips/chip_fields.h"

#include "sim/chips/data_type_text.h"
#include "sim/chips/serving_fields.h"
#include "sim/fields/quantity_field.h"

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
  table.add(
      "weights", &Matmul::weights,
      {.help = "The type of weights that are narrower than the operands of `type`: the kernel "
               "widens them as it reads.",
       .rules = "In matmul_of only.",
       .unset = "as type"});
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
  table.add(
      "smaller_tiles", &Matmul::smaller_tiles,
      {.help = "The library also has tiles of half, a quarter ... of that many rows and columns, "
               "down to 16 x 32, turned either way, and takes what is fastest.",
       .advice = "True for GPUs. Without it, narrow matrices get narrower tiles in steps of "
                 "16, and nothing else is chosen."});
  table.add("tile_overhead", &Matmul::tile_overhead, Limits::at_least(0),
            {.help = "What a tile of a x b reads beside its arithmetic: it takes 1 + 32 x this x "
                     "(a + b) / (a b) times as long.",
             .advice = "Fit it with peak_fraction: it makes large tiles faster. 0 loses nothing."});
  table.add("compute_units", &Matmul::compute_units, Limits::at_least(1),
            {.help = "Tiles that are computed at a time, one on each unit (a GPU's streaming "
                     "multiprocessor).",
             .advice = "Give the units of the chip: a last wave of few tiles costs as last_wave "
                       "says. 1 turns this loss off."});
  table.add("last_wave", &Matmul::last_wave, Limits::between(0, 1),
            {.help = "Share of the idle units that a last wave of few tiles costs. 1: it takes as "
                     "long as a full one; 0: as long as its tiles, spread over all units.",
             .advice = "Fit it to matmuls of several waves. A single wave always costs a whole "
                       "one."});
  table.add("inner_ramp", &Matmul::inner_ramp, Limits::at_least(0),
            {.help = "What filling and emptying a tile takes, in steps of the inner dimension k: a "
                     "tile takes as long as one of k + ramp.",
             .advice = "Fit it to matmuls with small k. 0 loses nothing."});
  table.add("least_split", &Matmul::least_split, Limits::at_least(0),
            {.help = "The library may split k in 2, 4, 8 or 16 parts of at least this many, each a "
                     "tile of its own. Partial sums in fp32 are written and read.",
             .advice = "256 on GPUs (split-k kernels). 0: never."});
  table.add("operand_bandwidth", &Matmul::operand_bandwidth, Limits::positive(),
            {.help = "How fast all units together load operands of tiles from caches.",
             .advice = "Fit it to matmuls of few rows and a long inner dimension.",
             .unset = "no limit"});
  table.add("step_time", &Matmul::step_time,
            {.help = "Time that a tile takes for each 64 of the inner dimension k beside loading "
                     "their operands.",
             .advice = "Fit it with operand_bandwidth: it makes the loads of thin tiles slower. 0 "
                       "loses nothing."});
  table.add("memory_fraction", &Matmul::memory_fraction, Limits::fraction(),
            {.help = "Fraction of memory_bandwidth that matmuls reach.",
             .advice = "Fit it to matmuls of few rows. Small kernels need no ramp then: start says "
                       "what they take.",
             .unset = "as efficiency.memory_fraction and memory_ramp say"});
  table.add("overlap_loss", &Matmul::overlap_loss, Limits::between(0, 1),
            {.help = "How far arithmetic and memory are from hiding each other: 0: the longer one "
                     "alone counts; 1: the root of the sum of their squares.",
             .advice = "Fit it to matmuls of some hundred rows, where both take as long: at 0.6 "
                       "they take a quarter longer than either."});
  table.add("start", &Matmul::start,
            {.help = "Time that a matmul takes beyond its work.",
             .advice = "Fit it to the smallest matmuls.",
             .unset = "launch_overhead"});
  table.add("split_start", &Matmul::split_start,
            {.help = "What it takes on top if k is split.",
             .advice = "Fit it to matmuls of few rows and columns with a long k.",
             .unset = "half of start"});
  table.add("accumulating", &Matmul::accumulating, Limits::fraction(),
            {.help = "Fraction of this efficiency that a matmul reaches if it adds its result to "
                     "memory, as weight gradients do.",
             .advice = "Fit it to matmuls that accumulate in fp32."});
  table.add("exposed_accumulation", &Matmul::exposed_accumulation, Limits::between(0, 1),
            {.help = "A matmul that adds its result to memory, as weight gradients do, reads and "
                     "writes sums. This share of what they have beyond 16 bits is moved while no "
                     "unit multiplies.",
             .advice = "Fit it to weight gradients of a few thousand tokens in fp32 "
                       "(scripts/fit_accumulation.py): what they take more than the other matmuls "
                       "of their layers. 0 loses nothing."});
  table.add("unaligned", &Matmul::unaligned, Limits::fraction(),
            {.help = "Fraction of this efficiency that a matmul reaches if rows of its matrices "
                     "(k or n elements) are not a multiple of 16 bytes.",
             .advice = "0.8 on GPUs: loads move 16 bytes."});
  table.add("quantize_start", &Matmul::quantize_start,
            {.help = "Where an inference library makes the operands narrow in a kernel before the "
                     "matmul: the time of that kernel beyond its work.",
             .advice = "Fit it to tables that time both together. Training steps have kernels of "
                       "their own for this."});
  table.add("quantize_bytes", &Matmul::quantize_bytes, Limits::at_least(0),
            {.help = "Bytes that this kernel moves for each value of the first operand.",
             .advice = "3 where it reads 16 bits and writes 8; 5 to 7 with a pass for the largest "
                       "value."});
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

FieldTable<AttentionEfficiency> make_attention_fields() {
  FieldTable<AttentionEfficiency> table("AttentionEfficiency");
  table.add("library", &AttentionEfficiency::library,
            {.help = "Library that this is for.", .unset = "plans that name none"});
  table.add("forward_fraction", &AttentionEfficiency::forward_fraction, Limits::fraction(),
            {.help = "attention_forward_fraction of its kernels.", .required = true});
  table.add("backward_fraction", &AttentionEfficiency::backward_fraction, Limits::fraction(),
            {.help = "attention_backward_fraction of its kernels.", .required = true});
  table.add("length_ramp", &AttentionEfficiency::length_ramp, Limits::at_least(0),
            {.help = "attention_length_ramp of its kernels.", .unset = "attention_length_ramp"});
  return table;
}

FieldTable<GatheredAttention> make_gathered_fields() {
  using Gathered = GatheredAttention;
  FieldTable<Gathered> table("GatheredAttention");
  table.add("forward_fraction", &Gathered::forward_fraction, Limits::between(0, 1),
            {.help = "Fraction of the peak that the forward kernel reaches with many keys. 0: such "
                     "kernels are as other attention."});
  table.add("backward_fraction", &Gathered::backward_fraction, Limits::between(0, 1),
            {.help = "The same for the backward kernel, which counts 2.5 times the FLOPs."});
  table.add("keys_ramp", &Gathered::keys_ramp, Limits::at_least(0),
            {.help = "Keys of a query at which half of that is reached."});
  return table;
}

void add_attention_rows(FieldTable<Efficiency>& table) {
  static const FieldTable<GatheredAttention> kGathered = make_gathered_fields();
  static const FieldTable<AttentionEfficiency> kAttention = make_attention_fields();
  table.add("attention_forward_fraction", &Efficiency::attention_forward_fraction,
            Limits::fraction(),
            {.help = "Fraction of the peak that the fused forward kernel of attention reaches on "
                     "long sequences with heads of 128. In training attention_of goes first.",
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
  table.add("attention_matrix_width", &Efficiency::attention_matrix_width, Limits::between(1, 4096),
            {.help = "Width of a matrix unit that attention's products fill with the head "
                     "dimension: heads of 128 use half of a unit of 256.",
             .advice = "Give it where units are wide (TPUs). The fractions are then those of heads "
                       "that fill the unit.",
             .unset = "heads of every size fill it"});
  table.list("attention_of", &Efficiency::attention_of, kAttention,
             {.help = "Attention in training, by the library that a plan names "
                      "(attention_library).",
              .advice = "Give one without a library where training usually has other kernels than "
                        "those that attention_forward_fraction was fitted to.",
              .rules = "No two of the same library."});
  table.group("gathered_attention", &Efficiency::gathered_attention, kGathered,
              {.help = "Attention in training to compressed keys, whose queries read the keys of a "
                       "list each (DeepSeek-V4)."});
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
       .rules = "Each has a type, and no two the same with the same weights."});
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

FieldTable<PowerLimit> make_power_fields() {
  FieldTable<PowerLimit> table("PowerLimit");
  table.add(
      "limit_watts", &PowerLimit::limit_watts, Limits::positive(),
      {.help = "What the board may draw.",
       .advice = "The data sheet's, or what nvidia-smi is set to (500 for a part that is held "
                 "back).",
       .rules = "More than idle_watts.",
       .required = true});
  table.add("idle_watts", &PowerLimit::idle_watts, Limits::at_least(0),
            {.help = "What everything but arithmetic draws in a step: leakage, memory, links.",
             .advice = "About a fifth of the limit."});
  table.add("joules_per_teraflop", &PowerLimit::joules_per_teraflop, Limits::at_least(0),
            {.help = "Energy of 10^12 operations on 16-bit operands at the clock of the peaks, the "
                     "mean of chips. Narrower operands take less in proportion to their bits.",
             .advice = "It belongs to a process and architecture. Fit it to steps on one chip and "
                       "take it over to its sisters."});
  table.add("energy_spread", &PowerLimit::energy_spread, Limits::share(),
            {.help = "By how much the energy of an operation differs between chips of a kind: "
                     "standard deviation over the mean. A step waits for the slowest of its "
                     "chips, and large clusters have slower ones.",
             .advice = "0.045 is a time of 1.5 % at the power limit."});
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
    static const FieldTable<PowerLimit> kPower = make_power_fields();
    table.theme("Power");
    table.group(
        "power", &ChipSpec::power, kPower,
        {.help = "What the board may draw. In a step, the clock of arithmetic falls until it "
                 "is kept. Kernels by themselves run at the clock of the peaks. Without "
                 "it, the clock never falls."});
    table.theme("Efficiency",
                "How much of the peaks kernels reach. A field that is left out costs nothing. Fit "
                "each to measured kernels, never to a whole step.");
    table.group("efficiency", &ChipSpec::efficiency, kEfficiency,
                {.help = "How much of the peaks kernels reach."});
    table.theme("Serving kernels",
                "Kernels that serving libraries run, as tables of measurements time them. Training "
                "does not use them.");
    table.group("serving", &ChipSpec::serving, serving_fields(),
                {.help = "Constants of serving kernels.",
                 .unset = "those of kernel_constants_of, or kernels without losses"});
    table.theme("Communication");
    table.group("communication", &ChipSpec::communication, kCommunication,
                {.help = "The chip's resources for communication kernels. The communication "
                         "library decides how much of them is used."});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
