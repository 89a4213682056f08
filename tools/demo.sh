#!/usr/bin/env bash
# The main job on made pictures and a made model, on one screen, and the three architectures compared; with --study the full experiment.
# Everything lies in build/demo.
set -euo pipefail
cd "$(dirname "$0")/.."
weir=build/release/weir
study=
if [ "${1:-}" = --study ]; then study=1; shift; fi
count=${1:-1000}
demo=build/demo
mkdir -p "$demo"

if [ ! -d "$demo/resnet50" ]; then
  echo "A ResNet-50 of our own making: true shapes and work, its last layer fitted to made pictures."
  "$weir" model make resnet50 --seed 1 -o "$demo"
fi
if [ ! -f "$demo/pictures-$count/set.json" ]; then
  rm -rf "$demo/pictures-$count"
  echo "$count pictures it has never seen (another seed), each as costly to decode as a photo."
  "$weir" prepare --make "$count" --seed 2 -o "$demo/pictures-$count"
fi
echo
"$weir" run "$demo/resnet50" "$demo/pictures-$count" --answers "$demo/answers.csv" --json "$demo/result.json"

[ -d "$demo/made/tiny" ] || "$weir" model make tiny --seed 1 -o "$demo/made" >/dev/null
[ -f "$demo/made/pictures/set.json" ] || { rm -rf "$demo/made/pictures"; "$weir" prepare --make 1000 --seed 2 -o "$demo/made/pictures" >/dev/null; }
plan=demo
echo
if [ -n "$study" ]; then
  plan=quick
  echo "An experiment on a small network: in one process, with its server in a container, and with its server behind a link of 5 Gbit/s;"
  echo "over both protocols, sync and async, in three batches, five times each in an order of chance (under ten minutes)."
else
  echo "The three architectures on a small network before an emulated accelerator: in one process, with its server in a container, and with"
  echo "its server behind a link of 5 Gbit/s; three times each in an order of chance (under two minutes, and one for the container image)."
fi
rm -rf "${demo:?}/$plan"
(cd "$demo" && ../../"$weir" study ../../studies/$plan.yaml -o $plan) || true  # a machine that others use gives no answer; the report says so
echo
echo "The answers are in $demo/answers.csv, the numbers in $demo/result.json, the comparison in $demo/$plan/report.html. Next:"
echo "  $weir run $demo/resnet50 $demo/pictures-$count --mode sync        # nothing overlaps: the paper's simple architecture"
echo "  $weir run $demo/resnet50 YOUR-PICTURES/                           # its answers are only right for made pictures"
echo "  $weir run $demo/resnet50 $demo/pictures-$count --engine emulated:base=0.2ms,per_item=0.5ms   # a GPU that is not there"
echo "  $weir serve --model-repository $demo/resnet50                        # and then: $weir run http://127.0.0.1:8000/resnet50 YOUR-PICTURES/"
[ -n "$study" ] || echo "  ./dev demo --study                     # an experiment: three architectures, two protocols, two modes, and a report"
echo "  $weir doctor                                                      # what would spoil a measurement here"
