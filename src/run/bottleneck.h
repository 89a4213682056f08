// Which part is the bottleneck: bounds on the rate from the measured cost of the parts, and what relieving
// one would give.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace weir::run {

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
  bool remote = false;  // the engine is a server's: what follows of it is not known, and its CPU not ours
  double engine_cpu_s = 0;
  double engine_busy_s = 0;  // summed over batches: from the engine's start to its end
  int in_flight = 1;         // batches submitted and not yet answered, at most
  double round_trip_s =
      0;  // summed over batches: from submitted to answered, less the wait for a stream of the engine
  double held_back_s =
      0;               // time in which a full batch waited only because in_flight others were on their way
  double print_s = 0;  // ranking, formatting and writing the answers, on one thread
  double other_cpu_s = 0;    // of this process, beside the parts above
  double foreign_cpu_s = 0;  // taken on this machine by other processes meanwhile
  double load_s = 0, send_s = 0,
         infer_s = 0;  // without overlap: time in which the run was loading, sending, inferring
};

// Rates that the parts would reach alone; images/s. Absent where a part did no work.
struct Bounds {
  std::optional<double> read;       // loaders that only wait for storage
  std::optional<double> decode;     // loaders alone: on their threads, and on all cores at most
  std::optional<double> infer;      // engine alone
  std::optional<double> in_flight;  // Little's law: in_flight batches over the round trip of one alone
  std::optional<double> server;     // the same for a server, whose round trips are as seen under this load
  std::optional<double> print;
  std::optional<double> cpu;  // all CPU work of the process on all cores
  double pipeline = 0;        // the least of them; without overlap 1 / (sum of the stages)
};
Bounds FindBounds(const Costs& costs);

// The limiting part. `stage` is "read", "decode", "infer", "in_flight" or "print"; with a server "server"
// (it, or the way to it) instead of "infer" and "in_flight", and "client" for the CPU time of the sending.
struct Bottleneck {
  std::string stage;
  double share = 0;      // of `share_of`
  std::string share_of;  // "the CPU time", "the loaders' time", "the engine's time", "the time" ...
  double gain = 1;       // twice the named resource would give at most so many times the rate
  std::string text;      // one sentence for people
};
std::optional<Bottleneck> FindBottleneck(const Costs& costs);

}  // namespace weir::run
