#include "probe/storage_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.h"
#include "probe/storage_host_part.h"

namespace weir::probe {
namespace {

constexpr Duration kAhead = 200ms;  // of a begin, so that every host knows of it in time
constexpr int kMostRounds = 3;      // of the rates by number of hosts

// The set as all hosts see it.
struct Opened {
  SetFacts set;
  std::optional<double> ceiling_samples_per_s;  // of all
};

cluster::Message MessageOf(Json body) { return {.body = std::move(body), .block = ""}; }

// Lets rank 0 write the set. Returns its folder.
Result<std::string> MakeOnHosts(cluster::Cluster& hosts, const Json& request, const NoteSpace& note_space,
                                const std::stop_token& stop) {
  const auto space = TRY(hosts.CallAll(kStorageSpace, MessageOf(request), stop));
  SpaceThere there = TRY(SpaceThere::FromJson(space.front().body));
  for (const cluster::Message& answer : space) {
    const SpaceThere other = TRY(SpaceThere::FromJson(answer.body));
    std::erase_if(there.foreign, [&](const auto& folder) {
      return std::ranges::find(other.foreign, folder) == other.foreign.end();
    });
  }
  note_space(there);
  const auto made = TRY(hosts.CallAll(kStorageMake, MessageOf(request), stop));
  return GetString(made.front().body, kSetFolder);
}

Result<Opened> OpenOnHosts(cluster::Cluster& hosts, const Json& request, const std::stop_token& stop) {
  const auto answers = TRY(hosts.CallAll(kStorageOpen, MessageOf(request), stop));
  Opened opened;
  std::string first;
  for (size_t rank = 0; rank < answers.size(); ++rank) {
    const SetThere there = TRY(SetThere::FromJson(answers[rank].body));
    if (rank == 0) {
      first = there.hash;
      opened.set = there.facts;
    } else if (there.hash != first) {
      const auto known = hosts.hosts();
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{} (rank {}) sees another set than {} (rank 0): the path must be of one storage "
                      "that all hosts mount, and --set of the same files",
                      known[rank].name, rank, known[0].name));
    }
    if (there.ceiling_samples_per_s)
      opened.ceiling_samples_per_s = opened.ceiling_samples_per_s.value_or(0) + *there.ceiling_samples_per_s;
  }
  return opened;
}

