# Linux's own iSCSI target with our engine, which runs outside the guest: a second implementation of
# the protocol beside tgt.
#
# test: the kernel's iSCSI target with the engine libiscsi
# long: a second target
# vm: --network --null-blk memory_backed=1,discard=1,size=64,cache_size=4 --module target_core_iblock
# vm: --module iscsi_target_mod --module crc32c_generic --module crc32c_intel --limit 240
. /guest.sh

if ! outside run "/sbin/ldconfig -p | grep libiscsi.so.7" >/tmp/log; then
    echo 'skipped: no libiscsi (package libiscsi7)'
    exit 0
fi

iqn=iqn.2026-01.org.example:disk
target=/sys/kernel/config/target
backstore=$target/core/iblock_0/disk
group=$target/iscsi/$iqn/tpgt_1
url=iscsi://127.0.0.1:$(outside port)/$iqn

step 'target'
mkdir -p "$backstore"
echo 'udev_path=/dev/nullb0' >"$backstore/control"
echo 1 >"$backstore/enable"
echo 1 >"$backstore/attrib/emulate_tpu"
mkdir -p "$group/lun/lun_0" "$group/np/10.0.2.15:4420"
ln -s "$backstore" "$group/lun/lun_0/disk"
# Anyone may log in, and write.
echo 0 >"$group/attrib/authentication"
echo 1 >"$group/attrib/generate_node_acls"
echo 0 >"$group/attrib/demo_mode_write_protect"
echo 1 >"$group/enable"

# Variables of the environment with which jobs log in.
passwords=

# Prints the command line of a job on a unit: `line UNIT OPTIONS...`.
line() {
    unit=$1
    shift
    echo "env $passwords fathom run --name=vm --thread --ioengine=libiscsi --filename=$url/$unit" \
        "--bs=4k --size=4m $*"
}

# Runs a job. Its report is not sent over the slow console.
job() {
    outside run "$(line "$@") --output=report"
}

# Requires that a job fails and says why: `fails UNIT REASON OPTIONS...`.
fails() {
    unit=$1
    reason=$2
    shift 2
    outside run "sh -c '! $(line "$unit" "$@") >log 2>&1 && grep \"$reason\" log || { cat log; false; }'" ||
        fail "no such error: $reason"
}

step 'small writes with verification'
job 0 --rw=randwrite --iodepth=16 --verify=crc32c
step 'large writes with verification'
job 0 --rw=randwrite --bs=1m --size=16m --iodepth=4 --verify=crc32c
step 'mixed sizes, two jobs, each with half of the unit'
job 0 --rw=randrw --bssplit=512/20:4k/40:32k/40 --size=16m --offset_increment=32m --numjobs=2 --iodepth=8
step 'trims, flushes and writes to stable storage'
job 0 --rw=trim --bs=64k
job 0 --rw=randwrite --fsync=16 --iodepth=4 --verify=crc32c
job 0 --rw=write --sync=1 --bs=64k

step 'data reach the disk'
job 0 --rw=write --bs=64k --size=1m --buffer_pattern=0x5a
echo 1 >/proc/sys/vm/drop_caches
head -c 1048576 /dev/nullb0 | tr -d Z | wc -c | grep -qx 0 || fail 'other data'

# Sets a parameter, which the target and later sessions agree on.
parameter() {
    echo "$2" >"$group/param/$1"
    [ "$(cat "$group/param/$1")" = "$2" ] || fail "the target does not take $1=$2"
}

step 'digests of headers'
parameter HeaderDigest CRC32C
job 0 --rw=randwrite --bs=64k --iodepth=8 --verify=crc32c
parameter HeaderDigest CRC32C,None
step 'data only when the target asks, in small parts'
parameter ImmediateData No
parameter InitialR2T Yes
parameter MaxRecvDataSegmentLength 4096
parameter MaxBurstLength 16384
job 0 --rw=randwrite --bs=256k --iodepth=8 --verify=crc32c
parameter InitialR2T No
parameter FirstBurstLength 8192
job 0 --rw=randwrite --bs=64k --iodepth=8 --verify=crc32c

step 'what the target does not have'
fails 1 'LOGICAL UNIT NOT SUPPORTED' --rw=read

step 'passwords'
# A line's end would be part of either.
echo -n user >"$group/auth/userid"
echo -n a-long-password >"$group/auth/password"
echo 1 >"$group/attrib/authentication"
fails 0 'set LIBISCSI_CHAP_USERNAME' --rw=read
user='LIBISCSI_CHAP_USERNAME=user LIBISCSI_CHAP_PASSWORD'
passwords="$user=another-password"
fails 0 'Authentication failure' --rw=read
passwords="$user=a-long-password"
job 0 --rw=read
step 'a target that proves itself'
echo -n target >"$group/auth/userid_mutual"
echo -n target-password >"$group/auth/password_mutual"
proof='LIBISCSI_CHAP_TARGET_USERNAME=target LIBISCSI_CHAP_TARGET_PASSWORD'
passwords="$user=a-long-password $proof=target-password"
job 0 --rw=read
passwords="$user=a-long-password $proof=another-password"
fails 0 'does not prove itself' --rw=read
passwords=
echo 0 >"$group/attrib/authentication"

step 'a unit that is read-only'
# For initiators that have not logged in before.
echo 1 >"$group/attrib/demo_mode_write_protect"
fails 0 'read-only' --rw=write --initiator=iqn.2026-01.org.example:reader
job 0 --rw=read --initiator=iqn.2026-01.org.example:reader
echo 0 >"$group/attrib/demo_mode_write_protect"

step 'sessions that the target ends'
end_sessions() {
    sleep 3
    echo 0 >"$group/enable"
    echo 1 >"$group/enable"
}
end_sessions &
fails 0 'reset' --rw=randwrite --iodepth=8 --rate_iops=100
wait
job 0 --rw=randwrite --verify=crc32c
