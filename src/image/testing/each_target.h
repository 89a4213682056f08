// Runs a test's body with every instruction set that this machine has and the vector code was compiled for.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace weir::image::testing {

template <typename Body>
void OnEachTarget(const Body& body) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace weir::image::testing
