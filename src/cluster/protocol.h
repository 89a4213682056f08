// The words of the agents' protocol. Private to agent.h and cluster.h.
//
// An agent says kHello, rank 0 answers kWelcome or kRefuse. Then rank 0 sends kPing, kCall, kStop, kRelease
// and kBye, the agent kPong, kAnswer, kFault and kArrive, and both kBeat.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "cluster/message.h"

namespace weir::cluster {

constexpr char kKind[] = "kind";
constexpr char kHello[] = "hello", kWelcome[] = "welcome", kRefuse[] = "refuse", kPing[] = "ping",
               kPong[] = "pong", kCall[] = "call", kAnswer[] = "answer", kFault[] = "fault", kStop[] = "stop",
               kArrive[] = "arrive", kRelease[] = "release", kBeat[] = "beat", kBye[] = "bye";

inline Message MakeMessage(const char* kind, Json body = Json::object()) {
  body[kKind] = kind;
  return {.body = std::move(body), .block = ""};
}

inline std::string KindOf(const Message& message) { return GetString(message.body, kKind).value_or(""); }

inline Message MakeFault(int64_t id, const Error& error) {
  return MakeMessage(kFault,
                     {{"id", id}, {"code", static_cast<int>(error.code)}, {"message", error.message}});
}

inline Error FaultOf(const Message& message) {
  const auto code = GetInteger(message.body, "code");
  const bool known = code && *code >= 0 && *code <= static_cast<int>(ErrorCode::kInternal);
  return {.code = known ? static_cast<ErrorCode>(*code) : ErrorCode::kInternal,
          .message = GetString(message.body, "message").value_or("a fault without words")};
}

}  // namespace weir::cluster
