#!/usr/bin/env bash
# Runs a job file on several hosts at one moment, and merges their records. Needs pdsh, ssh, the
# program `fathom` on each host, and a directory that all of them share.
#
#   pdsh.sh HOST,HOST… SHARED-DIRECTORY JOB.fio
set -euo pipefail

hosts=$1 folder=$2 job=$3
count=$(pdsh -N -R exec -w "$hosts" echo host | wc -l)
start=$(date -u -d '+30 seconds' +%Y-%m-%dT%H:%M:%SZ)
out=$folder/$(date -u +%Y%m%dT%H%M%SZ)

# With `exec` pdsh puts the host in the place of %h, and its number, from 0, in that of %n.
pdsh -S -R exec -w "$hosts" ssh %h \
    "cd '$folder' && fathom run --rank=%n/$count --start-at=$start --record='$out' '$job'"
fathom merge "$out"
