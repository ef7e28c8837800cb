#include "experiment/passes/served_load.h"

namespace stepsim {

const FieldTable<ServedLoad>& served_load_fields() {
  static const FieldTable<ServedLoad> kTable = [] {
    constexpr double kMostReplicas = 4096;
    FieldTable<ServedLoad> table("Serve");
    table.add("engine", &ServedLoad::engine,
              {.help = "Scheduler of a replica and its keys: --engine of stepsim serve."});
    table.add("prefill", &ServedLoad::prefill,
              {.help = "Replicas that compute prompts only: --prefill."});
    table.add("decode", &ServedLoad::decode,
              {.help = "Replicas that take over behind the first token: --decode."});
    table.add("decode_plan", &ServedLoad::decode_plan,
              {.help = "How a decode replica divides the model: --decode-plan."});
    table.add("transfer", &ServedLoad::transfer,
              {.help = "How caches come from prefill to decode: --transfer."});
    table.add("replicas", &ServedLoad::replicas, Limits::between(1, kMostReplicas).or_zero(),
              {.help = "Copies of the model: --replicas.", .unset = "1"});
    table.add("software", &ServedLoad::software,
              {.help = "Whose kernels run, where several were measured: vllm, sglang or trtllm."});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
