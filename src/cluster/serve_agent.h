// An agent from its options to its end: waits for rank 0, or goes to it.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/agent.h"
#include "cluster/rank.h"

namespace weir::cluster {

struct ServeAgentOptions {
  std::string listen, rendezvous;  // one of them: HOST:PORT
  // "-": the first line of standard input, whose end ends the agent; empty: TokenFor the address.
  std::string token_file;
  std::string name, build;   // of this host; empty name: its own
  int rank = -1, world = 0;  // below 0 and 0: as the launcher's environment tells
  bool once = false;         // ends with the first run
  Duration timeout = 60s;    // for rank 0 to be reached at its rendezvous
};

// kInvalidArgument names options that do not fit together, and an address of others without a token. Other
// errors are those of the network, and, where the agent ends with its run, of the run. Callers that do not
// finish their handshakes keep nobody out; `note` has their number at times.
Status ServeAgent(const ServeAgentOptions& options, const Environment& environment,
                  const std::function<Verbs()>& make_verbs,
                  const std::function<void(const std::string& line)>& note, const Clock& clock,
                  const std::stop_token& stop);

// The line that an agent notes when it can be called, and the address in it.
std::string ListeningLine(const std::string& address);
std::optional<std::string> AddressIn(std::string_view line);

}  // namespace weir::cluster
