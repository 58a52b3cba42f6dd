# Jobs with `zrwa=1` on QEMU's zoned namespaces: one with few random write areas, one whose zones are no
# multiple of the granule of commits, and one without areas. QEMU 7.2 ends with a division by 0 unless
# the block size is given, and gives no area back unless their number is.
#
# test: random write areas of zones
# long: three namespaces, for one minute
# vm: --nvme zoned,zoned.zone_size=4M,zoned.max_open=4,zoned.max_active=4,zoned.zrwas=128K,zoned.zrwafg=16K,zoned.numzrwa=3,logical_block_size=512,size=64M
# vm: --nvme zoned,zoned.zone_size=3M,zoned.zone_capacity=2M,zoned.zrwas=96K,zoned.zrwafg=48K,zoned.numzrwa=16,logical_block_size=4096,physical_block_size=4096,size=48M
# vm: --nvme zoned,zoned.zone_size=4M,size=64M
# vm: --limit 170
. /guest.sh
. /zones.sh

# Runs a job: `job NSID OPTIONS...`, or a device for the number.
job() {
    case $1 in
    /*) device=$1 ;;
    *) device=/dev/ng0n$1 ;;
    esac
    shift
    fathom run --name=vm --ioengine=io_uring_cmd --filename="$device" --zonemode=zbd --zrwa=1 --bs=16k \
        --iodepth=8 --output=report --output-format=normal,json --eta=never "$@" >/tmp/log 2>&1
}

# Prints a field of the first zone of a namespace, by another program: `zone NSID FIELD`.
zone() {
    nvme zns report-zones "/dev/ng0n$1" -d 1 | awk -v field="$2:" \
        '/SLBA/ { for (at = 1; at < NF; at++) if ($at == field) print $(at + 1) }'
}

for nsid in 1 2; do
    step "namespace $nsid: writes, verification, resets"
    works $nsid --rw=write --size=4z
    has_zones 4 $nsid 0xe0
    works $nsid --rw=randwrite --size=8z --numjobs=2
    works $nsid --rw=randrw --size=8z --loops=2
    works $nsid --rw=write --size=3z --verify=crc32c
    works $nsid --rw=read --size=3z --verify=crc32c
    works $nsid --rw=randwrite --size=3z --loops=2 --verify=md5 --bs=4k
    # Other programs find what was written behind the write pointers.
    works $nsid --rw=write --size=3z --io_size=3m --verify=crc32c --do_verify=0 --bs=48k
    works $nsid --rw=read --size=3z --io_size=3m --verify=crc32c --zrwa=0 --bs=48k
    nvme zns reset-zone /dev/ng0n$nsid -a
done

step 'what is written is behind the pointer at the end'
works 1 --rw=write --size=1z --io_size=100k --bs=4k
# 96 KiB are six whole granules, and 192 blocks.
[ "$(zone 1 WP)" = 0xc0 ] || { nvme zns report-zones /dev/ng0n1 -d 1; fail 'not committed'; }
# The zone has its area still, which takes the next job's writes.
works 1 --rw=write --size=1z --io_size=1m --bs=16k
nvme zns reset-zone /dev/ng0n1 -a

step 'what is refused'
refused 'no random write areas' 3 --rw=write
refused 'which have 131072' 1 --rw=write --bs=256k
refused 'no random write areas' /dev/nvme0n1 --rw=write --ioengine=io_uring --direct=1

fathom lint --name=vm --ioengine=io_uring_cmd --filename=/dev/ng0n1 --zonemode=zbd --zrwa=1 --rw=write --bs=16k --iodepth=8 \
    >/tmp/log 2>&1 || { cat /tmp/log; fail 'lint refuses areas that it does not see'; }

step 'a zone that another program resets'
# The zone has 256 blocks, which take 16 s.
fails_by_reset 16 job 1 --rw=write --size=1z --rate_iops=16
