// The application: pictures in, answers out, over any Service; times each stage.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "dataset/recipe.h"
#include "dataset/source.h"
#include "infer/choices.h"
#include "infer/service.h"
#include "run/loader.h"
#include "run/reporter.h"

namespace weir::run {

using infer::Mode;

// The form in which the service gets a picture.
enum class Form {
  kTensor,  // its pixels, as the recipe makes them
  kFile,    // its bytes as they are, for a server that decodes: an element of a BYTES tensor
};

// The model and its options, for any backend.
struct Target {
  std::string model, version;  // version empty: the newest
  Form form = Form::kTensor;
  infer::TensorInfo input;
  std::string output;               // the scores
  dataset::Recipe recipe;           // its geometry has an output size
  std::vector<std::string> labels;  // by class
  std::optional<int64_t> classes;   // how many the output has scores of; absent where its shape is open
  std::optional<int> fixed_batch;   // the only batch it takes: a part batch is padded
  std::function<Bytes(size_t)> make_memory = Bytes::AllocateUninitialized;  // of a batch of so many bytes
};

// kInvalidArgument names a set of `listing` whose pictures are not what `target` wants, and the remedy.
Status CheckListing(const dataset::Listing& listing, const Target& target);

struct Options {
  Mode mode = Mode::kAsync;
  int batch = 8;      // pictures a batch
  int in_flight = 2;  // batches submitted and not yet answered (async)
  int decode_threads = 1;
  bool no_files = false;  // load everything before the clock starts
  int repeat_data = 1;    // passes over the data
  int top = 5;
  Loader::Options loading;
  // Asked when a batch failed: why nothing can be computed any more, which breaks the run off. May be empty.
  std::function<std::optional<std::string>()> lost = {};
};

// Told from the thread that runs, between pictures, several times a second at most.
struct Progress {
  int64_t done = 0;
  int64_t total = 0;
  int64_t rejected = 0;
  double elapsed_s = 0;
};

// Run once, on one thread; Stop from any. What is passed by reference must outlive it. Its threads:
// "decode-N" load, or "feed" passes on what was loaded before; the thread that calls Run ranks and reports.
class Application {
 public:
  Application(infer::Service& service, const Target& target, const dataset::Listing& listing,
              const Clock& clock, Options options);
  ~Application();

  // Does the work outside the measurement: one warm-up batch of zeros at the size of the run and, with
  // no_files, the loading. Before Run. kInvalidArgument for a listing whose sets do not fit, or too little
  // memory for no_files; the model's own error for a failed batch.
  Status MakeReady();
  // Memory: batches in flight and two more; with no_files all pictures' tensors. Every input is answered or
  // rejected once a pass, and reported to `sink` in the order of the input. A batch that the service fails
  // rejects its pictures and the run goes on; files that are refused together are sent again one by one, so
  // that each gets its own verdict.
  Report Run(AnswerSink& sink, const std::function<void(const Progress&)>& progress);
  // Finishes and reports the work that has begun; then Run returns.
  void Stop();

 private:
  class Flow;
  std::unique_ptr<Flow> flow_;
};

}  // namespace weir::run
