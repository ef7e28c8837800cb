#include "import/trace/device_trace.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

namespace stepsim {
namespace {

constexpr std::array<std::string_view, kSliceKinds> kKindNames = {
    "matmul",     "attention", "norm",         "convolution",   "elementwise",
    "reduction",  "embedding", "loss",         "optimizer",     "copy",
    "host",       "other",     "all-reduce",   "all-gather",    "reduce-scatter",
    "all-to-all", "broadcast", "send-receive", "communication", "waiting",
    "idle"};

struct Word {
  std::string_view word;
  SliceKind kind;
};

// The first word that a name contains decides. Names in small letters.
constexpr Word kKernelWords[] = {
    {"memcpy", SliceKind::kCopy},
    {"memset", SliceKind::kCopy},
    {"flash", SliceKind::kAttention},
    {"fmha", SliceKind::kAttention},
    {"attention_norm", SliceKind::kNorm},
    {"attention_residual", SliceKind::kElementwise},
    {"attn_fwd", SliceKind::kAttention},
    {"attn_bwd", SliceKind::kAttention},
    {"aotriton", SliceKind::kAttention},
    {"attention", SliceKind::kAttention},
    {"multi_tensor", SliceKind::kOptimizer},
    {"multitensor", SliceKind::kOptimizer},
    {"optimizer", SliceKind::kOptimizer},
    {"adam", SliceKind::kOptimizer},
    {"conv", SliceKind::kConvolution},
    {"wgrad", SliceKind::kConvolution},
    {"dgrad", SliceKind::kConvolution},
    {"fprop", SliceKind::kConvolution},
    {"winograd", SliceKind::kConvolution},
    {"gemm", SliceKind::kMatmul},
    {"gemv", SliceKind::kMatmul},
    {"cutlass", SliceKind::kMatmul},
    {"cublas", SliceKind::kMatmul},
    {"cijk_", SliceKind::kMatmul},
    {"nvjet", SliceKind::kMatmul},
    {"xmma", SliceKind::kMatmul},
    {"projection", SliceKind::kMatmul},
    {"matmul", SliceKind::kMatmul},
    {"unembedding", SliceKind::kMatmul},
    {"splitk", SliceKind::kMatmul},
    {"layer_norm", SliceKind::kNorm},
    {"layernorm", SliceKind::kNorm},
    {"rmsnorm", SliceKind::kNorm},
    {"rms_norm", SliceKind::kNorm},
    {"batch_norm", SliceKind::kNorm},
    {"bn_fw", SliceKind::kNorm},
    {"bn_bw", SliceKind::kNorm},
    {"norm", SliceKind::kNorm},
    {"embedding", SliceKind::kEmbedding},
    {"cross_entropy", SliceKind::kLoss},
    {"nll_loss", SliceKind::kLoss},
    {"log_softmax", SliceKind::kLoss},
    {"logsoftmax", SliceKind::kLoss},
    {"softmax", SliceKind::kAttention},
    {"elementwise", SliceKind::kElementwise},
    {"triton_poi", SliceKind::kElementwise},
    {"residual", SliceKind::kElementwise},
    {"fused_dropout", SliceKind::kElementwise},
    {"triton_red", SliceKind::kReduction},
    {"triton_per", SliceKind::kReduction},
    {"reduce_kernel", SliceKind::kReduction},
    {"catarraybatchedcopy", SliceKind::kCopy},
    {"nchwtonhwc", SliceKind::kCopy},
    {"nhwctonchw", SliceKind::kCopy},
    {"copy", SliceKind::kCopy},
};

constexpr Word kCollectiveWords[] = {
    {"allreduce", SliceKind::kAllReduce},     {"reducescatter", SliceKind::kReduceScatter},
    {"allgather", SliceKind::kAllGather},     {"alltoall", SliceKind::kAllToAll},
    {"broadcast", SliceKind::kBroadcast},     {"sendrecv", SliceKind::kSendReceive},
    {"sendreceive", SliceKind::kSendReceive}, {"permute", SliceKind::kSendReceive},
    {"send", SliceKind::kSendReceive},        {"recv", SliceKind::kSendReceive},
    {"receive", SliceKind::kSendReceive},
};

char small(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

std::string small_letters(std::string_view name, bool only_letters) {
  std::string text;
  for (const char c : name) {
    const char letter = small(c);
    if (!only_letters || (letter >= 'a' && letter <= 'z')) text += letter;
  }
  return text;
}

bool is_collective_kernel(const std::string& name) {
  return name.starts_with("nccl") || name.starts_with("rccl") || name.starts_with("mscclkernel") ||
         name.find("nccldevkernel") != std::string::npos ||
         name.find("ncclkernel") != std::string::npos;
}

}  // namespace

std::string_view name_of(SliceKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(SliceDirection direction) {
  if (direction == SliceDirection::kUnknown) return "";
  return direction == SliceDirection::kForward ? "forward" : "backward";
}

SliceKind kind_of_collective(std::string_view name) {
  const std::string letters = small_letters(name, true);
  for (const Word& word : kCollectiveWords) {
    if (letters.find(word.word) != std::string::npos) return word.kind;
  }
  return SliceKind::kCommunication;
}

SliceKind kind_of_kernel(std::string_view name) {
  const std::string letters = small_letters(name, false);
  if (is_collective_kernel(letters)) return kind_of_collective(letters);
  for (const Word& word : kKernelWords) {
    if (letters.find(word.word) != std::string::npos) return word.kind;
  }
  return SliceKind::kOtherWork;
}

std::optional<CollectiveOp> collective_of(SliceKind kind) {
  switch (kind) {
    case SliceKind::kAllReduce:
      return CollectiveOp::kAllReduce;
    case SliceKind::kAllGather:
      return CollectiveOp::kAllGather;
    case SliceKind::kReduceScatter:
      return CollectiveOp::kReduceScatter;
    case SliceKind::kAllToAll:
      return CollectiveOp::kAllToAll;
    case SliceKind::kBroadcast:
      return CollectiveOp::kBroadcast;
    case SliceKind::kSendReceive:
      return CollectiveOp::kSendReceive;
    default:
      return std::nullopt;
  }
}

std::size_t usual_step(const std::vector<TraceStep>& steps) {
  if (steps.size() < 3) return steps.size() - 1;
  std::vector<std::size_t> inner(steps.size() - 2);
  for (std::size_t i = 0; i < inner.size(); ++i) inner[i] = i + 1;
  const auto middle = inner.begin() + static_cast<std::ptrdiff_t>((inner.size() - 1) / 2);
  std::ranges::nth_element(inner, middle, [&](std::size_t a, std::size_t b) {
    const std::int64_t first = steps[a].end - steps[a].begin;
    const std::int64_t second = steps[b].end - steps[b].begin;
    return std::pair(first, a) < std::pair(second, b);
  });
  return *middle;
}

namespace {

// The collectives of one kind in one group: the slices of each rank, in order.
using Instances = std::map<std::size_t, std::vector<TraceSlice*>>;

void set_moving(const std::vector<TraceSlice*>& matched) {
  std::int64_t last = matched[0]->start;
  std::int64_t first_end = matched[0]->end;
  for (const TraceSlice* slice : matched) {
    last = std::max(last, slice->start);
    first_end = std::min(first_end, slice->end);
  }
  if (last > first_end) return;  // their clocks differ: nothing can be told
  for (TraceSlice* slice : matched) slice->moving = last;
}

// Matches slices whose ends lie within a tenth of a millisecond: what was sampled has gaps.
std::size_t match_by_ends(const Instances& instances) {
  constexpr std::int64_t kTogether = 100'000;
  std::vector<std::size_t> at(instances.size(), 0);
  std::size_t matched = 0;
  while (true) {
    std::vector<TraceSlice*> fronts;
    std::size_t i = 0;
    for (const auto& [rank, slices] : instances) {
      if (at[i] == slices.size()) return matched;
      fronts.push_back(slices[at[i++]]);
    }
    const auto [first, last] = std::ranges::minmax_element(
        fronts, [](const TraceSlice* a, const TraceSlice* b) { return a->end < b->end; });
    if ((*last)->end - (*first)->end <= kTogether) {
      set_moving(fronts);
      matched += fronts.size();
      for (std::size_t& place : at) ++place;
    } else {
      ++at[static_cast<std::size_t>(first - fronts.begin())];
    }
  }
}

std::size_t match(const Instances& instances) {
  const std::size_t count = instances.begin()->second.size();
  const bool is_even = std::ranges::all_of(
      instances, [&](const auto& of_rank) { return of_rank.second.size() == count; });
  if (!is_even) return match_by_ends(instances);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<TraceSlice*> together;
    for (const auto& [rank, slices] : instances) together.push_back(slices[i]);
    set_moving(together);
  }
  return count * instances.size();
}

}  // namespace

void find_waits(DeviceTrace& trace) {
  if (trace.knows_waits) return;
  std::map<std::tuple<std::uint32_t, SliceKind>, Instances> groups;
  std::map<std::uint32_t, std::uint32_t> members;
  std::size_t all = 0;
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
    RankTrace& of_rank = trace.ranks[rank];
    for (TraceSlice& slice : of_rank.slices) {
      if (!communicates(slice.kind)) continue;
      ++all;
      if (!slice.collective) continue;
      const SliceCollective& collective = of_rank.collectives[*slice.collective];
      if (!collective.members) continue;
      members[collective.group] = *collective.members;
      groups[{collective.group, slice.kind}][rank].push_back(&slice);
    }
  }
  std::size_t matched = 0;
  for (const auto& [key, instances] : groups) {
    if (instances.size() == members[std::get<0>(key)]) matched += match(instances);
  }
  trace.knows_waits = all > 0 && matched == all;
}

}  // namespace stepsim
