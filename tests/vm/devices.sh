# Devices that a machine can have, each of which Fathom reads and writes: proves that they are what
# their arguments ask for.
#
# test: the devices of a machine: null_blk, NVMe, SCSI, device mapper
# vm: --null-blk blocksize=4096 --null-blk zoned,zone_size=4
# vm: --nvme --nvme ms=8,pi=1 --nvme zoned,zoned.zone_size=4M
# vm: --scsi-debug dev_size_mb=32 --dm delay,ms=200 --dm flakey,up=600,down=0
. /guest.sh

# Writes a device and verifies it: `job DEVICE OPTIONS...`.
job() {
    device=$1
    shift
    fathom run --name=vm --filename="$device" --rw=randwrite --bs=4k --size=2m --direct=1 \
        --verify=crc32c --output=report --eta=never "$@" || fail "$device"
}

step 'null_blk'
[ "$(cat /sys/block/nullb0/queue/logical_block_size)" = 4096 ] || fail 'other blocks'
[ "$(cat /sys/block/nullb1/queue/zoned)" = host-managed ] || fail 'no zones'
job /dev/nullb0 --ioengine=io_uring --iodepth=16

step 'NVMe'
nvme id-ns /dev/nvme0n2 | field dps | grep -q '^0x1' || fail 'no protection information'
[ "$(cat /sys/block/nvme0n3/queue/zoned)" = host-managed ] || fail 'no zones'
job /dev/nvme0n1 --ioengine=io_uring --iodepth=16
job /dev/nvme0n2 --ioengine=libaio --iodepth=4

step 'SCSI'
test -c /dev/sg0 || fail 'no /dev/sg0'
job /dev/sda --ioengine=psync

step 'device mapper'
job /dev/mapper/flakey --ioengine=psync
start=$(date +%s)
fathom run --name=vm --filename=/dev/mapper/delay --rw=randread --bs=4k --number_ios=10 --size=2m \
    --direct=1 --ioengine=psync --output=report --eta=never
[ $(($(date +%s) - start)) -ge 2 ] || fail '10 reads of 200 ms each took less than 2 s'
