// The phases beside training: inference, streaming, and all three at once.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "probe/storage_session.h"
#include "probe/storage_stream.h"

namespace weir::probe {

struct PhaseOptions {
  StorageOptions train;  // its reads and repeats are those of all phases
  InferOptions infer;
  StreamOptions stream;
};

struct InferRun {
  InferResult result;
  MachineUse machine;
};
struct InferReport {
  InferOptions options;
  std::vector<InferRun> runs;
  SetFacts set;
  bool wants_cold = true;
};

struct StreamRun {
  StreamResult result;
  MachineUse machine;
};
struct StreamReport {
  StreamOptions options;
  std::vector<StreamRun> runs;
  SetFacts set;
  bool wants_cold = true;
};

// One run of each phase alone, then one of all at once.
struct MixReport {
  struct Phases {
    TrainResult train;
    InferResult infer;
    StreamResult stream;
  };
  Phases alone, together;
  MachineUse machine;  // of the time in which all ran
  SetFacts set;
  bool wants_cold = true;
};

// Each blocks; kCancelled after a stop; `clock` as Train wants it. A hung read ends the repeats.
Result<InferReport> ProbeInference(const PhaseOptions& options, const std::vector<StorageSample>& samples,
                                   const SetFacts& set, const Clock& clock, const std::stop_token& stop);
Result<StreamReport> ProbeStreaming(const PhaseOptions& options, const std::vector<StorageSample>& samples,
                                    const SetFacts& set, const Clock& clock, const std::stop_token& stop);
Result<MixReport> ProbeMix(const PhaseOptions& options, const std::vector<StorageSample>& samples,
                           const SetFacts& set, const Clock& clock, const std::stop_token& stop);

// The stage with the largest mean time of a frame: "queue" (planned to begin), "open", "read" or "close".
std::string InferBottleneck(const std::vector<InferRun>& runs);

bool AnyHung(const InferReport& report);
bool AnyHung(const StreamReport& report);
bool AnyHung(const MixReport& report);

// Returns the machine at its worst in two runs.
MachineUse Worse(const MachineUse& a, const MachineUse& b);

}  // namespace weir::probe
