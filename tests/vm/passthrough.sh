# The engine io_uring_cmd on QEMU's NVMe: the conformance suite, commands and metadata of every kind,
# and what is refused.
#
# test: NVMe passthrough: conformance, metadata and protection information, refusals
# vm: --limit 400 --nvme --nvme ms=8,pi=1 --nvme ms=8,pi=1,mset=1 --nvme ms=16,pi=1,pif=2 --nvme ms=64,mset=1
# vm: --nvme logical_block_size=4096,physical_block_size=4096 --nvme zoned,zoned.zone_size=4M
# vm: --nvme-module poll_queues=2 --module crc32c_generic --module ext4 --test passthrough
. /guest.sh
. /trace.sh

# Runs a job on a namespace: `job NSID OPTIONS...`.
job() {
    device=/dev/ng0n$1
    shift
    fathom run --name=vm --ioengine=io_uring_cmd --cmd_type=nvme --filename="$device" --bs=4k \
        --size=2m --iodepth=16 --output=report "$@" >/tmp/log 2>&1 || return 1
}

step 'conformance suite'
FATHOM_NVME=/dev/ng0n1 FATHOM_NVME_POLLED=1 passthrough-tests --test-threads=1

step 'reads, writes, trims, syncs, and verification'
for options in '' --fixedbufs --registerfiles --hipri --sqthread_poll --nonvectored=0; do
    # shellcheck disable=SC2086
    works 1 --rw=randwrite --verify=crc32c --fsync=8 $options
done
works 1 --rw=randtrim
works 1 --rw=randrw --bssplit=512/20:4k/40:64k/40
works 6 --rw=randwrite --verify=crc32c --readfua=1 --writefua=1 --dsm=0x40
refused 'not a multiple' 6 --rw=read --bs=512

step 'trims of several ranges'
works 1 --rw=write --buffer_pattern=0x5a --size=4m
works 1 --rw=randtrim --num_range=256
# 512 blocks, in two commands.
grep -q 'total=0,0,2,0' report || fail 'not two ops'
dd if=/dev/nvme0n1 bs=64k count=32 iflag=direct 2>/dev/null | cmp -n 2097152 - /dev/zero ||
    fail 'not discarded'
works 1 --rw=read --offset=2m --verify=pattern --verify_pattern=0x5a
works 1 --rw=randtrim --num_range=3 --bssplit=512/20:4k/40:64k/40
refused 'whose ops are all trims' 1 --rw=trimwrite --num_range=2
refused 'one range per op' 1 --ioengine=psync --rw=trim --num_range=2

step 'other commands as writes'
works 1 --rw=write --write_mode=zeroes --deac=1
dd if=/dev/nvme0n1 bs=64k count=32 iflag=direct 2>/dev/null | cmp -n 2097152 - /dev/zero ||
    fail 'not zeros'
# The limit is that of data transferred, and Write Zeroes transfers none.
works 1 --rw=write --write_mode=zeroes --bs=1m
refused '524288 B per command at most' 1 --rw=write --bs=1m
# QEMU's has Verify from some version on.
job 1 --rw=write --write_mode=verify || refused 'lacks the command Verify' 1 --rw=write \
    --write_mode=verify
works 1 --rw=write --write_mode=compare --zero_buffers
refused 'compare failure (status 2h/85h)' 1 --rw=write --write_mode=compare --buffer_pattern=0x5a
refused 'leave out hipri' 1 --rw=write --write_mode=zeroes --hipri
refused 'Write Uncorrectable' 1 --rw=write --write_mode=uncor

step 'several commands as writes, and verification by the device'
trace_commands
works 1 --rw=write --write_mode=write/75:zeroes/25
zeroes=$(sent nvme_cmd_write_zeroes)
[ "$zeroes" -gt 90 ] && [ "$zeroes" -lt 166 ] || fail "$zeroes of 512 are zeroes"
refused 'lacks the command Write Uncorrectable' 1 --rw=write --write_mode=write/99:uncor/1
refused 'add up to 90' 1 --rw=write --write_mode=write/75:zeroes/15
compared='--verify=pattern --verify_pattern=0x5a%o --verify_mode=compare'
for options in '' --fixedbufs --hipri --nonvectored=0 --verify_backlog=32; do
    # shellcheck disable=SC2086
    works 1 --rw=randwrite $compared $options
    count=$(sent nvme_cmd_compare)
    [ "$count" = 512 ] || fail "$count of 512 writes compared"
done
# Blocks that a later write has replaced in part are read.
# shellcheck disable=SC2086
works 1 --rw=randwrite $compared --norandommap --bsrange=4k-64k --size=16m
count=$(sent nvme_cmd_compare)
[ "$count" -gt 50 ] || fail "$count writes compared"
dd if=/dev/zero of=/dev/nvme0n1 bs=512 seek=100 count=1 oflag=direct 2>/dev/null
# shellcheck disable=SC2086
refused "pattern: verify failed (got '00', wanted '5a'" 1 --rw=write --verify_only=1 $compared
[ "$(sent nvme_cmd_compare)" -gt 10 ] || fail 'nothing was compared'
refused 'use `verify=pattern`' 1 --rw=write --verify=crc32c --verify_mode=compare
# shellcheck disable=SC2086
refused 'Compare covers metadata' 2 --rw=write $compared

