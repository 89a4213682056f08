#include "study/factor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/nearest.h"
#include "study/choices.h"
#include "study/level.h"

namespace weir::study {
namespace {

Result<Json> CheckWord(const Json& level, const Words& words) {
  const std::vector<std::string_view>& known = words.words;
  if (level.is_string()) {
    const std::string& word = level.get_ref<const std::string&>();
    if (!words.prefix.empty() && word.starts_with(words.prefix)) return level;
    if (std::ranges::find(known, word) != known.end()) return level;
  }
  const auto meant = level.is_string() ? Nearest(level.get_ref<const std::string&>(), known) : std::nullopt;
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{} is none of {}{}{}", DumpJson(level), fmt::join(known, ", "),
                          meant ? fmt::format("; did you mean {}?", *meant) : "",
                          words.prefix.empty() ? "" : fmt::format(", {}SETTINGS", words.prefix)));
}

Result<Json> CheckText(const Json& level) {
  if (level.is_string() && !level.get_ref<const std::string&>().empty()) return level;
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{} is not a text", DumpJson(level)));
}

constexpr std::string_view kServed = "microservice and distributed";
constexpr std::string_view kOwnServer = "a server of weir's, and others with a repository";
constexpr std::string_view kOwnEngine = "one process and a server of weir's";
constexpr std::string_view kPictures = "load: application";
constexpr std::string_view kCpuEngine = "engines on CPUs";
constexpr std::string_view kRealEngine = "engines that are not emulated";

// Those that need no settings.
std::vector<std::string_view> WordsOfEngines() {
  std::vector<std::string_view> words = WordsOf(infer::kEngines);
  std::erase(words, ToString(infer::EngineKind::kEmulated));
  return words;
}

