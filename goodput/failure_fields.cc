#include <algorithm>

#include "goodput/failure_table.h"
#include "sim/fields/quantity_field.h"

namespace stepsim {

template <>
inline constexpr std::size_t kValuesOf<FailureUnit> = kFailureUnits;
template <>
inline constexpr std::size_t kValuesOf<FailureScope> = kFailureScopes;
template <>
inline constexpr std::size_t kValuesOf<FailureEffect> = kFailureEffects;
template <>
inline constexpr std::size_t kValuesOf<FailureTimes> = kFailureTimes;
template <>
inline constexpr std::size_t kValuesOf<CheckpointPlace> = kCheckpointPlaces;

namespace {

constexpr double kDay = 86400;
constexpr double kLongestWait = 100 * kDay;

void add_rate_fields(FieldTable<FailureClass>& table) {
  table.add("name", &FailureClass::name, {.help = "Name in results.", .required = true});
  table.add("count", &FailureClass::count, Limits::between(0, 1e9),
            {.help = "Failures that the table's observation has seen.",
             .rules = "Either this or rate.",
             .unset = "rate says it"});
  table.add("rate", &FailureClass::rate, Limits::between(0, 1e6),
            {.help = "Failures in 1,000 days of one unit.",
             .rules = "Either this or count.",
             .unset = "count says it"});
  table.add("per", &FailureClass::per,
            {.help = "The unit that count and rate are of: chip, node, leaf, pod or job."});
  table.add("times", &FailureClass::times,
            {.help = "How the failures of a unit follow one another.",
             .advice = "exponential: at a constant rate. weibull: by the age of a unit since its "
                       "last failure. lemons: a few units fail often."});
  table.add("shape", &FailureClass::shape, Limits::between(0.2, 10),
            {.help = "Shape of a Weibull distribution, whose mean is that of the rate.",
             .advice = "Below 1 new units fail more often than old ones, above 1 less often. Units "
                       "are new when the run begins."});
  table.add("lemon_share", &FailureClass::lemon_share, Limits::share(),
            {.help = "Share of the units that are lemons."});
  table.add("lemon_failures", &FailureClass::lemon_failures, Limits::fraction(),
            {.help = "Share of all failures that lemons cause at first."});
  table.add("lemon_limit", &FailureClass::lemon_limit, Limits::between(1, 1e6),
            {.help = "Failures after which a lemon is taken out for good and a sound unit put in "
                     "its place."});
}

void add_effect_fields(FieldTable<FailureClass>& table) {
  table.add("effect", &FailureClass::effect,
            {.help = "stop: the job stops. slow: it goes on at the pace of a slow unit. silent: "
                     "results are wrong from then on.",
             .advice = "Thermal throttling is a slow chip that loses nothing: it recovers by "
                       "itself after its time of detection, without a restart."});
  table.add("loses", &FailureClass::loses,
            {.help = "What leaves the job until it is repaired; its memory is lost.",
             .advice = "nothing: the same nodes start again."});
  table.add("slowdown", &FailureClass::slowdown, Limits::between(1, 100),
            {.help = "slow: kernels of the unit take this times longer."});
  table.add("detection", &FailureClass::detection, Limits::between(0, kLongestWait),
            {.help = "Time until the failure is known: of a watchdog, a probe, or an operator."});
  table.add("repair", &FailureClass::repair, Limits::between(0, kLongestWait),
            {.help = "Time until what has left the job is back, as a spare.",
             .advice = "0: it is rebooted in place."});
}

const FieldTable<FailureClass>& class_fields() {
  static const FieldTable<FailureClass> kTable = [] {
    FieldTable<FailureClass> table("FailureClass");
    add_rate_fields(table);
    add_effect_fields(table);
    return table;
  }();
  return kTable;
}

const FieldTable<Observation>& observation_fields() {
  static const FieldTable<Observation> kTable = [] {
    FieldTable<Observation> table("Observation");
    table.add("days", &Observation::days, Limits::between(1e-3, 1e6),
              {.help = "Days over which failures were counted.", .required = true});
    table.add("chips", &Observation::chips, Limits::between(1, 1 << 24),
              {.help = "Chips on which they were counted.", .required = true});
    table.add("chips_per_node", &Observation::chips_per_node, Limits::between(1, 1 << 16),
              {.help = "Chips of a node there."});
    return table;
  }();
  return kTable;
}

const FieldTable<Maintenance>& maintenance_fields() {
  static const FieldTable<Maintenance> kTable = [] {
    FieldTable<Maintenance> table("Maintenance");
    table.add("every", &Maintenance::every, Limits::between(60, kLongestWait),
              {.help = "Time from one planned stop to the next.", .required = true});
    table.add("time", &Maintenance::time, Limits::between(0, kLongestWait),
              {.help = "Length of the stop, between the checkpoint before it and the restart."});
    return table;
  }();
  return kTable;
}

const FieldTable<PublishedGoodput>& published_goodput_fields() {
  static const FieldTable<PublishedGoodput> kTable = [] {
    FieldTable<PublishedGoodput> table("PublishedGoodput");
    table.add("experiment", &PublishedGoodput::experiment,
              {.help = "Experiment of the catalog that the figure is of.", .required = true});
    table.add("days", &PublishedGoodput::days, Limits::between(1e-3, 1e5),
              {.help = "Length of the run in days.", .required = true});
    table.add("goodput", &PublishedGoodput::goodput, Limits::fraction(),
              {.help = "Share of the time that was productive.", .required = true});
    table.add("at_least", &PublishedGoodput::at_least,
              {.help = "The source says that it was more."});
    table.add("source", &PublishedGoodput::source,
              {.help = "Where it is published.", .required = true});
    return table;
  }();
  return kTable;
}

// ---- places: host+peer+storage ----

std::string accepts_places() {
  return "host, peer and storage, each at most once, joined by +, as in host+storage";
}

std::vector<std::string> read_places(std::string_view text, CheckpointPolicy& policy) {
  std::vector<CheckpointPlace> places;
  for (const std::string_view part : split_text(text, '+')) {
    const auto place = Text<CheckpointPlace>::read(part);
    if (!place || std::count(places.begin(), places.end(), *place) > 0) {
      return {refused_text(accepts_places(), text, "")};
    }
    places.push_back(*place);
  }
  std::sort(places.begin(), places.end());
  policy.to = std::move(places);
  return {};
}

std::optional<std::string> write_places(const CheckpointPolicy& policy) {
  std::string text;
  for (const CheckpointPlace place : policy.to) {
    text += (text.empty() ? "" : "+") + std::string(name_of(place));
  }
  return text;
}

// ---- times, or auto ----

std::string accepts_interval() {
  return "auto, or " + Text<Duration>::accepts();
}

template <std::optional<Duration> CheckpointPolicy::*member>
std::vector<std::string> read_interval(std::string_view text, CheckpointPolicy& policy) {
  if (text == "auto") {
    (policy.*member).reset();
    return {};
  }
  const auto time = Text<Duration>::read(text);
  if (!time) return {refused_text(accepts_interval(), text, Text<Duration>::hint(text))};
  if (*time == Duration()) return {"must be above 0, or auto"};
  policy.*member = *time;
  return {};
}

template <std::optional<Duration> CheckpointPolicy::*member>
std::optional<std::string> write_interval(const CheckpointPolicy& policy) {
  return policy.*member ? Text<Duration>::write(*(policy.*member)) : "auto";
}

void add_interval_fields(FieldTable<CheckpointPolicy>& table) {
  table.add(
      "every",
      FieldSyntax<CheckpointPolicy>{read_interval<&CheckpointPolicy::every>,
                                    write_interval<&CheckpointPolicy::every>, accepts_interval},
      {.help = "Productive time from a checkpoint to the next, in the first of the places; "
               "rounded up to whole steps.",
       .advice = "auto is the best for failures that this place outlives (formula K1)."});
  table.add("to", FieldSyntax<CheckpointPolicy>{read_places, write_places, accepts_places},
            {.help = "Places that checkpoints are written to: host, peer and storage, joined by +.",
             .advice = "A restart loads the latest checkpoint that the failure has left."});
  table.add("storage_every",
            FieldSyntax<CheckpointPolicy>{read_interval<&CheckpointPolicy::storage_every>,
                                          write_interval<&CheckpointPolicy::storage_every>,
                                          accepts_interval},
            {.help = "The same for storage, where other places have checkpoints too; rounded up "
                     "to a multiple of every."});
  table.add("async", &CheckpointPolicy::async,
            {.help = "Training goes on while a checkpoint is written; it is safe once it is "
                     "written."});
}

void add_cost_fields(FieldTable<CheckpointPolicy>& table) {
  table.add("stall", &CheckpointPolicy::stall, Limits::between(0, kLongestWait),
            {.help = "Time that training stands still for a checkpoint, instead of what follows "
                     "from its size.",
             .unset = "from the size and the bandwidths"});
  table.add("flush", &CheckpointPolicy::flush, Limits::between(0, kLongestWait),
            {.help = "Time from there until a checkpoint in storage is safe.",
             .unset = "from the size and the bandwidths; 0 with stall"});
  table.add("bytes", &CheckpointPolicy::bytes, Limits::between(0, 1e18),
            {.help = "Size of a checkpoint of the whole job.",
             .unset = "parameters and optimizer state of the memory model, each value once"});
  table.add("host_bandwidth", &CheckpointPolicy::host_bandwidth, Limits::between(1e6, 1e15),
            {.help = "Bandwidth from a chip to its host.",
             .unset = "the cluster's host links, 25 GB/s without any"});
  table.add("storage_bandwidth", &CheckpointPolicy::storage_bandwidth, Limits::between(1e6, 1e18),
            {.help = "Bandwidth of the storage, all nodes together.", .unset = "no limit"});
  table.add("node_storage_bandwidth", &CheckpointPolicy::node_storage_bandwidth,
            Limits::between(1e6, 1e15),
            {.help = "Bandwidth of a node to the storage.", .unset = "25 GB/s"});
  table.add("shares_network", &CheckpointPolicy::shares_network,
            {.help = "Storage traffic takes the network cards that training uses.",
             .advice = "The step is then simulated with what is left of them."});
}

}  // namespace

const FieldTable<CheckpointPolicy>& checkpoint_fields() {
  static const FieldTable<CheckpointPolicy> kTable = [] {
    FieldTable<CheckpointPolicy> table("CheckpointPolicy");
    add_interval_fields(table);
    add_cost_fields(table);
    return table;
  }();
  return kTable;
}

const FieldTable<RestartPolicy>& restart_fields() {
  static const FieldTable<RestartPolicy> kTable = [] {
    FieldTable<RestartPolicy> table("RestartPolicy");
    table.add("scheduling", &RestartPolicy::scheduling, Limits::between(0, kLongestWait),
              {.help = "Time to find nodes, put in spares and start processes."});
    table.add("loading", &RestartPolicy::loading, Limits::between(0, kLongestWait),
              {.help = "Time to load the checkpoint.", .unset = "from its size"});
    table.add("compile", &RestartPolicy::compile, Limits::between(0, kLongestWait),
              {.help = "Time to compile and to set up communicators."});
    table.add("warmup", &RestartPolicy::warmup, Limits::between(0, kLongestWait),
              {.help = "Time that the first steps take longer."});
    return table;
  }();
  return kTable;
}

const FieldTable<FailureTable>& failure_fields() {
  static const FieldTable<FailureTable> kTable = [] {
    FieldTable<FailureTable> table("FailureTable");
    table.add("name", &FailureTable::name, {.help = "Name of the table.", .required = true});
    table.add("source", &FailureTable::source,
              {.help = "Where the rates come from.", .required = true});
    table.group("observed", &FailureTable::observed, observation_fields(),
                {.help = "What the counts of classes were seen on."});
    table.list("class", &FailureTable::classes, class_fields(),
               {.help = "Failures that are alike."});
    table.group("maintenance", &FailureTable::maintenance, maintenance_fields(),
                {.help = "Stops that are planned: a checkpoint goes before them."});
    table.group("checkpoint", &FailureTable::checkpoint, checkpoint_fields(),
                {.help = "How the job is saved; --checkpoint changes it."});
    table.group("restart", &FailureTable::restart, restart_fields(),
                {.help = "How long it takes to start again; --restart changes it."});
    table.add("spares", &FailureTable::spares, Limits::between(0, 1 << 20),
              {.help = "Nodes that stand by; --spares changes it."});
    table.group("published", &FailureTable::published, published_goodput_fields(),
                {.help = "A figure that can be compared."});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
