# Jobs with `zonemode=zbd` that trim, leave gaps and replay, and zones that change under a job.
#
# test: zonemode=zbd: trims, gaps, replays, lost zones
# long: three kinds of devices, for one to two minutes
# vm: --null-blk zoned,zone_size=4,size=64 --null-blk zoned,zone_size=4,zone_nr_conv=2,zone_capacity=3,size=64
# vm: --nvme zoned,zoned.zone_size=4M,zoned.max_open=4,zoned.max_active=4,size=64M
# vm: --scsi-debug zbc=managed,zone_size_mb=4,zone_nr_conv=2,dev_size_mb=64 --limit 240
. /guest.sh

# Runs a job: `run DEVICE OPTIONS...`; what it says is in /tmp/said.
run() {
    device=$1
    shift
    fathom run --name=vm --filename="$device" --zonemode=zbd --direct=1 --output=/tmp/report --output-format=json \
        --eta=never "$@" >/tmp/said 2>&1
}
job() {
    run "$@" || { cat /tmp/said; fail "$*"; }
}
refused() {
    words=$1
    shift
    if run "$@"; then fail "not refused: $*"; fi
    grep -q "$words" /tmp/said || { cat /tmp/said; fail "no reason: $*"; }
}
# Succeeds if the jobs of the last run did so many reads, writes and trims.
did() {
    found=$(awk -F'[:,]' '/"total_ios"/ { printf "%s ", $2 + 0 }' /tmp/report)
    case "$found" in
    "$1 $2 $3 "*) ;;
    *) fail "reads, writes, trims: $found, not $1 $2 $3" ;;
    esac
}

for device in /dev/nullb0 /dev/nvme0n1 /dev/sda; do
    [ -b $device ] || fail "no $device"
    [ "$(cat /sys/block/${device#/dev/}/queue/zoned)" = host-managed ] || fail "$device has no zones"
    # The first two zones of the disk are conventional.
    for engine in psync io_uring libaio; do
        step "$device $engine: trims"
        job $device --ioengine=$engine --rw=write --bs=256k --offset=2z --size=4z
        did 0 64 0
        job $device --ioengine=$engine --rw=randtrim --bs=4m --offset=2z --size=8z
        did 0 0 4
        job $device --ioengine=$engine --rw=trim --bs=4m --offset=2z --size=8z
        did 0 0 8
    done
    job $device --ioengine=psync --rw=trimwrite --bs=4m --offset=2z --size=4z
    refused 'resets a whole zone' $device --rw=trim --bs=64k
    step "$device: gaps"
    job $device --ioengine=libaio --rw=trim --bs=4m
    job $device --ioengine=libaio --rw=write --bs=256k --offset=2z --size=8z --io_size=4z --zoneskip=1z
    did 0 64 0
    job $device --ioengine=libaio --rw=read --bs=256k --offset=2z --size=8z
    did 64 0 0
    job $device --ioengine=libaio --rw=randtrim --bs=4m --offset=3z --size=1z
    did 0 0 0
    refused 'is not a multiple' $device --rw=write --zoneskip=1m
done

step 'conventional zones and a small capacity'
job /dev/nullb1 --ioengine=libaio --rw=write --bs=256k --size=6z
job /dev/nullb1 --ioengine=libaio --rw=trim --bs=4m --size=6z
did 0 0 4
refused 'buflen exceeds zone size' /dev/nullb1 --rw=write --bs=4m --offset=2z

step 'what is refused'
refused 'does not exist' /dev/nothing --rw=write
refused '`null` opens none' /dev/nullb0 --rw=write --ioengine=null
refused 'engine `mmap` writes through' /dev/nullb0 --rw=write --ioengine=mmap
blockdev --setro /dev/nullb0
refused 'nullb0 is write-protected' /dev/nullb0 --rw=write
refused 'nullb0 is write-protected' /dev/nullb0 --rw=trim --bs=4m
blockdev --setrw /dev/nullb0
refused 'has no room for another open or active zone' /dev/nvme0n1 --ioengine=psync --rw=randwrite --bs=64k \
    --ignore_zone_limits=1 --max_open_zones=16

