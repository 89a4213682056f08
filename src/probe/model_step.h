// The step time of the user's own model, measured on this host.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/error.h"

namespace weir::probe {

struct ModelStep {
  Duration step{};         // median of the runs
  Duration low{}, high{};  // of the runs: the first and the third quartile
  int batch = 1;
  int runs = 0;
  std::string engine;
};

struct ModelStepOptions {
  std::string path;    // an .onnx file or a model folder
  std::string engine;  // empty: the model's own, or onnxruntime
  int batch = 32;
  int threads = 0;  // of the engine; 0: all
  Duration budget = 2s;
};

// Runs batches of zeros, one after the other: three to warm up, then at least five, until the budget is used
// up. Errors as OpenModel's and OpenSession's; kUnsupported for a free dimension behind the batch.
Result<ModelStep> MeasureModelStep(const ModelStepOptions& options, const Clock& clock);

// A line for people.
std::string ModelStepText(const std::string& model, const ModelStep& step);

// Measures `run` in the same way. Pure but for `clock`.
Result<ModelStep> MeasureStep(const std::function<Status()>& run, Duration budget, const Clock& clock);

}  // namespace weir::probe
