#include "trial/commands.h"

#include <fmt/format.h>

#include <variant>

namespace weir::trial {
namespace {

class Words {
 public:
  explicit Words(std::vector<std::string> words) : words_(std::move(words)) {}
  void Add(const std::string& word) { words_.push_back(word); }
  template <typename Value>
  void Add(const std::string& flag, const Value& value) {
    words_.push_back(flag);
    words_.push_back(fmt::format("{}", value));
  }
  // Where it is not the usual 0.
  void AddIfAny(const std::string& flag, int64_t value) {
    if (value != 0) Add(flag, value);
  }
  std::vector<std::string> Take() { return std::move(words_); }

 private:
  std::vector<std::string> words_;
};

void AddEngine(const Setting& setting, const ClientPlaces& places, const char* threads, const char* streams,
               Words& words) {
  if (setting.architecture != Architecture::kInProcess) return;
  if (!setting.engine.empty()) words.Add("--engine", setting.engine);
  if (setting.is_emulated()) return;
  if (!setting.device.empty()) words.Add("--device", setting.device);
  if (setting.preprocess) words.Add("--preprocess", ToString(*setting.preprocess));
  if (setting.cuda_graph) words.Add("--cuda-graph");
  words.Add("--precision", ToString(setting.precision));
  words.AddIfAny(threads, setting.threads);
  words.AddIfAny(streams, places.streams);
}

void AddBalance(const Setting& setting, Words& words) {
  if (setting.balancer == Balancer::kRoundRobin)
    words.Add("--balance", ToString(infer::Balance::kGrpcRoundRobin));
}

void AddServer(const ClientPlaces& places, Words& words) {
  for (const int pid : places.server_pids) words.Add("--server-pid", pid);
  if (!places.metrics_url.empty()) words.Add("--metrics-url", places.metrics_url);
}

std::vector<std::string> RunArguments(const Setting& setting, const Length& length,
                                      const ClientPlaces& places) {
  Words words({places.program, "run", places.model});
  for (const std::string& data : places.data) words.Add(data);
  words.Add("--mode", ToString(setting.mode));
  words.Add("--batch", setting.batch);
  if (setting.mode == Mode::kAsync && setting.in_flight) words.Add("--in-flight", *setting.in_flight);
  for (const std::string& flag : setting.run_flags) words.Add(flag);
  words.Add("--repeat-data", length.passes);
  if (setting.data_path == DataPath::kMemory) words.Add("--no-files");
  if (setting.architecture != Architecture::kInProcess) words.Add("--payload", ToString(setting.payload));
  AddEngine(setting, places, "--threads", "--streams", words);
  AddBalance(setting, words);
  AddServer(places, words);
  words.Add("--top", 1);
  words.Add("--answers", places.answers);
  words.Add("--json", "-");
  return words.Take();
}

void AddLoad(const Setting& setting, Words& words) {
  if (const auto* open = std::get_if<OpenLoad>(&setting.load)) {
    words.Add("--request-rate-range", open->per_second);
    words.Add("--request-distribution", open->distribution);
    return;
  }
  // In sync mode each client has one request at a time.
  words.Add("--concurrency-range",
            setting.mode == Mode::kSync ? setting.clients : setting.in_flight.value_or(1));
  if (setting.mode == Mode::kSync) words.Add("--sync");
}

bool HasAgents(const Setting& setting, const ClientPlaces& places) {
  return setting.architecture != Architecture::kInProcess &&
         (setting.clients > 1 || !places.client_hosts.empty());
}

// The hosts of as many load generators: the first ones named, or processes of this machine.
void AddHosts(const Setting& setting, const ClientPlaces& places, Words& words) {
  if (!HasAgents(setting, places)) return;
  std::vector<std::string> hosts = places.client_hosts;
  hosts.resize(static_cast<size_t>(setting.clients), "local");
  words.Add("--hosts", fmt::format("{}", fmt::join(hosts, ",")));
}

std::vector<std::string> LoadArguments(const Setting& setting, const Length& length,
                                       const ClientPlaces& places) {
  constexpr int kPool = 16;  // requests of made data: each is worked out in this process too
  Words words({places.program, "load", places.model});
  AddLoad(setting, words);
  words.Add("--batch-size", setting.batch);
  for (const std::string& data : places.data) words.Add("--data", data);
  if (places.data.empty()) {  // pictures have the shape that the recipe makes
    words.Add("--pool", kPool);
    for (const auto& [name, shape] : places.shapes)
      words.Add("--shape", fmt::format("{}:{}", name, fmt::join(shape, ",")));
  }
  if (setting.shared_memory)
    words.Add("--shared-memory", "system");
  else if (setting.architecture != Architecture::kInProcess)
    words.Add("--payload", ToString(setting.payload));
  // Weir's own server tells the times of each request: the split of the slowest ones.
  if (setting.architecture != Architecture::kInProcess && !setting.server && !HasAgents(setting, places))
    words.Add("--split", "response");
  AddEngine(setting, places, "--engine-threads", "--engine-streams", words);
  if (!places.expected.empty()) words.Add("--check", places.expected);
  if (length.seconds)
    words.Add("--duration", *length.seconds);
  else
    words.Add("--request-count", length.requests);
  for (const std::string& flag : setting.load_flags) words.Add(flag);
  AddBalance(setting, words);
  AddServer(places, words);
  AddHosts(setting, places, words);
  words.Add("--seed", places.seed >> 1);  // its flag has no room for the highest bit
  words.Add("--json", "-");
  return words.Take();
}

// Made streams that differ in their seeds. Frames are classified: an output of FP32 is all that takes.
std::vector<std::string> WatchArguments(const Setting& setting, const StreamsLoad& load, const Length& length,
                                        const ClientPlaces& places) {
  Words words({places.program, "watch"});
  for (int i = 0; i < load.streams; ++i)
    words.Add(
        fmt::format("made:fps={},seed={}", load.fps, places.seed % 1'000'000 + static_cast<uint64_t>(i)));
  words.Add("--classify", places.model);
  words.Add("--deadline", fmt::format("{}ms", load.deadline_ms));
  words.Add("--duration", fmt::format("{}s", length.seconds.value_or(10)));
  AddEngine(setting, places, "--threads", "--engine-streams", words);
  AddServer(places, words);
  words.Add("--json", "-");
  return words.Take();
}

}  // namespace

std::vector<std::string> ClientArguments(const Setting& setting, const Length& length,
                                         const ClientPlaces& places) {
  if (const auto* streams = std::get_if<StreamsLoad>(&setting.load))
    return WatchArguments(setting, *streams, length, places);
  const bool is_application = std::holds_alternative<ApplicationLoad>(setting.load);
  return is_application ? RunArguments(setting, length, places) : LoadArguments(setting, length, places);
}

std::vector<std::string> FeedArguments(const std::string& program, const std::string& set, uint64_t seed,
                                       const std::string& json) {
  constexpr int kLongestS = 86'400;
  Words words({program, "feed", set, "--bench"});
  words.Add("--duration", kLongestS);
  words.Add("--seed", seed >> 1);
  words.Add("--json", json);
  return words.Take();
}

std::vector<std::string> PrepareArguments(const std::string& program, const std::string& source,
                                          const std::string& folder) {
  constexpr int kMostPictures = 10'000'000;
  Words words({program, "prepare", source, "-o", folder});
  words.Add("--replicate", kMostPictures);
  return words.Take();
}

std::vector<std::string> ServeArguments(const Setting& setting) {
  std::vector<std::string> words{"--model-repository", "{model_repository}", "--address",   "{address}",
                                 "--http-port",        "{http_port}",        "--grpc-port", "{grpc_port}",
                                 "--metrics-port",     "{metrics_port}"};
  // How large a batch is the study decides.
  words.insert(words.end(), {"--max-request-mb", "2047", "--max-in-flight-mb", "8192"});
  if (setting.shared_memory) words.emplace_back("--allow-client-shm");
  return words;
}

}  // namespace weir::trial
