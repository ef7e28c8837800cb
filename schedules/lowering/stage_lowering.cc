#include "schedules/lowering/stage_lowering.h"

#include <utility>

namespace stepsim {

StageLowering::StageLowering(const ParallelPlan& plan, std::int32_t stage,
                             std::vector<StageUnit> units, const PlanCommunicators& communicators,
                             GraphTables& tables)
    : plan_(plan),
      stage_(stage),
      units_(std::move(units)),
      communicators_(communicators),
      tables_(tables),
      builder_("stage " + std::to_string(stage)),
      fsdp_(plan.zero == 3 && plan.dp * plan.cp > 1) {}

Program StageLowering::build(const std::vector<PipelineOp>& order, Bytes boundary,
                             std::int64_t tied_parameters, Bytes fixed_memory) {
  message_bytes_ = plan_.sequence_parallel ? boundary / plan_.tp : boundary;
  add_streams();
  hold_state(tied_parameters, fixed_memory);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].kind == PipelineOpKind::kForward) {
      forward(order[i].microbatch);
    } else {
      backward(order[i].microbatch, i + 1 == order.size());
    }
  }
  close_step(tied_parameters);
  return std::move(builder_).build();
}

void StageLowering::add_streams() {
  const bool first = stage_ == 0;
  const bool last = stage_ == plan_.pp - 1;
  compute_ = builder_.add_stream("compute", true);
  if (communicators_.tensor) tensor_ = builder_.add_stream("tp");
  if (communicators_.tensor_regather) tensor_regather_ = builder_.add_stream("tp regather");
  if (!first) receive_activation_ = builder_.add_stream("receive activation");
  if (!last) send_activation_ = builder_.add_stream("send activation");
  if (!last) receive_gradient_ = builder_.add_stream("receive gradient");
  if (!first) send_gradient_ = builder_.add_stream("send gradient");
  if (communicators_.parameters) {
    parameters_ = builder_.add_stream(fsdp_ ? "fsdp gather" : "dp parameters");
  }
  if (communicators_.gradients) {
    gradients_ = builder_.add_stream(fsdp_ ? "fsdp reduce" : "dp gradients");
  }
}

std::int64_t StageLowering::parameters() const {
  std::int64_t sum = 0;
  for (const StageUnit& unit : units_) sum += unit.layer->parameters;
  return sum;
}

DataType StageLowering::gradient_type() const {
  return plan_.gradient_bytes == 4 ? DataType::kFp32 : DataType::kBf16;
}

// Weights, gradients and optimizer state (ZeRO, arXiv 1910.02054, figure 1).
void StageLowering::hold_state(std::int64_t tied_parameters, Bytes fixed_memory) {
  const std::int64_t held =
      parameters() + (units_.front().name == "embedding" ? 0 : tied_parameters);
  const std::int64_t replicas = plan_.dp * plan_.cp;
  const auto divided = [&](std::int64_t bytes, bool divide) {
    return Bytes(divide ? (bytes + replicas - 1) / replicas : bytes);
  };
  builder_.hold(MemoryCategory::kParameters,
                divided(held * size_of(plan_.type).value(), plan_.zero == 3));
  builder_.hold(MemoryCategory::kGradients, divided(held * plan_.gradient_bytes, plan_.zero == 3));
  builder_.hold(MemoryCategory::kOptimizer, divided(held * plan_.optimizer_bytes, plan_.zero >= 1));
  builder_.hold(MemoryCategory::kFixedOverhead, fixed_memory);
}

// --- The passes of a micro-batch -----------------------------------------------------------------

void StageLowering::forward(std::int32_t microbatch) {
  if (receive_activation_) receive(false, microbatch);
  for (const StageUnit& unit : units_) {
    if (fsdp_) gather_unit(unit, microbatch);
    run_steps(unit.layer->forward, unit, PathLabel::kForward, microbatch);
    if (fsdp_) finish_unit(unit, false, microbatch);
  }
  if (send_activation_) send(false, microbatch);
}

