#!/usr/bin/env bash
# The main job on made pictures and a made model, on one screen. Everything lies in build/demo.
set -euo pipefail
cd "$(dirname "$0")/.."
weir=build/release/weir
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

echo
echo "The same application on a small network in three architectures: in one process, with its server in a container, and with"
echo "its server behind a link of 5 Gbit/s (some two minutes). The pictures are prepared before, so that decoding hides nothing."
small=$demo/small-$count
[ -d "$demo/tiny" ] || "$weir" model make tiny --seed 1 -o "$demo" >/dev/null
[ -f "$small/set.json" ] || { rm -rf "$small"; "$weir" prepare "$demo/pictures-$count" --recipe "$demo/tiny/recipe.yaml" --format raw -o "$small" >/dev/null; }
tools/container.sh || true  # the table says why where there is none
"$weir" compare "$demo/tiny" "$small" --json "$demo/architectures.json"
echo
echo "The answers are in $demo/answers.csv, the numbers in $demo/result.json. Next:"
echo "  $weir run $demo/resnet50 $demo/pictures-$count --mode sync        # nothing overlaps: the paper's simple architecture"
echo "  $weir run $demo/resnet50 YOUR-PICTURES/                           # its answers are only right for made pictures"
echo "  $weir run $demo/resnet50 $demo/pictures-$count --engine emulated:base=0.2ms,per_item=0.5ms   # a GPU that is not there"
echo "  $weir serve --model-repository $demo/resnet50                        # and then: $weir run http://127.0.0.1:8000/resnet50 YOUR-PICTURES/"
echo "  $weir doctor                                                      # what would spoil a measurement here"
