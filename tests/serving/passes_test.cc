// Steps of a replica on a cluster, and the blocks that fit beside the weights.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "experiment/build_cluster.h"
#include "proto/load_experiment.h"
#include "serving/engines/engine_options.h"
#include "serving/passes/kv_room.h"
#include "serving/passes/network_kv_transport.h"
#include "serving/passes/simulated_step_cost.h"
#include "serving/serve.h"

namespace stepsim {
namespace {

Experiment serving(const std::string& model, const std::string& plan) {
  return load_experiment(with_keys({.model = model, .cluster = "dgx-h100-8"},
                                   "inference=decode,batch=8,context=2," + plan));
}

BatchEntry decode(std::int32_t computed) {
  return {
      .request = RequestId(0), .computed = computed, .tokens = 1, .is_decode = true, .emits = true};
}
BatchEntry chunk(std::int32_t computed, std::int32_t tokens) {
  return {.request = RequestId(0), .computed = computed, .tokens = tokens};
}

TEST(SimulatedStepCostTest, AStepIsAPassOverItsRequests) {
  const Experiment experiment = serving("llama3-8b", "tp=8");
  PassTimes times(experiment, cluster_for_steps(experiment), {});
  SimulatedStepCost cost(times, 1);
  Batch batch;
  batch.add(decode(100));
  batch.add(decode(300));
  batch.add(chunk(512, 256));
  EXPECT_EQ(cost.time_of(batch),
            times.of({.groups = {{.queries = 256, .cached = 512},
                                 {.sequences = 2, .cached = 200, .generates = true}}}));
}

TEST(SimulatedStepCostTest, DraftsAreFurtherQueries) {
  const Experiment experiment = serving("llama3-8b", "tp=8");
  PassTimes times(experiment, cluster_for_steps(experiment), {});
  SimulatedStepCost cost(times, 1);
  Batch batch;
  for (int i = 0; i < 4; ++i) {
    batch.add({.request = RequestId(0),
               .computed = 50,
               .tokens = 3,
               .drafts = 2,
               .is_decode = true,
               .emits = true});
  }
  EXPECT_EQ(
      cost.time_of(batch),
      times.of({.groups = {{.sequences = 4, .queries = 3, .cached = 50, .generates = true}}}));
}

TEST(SimulatedStepCostTest, RanksOfAPlanShareTheRequests) {
  const Experiment experiment = serving("llama3-8b", "dp=8");
  PassTimes times(experiment, cluster_for_steps(experiment), {});
  SimulatedStepCost cost(times, 8);
  Batch batch;
  for (int i = 0; i < 20; ++i) batch.add(decode(100));
  EXPECT_EQ(cost.time_of(batch),
            times.of({.groups = {{.sequences = 3, .cached = 100, .generates = true}}}));
}

// A chunk goes to the rank with the fewest tokens; the rank with the most holds up the other.
TEST(SimulatedStepCostTest, TheFullestRankDecides) {
  const Experiment experiment = serving("llama3-8b", "tp=4,dp=2");
  PassTimes times(experiment, cluster_for_steps(experiment), {});
  SimulatedStepCost cost(times, 2);
  Batch batch;
  batch.add(chunk(0, 100));  // one rank has 100, then 700
  batch.add(chunk(0, 400));  // the other 400
  batch.add(chunk(64, 600));
  EXPECT_EQ(cost.time_of(batch),
            times.of({.groups = {{.queries = 100}, {.queries = 600, .cached = 64}}}));
}

TEST(EngineOptionsTest, EachRankHasABudgetOfItsOwn) {
  const EngineOptions one{.batching = {.budget = 1000, .sequences = 10}, .own = SglangOptions{}};
  const EngineOptions four = of_ranks(one, 4);
  EXPECT_EQ(four.batching.budget, 4000);
  EXPECT_EQ(four.batching.sequences, 40);
  EXPECT_EQ(four.batching.long_prefill_threshold, 1000) << "a prompt is one rank's";
  EXPECT_EQ(of_ranks(one, 1).batching.long_prefill_threshold, std::nullopt);
  EXPECT_EQ(own_options<SglangOptions>(four).chunk, 4 * SglangOptions().chunk);
  const EngineOptions whole{.batching = {.budget = 1000, .chunked_prefill = false}};
  EXPECT_EQ(of_ranks(whole, 4).batching.long_prefill_threshold, std::nullopt);
}

// The room of an engine that takes the chip's own figures.
KvRoom room_of(const Experiment& experiment, std::int64_t budget = 8192) {
  EngineOptions engine{.batching = {.budget = budget}};
  return fit_cache(experiment, cluster_for_steps(experiment), engine);
}

// 16 tokens x 4,096 bytes a layer of 32, divided by 8 heads over 8 chips.
TEST(KvRoomTest, IsWhatWeightsAndTheLargestPassLeave) {
  const Experiment experiment = serving("llama3-8b", "tp=8");
  const Cluster cluster = cluster_for_steps(experiment);
  const KvRoom room = room_of(experiment);
  EXPECT_EQ(room.of_block, Bytes(16 * 4096 * 32 / 8));
  const auto used =
      static_cast<std::int64_t>(0.9 * static_cast<double>(cluster.chip.memory_capacity.value()));
  EXPECT_NEAR(static_cast<double>((room.available + room.others).value()),
              static_cast<double>(used), 1);
  EXPECT_EQ(room.blocks, room.available.value() / room.of_block.value());
  EXPECT_GT(room.others, Bytes(16'000'000'000 / 8));
  EXPECT_LT(room.others, Bytes(16'000'000'000 / 8 + 4'000'000'000));
}

// 8 key-value heads on 16 chips: by head each chip has a head of every token, by request a 16th of
// the tokens with all heads.
TEST(KvRoomTest, CachesByRequestAreNotKeptTwice) {
  const auto of_token = [](const std::string& plan) {
    const Experiment experiment =
        load_experiment(with_keys({.model = "llama3-8b", .cluster = "dgx-h100-16"},
                                  "inference=decode,batch=8,context=2,tp=16," + plan));
    return cache_of_token(experiment.model, experiment.plan);
  };
  EXPECT_EQ(of_token("cache_split=heads"), Bytes(32 * 2 * 128 * 2));
  EXPECT_EQ(of_token("cache_split=requests"), Bytes(32 * 2 * 8 * 128 * 2 / 16));
}

// Two key-value heads of 128 on each of four tensor ranks, half of the tokens on each context rank.
TEST(KvRoomTest, ContextRanksKeepAShareOfTheTokens) {
  const Experiment experiment =
      load_experiment(with_keys({.model = "llama3-8b", .cluster = "dgx-h100-8"},
                                "inference=prefill,batch=1,sequence=16,tp=4,cp=2"));
  EXPECT_EQ(cache_of_token(experiment.model, experiment.plan), Bytes(32 * 2 * 2 * 128 * 2 / 2));
  const KvRoom room = room_of(experiment);
  EXPECT_EQ(room.of_block, Bytes(16 * 32 * 2 * 2 * 128 * 2 / 2));
  EXPECT_EQ(room.blocks, room.available.value() / room.of_block.value());
  // Context ranks hold the weights of their tensor rank, and buffers of half of the tokens.
  const Experiment whole = serving("llama3-8b", "tp=4,dp=2");
  const KvRoom undivided = room_of(whole, 2 * 8192);
  EXPECT_LT(room.others, undivided.others);
  EXPECT_GT(room.others, Bytes(16'000'000'000 / 4));
}

TEST(KvRoomTest, AModelThatFillsTheChipLeavesNoBlock) {
  const Experiment experiment = serving("llama3-70b", "tp=1,dp=8");
  const KvRoom room = room_of(experiment);
  EXPECT_EQ(room.blocks, 0);
  EXPECT_LT(room.available, Bytes(0));
}

// Chips of experts keep no cache, so what lies on them leaves the room alone, as long as it fits.
TEST(KvRoomTest, ExpertsOnTheirOwnChipsLeaveMoreRoom) {
  const auto room = [](const std::string& model, const std::string& plan) {
    const Experiment experiment = serving(model, plan);
    return room_of(experiment);
  };
  const KvRoom together = room("deepseek-v2-lite", "dp=4,ep=4,allow_idle_chips=true");
  const KvRoom apart = room("deepseek-v2-lite", "dp=4,ffn_chips=4");
  EXPECT_GT(apart.blocks, together.blocks);
  EXPECT_EQ(apart.of_block, together.of_block);
  const KvRoom full = room("deepseek-v3", "dp=4,ffn_chips=4,weight_dtype=fp8");
  EXPECT_EQ(full.blocks, 0);
  EXPECT_GT(full.others, Bytes(160'000'000'000)) << "a quarter of all experts";
}

// Two nodes with a card of 50 GB/s for each chip: 8 messages of 100 tokens x 1 MB take 2 ms, beside
// the trip. Two caches that leave one replica together share its cards.
TEST(NetworkKvTransportTest, CachesShareTheNetwork) {
  const Cluster cluster = build_cluster(load_cluster("dgx-h100-16"));
  const std::vector<ReplicaPlace> places = {{.first = 0, .ranks = 8, .token = Bytes(1'000'000)},
                                            {.first = 8, .ranks = 8, .token = Bytes(1'000'000)}};
  const auto ends = [&](std::uint32_t count) {
    NetworkKvTransport transport(cluster, places);
    for (std::uint32_t i = 0; i < count; ++i) {
      transport.start(Time{}, {.request = RequestId(i), .from = 0, .to = 1, .tokens = 100});
    }
    std::vector<KvTransfer> arrived;
    Time last{};
    while (const auto next = transport.next_event()) {
      last = *next;
      transport.advance(last, arrived);
    }
    EXPECT_EQ(arrived.size(), count);
    return to_seconds(last - Time{});
  };
  const double alone = ends(1);
  EXPECT_GT(alone, 2e-3);
  EXPECT_LT(alone, 2.01e-3);
  EXPECT_NEAR(ends(2), alone + 2e-3, 1e-9);
}

// A group of 4 chips sends to one of 8, each of which holds half as much: 8 messages of 100 MB, two
// from each sender. They leave by the cards of the receivers' rails, one on each: 2 ms.
TEST(NetworkKvTransportTest, LayoutsMayDiffer) {
  const Cluster cluster = build_cluster(load_cluster("dgx-h100-16"));
  NetworkKvTransport transport(cluster,
                               {{.first = 0, .ranks = 4, .groups = 2, .token = Bytes(2'000'000)},
                                {.first = 8, .ranks = 8, .token = Bytes(1'000'000)}});
  transport.start(Time{}, {.request = RequestId(1), .from = 0, .to = 1, .tokens = 100});
  std::vector<KvTransfer> arrived;
  Time last{};
  while (const auto next = transport.next_event()) {
    last = *next;
    transport.advance(last, arrived);
  }
  EXPECT_EQ(arrived.size(), 1U);
  EXPECT_NEAR(to_seconds(last - Time{}), 2e-3, 2e-5);
}

double seconds_of_one(const Cluster& cluster, const std::vector<ReplicaPlace>& places) {
  NetworkKvTransport transport(cluster, places);
  transport.start(Time{}, {.request = RequestId(0), .from = 0, .to = 1, .tokens = 100});
  std::vector<KvTransfer> arrived;
  Time last{};
  while (const auto next = transport.next_event()) {
    last = *next;
    transport.advance(last, arrived);
  }
  EXPECT_EQ(arrived.size(), 1U);
  return to_seconds(last - Time{});
}

// Chips 0 and 1 of a mesh each hold half of the tokens and chip 2 gets both halves, 50 MB each,
// over its one link from chip 1: as long as all of it from one chip. A group of one tensor rank a
// context rank, or the other way round, has the same chips.
TEST(NetworkKvTransportTest, ContextRanksSendTheirShares) {
  const Cluster cluster = build_cluster(load_cluster("v5e-4x4"));
  const ReplicaPlace one{.first = 1, .ranks = 1, .token = Bytes(1'000'000)};
  const ReplicaPlace both{
      .first = 0, .ranks = 2, .token = Bytes(500'000), .contexts = 2, .context_stride = 1};
  const ReplicaPlace to{.first = 2, .ranks = 1, .token = Bytes(1'000'000)};
  const double alone = seconds_of_one(cluster, {one, to});
  EXPECT_NEAR(seconds_of_one(cluster, {both, to}) / alone, 1, 0.01);
  // Two receivers, each of which needs half of every token: 25 MB from each context rank. Chip 2
  // has what comes for chip 3 on its link from chip 1, too.
  const ReplicaPlace two{.first = 2, .ranks = 2, .token = Bytes(500'000)};
  EXPECT_NEAR(seconds_of_one(cluster, {both, two}) / alone, 1, 0.01);
}

// tp=2, cp=2 on the last two chips of a node and the first two of the next, for two chips of that.
// In the order tp-cp each gets half of its part over the network, 50 MB at 50 GB/s. In the order
// cp-tp one gets all of it from there.
TEST(NetworkKvTransportTest, TheOrderOfAPlanSaysWhereSharesAre) {
  const Cluster cluster = build_cluster(load_cluster("dgx-h100-16"));
  const auto seconds = [&cluster](std::uint32_t stride) {
    return seconds_of_one(
        cluster,
        {{.first = 6, .ranks = 4, .token = Bytes(500'000), .contexts = 2, .context_stride = stride},
         {.first = 14, .ranks = 2, .token = Bytes(1'000'000)}});
  };
  EXPECT_NEAR(seconds(2), 1e-3, 2e-5);
  EXPECT_NEAR(seconds(1), 2e-3, 2e-5);
}

// Two chips of a DGX H100 share an uplink of 55 GB/s to the host: 100 tokens x 1 MB for each of
// four chips take 2 x 100 MB / 55 GB/s behind the latency. On the way to the host two data-parallel
// groups share what is written; both ways at once take no longer.
TEST(NetworkKvTransportTest, BlocksComeFromTheHost) {
  const Cluster cluster = build_cluster(load_cluster("dgx-h100-8"), true);
  const std::vector<ReplicaPlace> places = {
      {.first = 0, .ranks = 4, .groups = 2, .token = Bytes(1'000'000)}};
  const auto time_of = [&](const std::vector<KvTransfer>& transfers) {
    NetworkKvTransport transport(cluster, places);
    for (const KvTransfer& transfer : transfers) transport.start(Time{}, transfer);
    std::vector<KvTransfer> arrived;
    Time last{};
    while (const auto next = transport.next_event()) {
      last = *next;
      transport.advance(last, arrived);
    }
    EXPECT_EQ(arrived.size(), transfers.size());
    return to_seconds(last - Time{});
  };
  const KvTransfer read{.request = RequestId(1), .tokens = 100, .way = KvWay::kFromHost};
  const KvTransfer write{.tokens = 200, .way = KvWay::kToHost};
  const double alone = 10e-6 + 200e6 / 55e9;
  EXPECT_NEAR(time_of({read}), alone, 1e-9);
  EXPECT_NEAR(time_of({write}), alone, 1e-9);
  EXPECT_NEAR(time_of({read, write}), alone, 1e-9);
  EXPECT_NEAR(time_of({read, read}), alone + 200e6 / 55e9, 1e-9);
}

// Chips 0 to 3 of a mesh in a row: one model moves caches from 0 to 2, the other from 1 to 3. Both
// take the link from 1 to 2 and have half of it each.
TEST(NetworkKvTransportTest, ModelsShareTheNetwork) {
  const Cluster cluster = build_cluster(load_cluster("v5e-4x4"));
  std::vector<ReplicaPlace> places;
  for (const std::uint32_t chip : {0U, 2U, 1U, 3U}) {  // a model's prefills, then its decodes
    places.push_back({.first = chip, .ranks = 1, .token = Bytes(1'000'000)});
  }
  ServingOptions options;
  options.decode = options.replicas;
  options.others.push_back({.replicas = options.replicas, .decode = options.replicas});
  LinearStepTime cost({.base = std::chrono::milliseconds(1)});
  const auto transfers = [&](std::vector<std::uint32_t> models) {
    NetworkKvTransport transport(cluster, places);
    RequestList list;
    list.tenants = {{.name = "a"}, {.name = "b", .model = 1}};
    for (const std::uint32_t model : models) {
      list.requests.push_back({.input_tokens = 100, .output_tokens = 2, .tenant = TenantId(model)});
    }
    const ServingResult result = simulate_serving(
        list, options,
        {.replicas = cost, .decode = &cost, .transport = &transport, .others = {{&cost, &cost}}});
    std::vector<double> seconds;
    for (const RequestRecord& record : result.requests) {
      seconds.push_back(to_seconds(record.parts[static_cast<std::size_t>(RequestPart::kTransfer)]));
    }
    return seconds;
  };
  const double alone = transfers({0}).front();
  EXPECT_GT(alone, 1e-3);  // 100 MB over a link of less than 100 GB/s
  const std::vector<double> both = transfers({0, 1});
  EXPECT_NEAR(both[0] / alone, 2, 0.01);
  EXPECT_NEAR(both[1] / alone, 2, 0.01);
}

}  // namespace
}  // namespace stepsim
