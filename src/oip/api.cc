#include "oip/api.h"

namespace weir::oip {

std::string_view ToString(Protocol protocol) { return protocol == Protocol::kHttp ? "http" : "grpc"; }

}  // namespace weir::oip
