# The kernel's host and nvme-cli with `fathom target`, which serves a file outside the guest.
#
# test: the kernel's host and nvme-cli with `fathom target`
# vm: --network --module nvme_tcp --module nvmet_tcp --module brd --module crc32c_intel --limit 240
. /guest.sh

nqn=nqn.2026-01.io.fathom:linux-host
# The machine around the guest, as the guest sees it; its loopback answers there.
host=10.0.2.2

start() {
    outside start target fathom target --file disk --nqn "$nqn" --threads 2 --listen "$1"
}

step 'target'
outside run truncate -s 64M disk
listening=$(start 127.0.0.1:0)
port=$(echo "$listening" | sed -n 's/.*trsvcid \([0-9]*\).*/\1/p')

step 'discover'
nvme discover -t tcp -a "$host" -s "$port" >/tmp/log
grep -q "$nqn" /tmp/log || fail 'the subsystem is not listed'
grep -q "trsvcid: *$port" /tmp/log || fail 'another port is listed'

step 'connect to a subsystem that does not exist'
if nvme connect -t tcp -a "$host" -s "$port" -n "$nqn-other"; then
    fail 'it is connected'
fi

for digests in '' '--hdr-digest --data-digest'; do
    step "connect $digests"
    # shellcheck disable=SC2086
    nvme connect -t tcp -a "$host" -s "$port" -n "$nqn" -i 4 --reconnect-delay=1 $digests
    controller=$(connected "$nqn")
    [ "$(cat "/sys/class/nvme/$controller/queue_count")" = 5 ] || fail 'not 4 queues'
    inspect "$controller" "$nqn"

    step 'write and verify'
    write_and_verify "/dev/${controller}n1" 64
    other_commands "/dev/${controller}n1"

    step 'restart of the target under the host'
    dd if=/dev/urandom of=/tmp/written bs=64k count=16 2>/dev/null
    dd if=/tmp/written of="/dev/${controller}n1" bs=64k oflag=direct 2>/dev/null
    outside stop target
    start "127.0.0.1:$port" >/dev/null
    # Waits in the kernel until the host has connected again.
    dd if="/dev/${controller}n1" of=/tmp/read bs=64k count=16 iflag=direct 2>/dev/null
    cmp /tmp/written /tmp/read || fail 'the data are not there after the restart'
    [ "$(cat "/sys/class/nvme/$controller/state")" = live ] || fail 'the controller is not live'
    write_and_verify "/dev/${controller}n1" 16

    step 'reset'
    nvme reset "/dev/$controller"
    write_and_verify "/dev/${controller}n1" 16

    step 'disconnect'
    nvme disconnect -n "$nqn" | grep -q 'disconnected 1' || fail 'nothing was disconnected'
    if controller_of "$nqn"; then fail 'the controller is still there'; fi
done

step 'end'
outside stop target
