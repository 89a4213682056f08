// From a decision to its files: the model's configuration as the trials had it, resources as measured, and a
// page that says how to use them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "advise/decision.h"
#include "advise/files.h"
#include "base/error.h"
#include "results/advice_result.h"
#include "study/design.h"
#include "study/entries.h"
#include "study/study_file.h"

namespace weir::advise {

struct AdviceFilesInput {
  const study::StudyFile& file;
  const study::Design& design;
  std::span<const study::PlayedTrials> played;
  const Candidate& best;
  std::string image;  // of the server's container; empty: the study's
  // Returns the path of a model or a repository as the study names it.
  std::function<std::string(const std::string& name)> find;
  std::string data;        // where the study's pictures are
  bool predicted = false;  // the accelerator stands for a real one: the files name none, and ask for a GPU

  Json factors() const;  // of the best configuration, without an accelerator that stands for a real one
};

// Reads the model's configuration. Errors as MakeFiles and model::OpenModel.
Result<std::vector<AdviceFile>> MakeAdviceFiles(const AdviceFilesInput& input);

// Returns the name of the best configuration's model, as its server knows it.
std::string ModelName(const AdviceFilesInput& input);

// Returns README.md: the configuration, the expected figures with their intervals, how each file is used, and
// the commands that check the targets under the load of the trials. REQUIRES: advice.best.
std::string AdviceReadme(const AdviceFilesInput& input, const results::AdviceResult& advice,
                         const std::vector<AdviceFile>& files);

}  // namespace weir::advise
