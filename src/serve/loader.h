// Turns the files of a model into one that computes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "serve/loaded_model.h"
#include "serve/log.h"
#include "serve/metrics.h"

namespace weir::serve {

// Called by one thread at a time, which it may keep for as long as loading takes.
class Loader {
 public:
  struct Wanted {
    std::string name;    // the model's
    std::string path;    // its folder or file
    std::string config;  // as JSON instead of the folder's; empty: the folder's
    std::string version;
  };
  virtual ~Loader() = default;
  // The versions that `wanted` (but for its version) asks for, rising.
  virtual Result<std::vector<std::string>> Versions(const Wanted& wanted) = 0;
  // One of them: opened, warmed up and ready.
  virtual Result<std::unique_ptr<LoadedModel>> Load(const Wanted& wanted) = 0;
};

struct LoaderOptions {
  std::string engine;  // instead of the models' own; empty: theirs
  std::string device;  // instead of the models' own; empty: theirs
  int threads = 0;     // of each model, instead of the models' own; 0: theirs
  std::string cache_dir;
  int max_queue = 256;                  // calls, where a model's configuration does not say
  std::vector<std::string> link_roots;  // folders that links of models may lead below; links followed
};
// `clock` and `metrics` must outlive it and what it loads.
std::unique_ptr<Loader> MakeFileLoader(LoaderOptions options, const Clock& clock, Metrics& metrics, Log log);

}  // namespace weir::serve
