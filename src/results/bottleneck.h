// The bottleneck of a run, a trial or a preparation, from measured costs, and the gain of relieving it. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace weir::results {

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

  bool operator==(const Bounds&) const = default;
};
Bounds FindBounds(const Costs& costs);

// The limiting part.
struct Bottleneck {
  // In one process: "read", "decode", "infer", "in_flight", "print", "cpu". With a server also "server" (it,
  // or the way to it), "network", and "client" for the CPU time of sending. In a preparation: a stage's name.
  std::string stage;
  double share = 0;      // of `share_of`
  std::string share_of;  // "the CPU time", "the loaders' time", "the engine's time"...; empty: the time
  double gain = 0;       // twice the named resource would give at most so many times the rate; 0: not known
  std::string text;      // one sentence for people; empty where the figures allow none

  bool operator==(const Bottleneck&) const = default;
};

// Finds the bottleneck of a run from its costs. Returns nullopt if nothing was done.
std::optional<Bottleneck> FindBottleneck(const Costs& costs);

// Shares of the time, from 0 to 1, in which a part was busy, as seen from outside. `cores` are those of the
// application's machine, taken by whomever.
struct Busy {
  double link = 0, recogniser = 0, cores = 0;
  bool overlapped = false;  // more than one request may be under way
};
// Finds the bottleneck of a system with a server, as far as its own times do not show it: "network" or
// "infer" where that part was busy for most of the time; "cpu" where no core was left; "network" also where
// requests waited for a link that its connections did not quite fill; else "in_flight".
Bottleneck FindBottleneck(const Busy& busy);

// The time that a stage took, summed over its threads.
struct StageTime {
  std::string name;
  double seconds = 0;
  int threads = 1;
};
// Finds the stage whose threads were busy for the largest share of `wall_s` seconds. Returns nullopt if
// nothing was done.
std::optional<Bottleneck> FindBottleneck(std::span<const StageTime> stages, double wall_s);

}  // namespace weir::results
