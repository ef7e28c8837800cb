#include "books/collective_forms/counted_form.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "sim/collectives/round_ends.h"
#include "sim/hardware/group_links.h"

namespace stepsim {
namespace {

// The largest relative difference of messages that take equally long, if each has its links for
// itself. Messages that share links and begin a little apart soon avoid each other.
constexpr double kSame = 5e-4;
constexpr double kSameOnSharedLinks = 1e-12;

struct Counted {
  std::uint32_t lane = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  double trip = 0;
  std::size_t links_end = 0;  // end in Round::links; the previous message's end is the start
  Bandwidth last_width{};     // bandwidth of the last link
  double alone = 0;           // seconds on its narrowest link, alone
  double bytes = 0;           // bytes on the wire
};

struct Round {
  std::vector<Counted> messages;
  std::vector<LinkId> links;  // groups of links replace links behind adaptive switches
};

class Counter {
 public:
  Counter(const Cluster& cluster, std::span<const std::uint32_t> chips,
          const CollectiveAlgorithm& algorithm, const LibraryCost& cost)
      : cluster_(cluster),
        chips_(chips),
        algorithm_(algorithm),
        cost_(cost),
        of_node_(chips_per_node(cluster.places)),
        total_(cluster.fabric.links_and_groups(), 0.0),
        load_(total_.size(), 0.0),
        first_trip_(total_.size(), std::numeric_limits<double>::infinity()),
        trips_(algorithm.lanes(), std::vector<Duration>(algorithm.rounds())),
        next_(std::size_t{algorithm.lanes()} * algorithm.endpoints()),
        hop_(next_.size()),
        got_(next_.size(), 0.0),
        left_(next_.size(), 0.0),
        first_of_round_(total_.size(), nullptr),
        senders_(total_.size()) {}

  CountedForm count() {
    for (std::uint32_t round = 0; round < algorithm_.rounds(); ++round) {
      lay_out(round);
      close_round(round);
    }
    CountedForm form;
    form.pipelined = *std::ranges::max_element(total_) + to_seconds(trips() - longest_chunk_);
    if (algorithm_.cuts_through()) {
      form.stepped = form.pipelined;
      form.stepped_exact = form.in_step = true;
      return form;
    }
    if (even_) {
      form.stepped = in_step_;
      form.stepped_exact = form.in_step = true;
      return form;
    }
    form.stepped = std::max(*std::ranges::max_element(got_), *std::ranges::max_element(left_));
    form.stepped_exact = !meets_;
    if (algorithm_.gated()) form.stepped = std::max(form.stepped, longest_way());
    for (std::size_t link = 0; link < total_.size(); ++link) {
      if (total_[link] > 0) form.stepped = std::max(form.stepped, first_trip_[link] + total_[link]);
    }
    return form;
  }

 private:
  HopKind kind_of(const CollectiveMessage& message, std::uint32_t from) const {
    const auto inside = [&](std::uint32_t a, std::uint32_t b) {
      return chips_[a] / of_node_ == chips_[b] / of_node_;
    };
    const bool in_node =
        message.link ? message.in_node || inside(0, static_cast<std::uint32_t>(chips_.size() - 1))
                     : inside(from, message.to);
    return in_node ? cluster_.library.inside : HopKind::kNetwork;
  }

  // Returns the trips on one way through all rounds; for rings, those of the last byte.
  Duration trips() const {
    if (!algorithm_.relays()) return end_of_rounds(algorithm_, trips_);
    Duration longest{};
    for (std::uint32_t lane = 0; lane < algorithm_.lanes(); ++lane) {
      const auto of_lane = [&](const auto& all) {
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(seat(lane, 0));
        return std::vector(first, first + algorithm_.endpoints());
      };
      longest = std::max(longest, end_of_relay(algorithm_.rounds(), of_lane(next_), of_lane(hop_)));
    }
    return longest;
  }

