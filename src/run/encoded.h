// Pictures that go to a server as they are: elements of a BYTES tensor, decoded there.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "dataset/recipe.h"
#include "image/reject.h"
#include "infer/tensor.h"

namespace weir::run {

// One tensor of `items` elements: the files one after the other, the last one again where there are fewer.
// REQUIRES: a file or more, and no more than `items`.
infer::Tensor JoinFiles(const std::string& name, std::span<const Bytes> files, int64_t items);

// An encoded picture of that size, all black: what a warm-up can send.
Bytes BlackPicture(const dataset::Size& size);

// Returns the reject that a server's refusal of one picture means: its own verdict where the words hold one
// ("picture 0 is rejected: damaged: ..."), else that the service failed.
image::Reject RejectOfRefusal(const Error& error);

}  // namespace weir::run
