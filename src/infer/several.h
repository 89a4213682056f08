// One Endpoint over several servers: each call goes to one of them, and to another where that one is lost.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "infer/choices.h"
#include "infer/endpoint.h"

namespace weir::infer {

// One of the servers.
struct OneServer {
  std::string name;
  std::unique_ptr<Endpoint> endpoint;
  // It stands for several itself: its Calls tell of them, with every call that may be sent again as `moved`.
  // A call may be sent to it again.
  bool is_several = false;
};

// Returns an Endpoint over `servers`. A call that lost its connection (kIo), or that the server refused for
// now (kOverloaded), is sent once more, to another server; every other error is the caller's. Calls counts
// both. Info fails unless all servers have the same model; Statistics are the sum of all. If the endpoints
// are driven, Drive of the first must drive all. REQUIRES: at least one server. `clock` must outlive it.
std::unique_ptr<Endpoint> MakeSeveral(Balance balance, std::vector<OneServer> servers, const Clock& clock);

}  // namespace weir::infer
