#include "sim/collectives/library_fields.h"

#include "sim/fields/quantity_field.h"

namespace stepsim {

template <>
inline constexpr std::size_t kValuesOf<Protocol> = kProtocols;
template <>
inline constexpr std::size_t kValuesOf<LibraryPath> = kLibraryPaths;

namespace {

// The path and the protocol that a row of constants belongs to, and its hops.
template <typename Row>
void add_path_rows(FieldTable<Row>& table) {
  table.add(
      "path", &Row::path,
      {.help = "What the constants are for: collectives that go round a ring, along a tree or "
               "through the switch (nvls), also between nodes (nvls-tree), single messages, or "
               "all-to-alls of experts that "
               "nodes share (relay, as DeepEP does). Algorithms that the library doesn't have "
               "count as a ring.",
       .required = true});
  table.add("protocol", &Row::protocol,
            {.help = "NCCL's protocol. LL and LL128 send a flag with every 8 or 128 bytes and wait "
                     "for no fence; Simple sends plain data.",
             .required = true});
}

template <typename Row>
void add_hop_rows(FieldTable<Row>& table) {
  table.add_entry("nvlink_hop", &Row::hop, HopKind::kNvlink, {},
                  {.help = "Time of a hop over NVLink, beyond the latency of its links.",
                   .advice = "Fit it to small collectives: latency is hops x this."});
  table.add_entry("pcie_hop", &Row::hop, HopKind::kPcie, {},
                  {.help = "The same over PCIe inside a node."});
  table.add_entry("network_hop", &Row::hop, HopKind::kNetwork, {},
                  {.help = "The same over the network between nodes."});
}

void add_fraction_rows(FieldTable<ProtocolTiming>& table) {
  using Timing = ProtocolTiming;
  table.add_entry("nvlink_fraction", &Timing::link_fraction, HopKind::kNvlink, Limits::fraction(),
                  {.help = "Fraction of an NVLink's bandwidth that the protocol can use.",
                   .advice = "Fit it to large collectives. The rest of the link stays unused."});
  table.add_entry("pcie_fraction", &Timing::link_fraction, HopKind::kPcie, Limits::fraction(),
                  {.help = "The same of PCIe."});
  table.add_entry("network_fraction", &Timing::link_fraction, HopKind::kNetwork, Limits::fraction(),
                  {.help = "The same of network links."});
}

FieldTable<ProtocolChannels> make_channel_fields() {
  using Channels = ProtocolChannels;
  FieldTable<Channels> table("ProtocolChannels");
  const Limits counts = Limits::at_least(0);
  table.add("most", &Channels::most, counts,
            {.help = "Channels of a collective inside one node, each a block of threads that holds "
                     "one unit of the chip.",
             .advice = "More channels take more of the compute beside them. 0: copy engines or DMA "
                       "move the data."});
  table.add("network", &Channels::network, counts,
            {.help = "Channels over several nodes, for each member that a node has."});
  table.add("network_most", &Channels::network_most, counts,
            {.help = "Most channels over several nodes."});
  table.add("bytes", &Channels::bytes, Limits::at_least(0),
            {.help = "Bytes of the collective for which one more channel is opened.",
             .advice = "0, with member_bytes 0: all are opened at once."});
  table.add("member_bytes", &Channels::member_bytes, Limits::at_least(0),
            {.help = "The same, counted in bytes of each member."});
  table.add("rate", &Channels::rate, Limits::positive().or_zero(),
            {.help = "Bandwidth at which one channel sends.",
             .advice = "It bounds collectives that open few channels.",
             .unset = "no limit"});
  table.add("accesses", &Channels::accesses, Limits::at_least(0),
            {.help = "Bytes of device memory that are read or written for each byte sent.",
             .advice = "More take more of the memory bandwidth beside the collective, and bound it "
                       "where links are fast."});
  return table;
}

FieldTable<ProtocolTiming> make_timing_fields() {
  using Timing = ProtocolTiming;
  static const FieldTable<ProtocolChannels> kChannels = make_channel_fields();
  FieldTable<Timing> table("ProtocolTiming");
  add_path_rows(table);
  table.add("start", &Timing::start,
            {.help = "Time from the launch of a collective until it sends.",
             .advice = "Fit it to the smallest collectives."});
  table.add("peers_squared", &Timing::peers_squared,
            {.help = "Time of messages to all others that grows with the square of their number.",
             .advice = "Fit it to small all-to-alls of more members than a node has."});
  table.add("doubling", &Timing::doubling,
            {.help = "Time that each doubling of the members beyond two adds to messages to all "
                     "members, since peers are served a few at a time."});
  add_hop_rows(table);
  add_fraction_rows(table);
  table.add(
      "most", &Timing::most, Limits::positive().or_zero(),
      {.help = "Bandwidth at which one member sends inside a node, at most.", .unset = "no limit"});
  table.add("copy", &Timing::copy, Limits::positive().or_zero(),
            {.help = "Bandwidth at which a member's own shard is copied from one buffer to the "
                     "other, beside the network.",
             .unset = "the copy takes no time"});
  table.add("fill", &Timing::fill,
            {.help = "Time until the pipeline of chunks is full, for large data: fill x s / (s + "
                     "fill_bytes), where s is a member's shard; in switches and along trees, the "
                     "whole data.",
             .advice = "Fit it with fill_bytes to middle sizes."});
  table.add("fill_bytes", &Timing::fill_bytes, Limits::positive(),
            {.help = "Bytes s at which half of `fill` is reached."});
  table.add("most_bytes", &Timing::most_bytes, Limits::positive(),
            {.help = "Bytes of a collective up to which the library takes the protocol, where that "
                     "is less than it is good for.",
             .advice = "Set it where measured times jump up at a size.",
             .unset = "the protocol is taken wherever it is fastest"});
  table.group("channels", &Timing::channels, kChannels,
              {.help = "How many channels a collective opens and what one can do."});
  return table;
}

FieldTable<DirectAllReduce> make_direct_fields() {
  using Direct = DirectAllReduce;
  FieldTable<Direct> table("DirectAllReduce");
  table.add("up_to", &Direct::up_to, Limits::positive(),
            {.help = "Larger ones are all-reduces of the library's timings.", .required = true});
  table.add("one_start", &Direct::one_start,
            {.help = "Time beyond the data if every chip reads all of the others', of two chips."});
  table.add("one_doubling", &Direct::one_doubling,
            {.help = "How much more it is for each doubling of the chips."});
  table.add("one_bandwidth", &Direct::one_bandwidth, Limits::positive(),
            {.help = "How fast a chip reads the others' data.", .required = true});
  table.add(
      "two_start", &Direct::two_start,
      {.help = "Time beyond the data if every chip adds up a part and reads the other parts."});
  table.add("two_doubling", &Direct::two_doubling,
            {.help = "How much more it is for each doubling of the chips."});
  table.add("two_bandwidth", &Direct::two_bandwidth, Limits::positive(),
            {.help = "How fast a chip reads then.", .required = true});
  return table;
}

FieldTable<TokenExchange> make_exchange_fields() {
  using Exchange = TokenExchange;
  FieldTable<Exchange> table("TokenExchange");
  table.add("start", &Exchange::start, {.help = "Time beyond the data."});
  table.add("expert_start", &Exchange::expert_start,
            {.help = "Time for each expert of all chips: its counter and flag."});
  table.add("bandwidth", &Exchange::bandwidth, Limits::positive(),
            {.help = "How fast a chip sends at most.", .required = true});
  table.add("unit_rate", &Exchange::unit_rate, Limits::positive(),
            {.help = "How fast one unit of the chip sends.", .required = true});
  table.add("units_of_expert", &Exchange::units_of_expert, Limits::positive(),
            {.help = "Units that work for an expert: few experts leave units idle."});
  table.add("up_to_tokens", &Exchange::up_to_tokens, Limits::at_least(0),
            {.help = "Most tokens of a chip for which the kernel is taken; 0: any number."});
  table.add("network_start", &Exchange::network_start,
            {.help = "Time beyond the data that several nodes add."});
  table.add(
      "network_fraction", &Exchange::network_fraction, Limits::between(0, 1),
      {.help = "Share of a network link's rate that copies to other nodes reach; 0: the kernel "
               "is for one node only."});
  return table;
}

FieldTable<BulkExchange> make_bulk_fields() {
  using Exchange = BulkExchange;
  FieldTable<Exchange> table("BulkExchange");
  table.add("start", &Exchange::start, {.help = "Time beyond the tokens."});
  table.add("tokens_at_once", &Exchange::tokens_at_once, Limits::at_least(0),
            {.help = "Tokens that a unit has under way: a few tokens take as long as these."});
  table.add("token_time", &Exchange::token_time, {.help = "Time of a unit for a token."});
  table.add("token_rate", &Exchange::token_rate, Limits::positive(),
            {.help = "How fast a unit reads or writes it.", .required = true});
  table.add("copy_time", &Exchange::copy_time,
            {.help = "Time of a unit for each chip that the token goes to or comes from."});
  table.add("copy_rate", &Exchange::copy_rate, Limits::positive(),
            {.help = "How fast a unit moves such a copy.", .required = true});
  table.add(
      "bandwidth", &Exchange::bandwidth, Limits::positive(),
      {.help = "How fast a chip sends at most, its copies to itself included.", .required = true});
  table.add("units", &Exchange::units, Limits::at_least(1),
            {.help = "Units of the chip that the kernel takes (DeepEP's num_sms)."});
  return table;
}

}  // namespace

const FieldTable<CommunicationLibrary>& library_fields() {
  using Library = CommunicationLibrary;
  static const FieldTable<Library> kTable = [] {
    static const FieldTable<ProtocolTiming> kTiming = make_timing_fields();
    FieldTable<Library> table("Library");
    table.theme("Library");
    table.add("name", &Library::name, {.help = "The library's name in results."});
    table.add("most_channels", &Library::most_channels, Limits::at_least(1).or_zero(),
              {.help = "Most channels of any collective (NCCL_MAX_CTAS).",
               .advice = "Lower it to leave more of the chip to compute beside communication; "
                         "collectives then take longer.",
               .unset = "no limit"});
    table.add("copy_engines", &Library::copy_engines,
              {.help = "All-gathers, all-to-alls, gathers and scatters inside a node are moved by "
                       "copy engines, which hold no units of the chip.",
               .advice = "Turn it on for libraries that do so (NCCL 2.28 and later with "
                         "symmetric memory)."});
    table.theme("Timing",
                "How long collectives take. A library without timings is ideal: links "
                "alone count.");
    table.list("timing", &Library::timings, kTiming,
               {.help = "The constants of a path and a protocol.",
                .advice = "stepsim calibrate fits them to nccl-tests. In a library that starts "
                          "from another, a timing replaces that of the same "
                          "path and protocol.",
                .rules = "Ring and messages with Simple must be there; no path and protocol "
                         "twice."});
    static const FieldTable<DirectAllReduce> kDirect = make_direct_fields();
    static const FieldTable<TokenExchange> kExchange = make_exchange_fields();
    static const FieldTable<BulkExchange> kBulk = make_bulk_fields();
    table.theme("Serving",
                "Kernels of serving, which read and write other chips' memory. No step of training "
                "takes those of experts.");
    table.group("direct_all_reduce", &Library::direct_all_reduce, kDirect,
                {.help = "All-reduces of small messages.",
                 .advice = "scripts/fit_direct_kernels.py fits it and those below.",
                 .unset = "as the timings say"});
    table.group("dispatch", &Library::dispatch, kExchange,
                {.help = "How few tokens get to their experts.", .unset = "no such kernel"});
    table.group("combine", &Library::combine, kExchange,
                {.help = "How their results come back.", .unset = "no such kernel"});
    table.group("bulk_dispatch", &Library::bulk_dispatch, kBulk,
                {.help = "How more tokens than dispatch takes get to their experts in a node.",
                 .unset = "as the timings say"});
    table.group("bulk_combine", &Library::bulk_combine, kBulk,
                {.help = "How their results come back.", .unset = "as the timings say"});
    table.add(
        "host_launch", &Library::host_launch, Limits::between(0, 1).or_zero(),
        {.help = "Time in which the host launches one kernel of a pass of inference whose "
                 "normal kernels make it wait for the numbers of tokens that have come: no "
                 "CUDA graph holds such a pass.",
         .advice = "host_launch_cost of the plan goes before it; host_reads_counts=false says "
                   "that nothing waits.",
         .unset = "launching costs nothing"});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
