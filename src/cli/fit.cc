#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "cli/console.h"
#include "cli/flags.h"
#include "cli/verbs.h"
#include "predict/job.h"
#include "record/provenance.h"
#include "report/fit_report.h"
#include "report/fit_text.h"
#include "report/html.h"
#include "results/fit_result.h"

namespace weir::cli {
namespace {

struct Wanted {
  std::vector<std::string> specs;
  std::string data_dir = ".", output, html, estimator = "auto", json;
  int64_t seed = 1;
  int threads = 0;
  bool check = false, ablation = false;
};

std::optional<int> ParseFlags(const Arguments& arguments, Wanted& w) {
  Flags flags("fit", "Learns to predict times from rows of measurements, and says how well it can.",
              "weir fit studies/predict/train_pytorch.yaml --data-dir data -o train.json --html train.html\n"
              "  weir fit studies/predict/*.yaml --data-dir data -o predictors");
  flags.Texts("SPEC", w.specs,
              "SPEC files (YAML, docs/prediction.md), or folders of studies, whose factors make the SPEC",
              true);
  flags.Text("--data-dir", w.data_dir, "folder of the tables that SPEC names");
  flags.Optional("-o,--output", w.output,
                 "the predictor of one SPEC (JSON), or a folder: NAME.json for each NAME.yaml");
  flags.Optional(
      "--html", w.html,
      "a page on how well it does, with a learning curve; for several SPECs the folder of the pages");
  flags.Switch("--check", w.check, "only read and check the rows: what is wrong with which");
  flags.Switch("--ablation", w.ablation, "also score the method without each of its parts");
  flags.Choice("--estimator", w.estimator, predict::EstimatorNames(),
               "auto: the mixture that does best on rows left out");
  flags.Integer64("--seed", w.seed, 0, INT64_MAX, "the same seed gives the same file");
  flags.Integer("--threads", w.threads, 0, 4096, "0: one a core; the result does not depend on it");
  flags.Text("--json", w.json, "write scores and findings as JSON to this file; - for standard output");
  return flags.Parse(arguments);
}

std::string NameOf(const std::string& spec) {
  std::filesystem::path path(spec);
  if (!path.has_filename()) path = path.parent_path();  // a folder with a slash at its end
  return path.stem().string();
}

// Whether -o names the folder of the predictors: of several SPECs, or a folder that is there or ends with a
// slash.
bool IntoFolder(const Wanted& w) {
  std::error_code error;
  return !w.output.empty() &&
         (w.specs.size() > 1 || w.output.ends_with('/') || std::filesystem::is_directory(w.output, error));
}

std::string PredictorOf(const Wanted& w, const std::string& spec) {
  return IntoFolder(w) ? w.output + "/" + NameOf(spec) + ".json" : w.output;
}

std::string PageOf(const Wanted& w, const std::string& spec) {
  return w.html.empty() || !IntoFolder(w) ? w.html : w.html + "/" + NameOf(spec) + ".html";
}

// Returns the files that the SPECs read. A broken SPEC is reported when its turn comes.
std::vector<NamedFile> Inputs(const Wanted& w) {
  std::vector<NamedFile> files;
  for (const std::string& path : w.specs) {
    files.push_back({"SPEC", path});
    const auto read = predict::ReadNamedSpec({.spec = path, .data_dir = w.data_dir});
    if (!read) continue;
    const auto add = [&](const char* what, const std::string& file) {
      if (!file.empty())
        files.push_back(
            {fmt::format("the {} of {}", what, path), std::filesystem::path(read->data_dir) / file});
    };
    const predict::Spec& spec = read->spec;
    add("rows", spec.rows);
    if (spec.hardware) add("hardware table", spec.hardware->file);
    if (spec.networks) add("network table", spec.networks->file);
  }
  return files;
}

Status CheckFiles(const Wanted& w) {
  std::vector<NamedFile> outputs = {{"--json", w.json}};
  for (const std::string& spec : w.specs) {
    outputs.push_back({"-o", PredictorOf(w, spec)});
    outputs.push_back({"--html", PageOf(w, spec)});
  }
  return CheckApart(Inputs(w), outputs);
}

Status CheckTogether(const Wanted& w) {
  const auto refuse = [](std::string what) { return Fail(ErrorCode::kInvalidArgument, std::move(what)); };
  if (w.check) {
    if (w.output.empty() && w.html.empty()) return {};
    return refuse("--check fits nothing: leave out -o and --html");
  }
  if (w.output.empty())
    return refuse("say where the predictor goes: -o FILE, or -o FOLDER for several SPECs");
  std::error_code error;
  if (w.specs.size() > 1 && std::filesystem::is_regular_file(w.output, error))
    return refuse(fmt::format("-o {} is a file, and the predictors of {} SPECs go into a folder",
                              EscapeBytes(w.output), w.specs.size()));
  std::set<std::string> names;
  for (const std::string& spec : w.specs) {
    if (!names.insert(NameOf(spec)).second)
      return refuse(fmt::format("two SPECs are called {}: their predictors would be one file", NameOf(spec)));
  }
  return {};
}

// Returns a row of the table of scores: median error and exp(mean |log ratio|) - 1 by split.
std::string ScoresText(const std::string& spec, const results::FitResult& fit) {
  std::string text = fmt::format("{:<18} {:>7} {:>6.0f}", NameOf(spec), Count(fit.fitted.value_or(0)),
                                 fit.wall_s.value_or(0));
  using Split = results::FitResult::Split;
  for (const char* name : {Split::kInside, Split::kCount, Split::kHardware, Split::kNetwork}) {
    std::string cell = "-";
    for (const results::FitResult::Split& split :
         fit.splits.value_or(std::vector<results::FitResult::Split>())) {
      if (split.name == name)
        cell = fmt::format("{:.1f} / {:.1f}", split.score.median_percent, split.score.log_mean_percent);
    }
    text += fmt::format("  {:>13}", cell);
  }
  return text + "\n";
}

// Fits the SPECs one after the other.
class Fitter {
 public:
  Fitter(const Wanted& wanted, Console& console) : wanted_(wanted), console_(console), begin_(clock_.Now()) {}

