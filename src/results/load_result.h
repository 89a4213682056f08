// The result of a load, as `weir load --json` prints it, and as a trial and `weir load --validate` read it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "results/monitor_result.h"
#include "results/server_shares.h"

namespace weir::results {

struct LoadResult {
  static constexpr std::pair<const char*, double> kPercentiles[] = {
      {"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99_9", 0.999}};
  static constexpr size_t kPercentileCount = std::size(kPercentiles);
  // Response times fall into buckets: k holds those from 2^(k/32) to 2^((k+1)/32) us, 2.2 % wide. Bucket 0
  // also holds shorter ones. Counts of several trials may be added.
  static constexpr double kBucketsPerDoubling = 32;
  static double BucketBeginMs(int64_t bucket);
  static int64_t BucketOf(double ms);
  static constexpr const char* kMean = "mean";  // the mean's name in Times::intervals_95

  static constexpr const char* kClosed = "closed";  // of Level::load_model
  static constexpr const char* kOpen = "open";

  // In JSON a list of two numbers.
  struct Interval {
    double low = 0, high = 0;
    Json ToValue() const;
    static Result<Interval> FromValue(const Json& json);
    bool operator==(const Interval&) const = default;
  };
  // Milliseconds. A percentile is absent if n does not support it.
  struct Times {
    std::optional<double> mean, standard_deviation, min;
    std::array<std::optional<double>, kPercentileCount> percentiles;
    std::optional<double> max;
    int64_t n = 0;
    std::map<std::string, Interval> intervals_95;  // by the name of a percentile, or kMean

