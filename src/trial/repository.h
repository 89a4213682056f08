// The model repository of a trial's server: the model's files, and the config.pbtxt that the setting asks
// for.
#pragma once

#include <string>

#include "base/error.h"
#include "model/model.h"
#include "trial/setting.h"

namespace weir::trial {

// How many batches compute side by side where the engine is one of this process, or of a server: as the
// setting says (its streams in each of its instances), or the model's configuration, or one a thread. 0 for
// an emulated accelerator: its own.
int StreamsOf(const Setting& setting, const model::Model& model);

// Returns the config.pbtxt of weir's own server.
std::string ServedConfig(const Setting& setting, const model::Model& model);
// Returns that of another server with a repository: its own text with the study's instances and batching.
// kNotFound where the repository lacks the model.
Result<std::string> ServedConfig(const Setting& setting, const OtherServer& other);

// Makes the repository under `parent` and returns its path; one that is there already is taken. The files
// share their bytes with the model's where the file system can.
Result<std::string> MakeRepository(const std::string& parent, const Setting& setting,
                                   const model::Model& model);
// Likewise, of all models of the other server's repository. A folder of it in which `parent` lies is left
// out.
Result<std::string> MakeRepository(const std::string& parent, const Setting& setting,
                                   const OtherServer& other);

}  // namespace weir::trial
