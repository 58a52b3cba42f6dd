# Functions of the scripts that write to zones, of /dev/nvme0n1 where none is named; guest.sh comes first.

# Prints the number of writes that the controller has taken.
host_writes() {
    nvme smart-log /dev/nvme0 --raw-binary | od -A n -t u8 -j 80 -N 8 | tr -d ' '
}

# Succeeds if that number is higher: `writes_more_than NUMBER`.
writes_more_than() {
    [ "$(host_writes)" -gt "$1" ]
}

# Resets the first zone under a command that writes it, after some writes, and requires that the
# command fails with the reason: `fails_by_reset WRITES COMMAND...`. The command leaves its report in the
# file `report`, and has to take many seconds for the zone.
fails_by_reset() {
    limit_of_writes=$(($(host_writes) + $1))
    shift
    "$@" >/tmp/log 2>&1 &
    within 60 writes_more_than $limit_of_writes
    nvme zns reset-zone /dev/ng0n1 -s 0
    if wait $!; then fail 'the job did not notice'; fi
    cat report >>/tmp/log
    grep -q 'something other than this run has written or reset it' /tmp/log || {
        cat /tmp/log
        fail 'no reason'
    }
}

# Succeeds if so many zones of a namespace are in a state: `has_zones COUNT NSID STATE`.
has_zones() {
    nvme zns report-zones "/dev/ng0n$2" >/tmp/zones
    found=$(grep -c "State: $3" /tmp/zones || true)
    [ "$found" = "$1" ] || { cat /tmp/zones; fail "$found zones in state $3, not $1"; }
}
