// Sarathi-Serve (Agrawal et al., OSDI 2024): stall-free batches. Decodes go first, then the chunks
// of prompts that are under way, then new prompts, up to a small `budget`. The blocks of a whole
// prompt are taken at admission. Who runs out of blocks preempts the last running request.

#pragma once

namespace stepsim {

struct EngineRow;
EngineRow sarathi_engine();

}  // namespace stepsim
