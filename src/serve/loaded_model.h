// A model that is loaded, and what clients see of it under each of its names.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "infer/choices.h"
#include "infer/runner.h"
#include "infer/tensor.h"
#include "model/effective_config.h"
#include "model/model.h"
#include "serve/identities.h"
#include "serve/metrics.h"
#include "serve/statistics.h"

namespace weir::serve {

// The payload of a request: the model's own tensors (NAME), pixels at the recipe's size that the server
// normalises (NAME.pixels), or encoded pictures that it decodes and prepares (NAME.image). Where the model is
// bound to an index of identities: what the model takes (NAME.identify), or embeddings (NAME.lookup); both
// answer with names and scores.
enum class Payload { kTensor, kPixels, kImage, kIdentify, kLookup };
inline constexpr std::array kPayloads = {Payload::kTensor, Payload::kPixels, Payload::kImage,
                                         Payload::kIdentify, Payload::kLookup};
// The names beside the model's own, in the order in which they are looked for.
inline constexpr std::array kOtherPayloads = {Payload::kPixels, Payload::kImage, Payload::kIdentify,
                                              Payload::kLookup};
std::string_view SuffixOf(Payload payload);  // "", ".pixels", ".image", ".identify", ".lookup"

class LoadedModel;

// One version under one name. Thread-safe: constant but for what counts.
struct ServedModel {
  LoadedModel& loaded;
  Payload payload = Payload::kTensor;
  std::string name;
  std::string version;
  std::vector<infer::TensorInfo> inputs, outputs;  // as clients see them
  model::EffectiveConfig config;
  ModelMetrics& metrics;
  bool takes_pictures = false;  // which the server prepares
  Statistics statistics;

  // The model and its tensor for messages: `model "m": input "x"`.
  std::string What() const;
  std::string What(std::string_view kind, std::string_view tensor) const;
};

// One version of a model: its session, its queue, and the names it is served under. Thread-safe. The
// destructor answers what is queued and joins the engine's threads: it must not run on one of them, nor on a
// thread that may not wait.
class LoadedModel {
 public:
  struct Parts {
    model::Model model;
    std::string version;
    std::unique_ptr<infer::Engine> engine;  // outlives the session; may be null
    std::shared_ptr<infer::Session> session;
    std::string engine_spec;                      // as it was opened
    std::unique_ptr<IdentityBinding> identities;  // null: none
    int max_queue = 256;                          // calls, where the configuration does not say
  };
  // Calls from here on are computed. `clock` and `metrics` must outlive the model. kInvalidArgument where the
  // configuration and the session do not go together.
  static Result<std::unique_ptr<LoadedModel>> Create(Parts parts, const Clock& clock, Metrics& metrics);

  // Runs what the configuration wants run before the first request, or one row of zeros. Blocks.
  Status WarmUp();

  const model::Model& model() const { return parts_.model; }
  const std::string& version() const { return parts_.version; }
  const infer::Session& session() const { return *parts_.session; }
  // REQUIRES: Find(Payload::kIdentify) is not null.
  const IdentityBinding& identities() const { return *parts_.identities; }
  std::string engine() const;  // "onnxruntime", ...
  infer::Runner& runner() { return *runner_; }
  const infer::Runner& runner() const { return *runner_; }
  int max_batch() const { return parts_.model.serving_max_batch; }

  // Null where the model has no recipe, or one that makes pictures of no fixed size.
  ServedModel* Find(Payload payload) const { return served_[static_cast<size_t>(payload)].get(); }

  // The engine answered a call, or failed at it. Requests can bring that about: whether it is dead only a
  // probe tells.
  void NoteEngine(bool well);
  // It failed several times in a row since the last probe, or was dead then.
  bool suspect() const {
    return dead() || failures_in_a_row_.load(std::memory_order_relaxed) >= kSuspectAfter;
  }
  // Begins to run what it was warmed up with, unless that runs already. When it ends the engine is dead if it
  // failed at that too, and `done` is called, on any thread.
  void BeginProbe(std::function<void()> done);
  bool dead() const { return dead_.load(std::memory_order_relaxed); }
  // Returns the batch that has run longest, if it hangs.
  std::optional<infer::Hang> hang(Instant now) const { return runner_->hang(now); }
  // kOverloaded where the engine is dead or hangs.
  Status CheckEngine(Instant now) const;

  // Notes that a call came while `others` were under way. Gives true once: when so many calls came one by one
  // that dynamic batching, which the configuration asks for, cannot help.
  bool NoteCall();
  void NoteAnswer() { under_way_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  static constexpr int kSuspectAfter = 3;

  explicit LoadedModel(Parts parts) : parts_(std::move(parts)) {}
  Status MakeServed(Metrics& metrics);
  void Submit(const std::vector<infer::Tensor>& inputs, std::function<void(Status)> done);
  Status Run(const std::vector<infer::Tensor>& inputs);

  const Parts parts_;
  std::array<std::unique_ptr<ServedModel>, kPayloads.size()> served_;
  std::vector<infer::Tensor> probe_;  // set before others know of this; empty: there is none
  std::atomic<int> failures_in_a_row_{0};
  std::atomic<bool> dead_{false};
  std::atomic<bool> probing_{false};
  std::atomic<int> under_way_{0};
  std::atomic<int64_t> lone_calls_{0};
  std::unique_ptr<infer::Runner> runner_;  // last: its threads use what is above
};

}  // namespace weir::serve
