// Each picture's fate, told in the order of the input and counted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "dataset/source.h"
#include "results/bottleneck.h"
#include "run/answers.h"
#include "run/stages.h"

namespace weir::run {

using results::Costs;

// A reject on its way to people: counted by reason, the first 20 kept whole, each once however many passes.
struct RejectCount {
  std::map<std::string, int64_t> by_reason;
  std::vector<std::pair<std::string, image::Reject>> first;
  int64_t total = 0;
};

struct Report {
  int64_t images = 0;  // answered
  int64_t failed = 0;  // of the rejected, those the service answered with an error
  RejectCount rejected;
  bool stopped = false;  // broken off by Stop, or by a store
  // The first object that its store did not give after all tries, with the reason. It broke the run off: the
  // objects behind it would be rejected for no fault of theirs. Empty: none.
  std::string store_failure;
  std::string device_failure;  // why the device is lost, which broke the run off. Empty: it is not
  double wall_s = 0;           // from the first submit to the last answer
  double total_s = 0;          // from the first picture taken up to the last printed
  double warm_up_s = 0;
  double load_before_s = 0;  // loading for no_files
  StageTimes stages;         // of answered pictures
  Costs costs;               // without the engine's CPU and threads, which the application does not see
  int64_t batches = 0;
  int64_t labelled = 0, top1_hits = 0, top5_hits = 0;

  std::optional<double> Throughput() const;  // images/s
};

// Sees each picture's fate in the order of the input, on the thread that runs.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  virtual void Answered(const dataset::Input& input, const std::vector<Answer>& answers) = 0;
  virtual void Rejected(const dataset::Input& input, const image::Reject& reject) = 0;
};

// Fates wait here for their turn. Of one thread. What is passed by reference must outlive it.
class Reporter {
 public:
  struct Outcome {
    Stamps stamps;  // up to result_end
    std::variant<std::vector<Answer>, image::Reject> fate;
  };

  Reporter(const dataset::Listing& listing, const Clock& clock, AnswerSink& sink, Report& report)
      : listing_(listing), clock_(clock), sink_(sink), report_(report) {}

  // `index` counts the pictures over all passes, from 0.
  void Add(int64_t index, Outcome outcome) { waiting_[index] = std::move(outcome); }
  int64_t TellDue();  // everything whose turn has come; how many those were
  void TellRest();    // also what comes after a picture that will have no fate
  int64_t told() const { return next_; }

 private:
  void Tell(int64_t index, Outcome outcome);
  void Count(const dataset::Input& input, const std::vector<Answer>& answers);
  void Count(const dataset::Input& input, const image::Reject& reject);

  const dataset::Listing& listing_;
  const Clock& clock_;
  AnswerSink& sink_;
  Report& report_;
  std::map<int64_t, Outcome> waiting_;
  int64_t next_ = 0;
};

}  // namespace weir::run
