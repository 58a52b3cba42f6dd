# Write streams of the block layer: where they land is read from the controller's log.
#
# test: write streams of io_uring
# qemu: 8, the first whose NVMe places data
# kernel: 6.16, the first with streams
# vm: --nvme fdp=4
. /guest.sh
. /placement.sh

job() {
    fathom run --name=vm --ioengine=io_uring --direct=1 --filename=/dev/nvme0n1 --rw=write --bs=4k --size=1m \
        --iodepth=8 --output=report "$@" >/tmp/log 2>&1
}

step 'two streams in turn'
before=$(blocks_left)
works --dataplacement=fdp --plids=1,3
takes "$before" 0 1024 0 1024

step 'all of them'
before=$(blocks_left)
works --dataplacement=streams --verify=crc32c
takes "$before" 512 512 512 512

step 'what is refused'
refused 'identifiers from 0 to 3' --dataplacement=fdp --plids=4
refused 'bypass the page cache' --dataplacement=fdp --direct=0
