# cmake -D INPUT=... -D OUTPUT=... -P EmbedPtx.cmake: writes the kernel's text as a function of the program.
file(READ ${INPUT} text)
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "gpu/normalise.h"

namespace weir::gpu {
const std::string& NormalisePtx() {
  static const std::string text = R"ptx(@text@)ptx";
  return text;
}
}  // namespace weir::gpu
]])
