#include "wire/oip.h"

namespace weir::wire {

std::string_view ToString(Protocol protocol) { return protocol == Protocol::kHttp ? "http" : "grpc"; }

}  // namespace weir::wire
