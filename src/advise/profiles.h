// The capacities that measurements give, read from the results of other verbs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace weir::advise {

// A capacity with its 95 % interval. Of a single measurement, the interval is the value.
struct Capacity {
  double value = 0, low = 0, high = 0;
  std::vector<std::string> files;  // that it was measured in
  bool once = false;               // there is no repeat
};

// A training job whose demand was measured: one accelerator's.
struct MeasuredDemand {
  double samples_per_s = 0, sample_bytes = 0;
};

struct Profiles {
  // Capacities of one storage unit.
  std::optional<Capacity> storage_samples_per_s;  // whole samples in random order
  double storage_sample_bytes = 0;                // mean size of those samples
  bool storage_may_give_more = false;             // the probe fed all that it asked about
  std::optional<Capacity> storage_bytes_per_s;    // large sequential reads
  std::optional<Capacity> storage_share;          // that an added unit gives of its equal share
  // Capacity of one link.
  std::optional<Capacity> link_gbit_per_s;
  // Capacities of one host.
  std::optional<Capacity> decoded_samples_per_s;  // of a training feed, from memory
  std::optional<Capacity> prepared_images_per_s;
  std::optional<double> prepared_bytes_written;        // over the bytes read
  std::map<std::string, Capacity> model_images_per_s;  // by the name of its file or folder
  std::map<std::string, MeasuredDemand> demands;       // by the name of the file without ".json"
  std::optional<int> host_cores;
  std::vector<std::string> notes;  // files that were passed over or are doubtful, and why
};

// Reads all *.json of a folder, in byte order of their names. INVALID results are passed over with a note.
// Results of one model are repeats of one measurement. kNotFound; kInvalidArgument where there is no file;
// kUnsupported for a JSON that is no result of probe storage, probe network, probe host, run or load.
Result<Profiles> ReadProfiles(const std::string& folder);

}  // namespace weir::advise
