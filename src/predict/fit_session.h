// Fits of one or several SPECs, from their names to files and results. Nothing is printed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/named_file.h"
#include "predict/predictor.h"
#include "results/fit_result.h"

namespace weir::predict {

struct FitRequest {
  std::vector<std::string> specs;
  std::string data_dir = ".";
  std::string output;  // the predictor of one SPEC, or a folder for those of all
  std::string html;    // the page likewise; empty: none
  std::string json;    // where the caller writes the result
  FitOptions fit;      // 0 threads: one a core
  bool check = false;  // only reads and checks the rows
  std::vector<std::string> command;

  // Whether `output` is a folder: of several SPECs, or where it exists or ends with a slash.
  bool IntoFolder() const;
  std::string PredictorOf(const std::string& spec) const;
  std::string PageOf(const std::string& spec) const;
};

// Returns the name of the predictor of a SPEC: of the file without its extension, or of a study's folder.
std::string NameOfSpec(const std::string& spec);

// Returns kInvalidArgument for paths that contradict one another, and for an output that would overwrite an
// input or another output.
Status CheckFitRequest(const FitRequest& request);

// Returns the outputs that must be writable; makes the folders first where the outputs go into folders.
Result<std::vector<NamedFile>> MakeFitFolders(const FitRequest& request);

struct FitHooks {
  std::function<void(const results::FitResult& result)> fitted;  // or checked
  std::function<void(const Error& error)> failed;                // one SPEC of several
  // Writes the page of a fit.
  std::function<Status(const results::FitResult& result, const std::string& file)> write_page;
  // Called on any thread, one call at a time.
  std::function<void(double elapsed_s, const std::string& what, int64_t done, int64_t total)> progress;
  std::function<void()> progress_ended;
};

// Fits or checks the SPECs one after the other. A SPEC that fails does not stop the others. Returns the error
// of an only SPEC. The result has no provenance: it is the caller's.
Result<results::FitsResult> FitSpecs(const FitRequest& request, const FitHooks& hooks, const Clock& clock);

}  // namespace weir::predict
