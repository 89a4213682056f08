#!/bin/bash
# One prepared set by many machines: an array whose tasks make the parts, and a job that joins them. Run it where sbatch is:
#
#   deploy/slurm/prepare-set.sh 8 /data/photos recipe.yaml /scratch/photos.parts /scratch/photos
#
# Prints the numbers of both jobs. Tasks that were killed, or met the time limit, are submitted again for the parts
# that are missing, up to WEIR_ROUNDS times (default 20); they go on where they were. So a set may take longer than the
# limit allows one job. The job weir-join has the status of the whole: 0 when the set is there and verified.
#
# SBATCH_OPTIONS go to each sbatch: SBATCH_OPTIONS="--partition=prepare --time=4:00:00 --cpus-per-task=4". More arguments go
# to `weir prepare`. All paths have to be visible under the same names on every node.
set -euo pipefail
rounds=${WEIR_ROUNDS:-20} tasks=
if [ "${1:-}" = --round ]; then  # by join.slurm
  rounds=$2 tasks=$3
  shift 3
fi
if [ $# -lt 5 ] || ! [ "$1" -gt 0 ] 2>/dev/null; then
  echo "usage: $0 PARTS_COUNT SOURCES RECIPE PARTS SET [ARGUMENT...]" >&2
  exit 2
fi
count=$1 sources=$2 recipe=$3 parts=$4 set=$5
shift 5
WEIR_SLURM=${WEIR_SLURM:-$(cd "$(dirname "$0")" && pwd)}
export WEIR_SLURM WEIR_PARTS=$count
read -ra options <<< "${SBATCH_OPTIONS:-}"
array=$(sbatch --parsable "${options[@]}" --export=ALL --array="${tasks:-1-$count}" "$WEIR_SLURM/prepare.slurm" "$sources" "$recipe" "$parts" "$@")
join=$(sbatch --parsable "${options[@]}" --export=ALL --dependency="afterany:${array%%;*}" "$WEIR_SLURM/join.slurm" \
  "$rounds" "$sources" "$recipe" "$parts" "$set" "$@")
echo "array ${array%%;*}, join ${join%%;*}"
