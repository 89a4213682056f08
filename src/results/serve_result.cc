#include "results/serve_result.h"

#include "results/describe.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, ServeResult::Listener>& listener) {
  fields("port", listener.port);
  fields("url", listener.url);
  fields("address", listener.address);
}

template <typename F>
void Describe(F& fields, Described<F, ServeResult::Model>& model) {
  fields("name", model.name);
  fields("versions", model.versions);
  fields("platform", model.platform);
  fields("inputs", model.inputs);
  fields("outputs", model.outputs);
}

template <typename F>
void Describe(F& fields, Described<F, ServeResult::Entry>& entry) {
  fields("name", entry.name);
  fields("version", entry.version);
  fields("state", entry.state);
  fields("reason", entry.reason);
}

template <typename F>
void Describe(F& fields, Described<F, ServeResult>& result) {
  fields("ready", result.ready);
  fields.Unless("not_ready", result.not_ready);
  fields("pid", result.pid);
  fields("http", result.http);
  fields("grpc", result.grpc);
  fields("metrics", result.metrics);
  fields("models", result.models);
  fields("index", result.index);
  fields("version", result.version);
  fields("command", result.command);
}

Json ServeResult::ToJson() const { return FieldsToJson(*this); }
Result<ServeResult> ServeResult::FromJson(const Json& json) { return FieldsFromJson<ServeResult>(json); }

}  // namespace weir::results
