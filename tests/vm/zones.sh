# Jobs with `zonemode=zbd` on null_blk and on QEMU's zoned namespaces.
#
# test: zonemode=zbd on zoned null_blk and NVMe
# vm: --null-blk zoned,zone_size=4,size=64 --null-blk zoned,zone_size=4,zone_capacity=3,size=64,zone_max_open=4
# vm: --nvme zoned,zoned.zone_size=4M,zoned.max_open=4,zoned.max_active=4,size=64M --limit 170
. /guest.sh
. /zones.sh

# Runs a job of writes: `job DEVICE OPTIONS...`.
job() {
    device=$1
    shift
    fathom run --name=vm --filename="$device" --zonemode=zbd --direct=1 --bs=64k --output=report \
        --eta=never "$@" || { cat report; fail "$device $*"; }
}

for device in /dev/nullb0 /dev/nullb1 /dev/nvme0n1; do
    for engine in psync libaio io_uring; do
        step "$device $engine"
        # A synchronous engine has one op in flight.
        depth=4
        [ $engine = psync ] && depth=1
        job $device --ioengine=$engine --rw=randwrite --size=8z --numjobs=4 --iodepth=$depth --max_open_zones=3
        job $device --ioengine=$engine --rw=write --size=4z --verify=crc32c --iodepth=$depth
        job $device --ioengine=$engine --rw=randrw --size=8z --iodepth=$depth
    done
done

step 'rests of zones are finished'
job /dev/nullb0 --ioengine=psync --rw=write --bs=96k --size=4z
job /dev/nvme0n1 --ioengine=psync --rw=write --bs=96k --size=4z

step 'thresholds'
job /dev/nullb0 --ioengine=libaio --rw=randwrite --io_size=128m --zone_reset_threshold=0.5 \
    --zone_reset_frequency=0.1

step 'a zone that another program resets'
nvme zns reset-zone /dev/nvme0n1 -s 0
# The zone has 64 blocks, which take 16 s.
fails_by_reset 4 fathom run --name=vm --filename=/dev/nvme0n1 --zonemode=zbd --direct=1 --bs=64k --rw=write \
    --size=1z --ioengine=psync --rate_iops=4 --output=report --eta=never
