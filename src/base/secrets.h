// Secrets in texts: everything that is stored or printed goes through here first.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace weir {

// Stands where a secret stood.
inline constexpr std::string_view kHidden = "***";

// Returns `text` with kHidden in place of: the password of a URL (also one that holds '/', '@', '?' or '#'),
// a user without password, a value whose name says that it is secret (password=..., ?X-Amz-Signature=...,
// "--token ...", "Authorization: ..."), and what follows "Bearer" or "Basic". Rather hides too much: of two
// readings of a URL it takes the one with the longer password.
std::string WithoutSecrets(std::string_view text);

// The arguments of a command, weir's or another's: as above, and with the argument behind a flag such as
// --password, the values of headers (-H), and the password of -u USER:PASSWORD.
std::vector<std::string> WithoutSecrets(std::span<const std::string> arguments);

// Every text in `json`, as above; an array of texts is read as arguments.
Json JsonWithoutSecrets(Json json);

// Where the host of a URL begins behind "USER:PASSWORD@"; 0 where there is no user.
size_t EndOfUser(std::string_view url);

// Returns the URL with the bytes of its user and password that would end a host as %XX. What is encoded
// stays.
std::string WithEncodedUser(std::string_view url);

// Returns whether a value of this name (of a flag, a header, a parameter, a variable) is to be hidden:
// "password", "X-Amz-Credential", "PGPASSWORD", "apiKey"; not "token_file", whose value is a path.
bool IsSecretName(std::string_view name);

}  // namespace weir
