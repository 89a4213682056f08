// The works that a cluster should carry, as people write them down. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace weir::advise {

struct TrainingWork {
  std::string name;
  int accelerators = 1;
  std::string profile;                                // of MLPerf Storage, or a measured file's name
  std::optional<double> samples_per_s, sample_bytes;  // of one accelerator; over the profile's
};

struct InferenceWork {
  std::string name;
  int streams = 1;
  double frames_per_s = 25;  // of each stream
  double frame_bytes = 0;    // over the link
  std::string model;         // a measured file's name; empty: the only one
};

struct PreparationWork {
  std::string name;
  double images = 0, image_bytes = 0;
  std::optional<double> written_bytes;  // of a prepared image; else as measured
  double within_hours = 24;
};

struct Workload {
  std::string name = "plan";
  std::vector<TrainingWork> training;
  std::vector<InferenceWork> inference;
  std::vector<PreparationWork> preparation;
  double busy_percent = 80;  // to which a resource is used at most
  std::optional<int> storage, links, hosts;
  int accelerators_per_host = 1;
  std::optional<double> link_gbit_per_s;  // where no network was measured
};

// kInvalidArgument names the line and the key.
Result<Workload> ParseWorkload(std::string_view yaml);

}  // namespace weir::advise
