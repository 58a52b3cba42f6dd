# Metadata of block devices, transferred by io_uring past the block layer's own protection
# information.
#
# test: metadata and protection information of io_uring
# kernel: 6.17, the first that says what metadata a device has
# vm: --nvme ms=8,pi=1 --nvme ms=16,pi=1,pif=2 --nvme ms=64,pi=3 --nvme size=16M
. /guest.sh

# Prints the name of a namespace's devices without their first letters: `0n1`. Newer kernels find
# namespaces in any order, and number them in it.
name_of() {
    for block in /sys/block/nvme0n*; do
        [ "$(cat "$block/nsid")" != "$1" ] || echo "${block##*/nvme}"
    done
}

# Runs a job on a namespace, or on a file: `job NSID|PATH OPTION...`.
job() {
    case $1 in
        /*) file=$1 ;;
        *) file=/dev/nvme$(name_of "$1") ;;
    esac
    shift
    fathom run --name=vm --ioengine=io_uring --direct=1 --filename="$file" --bs=4k --size=2m \
        --iodepth=8 --output=report "$@" >/tmp/log 2>&1
}

own='--pi_act=0 --md_per_io_size=512'
all='--pi_chk=GUARD,APPTAG,REFTAG'

step 'written, checked by the device and by the host, and read back'
for options in '' --fixedbufs --registerfiles --sqthread_poll --nonvectored=0 --force_async=2; do
    # shellcheck disable=SC2086
    works 1 --rw=randwrite --verify=crc32c --fsync=8 $own $all $options
done
# shellcheck disable=SC2086
works 2 --rw=randwrite --verify=crc32c $own $all
# shellcheck disable=SC2086
works 3 --rw=randwrite --verify=crc32c $own --pi_chk=GUARD,APPTAG
# shellcheck disable=SC2086
works 1 --rw=randrw --bssplit=512/20:4k/40:32k/40 $own $all

step 'as io_uring_cmd and the kernel see it'
# shellcheck disable=SC2086
works 1 --rw=write $own $all --apptag=0x4321
fathom run --name=vm --ioengine=io_uring_cmd --filename="/dev/ng$(name_of 1)" --rw=read --bs=4k --size=2m \
    --output=report $own $all --apptag=0x4321 >/tmp/log 2>&1 || fail 'other tuples by io_uring_cmd'
works 1 --rw=read
works 1 --rw=write
# shellcheck disable=SC2086
works 1 --rw=read $own --pi_chk=GUARD,REFTAG

step 'what is wrong'
# shellcheck disable=SC2086
{
    works 1 --rw=write $own $all --apptag=0x8888
    refused 'found by the device' 1 --rw=read $own --pi_chk=APPTAG --apptag=0xf888
    # The device compares all bits.
    refused 'found by the device' 1 --rw=read $own --pi_chk=APPTAG --apptag=0xf888 \
        --apptag_mask=0x0fff
    # Without pi_act=0 the metadata are zeros.
    works 1 --rw=write --md_per_io_size=512
    refused 'found by the device' 1 --rw=read $own --pi_chk=GUARD
}

step 'what is refused'
refused 'set md_per_io_size=64 for the 8 blocks' 1 --rw=read --md_per_io_size=32
refused 'no metadata' 4 --rw=read --md_per_io_size=512
refused 'direct=1' 1 --rw=read --md_per_io_size=512 --direct=0
refused 'only block devices have metadata' /tmp/file --rw=write --md_per_io_size=512