std::vector<Factor> MakeTable() {
  return {
      {.name = "architecture",
       .takes = ListOf(kArchitectures),
       .levels = Words{WordsOf(kArchitectures)},
       .otherwise = ToString(Architecture::kInProcess),
       .becomes = "the server's place: none, a container on this host, or another node"},
      {.name = "model",
       .takes = "an .onnx file, a model folder or a URL",
       .levels = AnyText{},
       .becomes = "MODEL of the client, and the server's repository"},
      {.name = "server",
       .takes = "weir, or a map with command, image or url",
       .levels = Checked{CheckServer},
       .otherwise = "weir",
       .applies = kServed,
       .becomes = "the command or the container that is started"},
      {.name = "protocol",
       .takes = ListOf(infer::kProtocols),
       .levels = Words{WordsOf(infer::kProtocols)},
       .otherwise = ToString(infer::Protocol::kHttp),
       .applies = kServed,
       .becomes = "the scheme of the client's URL"},
      {.name = "mode",
       .takes = ListOf(infer::kModes),
       .levels = Words{WordsOf(infer::kModes)},
       .otherwise = ToString(infer::Mode::kAsync),
       .applies = "load: application and closed",
       .becomes = "--mode of weir run, --sync of weir load"},
      {.name = "in_flight",
       .takes = "batches submitted and unanswered, 1 to 4096",
       .levels = WholeNumbers{1, 4096},
       .applies = "mode: async; load: application and closed",
       .becomes = "--in-flight of weir run, --concurrency-range of weir load"},
      {.name = "load",
       .takes = "application, closed, {rate_per_s: N} or {streams: N, fps: N}",
       .levels = Checked{CheckLoad},
       .otherwise = "application",
       .becomes = "weir run, weir load or weir watch; --request-rate-range and --request-distribution, "
                  "STREAM and --deadline"},
      {.name = "batch",
       .takes = "pictures a batch, 1 to 65536",
       .levels = WholeNumbers{1, 65536},
       .otherwise = 8,
       .becomes = "--batch of weir run, --batch-size of weir load"},
      {.name = "data_path",
       .takes = ListOf(kDataPaths),
       .levels = Words{WordsOf(kDataPaths)},
       .otherwise = ToString(DataPath::kFiles),
       .applies = kPictures,
       .becomes = "the prepared set that DATA names; --no-files of weir run"},
      {.name = "payload",
       .takes = ListOf(kSent),
       .levels = Words{WordsOf(kSent)},
       .otherwise = ToString(Sent::kTensor),
       .applies = kServed,
       .becomes = "--payload; --shared-memory of weir load"},
      {.name = "images",
       .takes = "pictures of the data that are used",
       .levels = WholeNumbers{1, 1'000'000'000},
       .applies = kPictures,
       .becomes = "the prepared set"},
      {.name = "replication",
       .takes = "real copies of each, 1 is none",
       .levels = WholeNumbers{1, 1'000'000},
       .otherwise = 1,
       .applies = kPictures,
       .becomes = "the prepared set"},
      {.name = "engine",
       .takes = ListOf(infer::kEngines) + ":SETTINGS",
       .levels = Words{WordsOfEngines(), infer::kEmulatedPrefix},
       .applies = kOwnEngine,
       .becomes = "--engine of the client in one process, else the model's configuration"},
      {.name = "accelerator",
       .takes = "none or emulated:SETTINGS",
       .levels = Words{{"none"}, infer::kEmulatedPrefix},
       .otherwise = "none",
       .applies = kOwnEngine,
       .becomes = "the engine's place"},
      {.name = "device",
       .takes = "cpu, cuda:N, cuda:UUID, cuda:all, gpu:N or npu",
       .levels = Checked{CheckDevice},
       .otherwise = "cpu",
       .applies = kOwnEngine,
       .becomes = "--device of the client in one process, else the model's configuration"},
      {.name = "gpus",
       .takes = "NVIDIA GPUs that share the work, from the first on, 1 to 64",
       .levels = WholeNumbers{1, 64},
       .otherwise = 1,
       .applies = "device: cuda",
       .becomes = "the devices cuda:0 to cuda:N-1"},
      {.name = "preprocess",
       .takes = ListOf(infer::kPreprocess) + ": where pixels are normalised",
       .levels = Words{WordsOf(infer::kPreprocess)},
       .otherwise = ToString(infer::Preprocess::kCpu),
       .applies = "device: cuda",
       .becomes = "--preprocess of the client in one process, else the model's configuration"},
      {.name = "cuda_graph",
       .takes = ListOf(infer::kOffOn),
       .levels = Words{WordsOf(infer::kOffOn)},
       .otherwise = WordOf(infer::kOffOn, false),
       .applies = "device: cuda",
       .becomes = "--cuda-graph of the client in one process, else the model's configuration"},
      {.name = "precision",
       .takes = ListOf(infer::kPrecisions) + " (CUDA's alone)",
       .levels = Words{WordsOf(infer::kPrecisions)},
       .otherwise = ToString(infer::Precision::kF32),
       .applies = kRealEngine,
       .becomes = "--precision of the client in one process, else the model's configuration"},
      {.name = "threads",
       .takes = "CPU threads of the engine, 0: all",
       .levels = WholeNumbers{0, 4096},
       .otherwise = 0,
       .applies = kCpuEngine,
       .becomes = "--threads of weir run, --engine-threads of weir load, else the model's configuration"},
      {.name = "streams",
       .takes = "batches that compute side by side, 0: as the engine likes; on each GPU, 0: one",
       .levels = WholeNumbers{0, 4096},
       .otherwise = 0,
       .applies = kRealEngine,
       .becomes = "--streams of weir run, --engine-streams of weir load, else the model's configuration"},
      {.name = "instances",
       .takes = "of the model in the server, or on each GPU, 1 to 1024",
       .levels = WholeNumbers{1, 1024},
       .otherwise = 1,
       .applies = "a server of weir's, others with a repository; one process on a GPU",
       .becomes = "the model's configuration; --streams in one process"},
      {.name = "servers",
       .takes = "servers with the same model, 1 to 64",
       .levels = WholeNumbers{1, 64},
       .otherwise = 1,
       .applies = kOwnServer,
       .becomes = "as many servers, each with ports of its own"},
      {.name = "balancer",
       .takes = ListOf(kBalancers) + "; none: the client takes turns; round_robin: the gRPC library's",
       .levels = Words{WordsOf(kBalancers)},
       .otherwise = ToString(Balancer::kNone),
       .applies = kOwnServer,
       .becomes = "the program in front of the servers, or --balance of the client"},
      {.name = "clients",
       .takes = "load generators, 1 to 64",
       .levels = WholeNumbers{1, 64},
       .otherwise = 1,
       .applies = "load: closed or at a rate, with a server",
       .becomes = "--hosts of weir load: agents that begin at one instant, here or on network.hosts.clients"},
      {.name = "server_batching",
       .takes = "model, off or {max_batch: N, delay_us: N}",
       .levels = Checked{CheckServerBatching},
       .otherwise = "model",
       .applies = kOwnServer,
       .becomes = "the model's configuration"},
      {.name = "decode_threads",
       .takes = "of the application, 0: one a core in async, 1 in sync",
       .levels = WholeNumbers{0, 4096},
       .otherwise = 0,
       .applies = "load: application; data_path other than memory",
       .becomes = "--decode-threads of weir run",
       .flags = {.run = "--decode-threads", .load = {}}},
      {.name = "network",
       .takes = "unshaped, a rate in Gbit/s, variable, or a map",
       .levels = Checked{CheckNetwork},
       .otherwise = "unshaped",
       .applies = "architecture: distributed",
       .becomes = "the link between the two nodes"},
      {.name = "placement",
       .takes = "shared, or {server: CPUS, client: CPUS}",
       .levels = Checked{CheckPlacement},
       .otherwise = "shared",
       .applies = kServed,
       .becomes = "the CPUs of server and client"},
      {.name = "beside",
       .takes = ListOf(kBeside) + ": other phases that run beside the client",
       .levels = Words{WordsOf(kBeside)},
       .otherwise = ToString(Beside::kNone),
       .applies = "everything with data",
       .becomes = "weir feed and weir prepare over the same data while the client runs"},
      {.name = "limits",
       .takes = "none, or {serve: CORES, feed: CORES, prepare: CORES}",
       .levels = Checked{CheckLimits},
       .otherwise = "none",
       .applies = "architecture: distributed",
       .becomes = "CPU quotas of control groups, as a scheduler sets them"},
      {.name = "page_cache",
       .takes = ListOf(kPageCaches),
       .levels = Words{WordsOf(kPageCaches)},
       .otherwise = ToString(PageCache::kWarm),
       .applies = "load: application; data_path other than memory",
       .becomes = "reading or dropping the data's pages before the trial"},
  };
}

std::string TypeText(const Levels& levels) {
  if (const auto* words = std::get_if<Words>(&levels))
    return fmt::format("`{}`{}", fmt::join(words->words, "`, `"),
                       words->prefix.empty() ? "" : fmt::format(", `{}SETTINGS`", words->prefix));
  if (const auto* numbers = std::get_if<WholeNumbers>(&levels))
    return fmt::format("whole number, {} to {}", numbers->low, numbers->high);
  return std::holds_alternative<AnyText>(levels) ? "text" : "word, number or map";
}

// Factors whose levels say by themselves what they are.
bool SpeaksForItself(std::string_view factor, const Json& level) {
  constexpr std::string_view kNeedTheirName[] = {"data_path", "page_cache", "beside",
                                                 "limits",    "preprocess", "cuda_graph"};
  if (std::ranges::find(kNeedTheirName, factor) != std::end(kNeedTheirName)) return false;
  return level.is_string() || factor == "server" || factor == "network";
}

}  // namespace

