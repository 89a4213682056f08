#include "results/provenance.h"

#include "base/fields.h"
#include "results/study_provenance.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, Provenance>& provenance) {
  fields("host", provenance.host);
  fields.IfAny("cpu_model", provenance.cpu_model);
  fields.IfAny("logical_cpus", provenance.logical_cpus);
  fields.IfAny("usable_cpus", provenance.usable_cpus);
  fields.IfAny("memory_bytes", provenance.memory_bytes);
  fields.IfAny("kernel", provenance.kernel);
  fields("governor", provenance.governor);
  fields.IfAny("cgroup_version", provenance.cgroup_version);
  fields("cgroup_cpus", provenance.cgroup_cpus);
  fields("cgroup_memory_bytes", provenance.cgroup_memory_bytes);
  fields("build_id", provenance.build_id);
  fields("build_dirty", provenance.build_dirty);
  fields.IfAny("compiler", provenance.compiler);
  fields.IfAny("libraries", provenance.libraries);
  fields.IfAny("seed", provenance.seed);
  fields("command", provenance.command);
  fields.IfAny("wall_time", provenance.wall_time);
}

template <typename F>
void Describe(F& fields, Described<F, StudyProvenance::Model>& model) {
  fields("configuration", model.configuration);
  fields("file_bytes", model.file_bytes);
  fields("file_hash", model.file_hash);
}

template <typename F>
void Describe(F& fields, Described<F, StudyProvenance::Materials>& materials) {
  fields("program", materials.program);
  fields("models", materials.models);
  fields("pictures", materials.pictures);
}

template <typename F>
void Describe(F& fields, Described<F, StudyProvenance::Paths>& paths) {
  fields("models", paths.models);
  fields.Unless("repositories", paths.repositories);
  fields("data", paths.data);
}

template <typename F>
void Describe(F& fields, Described<F, StudyProvenance>& provenance) {
  Describe(fields, provenance.common);
  fields("materials", provenance.materials);
  fields("resolved", provenance.resolved);
}

Json Provenance::ToJson() const { return FieldsToJson(*this); }

Result<Provenance> Provenance::FromJson(const Json& json) { return FieldsFromJson<Provenance>(json); }

Json StudyProvenance::ToJson() const { return FieldsToJson(*this); }

Result<StudyProvenance> StudyProvenance::FromJson(const Json& json) {
  return FieldsFromJson<StudyProvenance>(json);
}

Json WithoutWhatMayChange(const Json& provenance) {
  Json json = provenance;
  for (const char* key : {"command", "seed", "wall_time", "resolved"}) json.erase(key);
  return json;
}

}  // namespace weir::results
