# Atomic writes of a SCSI disk, which takes them from 8 to 512 KiB.
#
# test: atomic writes
# kernel: 6.11, the first that has them
# vm: --scsi-debug dev_size_mb=64,sector_size=4096,physblk_exp=0,atomic_wr=1
. /guest.sh

job() {
    fathom run --name=vm --direct=1 --atomic=1 --filename=/dev/sda --rw=randwrite --bs=16k --size=8m \
        --ioengine=io_uring --output=report "$@" >/tmp/log 2>&1
}

# Prints the number of WRITE ATOMIC (9Ch) that the disk has got.
atomic_writes() {
    grep -c 'WRITE_ATOMIC_16\|raw=9c ' /sys/kernel/tracing/trace || true
}

mount -t tracefs none /sys/kernel/tracing
echo 1 >/sys/kernel/tracing/events/scsi/scsi_dispatch_cmd_start/enable
for engine in pvsync2 libaio io_uring; do
    step "$engine"
    echo >/sys/kernel/tracing/trace
    works --ioengine=$engine --iodepth=4 --verify=crc32c
    [ "$(atomic_writes)" = 512 ] || fail "$(atomic_writes) atomic writes, not 512"
done

step 'what is refused'
refused 'one size, a power of two' --bs=12k
refused 'from 8192 to 524288 B' --bs=4m
refused 'from 8192 to 524288 B' --bs=4k
refused 'bypass the page cache' --direct=0
refused 'no atomic writes' --ioengine=psync
