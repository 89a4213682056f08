// Which models there are to be served: names and where their files lie.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace weir::serve {

// Whether `name` is one plain part of a path, so that it may be put behind a folder's: not empty, no slash,
// no NUL, not hidden.
bool IsPlainName(std::string_view name);

// kNotFound for a link to what is not there.
Status CheckPlace(const std::string& path);
// Whether the model at `path` has a recipe of its own, so that it takes pictures.
bool HasRecipe(const std::string& path);

// A value.
class Catalogue {
 public:
  // Each a folder of model folders, a model folder, or an .onnx file. kNotFound for what is not there.
  static Result<Catalogue> Open(std::vector<std::string> places);

  // Name to path, as the folders are now. A link to what is not there is listed: loading it tells what is
  // wrong. kInvalidArgument for a name that is there twice.
  Result<std::map<std::string, std::string>> List() const;

 private:
  explicit Catalogue(std::vector<std::string> places) : places_(std::move(places)) {}

  std::vector<std::string> places_;
};

}  // namespace weir::serve
