#include "cli/session.h"

namespace stepsim {
namespace {

thread_local constinit Session* session_of_thread = nullptr;

}  // namespace

InSession::InSession(Session& session) : before_(session_of_thread) {
  session_of_thread = &session;
}

InSession::~InSession() {
  session_of_thread = before_;
}

Session* current_session() noexcept {
  return session_of_thread;
}

bool session_goes_on() {
  const Session* const session = current_session();
  return session == nullptr || !session->goes_on || session->goes_on();
}

void throw_if_stopped() {
  if (!session_goes_on()) throw SessionStopped();
}

std::optional<std::string> name_in_memory(std::string_view path) {
  constexpr std::string_view kMemory = "memory:";
  if (current_session() == nullptr || !path.starts_with(kMemory)) return std::nullopt;
  return std::string(path.substr(kMemory.size()));
}

}  // namespace stepsim
