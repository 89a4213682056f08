#include "oip/served_name.h"

namespace weir::oip {

std::string ServedAs(const std::string& model, infer::Payload payload) {
  const std::string_view suffix = infer::SuffixOf(payload);
  const bool takes_pictures = payload == infer::Payload::kImage && model.ends_with(".identify");
  return takes_pictures || model.ends_with(suffix) ? model : model + std::string(suffix);
}

}  // namespace weir::oip
