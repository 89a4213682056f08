# cmake -D SOURCE_DIR=... -D OUTPUT=... -P BuildId.cmake: writes what git calls this source, when that has changed.
find_package(Git QUIET)
set(description unknown)
if(GIT_FOUND AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} --no-optional-locks describe --always --dirty --abbrev=12
                  WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE said RESULT_VARIABLE status
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(status EQUAL 0 AND said MATCHES "^[-A-Za-z0-9._/+]+$")
    set(description ${said})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "record/provenance.h"

namespace weir::record {
std::string_view BuildDescription() { return "@description@"; }
}  // namespace weir::record
]])
