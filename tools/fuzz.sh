#!/usr/bin/env bash
# Runs every fuzzer (or the one named) for so many seconds. What it finds lies in build/fuzz/found; its corpus grows in build/fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1 only=${2:-}
mkdir -p build/fuzz/found
status=0
for fuzzer in build/fuzz/fuzz/*_fuzzer; do
  name=$(basename "$fuzzer" _fuzzer)
  [ -z "$only" ] || [ "$only" = "$name" ] || continue
  mkdir -p "build/fuzz/corpus/$name"
  echo "fuzz: $name for $seconds s"
  "$fuzzer" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="build/fuzz/found/$name-" "build/fuzz/corpus/$name" 2>&1 | grep -vE '^(INFO|Done)' || status=1
done
exit $status