step 'replays'
log() {
    printf 'fio version 2 iolog\n/dev/nullb0 add\n/dev/nullb0 open\n%b/dev/nullb0 close\n' "$1" >/tmp/log
}
job /dev/nullb0 --ioengine=psync --rw=trim --bs=4m
log '/dev/nullb0 write 0 65536\n/dev/nullb0 write 65536 65536\n/dev/nullb0 trim 0 4194304\n/dev/nullb0 write 0 65536\n'
job /dev/nullb0 --ioengine=libaio --iodepth=8 --read_iolog=/tmp/log
did 0 3 1
refused 'the log writes at 0, but its write pointer is at 65536' /dev/nullb0 --ioengine=libaio --read_iolog=/tmp/log

step 'zones that are lost'
zones=/sys/kernel/config/nullb/nullb0
job /dev/nullb0 --ioengine=psync --rw=trim --bs=4m
(
    sleep 2
    echo 0 >$zones/zone_offline
) &
refused 'zone 0 at 0 is offline' /dev/nullb0 --ioengine=psync --rw=write --bs=4k --size=1z --rate_iops=100
wait
echo $((8 * 8192)) >$zones/zone_readonly
job /dev/nullb0 --ioengine=libaio --iodepth=4 --rw=randwrite --bs=256k --numjobs=4 --size=10z
job /dev/nullb0 --ioengine=libaio --rw=trim --bs=4m
did 0 0 14
job /dev/nullb0 --ioengine=libaio --iodepth=4 --rw=randrw --bs=64k --offset=8z --size=4z --verify=md5
echo $((9 * 8192)) >$zones/zone_offline
for rw in write randwrite; do
    refused "no zone of the job's range can be written" /dev/nullb0 --ioengine=libaio --rw=$rw --bs=256k \
        --offset=8z --size=2z
done
for rw in trim randtrim; do
    refused "no zone of the job's range can be reset" /dev/nullb0 --ioengine=libaio --rw=$rw --bs=4m \
        --offset=8z --size=2z
done

step 'a write error is recovered from'
job /dev/nvme0n1 --ioengine=psync --rw=trim --bs=4m
(
    sleep 2
    nvme zns reset-zone /dev/nvme0n1 -s 0
) &
# A tolerated error is in the exit code.
run /dev/nvme0n1 --ioengine=psync --rw=write --bs=4k --size=1z --rate_iops=50 --time_based --runtime=6 \
    --recover_zbd_write_error=1 --continue_on_error=write || true
wait
# 2 s take 100 writes at most.
writes=$(awk -F'[:,]' '/"total_ios"/ { print $2 + 0 }' /tmp/report | sed -n 2p)
[ "$writes" -gt 150 ] || { cat /tmp/said; fail "only $writes writes"; }
grep -q '"total_err" *: *1,' /tmp/report || fail 'not one error'
refused 'has no effect' /dev/nvme0n1 --rw=write --bs=4k --recover_zbd_write_error=1

step 'a zone that another program finishes'
job /dev/nvme0n1 --ioengine=psync --rw=trim --bs=4m
(
    sleep 2
    nvme zns finish-zone /dev/nvme0n1 -s 0
) &
refused 'but it is full: something other than this run' /dev/nvme0n1 --ioengine=psync --rw=write --bs=4k \
    --size=1z --rate_iops=50
wait

step 'SIGINT, and 64 jobs'
run /dev/nvme0n1 --ioengine=libaio --rw=randwrite --bs=16k --numjobs=64 --time_based --runtime=100 --thread=1 &
sleep 5
kill -INT "$(pidof fathom)"
within 30 sh -c '! pidof fathom'
wait