void StageLowering::backward(std::int32_t microbatch, bool last) {
  if (receive_gradient_) receive(true, microbatch);
  for (std::size_t i = units_.size(); i-- > 0;) {
    if (fsdp_) gather_unit(units_[i], microbatch);
    run_steps(units_[i].layer->backward, units_[i], PathLabel::kBackward, microbatch);
    if (fsdp_) {
      finish_unit(units_[i], true, microbatch);
    } else if (last) {
      fill_buckets(units_[i]);
    }
  }
  if (send_gradient_) send(true, microbatch);
}

void StageLowering::run_steps(const std::vector<LayerStep>& steps, const StageUnit& unit,
                              PathLabel pass, std::int32_t microbatch) {
  for (const LayerStep& step : steps) {
    if (step.kind == LayerStep::Kind::kCompute) {
      run_compute(step, unit, pass, microbatch);
      continue;
    }
    const bool background = step.kind == LayerStep::Kind::kBackground;
    const OpLabel label{.name = tables_.name(std::string(name_of(step.collective))),
                        .layer = unit.number,
                        .microbatch = microbatch};
    std::vector<Dependency> dependencies = waits_.now;
    if (last_compute_) dependencies.push_back(after(*last_compute_));
    const OpRef done = add_collective(
        background ? *tensor_regather_ : *tensor_,
        {.communicator = background ? *communicators_.tensor_regather : *communicators_.tensor,
         .op = step.collective,
         .bytes = step.bytes,
         .type = step.type},
        Axis::kTensor, label, std::move(dependencies));
    switch (step.kind) {
      case LayerStep::Kind::kBackground:
        waits_.background = done;
        break;
      case LayerStep::Kind::kDetached:
        waits_.detached = after(done);
        break;
      default:
        waits_.now = {after(done)};
    }
  }
}

void StageLowering::run_compute(const LayerStep& step, const StageUnit& unit, PathLabel pass,
                                std::int32_t microbatch) {
  const bool forward = pass == PathLabel::kForward;
  OpDraft op{.stream = compute_, .kind = OpKind::kCompute};
  op.work = tables_.compute(step.kernels, static_cast<std::uint32_t>(pass));
  op.label = {.name = tables_.name(unit.name + (forward ? " forward: " : " backward: ") +
                                   std::string(step.kernels.front().name)),
              .layer = unit.number,
              .microbatch = microbatch};
  op.dependencies = std::move(waits_.now);
  waits_.now.clear();
  if (step.needs_background) {
    op.dependencies.push_back(after(*waits_.background));
    waits_.background.reset();
  }
  if (waits_.detached) waits_.now.push_back(*std::exchange(waits_.detached, std::nullopt));
  op.memory_changes = {
      {.category = MemoryCategory::kActivations, .at_end = !forward, .bytes = step.kept},
      {.category = MemoryCategory::kBuffers, .at_end = false, .bytes = step.workspace},
      {.category = MemoryCategory::kBuffers, .at_end = true, .bytes = step.workspace}};
  last_compute_ = builder_.add(std::move(op));
  if (!first_compute_) first_compute_ = last_compute_;
  if (received_) {
    builder_.change_memory(
        *last_compute_,
        {.category = MemoryCategory::kBuffers, .at_end = true, .bytes = message_bytes_});
    received_.reset();
  }
}

OpRef StageLowering::add_collective(StreamId stream, const CollectiveWork& work, Axis axis,
                                    OpLabel label, std::vector<Dependency> dependencies) {
  OpDraft op{.stream = stream, .kind = OpKind::kCollective, .axis = axis};
  op.work = tables_.collective(work);
  op.label = label;
  op.dependencies = std::move(dependencies);
  return builder_.add(std::move(op));
}

// --- Pipeline: messages between stages -----------------------------------------------------------

void StageLowering::receive(bool gradient, std::int32_t microbatch) {
  OpDraft op{.stream = gradient ? *receive_gradient_ : *receive_activation_,
             .kind = OpKind::kMessages,
             .axis = Axis::kPipeline};
  op.work = tables_.message({.is_send = false,
                             .kind = gradient ? MessageKind::kGradient : MessageKind::kActivation,
                             .communicator = *communicators_.pipeline,
                             .peer = static_cast<std::uint32_t>(stage_ + (gradient ? 1 : -1)),
                             .microbatch = microbatch,
                             .boundary = gradient ? stage_ : stage_ - 1,
                             .bytes = message_bytes_});
  op.label = {.name = tables_.name(gradient ? "receive gradient" : "receive activation"),
              .microbatch = microbatch};
  op.memory_changes = {
      {.category = MemoryCategory::kBuffers, .at_end = false, .bytes = message_bytes_}};
  received_ = builder_.add(std::move(op));
  waits_.now.push_back(after(*received_));
}