  double Elapsed() const { return Seconds(clock_.Now() - begin_); }

  Result<results::FitResult> Fit(const std::string& spec) {
    const double begin = Elapsed();
    predict::FitJobOptions options{.fit = {.estimator = wanted_.estimator,
                                           .seed = static_cast<uint64_t>(wanted_.seed),
                                           .threads = Threads(),
                                           .ablation = wanted_.ablation},
                                   .learning_curve = !wanted_.html.empty()};
    options.fit.progress = [this](const std::string& what, int64_t done, int64_t total) {
      const MutexLock lock(mutex_);
      console_.Progress(Elapsed(), what, done, total, "");
    };
    auto job = predict::FitFromFiles({.spec = spec, .data_dir = wanted_.data_dir}, options);
    console_.EndProgress();
    if (!job) return std::unexpected(job.error());
    const std::string output = PredictorOf(wanted_, spec);
    TRY_STATUS(WriteFileWhole(output, job->predictor.Save()));
    results::FitResult result = std::move(job->result);
    Tell(result);
    result.predictor = EscapeBytes(output);
    result.seed = wanted_.seed;
    result.estimator = wanted_.estimator;
    result.wall_s = Elapsed() - begin;
    result.command = record::CommandLine(CommandLine());
    if (const std::string page = PageOf(wanted_, spec); !page.empty())
      TRY_STATUS(WriteFileWhole(page, report::ToHtml(report::FitDocument(result))));
    return result;
  }

  Result<results::FitResult> Check(const std::string& spec) {
    auto checked = TRY(predict::ReadAndCheck({.spec = spec, .data_dir = wanted_.data_dir},
                                             static_cast<uint64_t>(wanted_.seed), Threads()));
    Tell(checked.result);
    return std::move(checked.result);
  }

 private:
  void Tell(const results::FitResult& result) const {
    console_.Text(report::FitText(result));
    // The text has the first of each kind.
    if (!result.findings.empty()) console_.Note("--json FILE lists every finding with its rows");
  }

  int Threads() const { return wanted_.threads > 0 ? wanted_.threads : UsableCpus(); }

  const Wanted& wanted_;
  Console& console_;
  const SteadyClock clock_;
  const Instant begin_;
  Mutex mutex_;  // progress comes from any thread
};

// A SPEC that fails does not stop the others; the first failure is the status of all.
Result<int> FitVerb(const Wanted& w) {
  Console console(w.json);
  TRY_STATUS(CheckTogether(w));
  TRY_STATUS(CheckFiles(w));
  TRY_STATUS(console.CheckJson());
  if (IntoFolder(w)) {
    TRY_STATUS(MakeFolders(w.output));
    if (!w.html.empty()) TRY_STATUS(MakeFolders(w.html));
  } else {
    TRY_STATUS(CheckOutput("-o", w.output));
    TRY_STATUS(CheckOutput("--html", w.html));
  }
  Fitter fitter(w, console);
  std::vector<results::FitResult> list;
  std::string table;
  int status = kDone;
  for (const std::string& spec : w.specs) {
    auto result = w.check ? fitter.Check(spec) : fitter.Fit(spec);
    if (result) {
      if (!w.check) table += ScoresText(spec, *result);
      list.push_back(*std::move(result));
    } else if (w.specs.size() == 1) {
      return std::unexpected(result.error());
    } else if (const int failed = FailWith(result.error()); status == kDone) {
      status = failed;
    }
  }
  if (w.specs.size() > 1 && !table.empty()) {
    console.Text(
        fmt::format("\nmedian error / exp(mean |log ratio|) - 1, %\n{:<18} {:>7} {:>6}  {:>13}  {:>13}  "
                    "{:>13}  {:>13}\n{}",
                    "", "rows", "s", "inside", "count", "hardware", "network", table));
  }
  if (!table.empty()) {
    const std::string file = PredictorOf(w, w.specs.size() == 1 ? w.specs.front() : "NAME");
    console.Text(record::CommandLine(std::vector<std::string>{"weir", "predict", file, "--explain"}) +
                 " shows the models\n");
  }
  results::FitsResult result;
  if (w.specs.size() == 1)
    result.only = std::move(list.front());
  else
    (w.check ? result.checks : result.fits) = std::move(list);
  result.wall_s = fitter.Elapsed();
  result.provenance =
      record::CollectProvenance({.command = CommandLine(), .seed = static_cast<uint64_t>(w.seed)}).ToJson();
  result.command = record::CommandLine(CommandLine());
  TRY_STATUS(console.Json(result.ToJson()));
  return status;
}

}  // namespace

int Fit(const Arguments& arguments) {
  Wanted wanted;
  if (const auto status = ParseFlags(arguments, wanted)) return *status;
  const Result<int> status = FitVerb(wanted);
  return status ? *status : FailWith(status.error());
}

}  // namespace weir::cli