const std::vector<Factor>& Factors() {
  static const std::vector<Factor> kFactors = MakeTable();
  return kFactors;
}

const Factor* FindFactor(std::string_view name) {
  const auto found = std::ranges::find(Factors(), name, &Factor::name);
  return found == Factors().end() ? nullptr : &*found;
}

const std::vector<std::string_view>& WordsOf(std::string_view factor) {
  const Factor* const found = FindFactor(factor);
  CHECK(found != nullptr);
  return std::get<Words>(found->levels).words;
}

std::string FactorsPage() {
  std::string page =
      "# Factors\n\nA study varies these factors. [Studies](../studies.md) explains their levels. The "
      "program's "
      "table of factors writes this page.\n\n"
      "| factor | type | levels | default | applies to | becomes |\n|---|---|---|---|---|---|\n";
  for (const Factor& factor : Factors()) {
    page +=
        fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", factor.name, TypeText(factor.levels), factor.takes,
                    factor.otherwise ? fmt::format("`{}`", LevelText(factor.name, *factor.otherwise)) : "",
                    factor.applies.empty() ? "everything" : factor.applies, factor.becomes);
  }
  return page;
}

std::vector<std::string_view> FactorNames() {
  std::vector<std::string_view> names;
  for (const Factor& factor : Factors()) names.push_back(factor.name);
  return names;
}

bool IsFactor(std::string_view name) { return FindFactor(name) != nullptr; }

bool TakesNumbers(std::string_view factor) {
  const auto kept = CheckLevel(factor, 1);  // each that counts something takes 1
  return kept && kept->is_number();
}

Result<Json> CheckLevel(std::string_view factor, const Json& level) {
  const Factor* const found = FindFactor(factor);
  if (found == nullptr) return Fail(ErrorCode::kInternal, fmt::format("\"{}\" is no factor", factor));
  if (const auto* words = std::get_if<Words>(&found->levels)) return CheckWord(level, *words);
  if (const auto* numbers = std::get_if<WholeNumbers>(&found->levels))
    return CheckInteger(level, numbers->low, numbers->high);
  if (const auto* checked = std::get_if<Checked>(&found->levels)) return checked->check(level);
  return CheckText(level);
}

std::string LevelText(std::string_view factor, const Json& level) {
  if (level.is_object()) {
    if (factor == "server") return level.value("name", "server");
    if (factor == "network") return NetworkText(level);
    if (factor == "load" && level.contains("streams")) {
      return fmt::format("{} streams of {:g} frames/s, {:g} ms", level.value("streams", 1),
                         level.value("fps", 0.0), level.value("deadline_ms", 0.0));
    }
    if (factor == "load") {
      return fmt::format("{:.6g}/s {}", level.value("rate_per_s", 0.0), level.value("distribution", ""));
    }
    std::string text;
    for (const auto& [key, value] : level.items()) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key,
                          value.is_string() ? value.get<std::string>() : DumpJson(value));
    }
    return text;
  }
  return level.is_string() ? level.get<std::string>() : DumpJson(level);
}

std::string NamedLevelText(std::string_view factor, const Json& level) {
  const std::string text = LevelText(factor, level);
  if (SpeaksForItself(factor, level)) return text;
  std::string words(factor);
  std::ranges::replace(words, '_', ' ');
  return factor == "page_cache" ? fmt::format("{} {}", text, words) : fmt::format("{} {}", words, text);
}

}  // namespace weir::study
