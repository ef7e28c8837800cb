// Batch is what one step of a replica computes: for each request how many tokens, on top of how
// many. It is all that the time of a step depends on (serving/step_cost.h).
//
//   decode   the newest token of a request, and the drafts behind it; its context is what its KV
//            cache holds already
//   chunk    a part of a prompt, or of a sequence that is computed again after a preemption

#pragma once

#include <cstdint>
#include <vector>

#include "serving/requests/request.h"

namespace stepsim {

struct BatchEntry {
  RequestId request;
  std::int32_t computed = 0;  // tokens in the KV cache before the step
  std::int32_t tokens = 0;    // computed in the step, drafts among them
  std::int32_t drafts = 0;    // tokens that only may be right
  std::int32_t life = 0;      // preemptions of the request so far: a later one makes this void
  bool is_decode = false;
  std::int32_t padding = 0;  // tokens behind them that are computed for nobody
  bool emits = false;  // the step brings the request to its last known token, so a new one follows
};

struct Batch {
  std::vector<BatchEntry> entries;
  std::vector<RequestId> admitted;   // came from waiting with this step, in order
  std::vector<RequestId> preempted;  // went back to waiting when this step was formed, in order
  // In engines with slots: requests that wait for one behind their first token, and that get one.
  std::vector<RequestId> parked;
  std::vector<RequestId> unparked;

  // Sums over the entries.
  std::int64_t tokens = 0;     // padding and empty slots among them
  std::int64_t kv_tokens = 0;  // read: tokens before the step and in it
  std::int64_t drafts = 0;
  std::int64_t hit_tokens = 0;       // of admitted requests, found in the prefix cache
  std::int64_t host_hit_tokens = 0;  // of them, in the host's memory
  std::int32_t decodes = 0;
  std::int64_t empty_slots = 0;     // decodes that are computed for nobody
  std::int64_t decode_context = 0;  // tokens before the step, of decodes

  bool empty() const { return entries.empty(); }

  void add(const BatchEntry& entry) {
    entries.push_back(entry);
    count(entry, 1);
  }
  // Takes back the entry at `position`.
  void remove(std::size_t position) {
    count(entries[position], -1);
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(position));
  }
  // The last entry has so many tokens more that are computed for nobody.
  void pad(std::int64_t padding) {
    entries.back().padding = static_cast<std::int32_t>(padding);
    tokens += padding;
  }
  void leave_empty(std::int64_t slots) {
    empty_slots = slots;
    tokens += slots;
  }
  void clear() {
    entries.clear();
    admitted.clear();
    preempted.clear();
    parked.clear();
    unparked.clear();
    empty_slots = 0;
    tokens = kv_tokens = drafts = hit_tokens = host_hit_tokens = decode_context = 0;
    decodes = 0;
  }

 private:
  void count(const BatchEntry& entry, std::int32_t sign) {
    tokens += sign * entry.tokens;
    kv_tokens += sign * (std::int64_t{entry.computed} + entry.tokens);
    drafts += sign * entry.drafts;
    if (!entry.is_decode) return;
    decodes += sign;
    decode_context += std::int64_t{sign} * entry.computed;
  }
};

}  // namespace stepsim
