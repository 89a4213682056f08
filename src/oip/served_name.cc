#include "oip/served_name.h"

namespace weir::oip {

std::string ServedAs(const std::string& model, const std::string& payload) {
  if (payload == "tensor" || model.ends_with("." + payload)) return model;
  return model + "." + payload;
}

}  // namespace weir::oip
