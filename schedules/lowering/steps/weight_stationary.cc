#include "schedules/lowering/steps/weight_stationary.h"

namespace stepsim {
namespace {

std::int64_t summed_size(const LayerOp& op, const TensorGroup& group) {
  const std::int64_t tokens = group.tokens;
  return op.tensor.summed_values_per_token * tokens * size_of(DataType::kFp32).value();
}

}  // namespace

std::vector<OpExchange> width_exchanges(const Layer& layer, const TensorGroup& group) {
  std::vector<OpExchange> exchanges;
  if (group.ranks == 1) return exchanges;
  const auto over_width = [&group](CollectiveOp op, Bytes bytes) {
    return exchange(Lane::kWidth, op, bytes, group.precision.communicated());
  };
  for (std::size_t i = 0; i < layer.ops.size(); ++i) {
    const LayerOp& op = layer.ops[i];
    OpExchange result{.op = i};
    if (op.tensor.width_reduced > Bytes(0)) {
      result.after_forward = {over_width(CollectiveOp::kReduceScatter, op.tensor.width_reduced)};
      result.before_backward = {over_width(CollectiveOp::kAllGather, op.tensor.width_reduced)};
    } else if (op.tensor.width_gathered > Bytes(0)) {
      result.before_forward = {over_width(CollectiveOp::kAllGather, op.tensor.width_gathered)};
      result.after_backward = {over_width(CollectiveOp::kReduceScatter, op.tensor.width_gathered)};
      LayerStep again = over_width(CollectiveOp::kAllGather, op.tensor.width_gathered);
      again.kind = LayerStep::Kind::kBackground;
      again.lane = Lane::kWidthRegather;
      again.ticket = static_cast<std::uint32_t>(i + 1);
      result.for_weights = {again};
    } else if (op.tensor.summed_values_per_token > 0) {
      const LayerStep sum = exchange(Lane::kTensor, CollectiveOp::kAllReduce,
                                     Bytes(summed_size(op, group)), DataType::kFp32);
      result.after_forward = {sum};
      result.after_backward = {sum};
    } else {
      continue;
    }
    exchanges.push_back(std::move(result));
  }
  return exchanges;
}

std::int64_t width_bytes(const Layer& layer, const TensorGroup& group, bool forward_twice) {
  if (!group.divides_width()) return 0;
  const std::int64_t ways = group.width;
  const std::int64_t again = forward_twice ? 1 : 0;
  std::int64_t sum = 0;
  for (const LayerOp& op : layer.ops) {
    const std::int64_t over_width = (3 + again) * op.tensor.width_gathered.value() +
                                    (2 + again) * op.tensor.width_reduced.value();
    sum += group.ranks / ways * (ways - 1) * over_width;
  }
  return sum;
}

std::int64_t summed_bytes(const Layer& layer, const TensorGroup& group, bool forward_twice) {
  std::int64_t sum = 0;
  for (const LayerOp& op : layer.ops) sum += 2 * summed_size(op, group);
  return (group.ranks - 1) * (forward_twice ? 3 : 2) * sum;
}

}  // namespace stepsim
