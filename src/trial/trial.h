// One trial: a server where the architecture has one, the application over it as a process of its own, and
// what both used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "trial/site.h"

namespace weir::trial {

enum class Protocol { kHttp, kGrpc };
enum class Mode { kSync, kAsync };
std::string_view ToString(Protocol protocol);  // "http", "grpc"
std::string_view ToString(Mode mode);          // "sync", "async"

struct Setting {
  Architecture architecture = Architecture::kInProcess;
  Protocol protocol = Protocol::kHttp;  // without meaning in one process
  Mode mode = Mode::kSync;
};

// What every trial of a comparison does alike.
struct Workload {
  std::string program;  // this program
  std::string model_folder;
  std::vector<std::string> data;       // as `weir run` takes it
  std::vector<std::string> arguments;  // of `weir run`, for all: batch, passes over the data
  std::vector<std::string>
      in_process_arguments;  // in one process only: what sets the engine as the servers have it
  int in_flight = 4;         // batches under way in async mode
  Duration timeout = 600s;   // of the application
};

struct Outcome {
  int64_t images = 0;
  double images_per_s = 0;
  double client_cpu_ms = 0;  // an image: of the application's process; in one process the engine's is in it
  std::optional<double> server_cpu_ms;  // an image: of the server's process
  std::optional<Duration> server_start;
  std::string answers;  // the protocol of answers, whole
};

// Server and application start anew and are gone when this returns. Errors name the setting.
Result<Outcome> RunTrial(Site& site, const Workload& workload, const Setting& setting, const Clock& clock);

// The parts that only reckon.

// "weir run ..." for a setting; `model` is the model's folder or its URL.
std::vector<std::string> RunArguments(const Workload& workload, const Setting& setting,
                                      const std::string& model, const std::string& answers_file);
// From the JSON of `weir run`. kCorrupt names the key that is not there; pictures that failed are kIo.
Result<Outcome> ReadResult(const Json& result);

}  // namespace weir::trial
