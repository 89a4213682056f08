#include "infer/choices.h"

namespace weir::infer {

std::string_view SuffixOf(Payload payload) {
  switch (payload) {
    case Payload::kTensor:
      return "";
    case Payload::kPixels:
      return ".pixels";
    case Payload::kImage:
      return ".image";
  }
  return "";
}

}  // namespace weir::infer
