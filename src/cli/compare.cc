#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/seed.h"
#include "base/thread.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "launch/leftovers.h"
#include "model/model.h"
#include "record/provenance.h"
#include "trial/site.h"
#include "trial/trial.h"

namespace weir::cli {
namespace {

using trial::Architecture, trial::Mode, trial::Outcome, trial::Protocol, trial::Setting;

struct Options {
  std::string model, image = "localhost/weir", json;
  std::vector<std::string> data;
  int repeats = 3, batch = 8, in_flight = 4;
  int64_t seed = 1;
  double seconds = 2, gbit_per_s = 5;
  bool no_files = false;
};

// One line of the table.
struct Row {
  Setting setting;
  std::vector<Outcome> outcomes;
  std::optional<Error> fault;  // of a trial; or why there is none
};

std::vector<Row> AllRows(const trial::Site& site) {
  std::vector<Row> rows;
  for (const auto architecture :
       {Architecture::kInProcess, Architecture::kMicroservice, Architecture::kDistributed}) {
    for (const auto protocol : {Protocol::kHttp, Protocol::kGrpc}) {
      if (architecture == Architecture::kInProcess && protocol != Protocol::kHttp) continue;
      for (const auto mode : {Mode::kSync, Mode::kAsync}) {
        rows.push_back({.setting = {architecture, protocol, mode}, .fault = site.Missing(architecture)});
      }
    }
  }
  return rows;
}

// A server computes in as many streams as the model's configuration says, or one a thread; alone, `weir run`
// would choose by its mode.
Arguments EngineArguments(const model::Model& model) {
  const infer::SessionOptions options = model::SessionDefaults(model);
  const int threads = options.threads > 0 ? std::min(options.threads, UsableCpus()) : UsableCpus();
  return {"--streams", fmt::format("{}", options.streams > 0 ? options.streams : threads)};
}

// As many passes over the data as make a trial of the fastest architecture last `seconds`.
Result<int> PassesFor(double seconds, trial::Site& site, const trial::Workload& workload,
                      const Clock& clock) {
  const Setting fastest{.architecture = Architecture::kInProcess, .mode = Mode::kAsync};
  const Outcome pilot = TRY(trial::RunTrial(site, workload, fastest, clock));
  const double passes = std::ceil(seconds * pilot.images_per_s / static_cast<double>(pilot.images));
  return static_cast<int>(std::clamp(passes, 1.0, 1000.0));
}

// Every setting once in each repeat, in an order of its own, so that what drifts on this machine falls on all
// alike.
void RunAll(std::vector<Row>& rows, const Options& options, trial::Site& site,
            const trial::Workload& workload, const std::stop_token& stop, Console& console,
            const Clock& clock) {
  const Instant begin = clock.Now();
  int64_t done = 0;
  const auto runnable = std::ranges::count_if(rows, [](const Row& row) { return !row.fault; });
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    Random random =
        Seed(static_cast<uint64_t>(options.seed)).Stream(static_cast<uint64_t>(repeat)).MakeRandom();
    std::vector<Row*> order;
    for (Row& row : rows) order.push_back(&row);
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[static_cast<size_t>(random.Integer(0, static_cast<int64_t>(i) - 1))]);
    for (Row* row : order) {
      if (row->fault || stop.stop_requested()) continue;
      auto outcome = trial::RunTrial(site, workload, row->setting, clock);
      if (outcome)
        row->outcomes.push_back(std::move(*outcome));
      else
        row->fault = outcome.error();
      console.Progress(Seconds(clock.Now() - begin), "trials", ++done, runnable * options.repeats, "");
    }
  }
  console.EndProgress();
}

struct Spread {
  double mean = 0, low = 0, high = 0;
};
template <typename Get>
std::optional<Spread> SpreadOf(const Row& row, Get get) {
  Spread spread{.low = INFINITY, .high = -INFINITY};
  for (const Outcome& outcome : row.outcomes) {
    const std::optional<double> value = get(outcome);
    if (!value) return std::nullopt;
    spread.mean += *value / static_cast<double>(row.outcomes.size());
    spread.low = std::min(spread.low, *value);
    spread.high = std::max(spread.high, *value);
  }
  if (row.outcomes.empty()) return std::nullopt;
  return spread;
}
std::optional<double> Rate(const Outcome& outcome) { return outcome.images_per_s; }
std::optional<double> ClientCpu(const Outcome& outcome) { return outcome.client_cpu_ms; }
std::optional<double> ServerCpu(const Outcome& outcome) { return outcome.server_cpu_ms; }
std::optional<double> StartMs(const Outcome& outcome) {
  if (!outcome.server_start) return std::nullopt;
  return Milliseconds(*outcome.server_start);
}

