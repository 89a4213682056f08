#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/flags.h"
#include "cli/run_verb.h"
#include "predict/fit_session.h"
#include "report/fit_report.h"
#include "report/fit_text.h"
#include "report/html.h"

namespace weir::cli {
namespace {

std::optional<int> ParseFlags(const Arguments& arguments, predict::FitRequest& w) {
  w.command = CommandLine();
  w.fit.threads = 0;
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
  flags.Parsed("--estimator", w.fit.estimator, predict::ParseEstimator,
               "what answers: neighbours (a physical model that its neighbours correct), physical (the model "
               "alone), or the published baselines lr-sfs and lr-sfs-relative",
               "neighbours");
  flags.Integer64("--seed", w.fit.seed, 0, INT64_MAX, "the same seed gives the same file");
  flags.Integer("--threads", w.fit.threads, 0, 4096, "0: one a core; the result does not depend on it");
  flags.Text("--json", w.json, "write scores and findings as JSON to this file; - for standard output");
  return flags.Parse(arguments);
}

Result<int> FitVerb(const predict::FitRequest& w) {
  Console console(w.json);
  TRY_STATUS(predict::CheckFitRequest(w));
  TRY_STATUS(console.CheckJson());
  for (const NamedFile& file : TRY(predict::MakeFitFolders(w))) TRY_STATUS(CheckOutput(file.name, file.path));
  int status = kDone;
  const SteadyClock clock;
  const predict::FitHooks hooks{
      .fitted =
          [&](const results::FitResult& result) {
            console.Text(report::FitText(result));
            // The text has the first of each kind.
            if (!result.findings.empty()) console.Note("--json FILE lists every finding with its rows");
          },
      .failed =
          [&](const Error& error) {
            const int failed = FailWith(error);
            if (status == kDone) status = failed;  // the first failure is the status of all
          },
      .write_page =
          [](const results::FitResult& result, const std::string& file) {
            return WriteFileWhole(file, report::ToHtml(report::FitDocument(result)));
          },
      .progress = [&](double elapsed_s, const std::string& what, int64_t done,
                      int64_t total) { console.Progress(elapsed_s, what, done, total, ""); },
      .progress_ended = [&] { console.EndProgress(); }};
  results::FitsResult result = TRY(predict::FitSpecs(w, hooks, clock));
  console.Text(report::FitsText(result));
  if (result.only ? !w.check : result.fits && !result.fits->empty()) {
    const std::string file = w.PredictorOf(w.specs.size() == 1 ? w.specs.front() : "NAME");
    console.Text(record::CommandLine(std::vector<std::string>{"weir", "predict", file, "--explain"}) +
                 " shows the models\n");
  }
  AddProvenance(result, static_cast<int64_t>(w.fit.seed));
  TRY_STATUS(console.Json(result.ToJson()));
  return status;
}

}  // namespace

int Fit(const Arguments& arguments) { return RunVerb<predict::FitRequest>(arguments, ParseFlags, FitVerb); }

}  // namespace weir::cli
