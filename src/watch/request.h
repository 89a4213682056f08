// A watch as a person asks for it: streams, models, outputs, and the search for the most streams.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "monitor/server_watch.h"
#include "watch/identity_lookup.h"
#include "watch/session.h"
#include "watch/webhook_queue.h"

namespace weir::watch {

struct WatchRequest {
  std::vector<std::string> streams;  // as ParseStream reads them
  std::string embed, classify;       // one model, or none beside a detection model
  ModelOptions engine;               // of all models: engine, device, threads, streams, precision and batch
  WatchOptions options;              // without streams and models: CompleteRequest sets them
  IdentityOptions identities{.embedding_model = {}};
  std::string events, frames;  // files of lines; "-": standard output; empty: none
  std::string json;            // where the result goes: not where events or frames go
  std::string webhook;         // URL; empty: none
  EventFilter webhook_events = EventFilter::kAny;
  std::string live;             // HOST:PORT of a page; empty: none
  monitor::ServerPlace server;  // that is watched meanwhile
  bool find_max = false;        // searches the most copies of the streams that hold the deadline
  Duration trial = 10s;         // of each trial of that search
  int64_t most_streams = 256;   // at which it ends
  double least_in_time = 0;     // percent of the captured frames, for the exit status
};

// Returns the options with the streams and the models of the request. kInvalidArgument names the flags that
// do not go together, or the stream that cannot be read.
Result<WatchOptions> CompleteRequest(const WatchRequest& request);

// Returns copies of the streams, one after the other, until there are `count`. Made streams differ in their
// seeds.
std::vector<StreamSpec> CopiesOf(const std::vector<StreamSpec>& streams, int64_t count);

}  // namespace weir::watch