std::string Cell(const std::optional<Spread>& spread) {
  if (!spread) return "-";
  return fmt::format("{} ({} to {})", Short(spread->mean), Short(spread->low), Short(spread->high));
}

std::string Place(Architecture architecture, double gbit_per_s) {
  switch (architecture) {
    case Architecture::kInProcess:
      return "in-process";
    case Architecture::kMicroservice:
      return "container on this host";
    case Architecture::kDistributed:
      return fmt::format("second node, {} Gbit/s", Short(gbit_per_s));
  }
  return "";
}

// The faults of the rows, each once; a row says "not here (1)" with its place in the list.
class Footnotes {
 public:
  std::string Mark(const Error& fault) {
    auto at = std::ranges::find(texts_, fault.message);
    if (at == texts_.end()) at = texts_.insert(at, fault.message);
    return fmt::format("{} ({})", fault.code == ErrorCode::kUnsupported ? "not here" : "failed",
                       at - texts_.begin() + 1);
  }
  std::string Text() const {
    std::string text;
    for (size_t i = 0; i < texts_.size(); ++i) text += fmt::format("({}) {}\n", i + 1, texts_[i]);
    return text;
  }

 private:
  std::vector<std::string> texts_;
};

std::string Table(const std::vector<Row>& rows, const Options& options, const Console& console) {
  std::string text = console.Bold(fmt::format("{:<27}{:<6}{:<7}{:<26}{}\n", "", "", "", "", "CPU ms/image"));
  text += console.Bold(fmt::format("{:<27}{:<6}{:<7}{:<26}{:<26}{}\n", "server", "", "mode", "images/s",
                                   "application", "server"));
  Footnotes notes;
  for (const Row& row : rows) {
    const bool alone = row.setting.architecture == Architecture::kInProcess;
    text += fmt::format("{:<27}{:<6}{:<7}", Place(row.setting.architecture, options.gbit_per_s),
                        alone ? "" : ToString(row.setting.protocol), ToString(row.setting.mode));
    if (row.fault) {
      text += notes.Mark(*row.fault) + "\n";
      continue;
    }
    text += fmt::format("{:<26}{:<26}{}\n", Cell(SpreadOf(row, Rate)), Cell(SpreadOf(row, ClientCpu)),
                        Cell(SpreadOf(row, ServerCpu)));
  }
  return text + notes.Text();
}

// Whether every trial gave the same answers, byte for byte.
bool AnswersAreEqual(const std::vector<Row>& rows) {
  const std::string* first = nullptr;
  for (const Row& row : rows) {
    for (const Outcome& outcome : row.outcomes) {
      if (first == nullptr) first = &outcome.answers;
      if (outcome.answers != *first) return false;
    }
  }
  return true;
}

void PutSpread(Json& json, const char* key, const std::optional<Spread>& spread) {
  if (spread) json[key] = Json{{"mean", spread->mean}, {"min", spread->low}, {"max", spread->high}};
}

Json ToJson(const std::vector<Row>& rows, const Options& options, int passes) {
  Json json{{"model", EscapeBytes(options.model)},
            {"batch", options.batch},
            {"in_flight", options.in_flight},
            {"repeats", options.repeats},
            {"repeat_data", passes},
            {"seed", options.seed},
            {"rate_gbit_per_s", options.gbit_per_s},
            {"no_files", options.no_files},
            {"answers_equal", AnswersAreEqual(rows)}};
  json["rows"] = Json::array();
  for (const Row& row : rows) {
    Json one{{"architecture", ToString(row.setting.architecture)}, {"mode", ToString(row.setting.mode)}};
    if (row.setting.architecture != Architecture::kInProcess)
      one["protocol"] = ToString(row.setting.protocol);
    if (row.fault) one["fault"] = row.fault->message;
    one["n"] = row.outcomes.size();
    PutSpread(one, "throughput_images_per_s", SpreadOf(row, Rate));
    PutSpread(one, "client_cpu_ms_per_image", SpreadOf(row, ClientCpu));
    PutSpread(one, "server_cpu_ms_per_image", SpreadOf(row, ServerCpu));
    PutSpread(one, "server_start_ms", SpreadOf(row, StartMs));
    json["rows"].push_back(std::move(one));
  }
  json["command"] = record::CommandLine(CommandLine());
  return json;
}

