// The error that a response of another server stands for.
#pragma once

#include "base/error.h"
#include "wire/answer_reader.h"

namespace weir::wire {

// Returns the error of a response whose status is not 2xx. The message is the text of its JSON "error" if it
// has one, else the status with the beginning of its body.
Error ErrorOf(const HttpAnswer& answer);

}  // namespace weir::wire
