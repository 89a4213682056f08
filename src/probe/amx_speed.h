// Products of matrices on Intel's AMX, as a library for networks computes them.
#pragma once

namespace weir::probe {

// One product of matrices that lie packed in the second cache. Returns its scalar multiply-adds; adds
// something of the result to `sink`, so that no compiler leaves it out.
using AmxKernel = double (*)(float& sink);

struct AmxKernels {
  AmxKernel bf16 = nullptr, int8 = nullptr;  // none without the unit
};

// Asks the system for the right to use the unit, once for the process.
AmxKernels FindAmxKernels();

}  // namespace weir::probe
