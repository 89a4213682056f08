// Names of the stages of a work, as Bottleneck::stage and keys of times have them.
#pragma once

namespace weir::results::stage {

inline constexpr const char* kRead = "read";
inline constexpr const char* kDecode = "decode";
inline constexpr const char* kAugment = "augment";
inline constexpr const char* kInfer = "infer";
inline constexpr const char* kIdentify = "identify";  // look-ups in an index
inline constexpr const char* kOther = "other";

}  // namespace weir::results::stage
