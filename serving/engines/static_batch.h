// Static batching (FasterTransformer, and every framework without a server): the requests that wait
// form a batch of at most `sequences`, which runs until its longest answer is complete. Tokens are
// given out as they are made; the place and the room of a request that has ended stay taken until
// the batch is done. Room for prompt and answer is taken at the start.

#pragma once

namespace stepsim {

struct EngineRow;
EngineRow static_engine();

}  // namespace stepsim