void StageLowering::send(bool gradient, std::int32_t microbatch) {
  OpDraft op{.stream = gradient ? *send_gradient_ : *send_activation_,
             .kind = OpKind::kMessages,
             .axis = Axis::kPipeline};
  op.work = tables_.message({.is_send = true,
                             .kind = gradient ? MessageKind::kGradient : MessageKind::kActivation,
                             .communicator = *communicators_.pipeline,
                             .peer = static_cast<std::uint32_t>(stage_ + (gradient ? -1 : 1)),
                             .microbatch = microbatch,
                             .boundary = gradient ? stage_ - 1 : stage_,
                             .bytes = message_bytes_});
  op.label = {.name = tables_.name(gradient ? "send gradient" : "send activation"),
              .microbatch = microbatch};
  // What is sent is ready after the last compute op, and after a collective behind it.
  op.dependencies = std::exchange(waits_.now, {});
  op.dependencies.push_back(after(*last_compute_));
  op.memory_changes = {
      {.category = MemoryCategory::kBuffers, .at_end = false, .bytes = message_bytes_},
      {.category = MemoryCategory::kBuffers, .at_end = true, .bytes = message_bytes_}};
  builder_.add(std::move(op));
}

// --- FSDP ----------------------------------------------------------------------------------------

// The parameters of a layer, for one pass over it. At most 1 + prefetch layers are gathered at a
// time: the gather waits for the end of the visit before those.
void StageLowering::gather_unit(const StageUnit& unit, std::int32_t microbatch) {
  const std::size_t visit = gathers_.size();
  const auto ahead = static_cast<std::size_t>(plan_.prefetch) + 1;
  std::vector<Dependency> dependencies;
  if (visit >= ahead) dependencies.push_back(after(visits_[visit - ahead]));
  const Bytes bytes = unit.layer->parameters * size_of(plan_.type);
  const OpRef gather = add_collective(
      *parameters_,
      {.communicator = *communicators_.parameters,
       .op = CollectiveOp::kAllGather,
       .bytes = bytes,
       .type = plan_.type},
      Axis::kData,
      {.name = tables_.name("gather " + unit.name), .layer = unit.number, .microbatch = microbatch},
      std::move(dependencies));
  builder_.change_memory(gather, {.category = MemoryCategory::kGatheredParameters, .bytes = bytes});
  gathers_.push_back(gather);
  waits_.now.push_back(after(gather));
}

void StageLowering::finish_unit(const StageUnit& unit, bool is_backward, std::int32_t microbatch) {
  visits_.push_back(*last_compute_);
  builder_.change_memory(*last_compute_, {.category = MemoryCategory::kGatheredParameters,
                                          .at_end = true,
                                          .bytes = unit.layer->parameters * size_of(plan_.type)});
  if (!is_backward) return;
  const Bytes bytes(unit.layer->parameters * plan_.gradient_bytes);
  const OpRef reduced = add_collective(
      *gradients_,
      {.communicator = *communicators_.gradients,
       .op = CollectiveOp::kReduceScatter,
       .bytes = bytes,
       .type = gradient_type()},
      Axis::kData,
      {.name = tables_.name("reduce " + unit.name), .layer = unit.number, .microbatch = microbatch},
      {after(*last_compute_)});
  builder_.change_memory(*last_compute_, {.category = MemoryCategory::kGradients, .bytes = bytes});
  builder_.change_memory(reduced,
                         {.category = MemoryCategory::kGradients, .at_end = true, .bytes = bytes});
  reduced_ = {after(reduced)};
}

// --- Data parallelism: buckets of gradients, optimizer -------------------------------------------

void StageLowering::fill_buckets(const StageUnit& unit) {
  if (buckets_.empty() || buckets_.back().parameters >= plan_.gradient_bucket_parameters) {
    buckets_.emplace_back();
  }
  buckets_.back().parameters += unit.layer->parameters;
  buckets_.back().ready = *last_compute_;
  const bool full = buckets_.back().parameters >= plan_.gradient_bucket_parameters;
  if (full && plan_.overlap_gradients) reduce_bucket(buckets_.back());
}