  // Returns the adder of the switch at the end of a link, if adding takes time.
  std::optional<LinkId> adder_of(LinkId link) const {
    const std::size_t node = cluster_.fabric.link(link).to.index();
    return node < cluster_.adders.size() ? cluster_.adders[node] : std::nullopt;
  }

  // Sets uses_ and latency_ for a message. Bytes over one link of a group also count for the group.
  void find_uses(const CollectiveMessage& message, std::uint32_t from) {
    const Fabric& fabric = cluster_.fabric;
    uses_.clear();
    latency_ = Duration{};
    if (message.link) {
      latency_ = fabric.link(*message.link).latency;
      const LinkUse spread = fabric.spread(*message.link);
      if (spread.link != *message.link) uses_.push_back(spread);
      uses_.push_back({*message.link, 1});
      return;
    }
    route_.clear();
    cluster_.router->route(cluster_.places.chips[chips_[from]],
                           cluster_.places.chips[chips_[message.to]], 0, route_);
    for (const LinkId link : route_) {
      latency_ += fabric.link(link).latency;
      uses_.push_back(fabric.spread(link));
    }
  }

  // Lays the messages of a round over their links.
  void lay_out(std::uint32_t round) {
    round_.messages.clear();
    round_.links.clear();
    for (std::uint32_t lane = 0; lane < algorithm_.lanes(); ++lane) {
      for (std::uint32_t from = 0; from < algorithm_.endpoints(); ++from) {
        const auto message = algorithm_.message(lane, round, from);
        if (!message) continue;
        const auto kind = static_cast<std::size_t>(kind_of(*message, from));
        const std::size_t begin = round_.links.size();
        find_uses(*message, from);
        Duration trip = cost_.hop[kind];
        const double bytes = static_cast<double>(message->bytes.value()) * cost_.wire[kind];
        double alone = 0;
        Bandwidth width{};
        for (const LinkUse& use : uses_) {
          width = cluster_.fabric.width(use);
          const double seconds = bytes / width.value();
          alone = std::max(alone, seconds);
          load_[use.link.index()] += seconds;
          round_.links.push_back(use.link);
        }
        trip += latency_;
        if (algorithm_.forwarded_chunk() > Bytes(0)) {
          const Duration of_chunk = duration_from_seconds(
              alone * static_cast<double>(algorithm_.forwarded_chunk().value()) /
              static_cast<double>(message->bytes.value()));
          longest_chunk_ = std::max(longest_chunk_, of_chunk);
          trip += of_chunk;
        }
        if (message->link && message->reduce) {
          if (const auto adder = adder_of(*message->link)) {
            load_[adder->index()] += static_cast<double>(message->bytes.value()) /
                                     cluster_.fabric.link(*adder).bandwidth.value();
            round_.links.push_back(*adder);
            meets_ = true;  // what follows the message through the adder waits for it
            width = cluster_.fabric.link(*adder).bandwidth;
          }
        }
        const double trip_s = to_seconds(trip);
        for (std::size_t i = begin; i < round_.links.size(); ++i) {
          double& first = first_trip_[round_.links[i].index()];
          first = std::min(first, trip_s);
          std::optional<std::size_t>& sender = senders_[round_.links[i].index()];
          meets_ = meets_ || (sender && *sender != seat(lane, from));
          sender = seat(lane, from);
        }
        trips_[lane][round] = std::max(trips_[lane][round], trip);
        if (algorithm_.relays()) {
          next_[seat(lane, from)] = message->to;
          hop_[seat(lane, from)] = trip;
        }
        round_.messages.push_back({.lane = lane,
                                   .from = from,
                                   .to = message->to,
                                   .trip = trip_s,
                                   .links_end = round_.links.size(),
                                   .last_width = width,
                                   .alone = alone,
                                   .bytes = bytes});
      }
    }
  }

