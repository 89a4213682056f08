// The words of the agents' protocol as values. Private to this module.
//
// An agent says Hello, rank 0 answers Welcome or Refuse. Then rank 0 says Ping, Call, Stop, Release and Bye,
// the agent Pong, Answer, Fault and Arrive, and both Beat. turns.h has the order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/error.h"
#include "cluster/message.h"

namespace weir::cluster {

constexpr int kMostHosts = 100'000;

namespace word {

struct Hello {
  static constexpr char kKind[] = "hello";
  std::string name, build;
  std::optional<int> rank;  // that it wants
  int world = 0;            // as its launcher tells; 0: not known
};
struct Welcome {
  static constexpr char kKind[] = "welcome";
  int rank = 0, world = 1;
};
struct Refuse {
  static constexpr char kKind[] = "refuse";
  std::string why;
};
struct Ping {
  static constexpr char kKind[] = "ping";
  int64_t n = 0;
};
struct Pong {
  static constexpr char kKind[] = "pong";
  int64_t n = 0;
  int64_t at = 0;  // nanoseconds of the agent's clock
};
struct Call {
  static constexpr char kKind[] = "call";
  int64_t id = 0;
  std::string verb;
  Message payload;
};
struct Answer {
  static constexpr char kKind[] = "answer";
  int64_t id = 0;
  Message payload;
};
struct Fault {
  static constexpr char kKind[] = "fault";
  int64_t id = 0;
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};
struct Stop {
  static constexpr char kKind[] = "stop";
};
struct Arrive {
  static constexpr char kKind[] = "arrive";
  int64_t step = 0;
  bool last = false;
};
struct Release {
  static constexpr char kKind[] = "release";
  int64_t step = 0;
  bool last = false;
  int64_t waited_ns = 0;  // for the last to arrive
};
struct Beat {
  static constexpr char kKind[] = "beat";
};
struct Bye {
  static constexpr char kKind[] = "bye";
};

}  // namespace word

using Word =
    std::variant<word::Hello, word::Welcome, word::Refuse, word::Ping, word::Pong, word::Call, word::Answer,
                 word::Fault, word::Stop, word::Arrive, word::Release, word::Beat, word::Bye>;

Message ToMessage(Word word);
// kCorrupt names the kind and the key that is missing, or of another type, or out of its range.
Result<Word> WordFrom(Message message);
// "call", for messages.
std::string KindOf(const Word& word);

}  // namespace weir::cluster
