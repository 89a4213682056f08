// The command lines of a trial. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "infer/tensor.h"
#include "trial/setting.h"

namespace weir::trial {

// How long a trial is.
struct Length {
  int64_t passes = 1;             // of the application, over its data
  int64_t requests = 0;           // of the load generator
  std::optional<double> seconds;  // of the load generator, instead; of live streams
};

// Where the client finds things.
struct ClientPlaces {
  std::string program;                    // this program
  std::string model;                      // a path, or the model's URL
  std::vector<std::string> data;          // as weir run takes it; empty: the load generator makes its own
  std::string expected;                   // a predictions file, for the load generator; empty: none
  std::string answers;                    // the file to write them to, of the application
  int streams = 0;                        // of the engine in one process: as a server would have them
  std::vector<int> server_pids;           // to watch; empty: they are not on this machine
  std::string metrics_url;                // of the server; empty: it has none
  std::vector<std::string> client_hosts;  // that the load generators play on; empty: this machine
  std::map<std::string, infer::Shape> shapes;  // of inputs with free dimensions
  uint64_t seed = 1;
};

// "weir run ...", "weir load ..." or "weir watch ...", with its result as JSON on standard output.
std::vector<std::string> ClientArguments(const Setting& setting, const Length& length,
                                         const ClientPlaces& places);

// The phases that run beside the client, until they are told to end.
// "PROGRAM feed SET --bench ...", with its result in the file `json`.
std::vector<std::string> FeedArguments(const std::string& program, const std::string& set, uint64_t seed,
                                       const std::string& json);
// "PROGRAM prepare SOURCE -o FOLDER ...": each picture many times.
std::vector<std::string> PrepareArguments(const std::string& program, const std::string& source,
                                          const std::string& folder);

// "PROGRAM serve ..." with launch::ServerCommand's placeholders for address, ports and repository.
std::vector<std::string> ServeArguments(const Setting& setting);

}  // namespace weir::trial
