// Text that may stand in the head of a request: what came from outside must not end a line there.
#pragma once

#include <string_view>

#include "base/error.h"
#include "object/transport.h"

namespace weir::object {

// Whether `text` can be a header's name or value: no control character but a tab.
bool IsHeaderText(std::string_view text);
// Whether `text` can be an ETag as it is sent back: 1 to 1,024 bytes, no control character. Quotes are not
// asked for: some servers leave them out.
bool IsETag(std::string_view text);
// kInvalidArgument if the URL or a header of the request could end a line: no such request is sent, whoever
// made up the text. The message has no text of the request, which may be secret.
Status CheckRequest(const HttpRequest& request);

}  // namespace weir::object
