#include "predict/fit_session.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "predict/job.h"
#include "record/provenance.h"

namespace weir::predict {
namespace {

using results::FitResult;

// Returns the files that the SPECs read. A broken SPEC is reported when its turn comes.
std::vector<NamedFile> Inputs(const FitRequest& request) {
  std::vector<NamedFile> files;
  for (const std::string& path : request.specs) {
    files.push_back({"SPEC", path});
    const auto read = ReadNamedSpec({.spec = path, .data_dir = request.data_dir});
    if (!read) continue;
    const auto add = [&](const char* what, const std::string& file) {
      if (!file.empty())
        files.push_back(
            {fmt::format("the {} of {}", what, path), std::filesystem::path(read->data_dir) / file});
    };
    const Spec& spec = read->spec;
    add("rows", spec.rows);
    if (spec.hardware) add("hardware table", spec.hardware->file);
    if (spec.networks) add("network table", spec.networks->file);
  }
  return files;
}

Status CheckPaths(const FitRequest& request) {
  const auto refuse = [](std::string what) { return Fail(ErrorCode::kInvalidArgument, std::move(what)); };
  if (request.check) {
    if (request.output.empty() && request.html.empty()) return {};
    return refuse("--check fits nothing: leave out -o and --html");
  }
  if (request.output.empty())
    return refuse("say where the predictor goes: -o FILE, or -o FOLDER for several SPECs");
  std::error_code error;
  if (request.specs.size() > 1 && std::filesystem::is_regular_file(request.output, error))
    return refuse(fmt::format("-o {} is a file, and the predictors of {} SPECs go into a folder",
                              EscapeBytes(request.output), request.specs.size()));
  std::set<std::string> names;
  for (const std::string& spec : request.specs) {
    if (!names.insert(NameOfSpec(spec)).second)
      return refuse(
          fmt::format("two SPECs are called {}: their predictors would be one file", NameOfSpec(spec)));
  }
  return {};
}

Result<FitResult> FitOne(const FitRequest& request, const std::string& spec, const FitOptions& fit,
                         const FitHooks& hooks, const Clock& clock) {
  const Instant begin = clock.Now();
  auto job = FitFromFiles({.spec = spec, .data_dir = request.data_dir},
                          {.fit = fit, .learning_curve = !request.html.empty()});
  hooks.progress_ended();
  if (!job) return std::unexpected(job.error());
  const std::string output = request.PredictorOf(spec);
  TRY_STATUS(WriteFileWhole(output, job->predictor.Save()));
  FitResult result = std::move(job->result);
  hooks.fitted(result);
  result.predictor = EscapeBytes(output);
  result.seed = static_cast<int64_t>(fit.seed);
  result.estimator = fit.estimator;
  result.wall_s = Seconds(clock.Now() - begin);
  result.command = record::CommandLine(request.command);
  if (const std::string page = request.PageOf(spec); !page.empty())
    TRY_STATUS(hooks.write_page(result, page));
  return result;
}

Result<FitResult> CheckOne(const FitRequest& request, const std::string& spec, const FitOptions& fit,
                           const FitHooks& hooks) {
  Checked checked = TRY(ReadAndCheck({.spec = spec, .data_dir = request.data_dir}, fit.seed, fit.threads));
  hooks.fitted(checked.result);
  return std::move(checked.result);
}

}  // namespace

std::string NameOfSpec(const std::string& spec) {
  std::filesystem::path path(spec);
  if (!path.has_filename()) path = path.parent_path();  // a folder with a slash at its end
  return path.stem().string();
}

bool FitRequest::IntoFolder() const {
  std::error_code error;
  return !output.empty() &&
         (specs.size() > 1 || output.ends_with('/') || std::filesystem::is_directory(output, error));
}

std::string FitRequest::PredictorOf(const std::string& spec) const {
  return IntoFolder() ? output + "/" + NameOfSpec(spec) + ".json" : output;
}

std::string FitRequest::PageOf(const std::string& spec) const {
  return html.empty() || !IntoFolder() ? html : html + "/" + NameOfSpec(spec) + ".html";
}

Status CheckFitRequest(const FitRequest& request) {
  TRY_STATUS(CheckPaths(request));
  std::vector<NamedFile> outputs = {{"--json", request.json}};
  for (const std::string& spec : request.specs) {
    outputs.push_back({"-o", request.PredictorOf(spec)});
    outputs.push_back({"--html", request.PageOf(spec)});
  }
  return CheckApart(Inputs(request), outputs);
}

Result<std::vector<NamedFile>> MakeFitFolders(const FitRequest& request) {
  if (!request.IntoFolder()) return std::vector<NamedFile>{{"-o", request.output}, {"--html", request.html}};
  TRY_STATUS(MakeFolders(request.output));
  if (!request.html.empty()) TRY_STATUS(MakeFolders(request.html));
  return std::vector<NamedFile>();
}

Result<results::FitsResult> FitSpecs(const FitRequest& request, const FitHooks& hooks, const Clock& clock) {
  const Instant begin = clock.Now();
  Mutex mutex;
  FitOptions fit = request.fit;
  if (fit.threads <= 0) fit.threads = UsableCpus();
  fit.progress = [&](const std::string& what, int64_t done, int64_t total) {
    const MutexLock lock(mutex);
    hooks.progress(Seconds(clock.Now() - begin), what, done, total);
  };
  std::vector<FitResult> list;
  for (const std::string& spec : request.specs) {
    auto result =
        request.check ? CheckOne(request, spec, fit, hooks) : FitOne(request, spec, fit, hooks, clock);
    if (result)
      list.push_back(*std::move(result));
    else if (request.specs.size() == 1)
      return std::unexpected(result.error());
    else
      hooks.failed(result.error());
  }
  results::FitsResult result;
  if (request.specs.size() == 1)
    result.only = std::move(list.front());
  else
    (request.check ? result.checks : result.fits) = std::move(list);
  result.wall_s = Seconds(clock.Now() - begin);
  return result;
}

}  // namespace weir::predict
