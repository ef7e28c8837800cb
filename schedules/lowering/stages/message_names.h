// Names for messages that are posted together, in the op graph.

#pragma once

#include <span>
#include <string>

#include "schedules/pipeline/posting.h"
#include "sim/program/op_graph.h"

namespace stepsim {

inline MessageKind kind_of(const PostedMessage& message) {
  return message.is_activation ? MessageKind::kActivation : MessageKind::kGradient;
}

// Returns "send activation and receive 2 gradients". The name does not depend on the order of the
// messages, so traces show equal batches in one colour.
inline std::string name_of(std::span<const Message> batch) {
  std::string name;
  for (const bool is_send : {true, false}) {
    for (const MessageKind kind :
         {MessageKind::kActivation, MessageKind::kGradient, MessageKind::kState}) {
      int count = 0;
      for (const Message& message : batch) {
        if (message.is_send == is_send && message.kind == kind) ++count;
      }
      if (count == 0) continue;
      name += (name.empty() ? "" : " and ") + std::string(is_send ? "send " : "receive ") +
              (count == 1 ? "" : std::to_string(count) + " ") + std::string(name_of(kind)) +
              (count == 1 ? "" : "s");
    }
  }
  return name;
}

}  // namespace stepsim