void StageLowering::reduce_bucket(const Bucket& bucket) {
  if (!gradients_) return;
  const bool divided = plan_.zero >= 1;
  const OpRef reduced =
      add_collective(*gradients_,
                     {.communicator = *communicators_.gradients,
                      .op = divided ? CollectiveOp::kReduceScatter : CollectiveOp::kAllReduce,
                      .bytes = Bytes(bucket.parameters * plan_.gradient_bytes),
                      .type = gradient_type()},
                     Axis::kData, {.name = tables_.name("reduce gradients")},
                     {after(plan_.overlap_gradients ? bucket.ready : *last_compute_)});
  reduced_ = {after(reduced)};
}

// What comes after the last micro-batch: the gradients that are left, the optimizer, and under
// ZeRO-1 the parameters that other replicas have updated.
void StageLowering::close_step(std::int64_t tied_parameters) {
  const bool holds_copy = units_.front().name != "embedding" && tied_parameters > 0;
  if (!fsdp_) {
    if (holds_copy) {  // a bucket of its own: the last stage's copy of the embedding table
      buckets_.push_back({.parameters = tied_parameters, .ready = *last_compute_});
    }
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const bool reduced = plan_.overlap_gradients &&
                           buckets_[i].parameters >= plan_.gradient_bucket_parameters &&
                           !(holds_copy && i + 1 == buckets_.size());
      if (!reduced) reduce_bucket(buckets_[i]);
    }
  }
  if (communicators_.tied_embedding && tied_parameters > 0) {
    const StreamId stream = builder_.add_stream("tied embedding");
    std::vector<Dependency> dependencies = reduced_;
    dependencies.push_back(after(*last_compute_));
    const OpRef summed = add_collective(
        stream,
        {.communicator = *communicators_.tied_embedding,
         .op = CollectiveOp::kAllReduce,
         .bytes = Bytes(tied_parameters * plan_.gradient_bytes),
         .type = gradient_type()},
        Axis::kData, {.name = tables_.name("reduce tied embedding")}, std::move(dependencies));
    reduced_.push_back(after(summed));
  }

  const std::int64_t held = parameters() + (holds_copy ? tied_parameters : 0);
  const std::int64_t replicas = plan_.dp * plan_.cp;
  const std::int64_t updated = plan_.zero >= 1 ? (held + replicas - 1) / replicas : held;
  // Adam reads gradient and state, writes state and the weight in the compute type. 15 FLOPs.
  const Kernel adam{
      .name = "adam",
      .kind = KernelKind::kElementwise,
      .type = DataType::kFp32,
      .flops = Flops(15.0 * static_cast<double>(updated)),
      .read = Bytes(updated * (plan_.gradient_bytes + plan_.optimizer_bytes)),
      .written = Bytes(updated * (plan_.optimizer_bytes + size_of(plan_.type).value()))};
  OpDraft optimizer{.stream = compute_, .kind = OpKind::kCompute};
  optimizer.work = tables_.compute({adam}, static_cast<std::uint32_t>(PathLabel::kOptimizer));
  optimizer.label = {.name = tables_.name("optimizer")};
  optimizer.dependencies = reduced_;
  const OpRef stepped = builder_.add(std::move(optimizer));

  if (fsdp_) {  // the first gathers of the next step want the new parameters
    for (std::size_t visit = 0; visit <= static_cast<std::size_t>(plan_.prefetch); ++visit) {
      if (visit < gathers_.size()) {
        builder_.add_dependency(gathers_[visit], after_previous_step(stepped));
      }
    }
  } else if (parameters_) {
    std::optional<OpRef> gathered;
    for (const Bucket& bucket : buckets_) {
      gathered = add_collective(*parameters_,
                                {.communicator = *communicators_.parameters,
                                 .op = CollectiveOp::kAllGather,
                                 .bytes = bucket.parameters * size_of(plan_.type),
                                 .type = plan_.type},
                                Axis::kData, {.name = tables_.name("gather parameters")},
                                {after(stepped)});
    }
    builder_.add_dependency(*first_compute_, after_previous_step(*gathered));
  }
}

}  // namespace stepsim
