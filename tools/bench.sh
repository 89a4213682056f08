#!/usr/bin/env bash
# The ratios of bench/compare.py, bench/serving.py, bench/remote.py, bench/load.py, bench/delay.py, bench/probe.py, bench/object.py, bench/elasticity.py and bench/cluster.py, and the micro-benchmarks:
# bench.sh [engines|pipeline|prepare|workers|breakaway|serving|remote|load|delay|probe|object|elasticity|cluster|micro ...]. Exits with 1 if a bar of bench/bars.py was missed.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then set -- engines pipeline prepare workers breakaway serving remote load delay probe object elasticity cluster micro; fi
status=0
for name in "$@"; do
  if [ "$name" = micro ]; then
    export WEIR_PICTURES=${WEIR_PICTURES:-${WEIR_SHARED:-$PWD/../shared}/data/images}
    for program in build/release/bench/*_bench; do "$program" --benchmark_min_time=0.5; done
  elif [ "$name" = serving ] || [ "$name" = remote ] || [ "$name" = load ] || [ "$name" = delay ] || [ "$name" = probe ] || [ "$name" = object ] || [ "$name" = elasticity ] || [ "$name" = cluster ]; then
    /usr/bin/python3 "bench/$name.py" || status=1
  else
    /usr/bin/python3 bench/compare.py "$name" || status=1
  fi
done
exit $status
