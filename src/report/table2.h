// The parameters of the Table 2 of Tulchinsky et al. 2020, by its names beside ours.
#pragma once

#include <string>
#include <vector>

#include "results/study_result.h"

namespace weir::report {

struct Table2Row {
  std::string paper;   // "CPU, whole server, average"
  std::string metric;  // "resources.server_cpu.mean"
  std::string unit;
  double scale = 1;  // the metric times this is in the unit
};
const std::vector<Table2Row>& Table2Rows();

// Rows beside the paper's: pressure, network, disk, throttling, the observer's own cost.
const std::vector<Table2Row>& BesideRows();

// Why there is no such figure: the trial's own words (its metric "absent.NAME", of the figure or of the group
// it is in), or what follows from the configuration.
std::string WhyAbsent(const results::StudyResult& study, size_t configuration, const std::string& metric);

}  // namespace weir::report
