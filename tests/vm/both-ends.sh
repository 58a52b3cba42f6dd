# The kernel's own target and host in one guest: proves that the harness, the packages and the
# script functions work, without Fathom.
#
# test: the kernel's NVMe/TCP host and target in one guest, without Fathom
# long: linux-host and linux-target also fail if the harness does
# vm: --network --module nvme_tcp --module nvmet_tcp --module brd --module crc32c_intel --limit 240
. /guest.sh
. /nvmet.sh

nqn=nqn.2026-01.io.fathom:both-ends

step 'target'
nvmet_start "$nqn" 127.0.0.1

step 'discover'
nvme discover -t tcp -a 127.0.0.1 -s 4420 | grep -q "$nqn" || fail 'the subsystem is not listed'

for digests in '' '--hdr-digest --data-digest'; do
    step "connect $digests"
    # shellcheck disable=SC2086
    nvme connect -t tcp -a 127.0.0.1 -s 4420 -n "$nqn" -i 4 $digests
    controller=$(connected "$nqn")
    [ "$(cat "/sys/class/nvme/$controller/queue_count")" = 5 ] || fail 'not 4 queues'
    inspect "$controller" "$nqn"
    write_and_verify "/dev/${controller}n1" 32
    other_commands "/dev/${controller}n1"
    nvme disconnect -n "$nqn"
done

step 'requests to the harness'
[ "$(outside run "printf 'one  space\\n'")" = 'one  space' ] || fail 'the answer is not the output'
outside start sleeper "sh -c 'echo here; sleep 100'" | grep -q here || fail 'nothing was started'
if outside stop sleeper; then fail 'sleep does not exit with 0'; fi
if outside run false; then fail 'false has succeeded'; fi
outside port | grep -q '[0-9]'
