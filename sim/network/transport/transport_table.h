// The kinds of transports, a row each: what it is, its source, and how its sender and receiver are
// made. docs/adding-a-transport.md says how to add one.

#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "sim/network/transport/hosts/credit.h"
#include "sim/network/transport/transport.h"
#include "sim/network/transport/transport_spec.h"

namespace stepsim {

// CreditOfHost is what the receivers of one host share.
struct CreditOfHost {
  std::unique_ptr<PullQueue> pulls;
  std::unique_ptr<CreditPacer> pacer;

  CreditSource* source() const {
    return pulls ? static_cast<CreditSource*>(pulls.get()) : pacer.get();
  }
};

struct TransportRow {
  TransportKind kind;
  std::string_view name;
  std::string_view help;
  std::string_view source;
  void (*set_defaults)(TransportSpec&);
  std::unique_ptr<Sender> (*make_sender)(const TransportSpec&, const MessageView&);
  std::unique_ptr<Receiver> (*make_receiver)(const TransportSpec&, const MessageView&,
                                             CreditOfHost&);
  // Makes what the receivers of a host share; nullptr: nothing.
  CreditOfHost (*make_credit)(const TransportSpec&, const MessageView&);
};

std::span<const TransportRow> transport_table();
const TransportRow& row_of(TransportKind kind);
TransportSpec default_transport(TransportKind kind);

// Returns the window of a message in bytes; 0: none.
double window_of(const TransportSpec& spec, const MessageView& message);

}  // namespace stepsim