std::optional<int> ParseFlags(const Arguments& arguments, Options& options) {
  Flags flags(
      "compare",
      "One model and its application in three architectures: in one process, with the server in a container, "
      "and with the server behind a network link; over both protocols, sync and async.",
      "weir compare made/tiny made/pictures");
  flags.Required("MODEL", options.model, "a model folder");
  flags.Texts("DATA", options.data, "pictures, as weir run takes them", true);
  flags.Integer("--repeats", options.repeats, 1, 1000,
                "of each setting, each with server and application started anew");
  flags.Integer("-b,--batch", options.batch, 1, 4096, "pictures in one call");
  flags.Integer("--in-flight", options.in_flight, 1, 4096, "batches under way in async mode");
  flags.Number("--seconds", options.seconds, 0.01, 3600, "that a trial of the fastest setting lasts, about");
  flags.Switch(
      "--no-files", options.no_files,
      "have the data ready in memory before the clock starts: what is left is the architectures' own cost");
  flags.Number("--rate-gbit-per-s", options.gbit_per_s, 0.001, 100,
               "of the link to the second node, each way");
  flags.Text("--image", options.image, "the container image of the server: tools/container.sh builds it");
  flags.Integer64("--seed", options.seed, 0, INT64_MAX, "of the order of the trials");
  flags.Text("--json", options.json, "write the result as JSON to this file; - for standard output");
  return flags.Parse(arguments);
}

}  // namespace

int Compare(const Arguments& arguments) {
  Options options;
  if (const auto status = ParseFlags(arguments, options)) return *status;
  Console console(options.json);
  if (const Status checked = console.CheckJson(); !checked) return FailWith(checked.error());
  const Interrupt interrupt;
  const SteadyClock clock;
  const auto model = model::OpenModel(options.model, {});
  if (!model) return FailWith(model.error());
  if (model->folder.empty()) {
    return FailWith({ErrorCode::kUnsupported,
                     fmt::format("{}: compare wants a model folder", EscapeBytes(options.model))});
  }
  for (const std::string& line : launch::RemoveLeftovers(clock)) console.Note(line);

  std::error_code error;
  trial::Workload workload{.program = std::filesystem::read_symlink("/proc/self/exe", error).string(),
                           .model_folder = model->folder,
                           .data = options.data,
                           .arguments = {"--batch", fmt::format("{}", options.batch)},
                           .in_process_arguments = EngineArguments(*model),
                           .in_flight = options.in_flight};
  trial::Site site({.program = workload.program,
                    .model = model->folder,
                    .image = options.image,
                    .gbit_per_s = options.gbit_per_s},
                   clock);
  if (options.no_files) workload.arguments.emplace_back("--no-files");
  const auto passes = PassesFor(options.seconds, site, workload, clock);
  if (!passes) return FailWith(passes.error());
  workload.arguments.insert(workload.arguments.end(), {"--repeat-data", fmt::format("{}", *passes)});

  std::vector<Row> rows = AllRows(site);
  RunAll(rows, options, site, workload, interrupt.token(), console, clock);
  const bool failed = std::ranges::any_of(
      rows, [](const Row& r) { return r.fault && r.fault->code != ErrorCode::kUnsupported; });
  console.Text(Table(rows, options, console));
  console.Text(
      fmt::format("Batches of {}, {} in flight where async; mean of {} repeats (least to most). {}\n",
                  options.batch, options.in_flight, options.repeats,
                  AnswersAreEqual(rows) ? "Every trial gave the same answers." : "THE ANSWERS DIFFER."));
  if (const Status written = console.Json(ToJson(rows, options, *passes)); !written)
    return FailWith(written.error());
  if (interrupt.token().stop_requested()) return kInterrupted;
  return failed || !AnswersAreEqual(rows) ? kJobFailed : kDone;
}

}  // namespace weir::cli
