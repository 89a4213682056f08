#include "oip/served_name.h"

namespace weir::oip {

std::string ServedAs(const std::string& model, const std::string& payload) {
  const bool takes_pictures = payload == "image" && model.ends_with(".identify");
  if (payload == "tensor" || takes_pictures || model.ends_with("." + payload)) return model;
  return model + "." + payload;
}

}  // namespace weir::oip
