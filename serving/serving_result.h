// ServingResult is what simulate_serving() found: every request, and the replicas over time.

#pragma once

#include <cstdint>
#include <vector>

#include "serving/kv/host_tier.h"
#include "serving/metrics/gap_counts.h"
#include "serving/metrics/load_timeline.h"
#include "serving/metrics/request_record.h"

namespace stepsim {

struct ReplicaTotals {
  std::uint32_t model = 0;
  bool is_prefill = false;  // of a system that decodes elsewhere
  std::int64_t steps = 0;
  std::int64_t preemptions = 0;
  std::int64_t kv_blocks = 0;
  std::int64_t peak_kv_blocks = 0;
  std::int64_t peak_backlog = 0;  // of engines with slots: most caches that waited for a slot
  Duration busy{};
  HostTierTotals host{};
};

// StepRecord is a step as a trace shows it.
struct StepRecord {
  std::uint32_t replica = 0;
  Time start{};
  Time end{};
  std::int32_t chunks = 0;
  std::int64_t chunk_tokens = 0;
  bool has_equal_chunks = true;
  std::int32_t decodes = 0;
  std::int64_t drafts = 0;
  Load load{};  // of this replica when the step began
};

// PartRecord says that a part of a request's time begins.
struct PartRecord {
  RequestId request;
  Time at{};
  RequestPart part{};
};

struct ServingResult {
  IdTable<RequestId, RequestRecord> requests;
  std::vector<ReplicaTotals> replicas;
  GapCounts gaps;  // between tokens
  LoadTimeline load;
  std::int64_t steps = 0;
  std::int64_t preemptions = 0;
  std::int64_t drafts_tried = 0;
  std::int64_t drafts_accepted = 0;
  std::int64_t hit_tokens = 0;           // not computed, because the prefix cache had them
  std::int64_t host_hit_tokens = 0;      // of them, those whose blocks came from the host's memory
  std::int64_t kv_blocks = 0;            // of all replicas
  std::int64_t peak_kv_blocks = 0;       // most held at one time, in all replicas
  std::vector<StepRecord> step_records;  // with ServingOptions::records_steps
  std::vector<PartRecord> part_records;  // in order of time
};

}  // namespace stepsim
