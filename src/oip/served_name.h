// The names under which a weir server serves one model.
#pragma once

#include <string>

namespace weir::oip {

// Returns the name of `model` for those who send `payload` ("tensor", "pixels", "image"): NAME, NAME.pixels,
// NAME.image. A name that ends so already is returned as it is, and so is NAME.identify for "image".
std::string ServedAs(const std::string& model, const std::string& payload);

}  // namespace weir::oip
