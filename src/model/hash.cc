#include "model/hash.h"

#include <span>

#include "dataset/hash.h"

namespace weir::model {

Result<std::string> HashOfModel(const Model& model) {
  if (model.path.empty()) {
    const std::string name = "emulated " + model.name;
    return dataset::HashOf(std::as_bytes(std::span(name)));
  }
  return dataset::HashOfFile(model.path);
}

Result<std::string> HashOfModel(const std::string& path) { return HashOfModel(TRY(OpenModel(path, {}))); }

}  // namespace weir::model
