// A Runner for tests, whose options are right.
#pragma once

#include <memory>
#include <utility>

#include "infer/runner.h"

namespace weir::infer::testing {

inline std::unique_ptr<Runner> MakeRunner(std::shared_ptr<Session> session, const Clock& clock,
                                          Runner::Options options = {}) {
  auto runner = Runner::Create(std::move(session), clock, std::move(options));
  CHECK(runner.has_value());
  return *std::move(runner);
}

}  // namespace weir::infer::testing
