// SGLang's scheduler (sglang/srt/managers/scheduler.py, schedule_policy.py): prefills go first and
// alone, in chunks of `chunk` tokens, up to `max_prefill`; with mixed_chunk the decodes go with
// them. A waiting request is admitted if its prompt and a share of its answer fit beside the same
// share of the answers of those that run. The share begins at 0.7 x conservativeness, falls over
// 600 decode steps to 0.14 of that, and rises when requests must be retracted: the shortest answers
// go back to the end of the queue.

#pragma once

#include <cstdint>

namespace stepsim {

struct SglangOptions {
  std::int64_t chunk = 8192;          // tokens of a prefill step
  std::int64_t max_prefill = 16'384;  // tokens that a step admits
  bool mixed_chunk = false;           // decodes go with the prefills
  double conservativeness = 1;

  std::int64_t chunk_of_prompt = 0;  // a prompt's part of `chunk`, which is one rank's; 0: all

  // Each of so many data-parallel ranks has these for itself.
  void multiply(std::int64_t ranks) {
    chunk_of_prompt = chunk;
    chunk *= ranks;
    max_prefill *= ranks;
  }
  std::int64_t most_of_prompt() const { return chunk_of_prompt > 0 ? chunk_of_prompt : chunk; }
};

struct EngineRow;
EngineRow sglang_engine();

}  // namespace stepsim
