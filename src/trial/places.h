// Where the model and the data of a study lie.
#pragma once

#include <string>

#include "base/error.h"

namespace weir::trial {

// The path of what a study file names: `folder`/`name` where that is there (`folder` is the study file's),
// else `name` as it stands, from the working folder. URLs, absolute paths and an empty name stay as they are.
std::string FindBeside(const std::string& name, const std::string& folder);

// kNotFound names both places where `name` is in neither. `what`: "model", "data".
Status CheckIsThere(const std::string& what, const std::string& name, const std::string& folder);

}  // namespace weir::trial