    std::optional<Interval> IntervalOf(const std::string& name) const;
    bool operator==(const Times&) const = default;
  };
  // The verdicts on both claims: VALID, SUSPECT or INVALID.
  struct Verdicts {
    std::string throughput, latency;
    bool operator==(const Verdicts&) const = default;
  };
  struct Reason {
    std::string reason;
    std::vector<std::string> about;  // the claims
    std::string evidence;
    bool operator==(const Reason&) const = default;
  };
  // The generator's own counts in a run.
  struct Generator {
    int64_t sent = 0, late = 0;  // late: more than 1 ms after the plan
    double sent_per_s = 0;
    std::optional<double> empty_share;  // of a closed loop's slots, over 1 ms at a time
    double busiest_thread = 0;          // share of the time
    bool operator==(const Generator&) const = default;
  };
  struct Run {
    double throughput_per_s = 0, measured_s = 0;
    int64_t answered = 0, planned = 0;
    std::optional<double> warm_up_s;
    std::optional<int64_t> warm_up_requests;
    bool by_count = false;
    std::optional<Generator> generator;
    Times response;
    std::optional<Times> client_send;
    bool operator==(const Run&) const = default;
  };
  // Milliseconds of a request on average, by the server's account.
  struct ServerTimes {
    double queue = 0, compute_input = 0, compute_infer = 0, compute_output = 0, request = 0;
    double outside = 0;             // may be below 0
    std::optional<double> receive;  // if its responses tell
    std::optional<double> rows_per_batch;
    bool operator==(const ServerTimes&) const = default;
  };
  // Parts of the mean response time, milliseconds. Some may be below 0.
  struct Split {
    struct Server {
      std::optional<double> receive;
      double queue = 0, compute_input = 0, compute_infer = 0, compute_output = 0, rest = 0;
      bool operator==(const Server&) const = default;
    };
    double slip = 0, client_receive = 0;
    std::optional<double> client_send;  // if the client tells
    double wire_and_wait = 0;
    std::optional<Server> server;
    bool operator==(const Split&) const = default;
  };
  // The answered requests above a percentile.
  struct Slowest {
    double above_percentile = 0;
    int64_t n = 0;
    double mean = 0;
    Split split;
    bool operator==(const Slowest&) const = default;
  };
  // Requests that the server counted, and those of them that may be the generator's.
  struct ServerRequests {
    int64_t counted = 0, ours_at_most = 0, others_at_least = 0;
    bool operator==(const ServerRequests&) const = default;
  };
  struct Mlperf {
    std::string metric;
    bool valid = false;
    std::vector<std::string> shortfalls;
    std::optional<double> value;
    bool operator==(const Mlperf&) const = default;
  };
  // One of equal parts of a trace.
  struct Part {
    double from_s = 0, to_s = 0;
    int64_t planned = 0, answered = 0, failed = 0;
    double planned_per_s = 0;
    Times response;
    bool operator==(const Part&) const = default;
  };
  // The part of one host, where several hosts played together.
  struct Host {
    std::string name;
    int64_t rank = 0;
    std::optional<double> clock_offset_us, clock_error_us;  // of its clock against that of rank 0
    std::optional<std::string> lost;                        // why it is; absent: it was there to the end
    Verdicts verdict;
    double throughput_per_s = 0;
    int64_t planned = 0, answered = 0, failed = 0;
    Times response;
    std::optional<double> client_cpu_us_per_request;
    bool operator==(const Host&) const = default;
  };
  struct Level {
    std::string load_model;              // "closed" or "open"
    std::optional<int64_t> concurrency;  // of a closed loop
    std::optional<std::string> mode;     // of a closed loop: "sync" or "async"
    std::optional<double> request_rate;  // of an open loop
    std::optional<std::string> distribution;
    Verdicts verdict;
    std::vector<Reason> reasons;
    double throughput_per_s = 0, rows_per_s = 0;
    std::optional<int64_t> repeats;  // if there are several
    std::optional<double> throughput_standard_error;
    double measured_s = 0;
    std::optional<double> elapsed_s;
    int64_t planned = 0, answered = 0, failed = 0, unsent = 0;
    Times response, service, first_byte;
    std::vector<std::pair<int64_t, int64_t>>
        response_counts;  // bucket and count, of those that are not empty
    std::optional<Times> client_send;
    Times slip;
    std::map<std::string, int64_t> errors;  // by kind
    std::optional<double> client_cpu_us_per_request, spin_cpu_s;
    std::optional<ServerRequests> server_requests;
    std::optional<ServerShares> servers;        // if there are several
    std::optional<std::string> split_left_out;  // why there is no split
    std::optional<ServerTimes> server;
    std::optional<Split> split;
    std::optional<Slowest> slowest;
    std::optional<std::string> below_threshold;  // "yes", "no", "undecided"
    std::optional<Mlperf> mlperf;
    std::optional<Resources> resources, server_resources;
    std::optional<int64_t> samples_lost;
    std::vector<Part> trace;  // of a load by --trace
    std::vector<Run> runs;
    std::vector<Host> hosts;  // empty: one host played it
    std::vector<std::string> error_messages;
    bool operator==(const Level&) const = default;
  };
  struct Claim {
    double percentile = 0;
    std::optional<double> latency_threshold_ms;
    bool operator==(const Claim&) const = default;
  };
  // The outcome of a search for the largest rate.
  struct Peak {
    bool confirmed = false;
    int64_t runs = 0;
    bool spoiled = false;  // the generator or the machine spoiled the runs
    std::optional<double> request_rate, failed_at;
    bool operator==(const Peak&) const = default;
  };
  // The generator's own maximum: requests to a server that does nothing.
  struct Ceiling {
    std::optional<double> ceiling_per_s;
    std::optional<double> floor_ms;  // the median time of one request alone
    bool operator==(const Ceiling&) const = default;
  };

  std::string model, protocol;
  int64_t batch = 1;
  std::optional<Claim> claim;
  std::vector<Level> levels;
  std::optional<Peak> peak;
  std::optional<Ceiling> generator;
  bool interrupted = false;
  Json provenance;  // record::Provenance::ToJson

  Json ToJson() const;
  // kCorrupt names the key, with its place, that is missing or of another kind; kUnsupported for another
  // schema_version. Keys that are not known are passed over.
  static Result<LoadResult> FromJson(const Json& json);
  bool operator==(const LoadResult&) const = default;
};

}  // namespace weir::results
