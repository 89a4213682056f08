// Describes a running server: the models it serves, the addresses it listens on, a command to try.
#pragma once

#include <string>

#include "base/error.h"
#include "base/text_style.h"
#include "results/serve_result.h"
#include "serve/server.h"

namespace weir::serve {

// Returns the state of `server`, which was started with `options`. `command` is left empty.
results::ServeResult Describe(const ServerOptions& options, Server& server);

// Returns the lines for a person: models, those that are not served with the reason, addresses, a command.
std::string AnnouncementText(const TextStyle& style, const results::ServeResult& result);

// Returns a warning if other machines may reach the server; "" otherwise.
std::string ExposureWarning(const results::ServeResult& result);

// kNotFound, with the remedy, if the server serves no model.
Status CheckServesAny(const ServerOptions& options, const results::ServeResult& result);

}  // namespace weir::serve
