#!/usr/bin/env bash
# Runs a job file on each node of a Slurm allocation at one moment, and merges their records. Needs
# the program `fathom` on each node, and a working directory that all of them share.
#
#   sbatch --nodes=16 slurm.sh JOB.fio
#
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
set -euo pipefail

job=$1
start=$(date -u -d '+60 seconds' +%Y-%m-%dT%H:%M:%SZ)
out=fathom-$SLURM_JOB_ID

# Without --cpu-bind=none some sites give each task one core.
srun --cpu-bind=none fathom run --rank=auto --start-at="$start" --record="$out" "$job"
fathom merge "$out"
