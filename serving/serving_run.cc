#include "serving/serving_run.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "serving/requests/random_use.h"
#include "sim/base/random.h"

namespace stepsim {
namespace {

enum ServingEvent : std::uint32_t { kStepEnds, kRequestComes, kRequestReady };

constexpr std::int64_t kStepsBetweenProgress = 1 << 12;

}  // namespace

ServingRun::ServingRun(const RequestList& requests, const ServingOptions& options,
                       const ServingCosts& costs, const std::function<void(double)>& progress)
    : requests_(requests), options_(options), costs_(costs), progress_(progress) {
  for (std::size_t i = 0; i < options.models(); ++i) models_.emplace_back(options.model(i));
  make_sequences();
  make_models(costs);
  is_touched_.resize(replicas_.size());
  loads_.resize(replicas_.size());
  line_up_arrivals();
}

void ServingRun::make_models(const ServingCosts& costs) {
  for (std::size_t i = 0; i < models_.size(); ++i) {
    Served& model = models_[i];
    const ModelCosts cost = i > 0 ? costs.others[i - 1] : ModelCosts{&costs.replicas, costs.decode};
    model.first_number = static_cast<std::uint32_t>(replicas_.size());
    make_replicas(i, model.given.replicas, *cost.replicas, model.first);
    if (!model.given.decode) continue;
    for (Replica* const prefill : model.first) prefill->totals.is_prefill = true;
    model.second_number = static_cast<std::uint32_t>(replicas_.size());
    make_replicas(i, *model.given.decode, *cost.decode, model.second);
    const EngineOptions& decoding = model.given.decode->options;
    if (!resumes_all(decoding, requests_, i)) {
      for (Replica* const decode : model.second) decode->reserve_answers();
    }
    lent_.resize(requests_.requests.size());
  }
  for (std::uint32_t i = 0; i < sequences_.size(); ++i) {
    if (model_of(RequestId(i)).given.decode) sequences_[RequestId(i)].to_emit = 1;
  }
}

void ServingRun::make_replicas(std::size_t model, const ReplicaGroup& group, StepCost& cost,
                               std::vector<Replica*>& members) {
  const EngineOptions engine = with_useful_cache(group.options, requests_, model);
  const std::int64_t blocks = kv_blocks_of(*group.engine, engine, requests_, model);
  for (std::int64_t i = 0; i < group.count; ++i) {
    replicas_.push_back(std::make_unique<Replica>(*group.engine, engine, blocks, cost, sequences_));
    replicas_.back()->totals.model = static_cast<std::uint32_t>(model);
    members.push_back(replicas_.back().get());
    result_.kv_blocks += replicas_.back()->totals.kv_blocks;
  }
}

std::int32_t ServingRun::answer_tokens(RequestId request) {
  const Request& asked = requests_.requests[request.index()];
  const std::optional<std::int64_t> most =
      model_of(request).given.replicas.options.batching.max_length;
  if (!most) return asked.output_tokens;
  return std::min(asked.output_tokens, static_cast<std::int32_t>(*most) - asked.input_tokens);
}

void ServingRun::make_sequences() {
  sequences_.reserve(requests_.requests.size());
  for (const Request& request : requests_.requests) {
    const RequestId id = sequences_.next();
    Sequence& sequence = sequences_.emplace_back();
    sequence.prompt = request.input_tokens;
    sequence.to_emit = answer_tokens(id);
    sequence.prefix = request.prefix;
    sequence.prefix_tokens = request.prefix_tokens;
    if (request.chain > 0) sequence.chain = &requests_.chains[request.chain - 1];
    sequence.priority = request.priority;
  }
  result_.requests.resize(sequences_.size());
  stages_.resize(sequences_.size());
}

void ServingRun::line_up_arrivals() {
  loops_.resize(requests_.tenants.size());
  for (std::uint32_t i = 0; i < requests_.requests.size(); ++i) {
    const TenantId tenant = requests_.requests[i].tenant;
    if (requests_.tenants[tenant.index()].loop) {
      loops_[tenant].requests.emplace_back(i);
    } else {
      open_.emplace_back(i);
    }
  }
  std::stable_sort(open_.begin(), open_.end(), [this](RequestId a, RequestId b) {
    return requests_.requests[a.index()].arrival < requests_.requests[b.index()].arrival;
  });
  for (std::uint32_t i = 0; i < loops_.size(); ++i) {
    const std::optional<ClosedLoop>& loop = requests_.tenants[i].loop;
    const std::int64_t at_first = loop ? loop->concurrency : 0;
    for (std::int64_t k = 0; k < at_first; ++k) call_next(TenantId(i), Time{});
  }
}

// ---- the clock ----

ServingResult ServingRun::run() {
  if (!called_.empty()) run_instant(Time{});
  while (const std::optional<Time> now = next_instant()) run_instant(*now);
  check_end();
  return take_result();
}

std::optional<Time> ServingRun::next_instant() const {
  std::optional<Time> next;
  const auto consider = [&next](Time time) { next = next ? std::min(*next, time) : time; };
  if (!queue_.empty()) consider(queue_.next_time());
  if (next_open_ < open_.size()) consider(requests_.requests[open_[next_open_].index()].arrival);
  if (costs_.transport != nullptr) {
    if (const std::optional<Time> transfer = costs_.transport->next_event()) consider(*transfer);
  }
  if (costs_.host != nullptr) {
    if (const std::optional<Time> copy = costs_.host->next_event()) consider(*copy);
  }
  return next;
}

void ServingRun::run_instant(Time now) {
  while (!queue_.empty() && queue_.next_time() == now) {
    const Event event = queue_.pop();
    if (event.kind() == kStepEnds) {
      ending_.push_back(event.index());
    } else if (event.kind() == kRequestReady) {
      ready_.emplace_back(event.index());
    } else {
      called_.emplace_back(event.index());
    }
  }
  end_steps(now);
  if (costs_.transport != nullptr) end_transfers(now);
  if (costs_.host != nullptr) end_fetches(now);
  take_arrivals(now);
  begin_steps(now);
}

// ---- ends of steps ----

void ServingRun::end_steps(Time now) {
  std::sort(ending_.begin(), ending_.end());
  for (const std::uint32_t replica : ending_) end_step(replica, now);
  ending_.clear();
}

void ServingRun::end_step(std::uint32_t replica, Time now) {
  Replica& which = *replicas_[replica];
  which.end_step();
  touch(replica);
  for (const BatchEntry& entry : which.step().entries) book_entry(replica, entry, now);
  if (ended_.empty()) return;
  which.engine().end(which.state(), ended_);
  ended_.clear();
}

void ServingRun::book_entry(std::uint32_t replica, const BatchEntry& entry, Time now) {
  if (!entry.emits) return;
  Replica& which = *replicas_[replica];
  const std::int64_t accepted = accepted_drafts(which.state().options(), entry);
  const std::int32_t tokens = which.state().finish(entry, accepted);
  if (tokens == 0) return;
  result_.drafts_tried += entry.drafts;
  result_.drafts_accepted += std::min<std::int64_t>(accepted, entry.drafts);
  book_tokens(entry.request, tokens, now);
  Sequence& sequence = sequences_[entry.request];
  // A prefill replica makes the first token only.
  if (which.totals.is_prefill) sequence.to_emit = answer_tokens(entry.request);
  if (sequence.is_done()) {
    request_ends(replica, entry.request, now);
  } else if (which.totals.is_prefill) {
    hand_over(replica, entry.request, now);
  }
}

// A token comes from the model's pass; with speculation others come with it.
void ServingRun::book_tokens(RequestId request, std::int32_t tokens, Time now) {
  RequestRecord& record = result_.requests[request];
  if (record.tokens == 0) {
    record.first_token = now;
  } else {
    const Duration gap = now - record.last_token;
    record.longest_gap = std::max(record.longest_gap, gap);
    result_.gaps.add(gap);
  }
  if (tokens > 1) result_.gaps.add(Duration(), tokens - 1);
  record.last_token = now;
  record.tokens += tokens;
  if (stages_[request].part == RequestPart::kPrefill) {
    change_part(request, RequestPart::kDecode, now);
  }
}

std::int64_t ServingRun::accepted_drafts(const EngineOptions& engine,
                                         const BatchEntry& entry) const {
  if (entry.drafts == 0) return 0;
  if (engine.speculation.accepted) return *engine.speculation.accepted;
  // Each draft is right by itself, and counts if those before it are. Its number depends on the
  // token alone, not on when it is tried.
  const auto first = static_cast<std::uint64_t>(sequences_[entry.request].emitted);
  const RandomStream stream(options_.seed, RandomUse::kAcceptance, entry.request.index());
  std::int64_t accepted = 0;
  while (accepted < entry.drafts && stream.is_true(first + static_cast<std::uint64_t>(accepted),
                                                   *engine.speculation.acceptance)) {
    ++accepted;
  }
  return accepted;
}

void ServingRun::request_ends(std::uint32_t replica, RequestId request, Time now) {
  RequestRecord& record = result_.requests[request];
  change_part(request, RequestPart::kDecode, now);
  record.preemptions = sequences_[request].preemptions;
  record.replica = replica;
  replicas_[replica]->prompt_tokens -= sequences_[request].prompt;
  ended_.push_back(request);
  ++done_;
  const TenantId tenant = requests_.requests[request.index()].tenant;
  if (requests_.tenants[tenant.index()].loop) call_next(tenant, now);
}

// The next request of a closed loop comes.
void ServingRun::call_next(TenantId tenant, Time now) {
  LoopState& loop = loops_[tenant];
  if (loop.next >= loop.requests.size()) return;
  const bool is_first = now == Time{} && done_ == 0;
  const RequestId request = loop.requests[loop.next++];
  const Duration think = requests_.tenants[tenant.index()].loop->think;
  if (is_first || think == Duration()) {
    called_.push_back(request);
  } else {
    queue_.schedule(now + think, Event(kRequestComes, request.index()));
  }
}

// ---- from prefill to decode ----

void ServingRun::hand_over(std::uint32_t replica, RequestId request, Time now) {
  Replica& from = *replicas_[replica];
  from.prompt_tokens -= sequences_[request].prompt;
  lent_[request.index()] = Lent{replica, from.state().lend(request)};
  change_part(request, RequestPart::kQueue, now);
  Served& model = model_of(request);
  const std::size_t chosen = model.decode_router.choose(request, model.second);
  model.second[chosen]->prompt_tokens += sequences_[request].prompt;
  model.second[chosen]->incoming().push_back(request);
  touch(model.second_number + static_cast<std::uint32_t>(chosen));
}

void ServingRun::receive_incoming(std::uint32_t replica, Time now) {
  Replica& to = *replicas_[replica];
  while (!to.incoming().empty()) {
    const RequestId request = to.incoming().front();
    if (!to.receive(request)) return;
    to.incoming().pop_front();
    change_part(request, RequestPart::kTransfer, now);
    costs_.transport->start(now, {.request = request,
                                  .from = lent_[request.index()]->replica,
                                  .to = replica,
                                  .tokens = sequences_[request].computed});
  }
}

void ServingRun::end_transfers(Time now) {
  costs_.transport->advance(now, arrived_);
  for (const KvTransfer& transfer : arrived_) {
    std::optional<Lent>& lent = lent_[transfer.request.index()];
    replicas_[lent->replica]->state().take_back(transfer.request, lent->holding);
    touch(lent->replica);
    lent.reset();
    change_part(transfer.request, RequestPart::kDecode, now);
    replicas_[transfer.to]->state().join(transfer.request);
    touch(transfer.to);
  }
  arrived_.clear();
}

// ---- blocks from the host's memory ----

void ServingRun::begin_fetches(std::uint32_t replica, Time now) {
  Replica& which = *replicas_[replica];
  const HostTier& tier = which.state().kv().host();
  if (tier.empty()) return;
  const std::int64_t block = which.state().kv().block_tokens();
  const std::int64_t written = tier.totals().written - which.written_blocks;
  which.written_blocks += written;
  if (written > 0) {
    costs_.host->start(
        now, {.from = replica, .to = replica, .tokens = written * block, .way = KvWay::kToHost});
  }
  for (const EngineState::Fetch& fetch : which.state().fetches()) {
    change_part(fetch.request, RequestPart::kTransfer, now);
    costs_.host->start(now, {.request = fetch.request,
                             .from = replica,
                             .to = replica,
                             .tokens = fetch.blocks * block,
                             .way = KvWay::kFromHost});
  }
  which.state().fetches().clear();
}

void ServingRun::end_fetches(Time now) {
  costs_.host->advance(now, arrived_);
  for (const KvTransfer& copy : arrived_) {
    if (copy.way != KvWay::kFromHost) continue;
    const bool was_preempted = sequences_[copy.request].preemptions > 0;
    change_part(copy.request, was_preempted ? RequestPart::kPreempted : RequestPart::kQueue, now);
    replicas_[copy.to]->state().end_fetch(copy.request);
    touch(copy.to);
  }
  arrived_.clear();
}

// ---- arrivals ----

void ServingRun::take_arrivals(Time now) {
  for (const RequestId request : ready_) line_up(request);
  ready_.clear();
  while (next_open_ < open_.size() &&
         requests_.requests[open_[next_open_].index()].arrival == now) {
    arrive(open_[next_open_++], now);
  }
  while (!called_.empty()) {
    const RequestId request = called_.front();
    called_.pop_front();
    arrive(request, now);
  }
}

void ServingRun::arrive(RequestId request, Time now) {
  result_.requests[request].arrival = now;
  stages_[request] = {now, RequestPart::kQueue};
  if (options_.records_steps) {
    result_.part_records.push_back({request, now, RequestPart::kQueue});
  }
  const Duration front = model_of(request).given.replicas.options.host.front_time;
  if (front == Duration()) return line_up(request);
  queue_.schedule(now + front, Event(kRequestReady, request.index()));
}

void ServingRun::line_up(RequestId request) {
  Served& model = model_of(request);
  const std::size_t chosen = model.router.choose(request, model.first);
  model.first[chosen]->prompt_tokens += sequences_[request].prompt;
  model.first[chosen]->state().arrive(request);
  touch(model.first_number + static_cast<std::uint32_t>(chosen));
}

// ---- scheduling ----

void ServingRun::begin_steps(Time now) {
  std::sort(touched_.begin(), touched_.end());
  for (std::size_t i = 0; i < touched_.size(); ++i) begin_step(touched_[i], now);
  for (const std::uint32_t replica : touched_) is_touched_[replica] = false;
  touched_.clear();
}

void ServingRun::begin_step(std::uint32_t replica, Time now) {
  Replica& which = *replicas_[replica];
  if (!which.is_busy() && !which.incoming().empty()) receive_incoming(replica, now);
  const std::optional<Time> end = which.begin_step(now);
  book_preempted(which, now);
  if (end) {
    queue_.schedule(*end, Event(kStepEnds, replica));
    for (const RequestId request : which.step().admitted) {
      change_part(request, RequestPart::kPrefill, now);
    }
    for (const RequestId request : which.step().parked) {
      change_part(request, RequestPart::kQueue, now);
    }
    for (const RequestId request : which.step().unparked) {
      change_part(request, RequestPart::kDecode, now);
    }
    result_.hit_tokens += which.step().hit_tokens;
    result_.host_hit_tokens += which.step().host_hit_tokens;
    if (options_.records_steps) record_step(replica, *end);
    if (++result_.steps % kStepsBetweenProgress == 0 && progress_) {
      progress_(static_cast<double>(done_) / static_cast<double>(sequences_.size()));
    }
  }
  observe(replica, now);
  which.prepare();
  book_preempted(which, now);
  begin_fetches(replica, now);
}

void ServingRun::book_preempted(Replica& replica, Time now) {
  for (const RequestId request : replica.preempted()) {
    if (!sequences_[request].is_done()) change_part(request, RequestPart::kPreempted, now);
  }
  replica.preempted().clear();
}

void ServingRun::record_step(std::uint32_t replica, Time end) {
  const Replica& which = *replicas_[replica];
  StepRecord record{.replica = replica, .start = which.step_start(), .end = end};
  std::optional<std::int32_t> first;
  for (const BatchEntry& entry : which.step().entries) {
    if (entry.is_decode) continue;
    ++record.chunks;
    record.chunk_tokens += entry.tokens;
    first = first.value_or(entry.tokens);
    record.has_equal_chunks = record.has_equal_chunks && entry.tokens == *first;
  }
  record.decodes = which.step().decodes;
  record.drafts = which.step().drafts;
  record.load = {.running = static_cast<std::int64_t>(which.state().running().size()),
                 .waiting = static_cast<std::int64_t>(which.state().waiting().size()),
                 .kv_blocks = which.state().shown_blocks(which.state().kv().held())};
  result_.step_records.push_back(record);
}

// ---- the books ----

void ServingRun::change_part(RequestId request, RequestPart part, Time now) {
  Stage& stage = stages_[request];
  result_.requests[request].parts[static_cast<std::size_t>(stage.part)] += now - stage.since;
  const bool is_new = part != stage.part;
  stage = {now, part};
  if (is_new && options_.records_steps) result_.part_records.push_back({request, now, part});
}

void ServingRun::touch(std::uint32_t replica) {
  if (is_touched_[replica]) return;
  is_touched_[replica] = true;
  touched_.push_back(replica);
}

void ServingRun::observe(std::uint32_t replica, Time now) {
  const EngineState& state = replicas_[replica]->state();
  Load& before = loads_[replica];
  const Load load{.running = static_cast<std::int64_t>(state.running().size()),
                  .waiting = static_cast<std::int64_t>(state.waiting().size()),
                  .kv_blocks = state.shown_blocks(state.kv().held())};
  load_.running += load.running - before.running;
  load_.waiting += load.waiting - before.waiting;
  load_.kv_blocks += load.kv_blocks - before.kv_blocks;
  before = load;
  result_.peak_kv_blocks = std::max(result_.peak_kv_blocks, load_.kv_blocks);
  result_.load.add(now, load_);
}

void ServingRun::check_end() const {
  if (done_ < sequences_.size()) {
    for (std::size_t i = 0; i < replicas_.size(); ++i) {
      const EngineState& state = replicas_[i]->state();
      if (state.waiting().empty()) continue;
      const RequestId head = state.waiting().front();
      const Sequence& sequence = state.sequence(head);
      throw ServingStuck("replica " + std::to_string(i) + ": request " +
                         std::to_string(head.index()) + " has " + std::to_string(sequence.known()) +
                         " tokens to compute at once and waits for ever; " +
                         std::to_string(sequences_.size() - done_) + " requests have not ended");
    }
    throw std::logic_error("requests were lost");
  }
  for (const RequestRecord& record : result_.requests) {
    const Duration sum = std::accumulate(record.parts.begin(), record.parts.end(), Duration());
    if (sum != record.end_to_end()) throw std::logic_error("parts of a request don't add up");
  }
  for (const auto& replica : replicas_) {
    const KvPool& kv = replica->state().kv();
    if (kv.held() != 0) throw std::logic_error("KV blocks were lost");
    if (!kv.host().is_balanced_and_idle()) throw std::logic_error("blocks of the host were lost");
  }
}

ServingResult ServingRun::take_result() {
  for (const auto& replica : replicas_) {
    replica->totals.host = replica->state().kv().host().totals();
    result_.replicas.push_back(replica->totals);
    result_.preemptions += replica->totals.preemptions;
  }
  return std::move(result_);
}

}  // namespace stepsim
