// JetStream's orchestrator (AI-Hypercomputer/JetStream, jetstream/core/orchestrator.py, December
// 2025), with its queues:
//
//   prefill backlog --> prefill --> transfer backlog --> generate backlog --> slots
//
// A prompt is computed whole and alone, and its first token is answered at once. Its cache then
// waits for one of `sequences` slots, which are taken in order. A generate step computes a token
// for every slot, empty ones too.
//
// On the same chips (interleaved) the generate thread waits for prompts as long as a slot is free;
// with all slots taken, prompts and generate steps take turns until the backlogs are full. Each
// backlog holds the caches that its key says, and so do the two threads between: the one that
// transfers, and the one that prefills, which can't put down what it has computed.
//
// Apart (--prefill and --decode), prompts are computed until the transfer backlog and the two
// threads are full, and a decode replica takes caches until its generate backlog is full.
//
// Prompts are padded to the next power of two, of at least 16 tokens. Not modelled: the copy of a
// cache into its slot, the detokenize backlog, chunked prefill and its prefix cache, one transfer
// at a time, and what attention reads of a slot beyond its tokens.

#pragma once

#include <cstdint>

namespace stepsim {

struct JetstreamOptions {
  std::int64_t transfer_backlog = 1;
  std::int64_t generate_backlog = 1;
  bool pads_prompts = true;
};

struct EngineRow;
EngineRow jetstream_engine();

}  // namespace stepsim
