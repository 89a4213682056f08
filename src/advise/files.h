// The files that put a configuration to use. Pure: text out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace weir::advise {

struct AdviceFile {
  std::string name;      // within the folder of the advice
  std::string contents;  // text
};

struct FilesInput {
  Json factors = Json::object();       // the configuration's levels, as a study keeps them
  std::string model;                   // its name: lower-case letters, digits and - in Kubernetes' names
  std::string config;                  // config.pbtxt as its trials had it; empty: none is written
  std::string image;                   // of the server's container; empty: that of the study, or none
  int64_t replicas = 1;                // at least 1
  int64_t gpus = 0;                    // of one instance
  std::optional<double> server_cores;  // that one instance used at most
  std::optional<double> memory_bytes;  // likewise
};

// Returns config.pbtxt, serve.flags, Containerfile, kubernetes.yaml, inference-service.yaml, weir.service and
// weir.slurm. For another server NAME the file of flags is server.sh, the unit and the script bear its name,
// and the files of containers are left out if no image is known. For a configuration in one process,
// run.flags alone, as it has no server. kInvalidArgument for a model name of characters that the files cannot
// hold, kUnsupported for a server that is running already.
Result<std::vector<AdviceFile>> MakeFiles(const FilesInput& input);

}  // namespace weir::advise
