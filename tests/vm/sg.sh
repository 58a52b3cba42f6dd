# The engine sg on the kernel's scsi_debug: the conformance suite, commands of every kind on each
# kind of node, injected errors, and what is refused.
#
# test: SCSI generic: conformance, commands, sense data, refusals
# vm: --limit 300 --scsi-debug dev_size_mb=32,lbpu=1,lbpws=1,lbpws10=1,write_same_length=256,unmap_max_desc=8 --module ext4 --module crc32c_generic --test sg
. /guest.sh

# Runs a job on a node: `job NODE OPTIONS...`.
job() {
    device=$1
    shift
    rm -f report
    fathom run --name=vm --ioengine=sg --filename="$device" --bs=4k --size=2m --iodepth=16 \
        --output=report "$@" >/tmp/log 2>&1 || return 1
}

# Sets a parameter of scsi_debug: `inject NAME VALUE`.
inject() {
    echo "$2" >/sys/bus/pseudo/drivers/scsi_debug/"$1"
}

# Compares the first 2 MiB of the disk with a file.
is_stored() {
    dd if=/dev/sda bs=64k count=32 iflag=direct 2>/dev/null | cmp -n 2097152 - "$1" || fail "not $1"
}

step 'conformance suite'
FATHOM_SG=/dev/sg0 sg-tests -q

