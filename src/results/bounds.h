// Tells what the parts of a run cost, and the rates that follow of it. Pure.
#pragma once

#include <optional>
#include <string>

namespace weir::results {

// A server's own account of a run, and its configuration. Absent: not told. Seconds.
struct ServerAccount {
  double requests = 0;
  double queue_s = 0, input_s = 0, infer_s = 0, output_s = 0;  // summed over the requests
  double rows_per_batch = 0;                                   // computed together; 0: not told
  double rows_per_request = 1;
  std::optional<int> instances;  // batches that it computes side by side, all servers together
  std::optional<int> threads;    // CPU threads of its engine; 0: an accelerator
  double most_rows = 0;  // that it may compute together in this run; at most a request's: it joins none
  std::optional<double> cpu_s;  // of its processes
  double cores = 0;             // that it may use; 0: not told
};

// Tells what a server cost a run, by its own account. Seconds.
struct ServerCosts {
  double own_s = 0;    // summed over requests: the computation with its input and output
  double queue_s = 0;  // summed over requests: waiting for an instance
  // That it needs for all pictures with nothing else; absent: not known.
  std::optional<double> alone_s;

  bool operator==(const ServerCosts&) const = default;
};
// Tells what a server could do alone follows of an accelerator's times and of a CPU engine's CPU time, as its
// times stretch where others take its cores. It is not known where larger batches than these could be
// computed.
ServerCosts CostsOf(const ServerAccount& account);

// The costs of a run, summed over its pictures. Seconds.
struct Costs {
  double images = 0;
  double wall_s = 0;
  double cores = 1;           // CPU seconds the process may use a second
  bool overlapped = true;     // async: stages of different pictures overlap
  int loaders = 1;            // decode threads; 0 when the data lay ready in memory
  double load_cpu_s = 0;      // reading, decoding, resizing, writing into the batch
  double load_blocked_s = 0;  // of the loaders' time, waiting for storage: neither running nor ready to run
  int engine_threads = 0;     // CPU threads of the engine; 0: an accelerator, which takes no CPU
  int engine_streams = 1;     // batches that compute side by side
  bool remote = false;        // the engine is a server's
  double engine_cpu_s = 0;
  double engine_busy_s = 0;  // summed over batches: from the engine's start to its end
  int in_flight = 1;         // batches submitted and not yet answered, at most; 0: any number
  double round_trip_s =
      0;  // summed over batches: from submitted to answered, less the wait for a stream of an engine here
  double held_back_s =
      0;               // time in which a full batch waited only because in_flight others were on their way
  double print_s = 0;  // ranking, formatting and writing the answers, on one thread
  double other_cpu_s = 0;    // of this process, beside the parts above
  double foreign_cpu_s = 0;  // taken on this machine by other processes meanwhile
  double load_s = 0, send_s = 0,
         infer_s = 0;  // without overlap: time in which the run was loading, sending, inferring
  // For a server. Absent: not known.
  std::optional<ServerCosts> server;
  double server_cpu_s = 0;             // of its processes, where it shares these cores
  std::optional<double> link_s;        // for which the busier way of the link to it was full
  double link_delay_s = 0;             // the link's own delay, there and back, summed over batches
  std::optional<double> rate_limit_s;  // of an open loop: what its rate takes for these pictures

  bool operator==(const Costs&) const = default;
};

// All CPU time on the cores that the process may use, but that of others.
double CpuSum(const Costs& costs);

// Rates that the parts would reach alone; images/s. Absent where a part did no work, or is not known.
struct Bounds {
  std::optional<double> read;     // loaders that only wait for storage
  std::optional<double> decode;   // loaders that never wait: on their threads, and on all cores at most
  std::optional<double> loaders;  // the two in turn
  std::optional<double> infer;    // engine alone
  std::optional<double>
      in_flight;  // Little's law: in_flight batches over the round trip of one; not of a server's
  std::optional<double> server;   // the server alone, by its own account
  std::optional<double> network;  // the link
  std::optional<double> print;
  std::optional<double> cpu;  // all CPU work on all cores
  double pipeline = 0;        // the least of them; without overlap 1 / (sum of the stages)

  bool operator==(const Bounds&) const = default;
};
Bounds FindBounds(const Costs& costs);

// Returns the rate at which a part holds back, with what it shares: reading and decoding their threads, all
// that computes here the cores. `stage` as Bottleneck::stage.
std::optional<double> BoundOf(const Bounds& bounds, const std::string& stage);

// The part that needs most time with these costs, and how long. Parts overlap.
struct Limit {
  std::string stage;  // as Bottleneck::stage
  double seconds = 0;
};
// A round trip under load counts as it is: it gets no shorter where more load is put on it.
Limit FindLimit(const Costs& costs);

// Returns the costs with a part's own divided by `factor`: a resource so many times as large, or a part so
// many times as fast. Infinite: gone. `stage` as Bottleneck::stage.
Costs Relieve(Costs costs, const std::string& stage, double factor);

}  // namespace weir::results
