#include <fmt/format.h>

#include <mutex>

#include "base/file.h"
#include "base/thread.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "predict/job.h"
#include "record/provenance.h"

namespace weir::cli {
namespace {

struct Wanted {
  std::string spec, data_dir = ".", output, estimator = "auto", json;
  int64_t seed = 1;
  int threads = 0;
};

std::optional<int> ParseFlags(const Arguments& arguments, Wanted& w) {
  Flags flags("fit", "Learns to predict times from rows of measurements, and says how well it can.",
              "weir fit studies/predict/train_pytorch.yaml --data-dir data -o train.json");
  flags.Required("SPEC", w.spec, "what is predicted from what (YAML); docs/prediction.md");
  flags.Text("--data-dir", w.data_dir, "folder of the tables that SPEC names");
  flags.Required("-o,--output", w.output, "the predictor (JSON)");
  flags.Choice("--estimator", w.estimator, predict::EstimatorNames(),
               "auto: the mixture that does best on rows left out");
  flags.Integer64("--seed", w.seed, 0, INT64_MAX, "the same seed gives the same file");
  flags.Integer("--threads", w.threads, 0, 4096, "0: one a core; the result does not depend on it");
  flags.Text("--json", w.json, "write scores and findings as JSON to this file; - for standard output");
  return flags.Parse(arguments);
}

Result<int> FitVerb(const Wanted& w) {
  Console console(w.json);
  TRY_STATUS(console.CheckJson());
  const SteadyClock clock;
  const Instant begin = clock.Now();
  std::mutex mutex;  // progress comes from any thread
  predict::FitOptions options{.estimator = w.estimator,
                              .seed = static_cast<uint64_t>(w.seed),
                              .threads = w.threads > 0 ? w.threads : UsableCpus()};
  options.progress = [&](const std::string& what, int64_t done, int64_t total) {
    const std::lock_guard lock(mutex);
    console.Progress(Seconds(clock.Now() - begin), what, done, total, "");
  };
  const auto job = predict::FitFromFiles(w.spec, w.data_dir, options);
  console.EndProgress();
  if (!job) return std::unexpected(job.error());
  TRY_STATUS(WriteFileWhole(w.output, job->predictor.Save()));
  console.Text(predict::FitText(*job));
  Json json = predict::FitJson(*job);
  json["predictor"] = EscapeBytes(w.output);
  json["wall_s"] = Seconds(clock.Now() - begin);
  json["provenance"] =
      record::CollectProvenance({.command = CommandLine(), .seed = static_cast<uint64_t>(w.seed)}).ToJson();
  json["command"] = record::CommandLine(CommandLine());
  TRY_STATUS(console.Json(json));
  return kDone;
}

}  // namespace

int Fit(const Arguments& arguments) {
  Wanted wanted;
  if (const auto status = ParseFlags(arguments, wanted)) return *status;
  const Result<int> status = FitVerb(wanted);
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
