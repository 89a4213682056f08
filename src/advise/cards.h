// Named cards, whose step time the emulated accelerators of `weir probe storage` and `weir feed` take.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "probe/named_accelerators.h"

namespace weir::advise {

// Returns the time of one step of `batch` samples on the card by the predictor. Adds to `notes` the step's
// interval and source. kInvalidArgument for hardware that the table lacks.
Result<Duration> PredictedStep(const probe::AskedCard& asked, int batch, std::vector<std::string>& notes);

// Returns the time of a step in which cards share a batch, by `accelerators` ("8xh100"). `asked` is without
// its card. Adds to `notes` the step's source. kInvalidArgument unless the text is one number of a card.
Result<Duration> SharedStep(const std::string& accelerators, probe::AskedCard asked,
                            std::vector<std::string>& notes);

}  // namespace weir::advise
