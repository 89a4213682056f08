// From a trial's measurements to the metrics of its Record and their verdict. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "infer/endpoint.h"
#include "results/trial_result.h"
#include "results/watch_result.h"
#include "trial/setting.h"

namespace weir::trial {

// Observations beside the client's own result.
struct Observation {
  std::optional<double> server_start_s;  // from launch to ready
  // A link: bytes each way while the client lived, and its capacity, Gbit/s.
  struct Link {
    int64_t to_server = 0, from_server = 0;
    double gbit_per_s = 0;
    // For a link that varies: how often its rate was set, and the longest delay of a change.
    std::optional<int64_t> rate_changes;
    std::optional<double> latest_change_ms;
  };
  std::optional<Link> link;
  // From weir monitor on the server's own node, if that is another; else why there is none.
  std::optional<results::Resources> there;
  std::string there_absent;
  // A level of the load generator beside the application, which has no response times of its own; else why
  // there is none.
  std::optional<results::LoadResult::Level> responses;
  std::string responses_absent;
  // The URLs of several servers, or of those behind a balancer, and the answers of each while the client
  // lived.
  std::vector<std::string> server_urls;
  std::vector<int64_t> server_answers;
  std::optional<infer::ModelInfo> served;               // the model as the first of the servers describes it
  std::optional<results::TrialMetrics::Beside> beside;  // other phases that ran while the client did
  std::optional<int64_t> answers_differ;  // from the reference's; nothing where they were not compared
  int64_t answers = 0;                    // that were compared
};

struct Outcome {
  results::TrialMetrics metrics;
  results::Verdict verdict;
};

// The result of the client: of weir run, of weir load, or of weir watch.
using ClientResult = std::variant<results::RunResult, results::LoadResult, results::WatchResult>;

// Metrics are the client's by its own names (docs/results.md); a load generator's rows are images.
// recogniser_cpu, server_cpu, gpu and container figures are those of the server that the client watched, and
// all of them stand under server_resources too. What an architecture has not stands as absent.NAME with the
// reason. kCorrupt names what `result` lacks, kIo says that nothing was answered.
Result<Outcome> MakeOutcome(const ClientResult& result, const Setting& setting, const Observation& seen);

}  // namespace weir::trial
