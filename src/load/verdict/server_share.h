// How much of a server's work was ours: its own counts held against those of the generator. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::load {

// Requests of the generator up to one moment.
struct RequestsSoFar {
  int64_t begun = 0;     // handed to the service
  int64_t answered = 0;  // of these: the server has answered them, well or not

  RequestsSoFar& operator+=(const RequestsSoFar& more) {
    begun += more.begun;
    answered += more.answered;
    return *this;
  }
  bool operator==(const RequestsSoFar&) const = default;
};

// Requests that a server counted between two looks at its statistics.
struct ServerShare {
  int64_t counted = 0;
  int64_t ours_at_most = 0;  // of these

  int64_t others_at_least() const { return counted - ours_at_most; }
  // Returns the share of the counted requests that others sent, 0 to 1.
  double others_share() const {
    return counted > 0 ? static_cast<double>(others_at_least()) / static_cast<double>(counted) : 0;
  }
  ServerShare& operator+=(const ServerShare& more) {
    counted += more.counted;
    ours_at_most += more.ours_at_most;
    return *this;
  }
  bool operator==(const ServerShare&) const = default;
};

// Compares what the server counted between two looks with our requests. `before` holds as the first look
// began, `after` as the second ended. Requests of ours that were on their way at either moment are taken for
// counted, so that other clients are never seen where there are none.
inline ServerShare CompareCounts(int64_t counted, const RequestsSoFar& before, const RequestsSoFar& after) {
  return {.counted = counted, .ours_at_most = std::clamp<int64_t>(after.begun - before.answered, 0, counted)};
}

}  // namespace weir::load
