// How calls were spread over several servers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::results {

struct ServerShares {
  struct Server {
    std::string server;
    int64_t answered = 0;  // calls with a result
    int64_t failed = 0;    // calls with an error
    int64_t moved = 0;     // calls that were lost or refused here and sent again to another server
    double share = 0;      // of all answers
    bool operator==(const Server&) const = default;
  };
  std::string balance;   // the policy
  int64_t retried = 0;   // calls that were sent again
  double imbalance = 0;  // the largest distance of a server's answers from their mean, over the mean
  std::vector<Server> each;

  bool operator==(const ServerShares&) const = default;
};

// Fills in what follows from the counts of `each`.
ServerShares MakeServerShares(std::string balance, std::vector<ServerShares::Server> each);

// Returns lines for people, each after two spaces: a line of the whole, and one for each server.
std::string ServerSharesText(const ServerShares& shares);

}  // namespace weir::results
