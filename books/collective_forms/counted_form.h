// counted_form() is the closed form for cases in which only the routes tell the time: messages that
// share links on a torus, levels whose links several members share, rows of members over several
// levels. It lays the messages of every round over the routes:
//
//   pipelined  max over links of B/W, B all bytes over the link, plus the trips of all rounds: the
//              longest of each, of a ring through all members those of the way round
//   stepped    sum over rounds of (max over links of B_r/W + t): exact where all messages of a
//   round
//              take equally long and every member sends in it, and messages that share a link are
//              equal (then everybody begins the next round at the same time, and within a round
//              the busiest link of each message gives it its even share). Elsewhere the longest
//              way through the messages, each alone on its links, or the busiest link: exact where
//              each link carries the messages of one member in one lane, which follow each other;
//              else a lower bound.
//
// (The congestion form of round-based algorithms: Sack, Gropp 2012; De Sensi and others 2024.)
//
// O(messages x route), like a pipelined simulation.

#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "books/collective_forms/collective_formulas.h"
#include "sim/collectives/algorithm.h"
#include "sim/collectives/library_choice.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

struct CountedForm {
  double pipelined = 0;
  double stepped = 0;
  bool stepped_exact = false;
  bool in_step = false;  // stepped: everybody begins each round at the same time
};

// `chips`: the chip of each member. Returns nullopt if there are more than `most_slots` lanes x
// rounds x members.
std::optional<CountedForm> counted_form(const Cluster& cluster,
                                        std::span<const std::uint32_t> chips,
                                        const CollectiveAlgorithm& algorithm,
                                        const LibraryCost& cost, std::uint64_t most_slots);

}  // namespace stepsim