  // Finds how long the round's messages take together and alone, then adds their loads to the
  // total.
  void close_round(std::uint32_t round) {
    if (round_.messages.empty()) return;
    double shortest = std::numeric_limits<double>::infinity();
    double longest = 0;
    bool shares = false;  // messages share a link
    std::size_t begin = 0;
    for (const Counted& message : round_.messages) {
      double busiest = 0;
      for (std::size_t i = begin; i < message.links_end; ++i) {
        const std::size_t link = round_.links[i].index();
        busiest = std::max(busiest, load_[link]);
        const Counted*& first = first_of_round_[link];
        if (first == nullptr) first = &message;
        even_ = even_ && are_twins(*first, message);
      }
      begin = message.links_end;
      shares = shares || busiest > message.alone * (1 + kSameOnSharedLinks);
      shortest = std::min(shortest, message.trip + busiest);
      longest = std::max(longest, message.trip + busiest);
    }
    const std::size_t everybody = std::size_t{algorithm_.lanes()} * algorithm_.endpoints();
    const double same = shares ? kSameOnSharedLinks : kSame;
    const bool alike = shortest >= (1 - same) * longest;
    const bool all_send = round_.messages.size() == everybody;
    even_ = even_ && !algorithm_.gated() && alike && (algorithm_.rounds() == 1 || all_send);
    in_step_ += longest;

    ends_.clear();
    for (const Counted& message : round_.messages) {
      const std::size_t from = seat(message.lane, message.from);
      ends_.push_back(
          std::max(got_[from] + message.trip + message.alone, left_[from] + message.alone));
      if (algorithm_.gated()) {
        ways_.push_back({.slot = slot(message.lane, round, message.from),
                         .to = slot(message.lane, round, message.to),
                         .trip = message.trip,
                         .alone = message.alone});
      }
    }
    wait_for_all(round);
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      const Counted& message = round_.messages[i];
      left_[seat(message.lane, message.from)] = ends_[i];
      double& got = got_[seat(message.lane, message.to)];
      got = std::max(got, ends_[i]);
    }
    for (const Wait& wait : waits_) {
      double& end = got_[seat(wait.lane, wait.to)];
      end = std::max(end, wait.at);
    }
    waits_.clear();
    for (const LinkId link : round_.links) {
      total_[link.index()] += load_[link.index()];
      load_[link.index()] = 0;
      first_of_round_[link.index()] = nullptr;
    }
  }

  // Returns whether two messages that share a link begin and end on it together.
  static bool are_twins(const Counted& one, const Counted& other) {
    const auto same = [](double a, double b) {
      return std::abs(a - b) <= kSameOnSharedLinks * std::max(a, b);
    };
    return same(one.trip, other.trip) && same(one.bytes, other.bytes);
  }

  // A member that gets several messages in a round has all of them when its link has carried them.
  void wait_for_all(std::uint32_t round) {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < round_.messages.size(); ++i) {
      const Counted& message = round_.messages[i];
      const LinkId last = round_.links[message.links_end - 1];
      const std::size_t first = std::exchange(begin, message.links_end);
      if (first == message.links_end) continue;
      if (algorithm_.receives(message.lane, round, message.to) < 2) continue;
      Arrivals& there = arrivals_[last.index()];
      const double start = ends_[i] - message.alone;
      if (there.work == 0 || start < there.start) there.start = start;
      there.work += message.bytes / message.last_width.value();
      there.lane = message.lane;
      there.to = message.to;
    }
    for (auto& [link, there] : arrivals_) {
      waits_.push_back({.lane = there.lane, .to = there.to, .at = there.start + there.work});
    }
    arrivals_.clear();
  }

