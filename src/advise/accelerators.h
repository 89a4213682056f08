// The accelerators of `weir advise --hardware`, as a predictor describes them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "advise/hardware.h"
#include "base/error.h"
#include "study/design.h"

namespace weir::advise {

struct AskedAccelerators {
  std::string names;      // "h100-sxm,l40s"
  std::string predictor;  // a file of weir fit
  std::string network;    // empty: the study's model
  std::vector<std::string> set;
};

// The parts that are not empty.
std::vector<std::string> SplitAtCommas(const std::string& text);

// kInvalidArgument names the flag that says nothing without another.
Status CheckAskedAccelerators(const AskedAccelerators& asked);

// Predicts the times of the study's batches. `prices` are by a name as asked or as the table has it; `find`
// gives a model's path. Adds to `notes`. kInvalidArgument for hardware that the table lacks, or that is
// refused.
Result<std::vector<advise::Accelerator>> ReadAccelerators(
    const AskedAccelerators& asked, const study::Design& design, const std::map<std::string, double>& prices,
    const std::function<std::string(const std::string&)>& find, std::vector<std::string>& notes);

}  // namespace weir::advise
