#!/usr/bin/env bash
# Runs every fuzzer (or the one named) for so many seconds, one on each CPU at a time. What it finds lies in build/fuzz/found; its corpus
# grows in build/fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
export seconds=$1
only=${2:-*}
run_one() {
  local name log status=0
  name=$(basename "$1" _fuzzer)
  log=build/fuzz/found/$name.log
  mkdir -p "build/fuzz/corpus/$name"
  "$1" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="build/fuzz/found/$name-" "build/fuzz/corpus/$name" >"$log" 2>&1 || status=1
  echo "fuzz: $name, $seconds s: $(grep -oE 'number_of_executed_units: [0-9]+' "$log" | tail -n 1)"
  [ $status = 0 ] || tail -n 40 "$log"
  return $status
}
export -f run_one
mkdir -p build/fuzz/found
# shellcheck disable=SC2016,SC2086
printf '%s\0' build/asan/fuzz/${only}_fuzzer | xargs -0 -P "$(nproc)" -I{} bash -c 'run_one {}'
