# The kernel's target with our initiator, which runs outside the guest.
#
# test: the kernel's target with the engine nvme_tcp
# vm: --network --module nvme_tcp --module nvmet_tcp --module brd --module crc32c_intel --limit 240
. /guest.sh
. /nvmet.sh

nqn=nqn.2026-01.io.fathom:linux-target

step 'target'
nvmet_start "$nqn" 10.0.2.15
port=$(outside port)

# Runs a job on a namespace: `job NSID OPTIONS...`. The report is not sent over the slow console.
job() {
    namespace="trtype=tcp adrfam=ipv4 traddr=127.0.0.1 trsvcid=$port subnqn=$nqn ns=$1"
    shift
    outside run fathom run --name=vm --thread --ioengine=nvme_tcp "--filename='$namespace'" \
        --output=report "$@"
}

for digests in '' '--hdgst=1 --ddgst=1'; do
    # In the capsule up to 16 KiB, by R2T above.
    step "small writes with verification $digests"
    # shellcheck disable=SC2086
    job 1 --rw=randwrite --bs=4k --size=4m --iodepth=16 --verify=crc32c $digests
    step "large writes with verification $digests"
    # shellcheck disable=SC2086
    job 1 --rw=randwrite --bs=64k --size=8m --iodepth=8 --verify=crc32c $digests
    step "mixed sizes, two jobs of two queues $digests"
    # shellcheck disable=SC2086
    job 1 --rw=randrw --bssplit=512/20:4k/40:32k/40 --size=8m --iodepth=8 --numjobs=2 \
        --queues=2 --time_based --runtime=3s $digests
done

step 'restart of the target under the job'
restart() {
    within 60 nvmet_is_connected
    # In the midst of the writes, which take 8 s.
    sleep 2
    nvmet_stop "$nqn"
    within 10 nvmet_is_alone
    nvmet_start "$nqn" 10.0.2.15
    touch /tmp/restarted
}
restart &
job 1 --rw=randwrite --bs=16k --size=32m --iodepth=8 --rate_iops=250 --verify=crc32c \
    --reconnect=60 --keep_alive=5
[ -e /tmp/restarted ] || fail 'the job had ended before the restart'
wait

step 'what was written is in the guest'
job 1 --rw=write --bs=64k --size=1m --buffer_pattern=0x5a
dd if=/dev/ram0 bs=64k count=16 2>/dev/null | tr -d Z | wc -c | grep -qx 0 || fail 'other data'

step 'a namespace that does not exist'
if job 7 --rw=read --size=4k; then fail 'it was read'; fi
