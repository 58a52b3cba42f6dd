# Commands of the engine sg to a disk of Linux's own SCSI target, beside those of scsi_debug: it takes
# WRITE AND VERIFY, and WRITE SAME and UNMAP of a block device below it.
#
# test: SCSI generic on Linux's target
# long: a second implementation of the same commands
# vm: --null-blk memory_backed=1,discard=1,size=64 --module target_core_iblock --module tcm_loop
# vm: --module sd_mod --module sg
. /guest.sh

target=/sys/kernel/config/target
backstore=$target/core/iblock_0/disk
port=$target/loopback/naa.5001405000000001/tpgt_1

mkdir -p "$backstore"
echo 'udev_path=/dev/nullb0' >"$backstore/control"
echo 1 >"$backstore/enable"
echo 1 >"$backstore/attrib/emulate_tpu"
echo 1 >"$backstore/attrib/emulate_tpws"
mkdir -p "$port/lun/lun_0"
echo naa.5001405000000002 >"$port/nexus"
ln -s "$backstore" "$port/lun/lun_0/disk"
within 10 test -c /dev/sg0

job() {
    fathom run --name=vm --ioengine=sg --filename=/dev/sg0 --bs=4k --size=4m --iodepth=4 --output=report \
        --eta=never "$@" >/tmp/log 2>&1
}

# Requires that all data of the jobs are one byte: `all_are BYTE`, in a form that tr takes.
all_are() {
    # The target writes past the page cache.
    echo 1 >/proc/sys/vm/drop_caches
    [ "$(head -c 4194304 /dev/nullb0 | tr -d "$1" | wc -c)" = 0 ] || fail "not all data are $1"
}

step 'data'
works --rw=randwrite --verify=crc32c
works --rw=randwrite --verify=crc32c --sg_write_mode=write_and_verify
works --rw=randread --verify=crc32c --sg_write_mode=write_and_verify

step 'one block for all, none, and no transfer'
works --rw=write --sg_write_mode=same --buffer_pattern=0x5a
all_are Z
works --rw=trim --bs=64k
all_are '\000'
works --rw=write --sg_write_mode=verify

step 'what the target lacks'
refused 'INVALID FIELD IN CDB' --rw=write --sg_write_mode=verify_bytchk_11
refused 'STREAM CONTROL' --rw=write --sg_write_mode=write_stream
