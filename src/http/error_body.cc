#include "http/error_body.h"

#include "base/json.h"
#include "base/text.h"
#include "base/utf8.h"

namespace weir::http {

std::string ErrorText(const Error& error) {
  std::string text = CutMiddle(error.message, kMaxErrorText);
  return IsUtf8(text) ? text : CutMiddle(EscapeBytes(text), kMaxErrorText);
}

std::string ErrorBody(const Error& error) { return DumpJson({{"error", ErrorText(error)}}); }

}  // namespace weir::http
