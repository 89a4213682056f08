// The verbs: each takes the arguments after its name and gives the program's exit status.
#pragma once

#include <string>
#include <vector>

namespace weir::cli {

using Arguments = std::vector<std::string>;

int Advise(const Arguments& arguments);
int Doctor(const Arguments& arguments);
int FeedVerb(const Arguments& arguments);
int Fit(const Arguments& arguments);
int Health(const Arguments& arguments);
int Identities(const Arguments& arguments);  // build, enrol, delete, list, search, evaluate, verify, export
int Load(const Arguments& arguments);
int ModelVerb(const Arguments& arguments);  // make, show
int MonitorVerb(const Arguments& arguments);
int Plan(const Arguments& arguments);
int Predict(const Arguments& arguments);
int Prepare(const Arguments& arguments);
int ProbeVerb(const Arguments& arguments);  // storage
int Report(const Arguments& arguments);
int Run(const Arguments& arguments);
int Serve(const Arguments& arguments);
int Study(const Arguments& arguments);
int Watch(const Arguments& arguments);

// The whole command line as the user gave it: what repeats a result.
const std::vector<std::string>& CommandLine();

}  // namespace weir::cli
