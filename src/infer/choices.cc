#include "infer/choices.h"

namespace weir::infer {

std::string_view ToString(Protocol protocol) { return protocol == Protocol::kHttp ? "http" : "grpc"; }

std::string_view ToString(Mode mode) { return mode == Mode::kSync ? "sync" : "async"; }

std::string_view ToString(Payload payload) {
  switch (payload) {
    case Payload::kTensor:
      return "tensor";
    case Payload::kPixels:
      return "pixels";
    case Payload::kImage:
      return "image";
  }
  return "";
}

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

std::string_view ToString(Balance balance) {
  switch (balance) {
    case Balance::kRoundRobin:
      return "round-robin";
    case Balance::kLeastInFlight:
      return "least-in-flight";
    case Balance::kGrpcRoundRobin:
      return "grpc-round-robin";
  }
  return "";
}

}  // namespace weir::infer
