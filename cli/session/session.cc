#include "cli/session/session.h"

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

bool goes_on(Session* session) {
  if (session == nullptr) return true;
  if (session->goes_on && !session->stopped && !session->goes_on()) session->stopped = true;
  return !session->stopped;
}

bool session_progress(void* session, Time, std::uint64_t, std::uint64_t) {
  return goes_on(static_cast<Session*>(session));
}

std::function<bool()> asks_session() {
  Session* const session = current_session();
  if (session == nullptr) return {};
  return [session] { return goes_on(session); };
}

std::optional<std::string> name_in_memory(std::string_view path) {
  constexpr std::string_view kMemory = "memory:";
  if (current_session() == nullptr || !path.starts_with(kMemory)) return std::nullopt;
  return std::string(path.substr(kMemory.size()));
}

}  // namespace stepsim