bsg=$(echo /dev/bsg/*:0:0:0)
# In the names of a job, a colon is escaped.
named=$(echo "$bsg" | sed 's/:/\\:/g')

step 'reads, writes, trims, syncs, and verification'
works /dev/sg0 --rw=randwrite --verify=crc32c --fsync=8
works /dev/sg0 --rw=randwrite --verify=crc32c --iodepth=40 --numjobs=2 --offset_increment=2m
works /dev/sg0 --rw=randtrim
works /dev/sg0 --rw=randrw --bssplit=512/20:4k/40:64k/40 --readfua=1 --writefua=1
for node in /dev/sda "$named"; do
    works "$node" --rw=randwrite --verify=crc32c --iodepth=1
    works "$node" --rw=randread
    grep -q 'IO depths *: 1=100.0%' report || fail "more than one op in flight on $node"
    grep -q 'of iodepth=16: the engine performs one op at a time' report || fail 'no word of it'
done
refused 'not a multiple' /dev/sg0 --rw=read --bs=700

# Prints the number of commands that the disk has been sent.
commands() {
    echo $(($(cat /sys/block/sda/device/iorequest_cnt)))
}

step 'batches: trims share a command, of 8 ranges at most; others are submitted one by one'
works /dev/sg0 --rw=write
before=$(commands)
works /dev/sg0 --rw=randtrim --iodepth_batch=16
sent=$(($(commands) - before))
# 512 trims, and what is asked of the disk first.
[ $sent -ge 64 ] && [ $sent -lt 100 ] || fail "512 trims in $sent commands"
is_stored /dev/zero
works /dev/sg0 --rw=randtrim --iodepth_batch=8
grep -q 'submit *: 0=0.0%, 4=0.0%, 8=100.0%' report || fail 'trims were not submitted by 8'
for node in /dev/sda "$named"; do
    works "$node" --rw=write
    works "$node" --rw=randtrim --iodepth_batch=16
    is_stored /dev/zero
done
works /dev/sg0 --rw=randread --iodepth_batch=16
grep -q 'submit *: 0=0.0%, 4=100.0%' report || fail 'reads were not submitted one by one'
works /dev/sg0 --rw=randtrimwrite --verify=crc32c --iodepth_batch=16

step 'other commands as writes'
works /dev/sg0 --rw=write --sg_write_mode=write_same --buffer_pattern=0x5a
tr '\0' 'Z' </dev/zero | head -c 2097152 >/tmp/letters
is_stored /tmp/letters
works /dev/sg0 --rw=write --sg_write_mode=verify_bytchk_00
works /dev/sg0 --rw=write --sg_write_mode=verify_bytchk_01 --buffer_pattern=0x5a
works /dev/sg0 --rw=write --sg_write_mode=verify_bytchk_11 --buffer_pattern=0x5a
refused 'MISCOMPARE, MISCOMPARE DURING VERIFY OPERATION' /dev/sg0 --rw=write \
    --sg_write_mode=verify_bytchk_01 --buffer_pattern=0x5b
works /dev/sg0 --rw=write --sg_write_mode=write_same_ndob
is_stored /dev/zero
refused 'INVALID FIELD IN CDB.*Block Limits' /dev/sg0 --rw=write --sg_write_mode=write_same --bs=1m
# It has neither of these.
refused 'INVALID COMMAND OPERATION CODE' /dev/sg0 --rw=write --sg_write_mode=write_and_verify
refused 'STREAM CONTROL (open).*ILLEGAL REQUEST' /dev/sg0 --rw=write --sg_write_mode=write_stream
refused 'ILLEGAL REQUEST' /dev/sg0 --rw=write --sg_write_mode=write_stream --stream_id=3

step 'errors of the device'
inject opts 2
refused 'MEDIUM ERROR, UNRECOVERED READ ERROR at LBA 4660 (sense 3h/11h/00h)' /dev/sg0 --rw=read \
    --size=4m
if job /dev/sg0 --rw=read --size=4m --continue_on_error=io; then fail 'no error'; fi
grep -q 'errors *: total=2, first_error=5' report || fail 'other errors than of two ops'
inject opts 256
inject every_nth 1
refused 'short transfer: 2048 of 4096 B' /dev/sg0 --rw=read
inject opts 8
works /dev/sg0 --rw=randread
inject opts 16
refused 'ABORTED COMMAND' /dev/sg0 --rw=read
inject every_nth 0
inject opts 0
works /dev/sg0 --rw=read

step 'what is refused'
refused 'like /dev/sg0' /dev/null --rw=read
refused 'like /dev/sg0' /dev/no-such-device --rw=read
refused 'hipri' /dev/sg0 --rw=read --hipri
refused 'at most 65535' /dev/sg0 --rw=read --stream_id=70000
if fathom run --name=vm --ioengine=psync --filename=/dev/sg0 --rw=read --size=1m 2>/tmp/log; then
    fail 'psync on /dev/sg0'
fi
grep -q 'ioengine=sg' /tmp/log || fail 'psync names no engine'

step 'a write-protected disk'
blockdev --setro /dev/sda
for node in /dev/sg0 /dev/sda "$named"; do
    refused 'is write-protected' "$node" --rw=write --iodepth=1
    refused 'is write-protected' "$node" --rw=trim --iodepth=1
    works "$node" --rw=read --iodepth=1
done
blockdev --setrw /dev/sda

step 'a mounted file system'
mke2fs /dev/sda >/dev/null 2>&1
mkdir -p /tmp/mounted
mount -t ext4 /dev/sda /tmp/mounted || mount -t ext2 /dev/sda /tmp/mounted
for node in /dev/sg0 /dev/sda "$named"; do
    refused 'mounted at /tmp/mounted' "$node" --rw=write --iodepth=1
    works "$node" --rw=read --iodepth=1
done
works /dev/sg0 --rw=write --allow_mounted_write=1
umount /tmp/mounted

step 'a partition'
printf 'o\nn\np\n1\n\n\nw\n' | fdisk /dev/sda >/dev/null 2>&1
if within 10 test -b /dev/sda1; then
    refused 'not a whole SCSI disk' /dev/sda1 --rw=read --iodepth=1
else
    echo 'skipped: no partition was made'
fi

# Passes when the disk has been sent more commands than that.
commands_exceed() {
    [ "$(commands)" -gt "$1" ]
}

step 'a disk that goes away under the job'
before=$(commands)
job /dev/sg0 --rw=randread --time_based --runtime=120 &
running=$!
within 30 commands_exceed $((before + 100))
echo 1 >/sys/block/sda/device/delete
if wait "$running"; then fail 'the job went on'; fi
cat report >>/tmp/log
# The kernel ends commands with DID_ERROR while it removes a disk, and with DID_NO_CONNECT after that.
grep -q 'DID_ERROR\|DID_NO_CONNECT\|No such device\|No such file' /tmp/log || {
    cat /tmp/log
    fail 'no reason'
}