std::optional<double> MedianOf(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

struct HostsRun {
  std::vector<std::optional<HostTrain>> parts;  // by rank; nullopt: lost, or it does not play
  Instant begin;                                // on the clock here
  std::vector<HostTrain> Parts() const {
    std::vector<HostTrain> there;
    for (const auto& part : parts)
      if (part) there.push_back(*part);
    return there;
  }
};

// The runs of all hosts, one after the other.
class HostsTraining {
 public:
  HostsTraining(cluster::Cluster& hosts, const Clock& clock, const std::stop_token& stop)
      : hosts_(hosts), clock_(clock), stop_(stop) {}

  bool lost() const { return !hosts_.LostText().empty(); }

  // A part is missing where a host was lost, and where the loss of another ended it before its first step.
  Result<HostsRun> Run(HostTask task) {
    (void)hosts_.Synchronise();  // a loss shows below
    HostsRun played{.parts = {}, .begin = clock_.Now() + kAhead};
    const auto before = hosts_.hosts();
    std::vector<cluster::Message> requests;
    for (const cluster::Host& host : before) {
      task.begin = host.clock ? host.clock->There(played.begin) : played.begin;
      requests.push_back(MessageOf(task.ToJson()));
    }
    const auto answers = hosts_.CallAll(kStoragePlay, std::move(requests), stop_);
    if (stop_.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
    const auto known = hosts_.hosts();
    for (size_t rank = 0; rank < answers.size(); ++rank) {
      auto& part = played.parts.emplace_back();
      if (known[rank].lost || std::cmp_greater_equal(rank, task.hosts)) continue;
      if (!answers[rank]) {
        if (lost()) continue;
        return Context(fmt::format("{} (rank {})", known[rank].name, rank), answers[rank].error());
      }
      part = TRY_CONTEXT(HostTrainFrom(*answers[rank]), known[rank].name);
      if (known[rank].clock) part->ended = known[rank].clock->Here(part->ended);
    }
    return played;
  }

 private:
  cluster::Cluster& hosts_;
  const Clock& clock_;
  const std::stop_token& stop_;
};

// Rates of the first hosts together, as fast as they read.
Result<std::vector<UnitRate>> ScaleHosts(HostsTraining& training, const std::vector<cluster::Host>& known,
                                         int rounds) {
  std::vector<std::string> names;
  for (const cluster::Host& host : known) names.push_back(host.name);
  auto rates = MeasureUnits(names, rounds, [&](int hosts, int round) -> Result<double> {
    if (training.lost()) return Fail(ErrorCode::kIo, "a host is lost");
    const HostsRun played = TRY(training.Run({.repeat = round, .hosts = hosts, .as_fast = true}));
    double sum = 0;
    for (const auto& part : played.parts)
      if (part) sum += part->run.train.SamplesPerSecond().value_or(0);
    return sum;
  });
  if (!rates && training.lost()) return std::vector<UnitRate>();
  return rates;
}

std::vector<StorageHost> HostsOf(const std::vector<cluster::Host>& known, const std::vector<HostsRun>& runs,
                                 const std::vector<UnitRate>& rates) {
  std::vector<StorageHost> hosts;
  for (size_t rank = 0; rank < known.size(); ++rank) {
    StorageHost host{.name = known[rank].name,
                     .build = known[rank].build,
                     .clock = known[rank].clock,
                     .lost = known[rank].lost,
                     .utilisation = {},
                     .samples_per_s = {},
                     .ended = {},
                     .barrier_ns = {},
                     .rate = {}};
    std::vector<double> utilisations, samples;
    for (const HostsRun& run : runs) {
      const auto& part = run.parts[rank];
      if (!part) continue;
      if (const auto value = part->run.train.Utilisation()) utilisations.push_back(*value);
      if (const auto value = part->run.train.SamplesPerSecond()) samples.push_back(*value);
      if (part->run.train.steps > 0) host.ended.push_back(part->ended - run.begin);
      host.barrier_ns.Merge(part->barrier_ns);
    }
    host.utilisation = MedianOf(std::move(utilisations));
    host.samples_per_s = MedianOf(std::move(samples));
    if (rank < rates.size()) host.rate = rates[rank];
    hosts.push_back(std::move(host));
  }
  return hosts;
}

// The search, and what it found so far.
class HostsSearch {
 public:
  HostsSearch(HostsTraining& training, const StorageOptions& options, int hosts, const Progress& progress,
              TrainReport& report)
      : training_(training), options_(options), hosts_(hosts), progress_(progress), report_(report) {}

  Result<std::vector<bool>> Try(int accelerators) {
    std::vector<bool> fed;
    for (int repeat = 0; repeat < options_.repeats && !training_.lost() && !hung_; ++repeat) {
      HostsRun played = TRY(training_.Run({.accelerators = accelerators, .repeat = repeat, .hosts = hosts_}));
      const std::vector<HostTrain> parts = played.Parts();
      by_number_[accelerators].push_back(std::move(played));
      if (parts.empty()) break;
      TrainRun run = MergeTraining(parts);
      hung_ = !run.train.reads.hung.empty();
      fed.push_back(!hung_ && !training_.lost() &&
                    run.train.Utilisation().value_or(0) >= options_.profile.least_utilisation);
      report_.runs.push_back(run);
      merged_[accelerators].push_back(std::move(run));
      progress_(static_cast<int>(report_.runs.size()), report_.runs.back());
    }
    if (fed.empty()) fed.push_back(false);
    return fed;
  }

  // Returns the number of accelerators whose runs are reported, and these.
  int Shown() const {
    if (report_.fed.value && by_number_.contains(*report_.fed.value)) return *report_.fed.value;
    return by_number_.empty() ? options_.least_accelerators : by_number_.begin()->first;
  }
  std::vector<HostsRun> played(int number) const {
    const auto found = by_number_.find(number);
    return found == by_number_.end() ? std::vector<HostsRun>() : found->second;
  }
  std::vector<TrainRun> merged(int number) const {
    const auto found = merged_.find(number);
    return found == merged_.end() ? std::vector<TrainRun>() : found->second;
  }

 private:
  HostsTraining& training_;
  const StorageOptions& options_;
  const int hosts_;
  const Progress& progress_;
  TrainReport& report_;
  std::map<int, std::vector<HostsRun>> by_number_;
  std::map<int, std::vector<TrainRun>> merged_;
  bool hung_ = false;
};

Result<HostsReport> ProbeOpenHosts(cluster::Cluster& hosts, const Json& request, const HostsPlan& plan,
                                   const NoteSpace& note_space, const Clock& clock,
                                   const std::stop_token& stop, const Progress& progress) {
  Json open = request;
  if (plan.writes()) open[kSetFolder] = TRY(MakeOnHosts(hosts, request, note_space, stop));
  const Opened opened = TRY(OpenOnHosts(hosts, open, stop));
  const StorageOptions& options = plan.options;
  HostsTraining training(hosts, clock, stop);
  HostsReport report{.train = {.profile = options.profile}, .hosts = {}, .lost = {}};
  const auto rates = TRY(ScaleHosts(training, hosts.hosts(), std::min(options.repeats, kMostRounds)));
  HostsSearch search(training, options, hosts.world(), progress, report.train);
  report.train.fed = TRY(FindMostFed(options.least_accelerators, options.most_accelerators,
                                     [&](int accelerators) { return search.Try(accelerators); }));
  const int shown = search.Shown();
  report.train.facts = {
      .runs = search.merged(shown),
      .ceiling_samples_per_s = opened.ceiling_samples_per_s,
      .set = opened.set,
      .from_memory = options.read.access == Access::kMemory,
      .decoded = options.decode.has_value(),
      .wants_cold = options.read.cold && !options.read.direct && options.read.access != Access::kMemory};
  report.train.demand_samples_per_s = SamplesPerSecond(options.profile) * shown * hosts.world();
  if (report.train.demand_samples_per_s > 0)
    report.train.reads_in_flight_needed =
        ReadsInFlight(report.train.demand_samples_per_s, report.train.facts.Reads());
  report.hosts = HostsOf(hosts.hosts(), search.played(shown), rates);
  report.lost = hosts.LostText();
  return report;
}

}  // namespace

Result<HostsReport> ProbeTrainingOnHosts(cluster::Cluster& hosts, const Json& request, const HostsPlan& plan,
                                         const NoteSpace& note_space, const Clock& clock,
                                         const std::stop_token& stop, const Progress& progress) {
  auto report = ProbeOpenHosts(hosts, request, plan, note_space, clock, stop, progress);
  std::stop_source soon;  // a host whose storage hangs gets the grace of a call that was asked to end
  soon.request_stop();
  if (plan.writes()) (void)hosts.CallAll(kStorageDrop, cluster::Message(), soon.get_token());
  return report;
}

void JudgeHosts(const HostsReport& report, StorageVerdict& verdict) {
  if (!report.lost.empty())
    verdict.Add(results::Standing::kInvalid, ToString(results::Reason::kHostLost), report.lost);
  for (const StorageHost& host : report.hosts)
    if (host.build != report.hosts.front().build)
      verdict.Add(results::Standing::kSuspect, "build",
                  fmt::format("{} runs {}, {} runs {}: install one weir on all hosts", host.name,
                              EscapeBytes(host.build), report.hosts.front().name,
                              EscapeBytes(report.hosts.front().build)));
}

}  // namespace weir::probe
