// The names under which a weir server serves one model.
#pragma once

#include <string>

#include "infer/choices.h"

namespace weir::oip {

// Returns the name of `model` for those who send `payload`: NAME, NAME.pixels, NAME.image. A name that ends
// so already is returned as it is, and so is NAME.identify for kImage.
std::string ServedAs(const std::string& model, infer::Payload payload);

}  // namespace weir::oip
