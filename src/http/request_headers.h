// Headers of the user's own, for every request of a client.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace weir::http {

struct RequestHeader {
  std::string name;  // in small letters
  std::string value;
};

// Parses lines of "Name: value". kInvalidArgument for any other form, and for a header that the client sets
// itself.
Result<std::vector<RequestHeader>> ParseRequestHeaders(const std::vector<std::string>& lines);

// As they stand in an HTTP/1.1 request, each line with its end.
std::string HeaderLines(const std::vector<RequestHeader>& headers);

}  // namespace weir::http