step 'protection information'
# Apart from the data, by the controller and by the host, with guards of 16 and 64 bits.
for nsid in 2 4; do
    works $nsid --rw=randwrite --verify=crc32c --pi_chk=GUARD,APPTAG,REFTAG
    works $nsid --rw=randwrite --verify=crc32c --pi_act=0 --md_per_io_size=128 \
        --pi_chk=GUARD,APPTAG,REFTAG
    works $nsid --rw=write --pi_act=0 --md_per_io_size=128 --apptag=0x4321
    refused 'application tag check error' $nsid --rw=read --pi_act=0 --md_per_io_size=128 \
        --pi_chk=APPTAG
    works $nsid --rw=read --pi_act=0 --md_per_io_size=128 --pi_chk=APPTAG --apptag=0x4300 \
        --apptag_mask=0xff00
    refused 'md_per_io_size=' $nsid --rw=read --pi_act=0
done
# Behind the data of each block.
works 3 --rw=write
works 3 --rw=write --bs=4160 --size=83200 --pi_act=0 --pi_chk=GUARD,REFTAG
works 3 --rw=randread --bs=4160 --size=83200 --pi_act=0 --pi_chk=GUARD,REFTAG
refused 'not a multiple' 3 --rw=read --pi_act=0
refused 'verification would take' 3 --rw=write --bs=4160 --size=83200 --pi_act=0 --verify=crc32c
# Metadata without protection information: 512 + 64 bytes.
works 5 --rw=randrw --bs=4608 --size=92160

step 'what is refused'
refused 'name /dev/ng0n1' 1 --filename=/dev/nvme0n1 --rw=read
refused 'like /dev/ng0n1' 1 --filename=/dev/null --rw=read
refused 'like /dev/ng0n1' 1 --filename=/dev/nvme0 --rw=read
refused 'flexible data placement' 1 --rw=write --dataplacement=fdp
refused 'GUARD, APPTAG or REFTAG' 1 --rw=read --pi_chk=all
refused '524288 B per command' 1 --rw=read --bs=1m
refused 'LBA out of range\|beyond\|exceeds' 1 --rw=read --offset=1g

step 'a namespace with zones, and one that is write-protected'
refused "write is not at the zone's write pointer (status 1h/bch)" 7 --rw=write --offset=1m
works 7 --rw=write --zonemode=zbd --size=1z --verify=crc32c
works 7 --rw=trim --zonemode=zbd --bs=4m --size=2z
blockdev --setro /dev/nvme0n1
refused 'ng0n1 is write-protected' 1 --rw=write
works 1 --rw=read
blockdev --setrw /dev/nvme0n1

step 'a mounted file system'
mke2fs /dev/nvme0n1 >/dev/null 2>&1
mkdir -p /tmp/mounted
mount -t ext4 /dev/nvme0n1 /tmp/mounted || mount -t ext2 /dev/nvme0n1 /tmp/mounted
refused 'mounted at /tmp/mounted' 1 --rw=write
works 1 --rw=read
works 1 --rw=write --allow_mounted_write=1
umount /tmp/mounted

# Passes when the controller has counted more reads than that (SMART log, host read commands).
reads_more_than() {
    [ "$(host_reads)" -gt "$1" ]
}

host_reads() {
    nvme smart-log /dev/nvme0 --raw-binary | od -A n -t u8 -j 64 -N 8 | tr -d ' '
}

step 'a namespace that is formatted under the job'
before=$(host_reads)
fathom run --name=vm --ioengine=io_uring_cmd --filename=/dev/ng0n1 --rw=randread --bs=4k --iodepth=4 \
    --time_based --runtime=60 --output=report >/tmp/log 2>&1 &
job=$!
within 30 reads_more_than $((before + 100))
nvme format /dev/nvme0n1 --lbaf=4 --force >/dev/null
if wait "$job"; then fail 'the job went on'; fi
cat report >>/tmp/log
grep -q 'formatted under the job\|status' /tmp/log || {
    cat /tmp/log
    fail 'no reason'
}

step 'peak'
fathom peak --passthrough --block 4k --depth 32 --seconds 0.5 --repeats 2 /dev/ng0n6
fathom peak --passthrough --block 4k --depth 8 --polled --latency --seconds 0.5 --repeats 2 \
    /dev/ng0n6
if fathom peak --passthrough /dev/nvme0n1 2>/tmp/log; then fail 'a block device'; fi
grep -q 'not a device that takes commands' /tmp/log