  // Returns when the last round of a gated algorithm ends if each message is alone on its links.
  // Lanes refer to rounds of each other, so this repeats over all messages until nothing changes.
  double longest_way() const {
    const std::size_t slots = slot(algorithm_.lanes(), 0, 0);
    const std::uint32_t endpoints = algorithm_.endpoints();
    std::vector<double> got(slots, 0.0);   // when everything of the rounds so far has arrived
    std::vector<double> left(slots, 0.0);  // when what was sent in them has arrived
    std::vector<LaneGate> gates;
    bool moved = true;
    const auto raise = [&](double& at, double end) {
      if (end <= at) return;
      at = end;
      moved = true;
    };
    while (std::exchange(moved, false)) {
      for (const Way& way : ways_) {
        const auto member = static_cast<std::uint32_t>(way.slot % endpoints);
        const auto round = static_cast<std::uint32_t>(way.slot / endpoints % algorithm_.rounds());
        const auto lane = static_cast<std::uint32_t>(way.slot / endpoints / algorithm_.rounds());
        double start = 0;
        double before = 0;
        if (round > 0) {
          start = got[way.slot - endpoints];
          before = left[way.slot - endpoints] + way.alone;
        }
        gates.clear();
        algorithm_.gates(lane, round, member, gates);
        for (const LaneGate& gate : gates) {
          const std::size_t behind = slot(gate.lane, gate.round, member);
          start = std::max({start, got[behind], left[behind]});
        }
        const double end = std::max(start + way.trip + way.alone, before);
        raise(left[way.slot], end);
        raise(got[way.to], end);
      }
      for (std::size_t at = endpoints; at < slots; ++at) {
        if (at / endpoints % algorithm_.rounds() == 0) continue;
        raise(got[at], got[at - endpoints]);
        raise(left[at], left[at - endpoints]);
      }
    }
    return std::max(*std::ranges::max_element(got), *std::ranges::max_element(left));
  }

  std::size_t slot(std::uint32_t lane, std::uint32_t round, std::uint32_t member) const {
    return (std::size_t{lane} * algorithm_.rounds() + round) * algorithm_.endpoints() + member;
  }
  std::size_t seat(std::uint32_t lane, std::uint32_t member) const {
    return std::size_t{lane} * algorithm_.endpoints() + member;
  }

  const Cluster& cluster_;
  std::span<const std::uint32_t> chips_;
  const CollectiveAlgorithm& algorithm_;
  const LibraryCost& cost_;
  std::uint32_t of_node_;
  std::vector<double> total_;       // seconds in all rounds, by link
  std::vector<double> load_;        // seconds in this round, by link
  std::vector<double> first_trip_;  // shortest trip of the link's messages
  std::vector<std::vector<Duration>> trips_;
  std::vector<std::uint32_t> next_;  // for algorithms that relay, by lane and member
  std::vector<Duration> hop_;
  // By lane and member, if messages are alone: when everything so far has arrived at the member,
  // and when the last message that it sent has arrived.
  std::vector<double> got_;
  std::vector<double> left_;
  Duration longest_chunk_{};  // of those that are stored and forwarded
  std::vector<double> ends_;
  struct Way {
    std::size_t slot;  // lane, round and sender
    std::size_t to;    // the same index of the receiver
    double trip;
    double alone;
  };
  std::vector<Way> ways_;  // for gated algorithms
  struct Arrivals {
    double start = 0;
    double work = 0;
    std::uint32_t lane = 0;
    std::uint32_t to = 0;
  };
  std::map<std::uint32_t, Arrivals> arrivals_;  // this round's arrivals, by link
  struct Wait {
    std::uint32_t lane;
    std::uint32_t to;
    double at;
  };
  std::vector<Wait> waits_;
  Round round_;
  std::vector<LinkId> route_;  // route of the current message
  std::vector<LinkUse> uses_;
  Duration latency_{};
  std::vector<const Counted*> first_of_round_;       // by link, while a round is closed
  std::vector<std::optional<std::size_t>> senders_;  // by link: seat of the last message
  bool meets_ = false;  // a link, or a switch that adds, serves several seats
  bool even_ = true;
  double in_step_ = 0;
};

}  // namespace

std::optional<CountedForm> counted_form(const Cluster& cluster,
                                        std::span<const std::uint32_t> chips,
                                        const CollectiveAlgorithm& algorithm,
                                        const LibraryCost& cost, std::uint64_t most_slots) {
  if (std::uint64_t{algorithm.lanes()} * algorithm.rounds() * algorithm.endpoints() > most_slots) {
    return std::nullopt;
  }
  return Counter(cluster, chips, algorithm, cost).count();
}

}  // namespace stepsim
