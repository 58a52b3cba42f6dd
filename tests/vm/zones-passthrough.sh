# Jobs with `zonemode=zbd` of io_uring_cmd, which asks for zones and resets them by NVMe commands, on
# QEMU's zoned namespaces: one that has a block device, one whose zones the block layer does not
# take, and one without zones.
#
# test: zonemode=zbd of NVMe passthrough
# long: four namespaces, for one to two minutes
# vm: --nvme zoned,zoned.zone_size=4M,zoned.max_open=4,zoned.max_active=4,size=64M
# vm: --nvme zoned,zoned.zone_size=3M,zoned.zone_capacity=2M,size=48M --nvme size=64M
# vm: --nvme zoned,zoned.zone_size=4M,ms=64,mset=1,size=64M
# vm: --nvme-module poll_queues=2 --scsi-debug dev_size_mb=8 --limit 170
. /guest.sh
. /zones.sh

# Runs a job: `job NSID OPTIONS...`, or a device for the number.
job() {
    case $1 in
    /*) device=$1 ;;
    *) device=/dev/ng0n$1 ;;
    esac
    shift
    fathom run --name=vm --ioengine=io_uring_cmd --filename="$device" --zonemode=zbd --bs=64k --iodepth=4 \
        --output=report --output-format=normal,json --eta=never "$@" >/tmp/log 2>&1
}

# Succeeds if the jobs of the last run did so many reads, writes and trims.
did() {
    found=$(awk -F'[:,]' '/"total_ios"/ { printf "%s ", $2 + 0 }' report)
    case "$found" in
    "$1 $2 $3 "*) ;;
    *) fail "reads, writes, trims: $found, not $1 $2 $3" ;;
    esac
}

# Prints how many zones of a namespace are in a state, by another program: `in_state NSID STATE`.
in_state() {
    nvme zns report-zones "/dev/ng0n$1" >/tmp/zones
    grep -c "State: $2" /tmp/zones || true
}
EMPTY=0x10
FULL=0xe0

[ -b /dev/nvme0n1 ] || fail 'the first namespace has no block device'
[ ! -b /dev/nvme0n2 ] || [ "$(cat /sys/block/nvme0n2/size)" = 0 ] ||
    fail 'the block layer takes zones of 3 MiB'

for nsid in 1 2; do
    step "namespace $nsid: writes, reads, verification"
    works $nsid --rw=randwrite --size=8z --numjobs=2 --max_open_zones=3
    works $nsid --rw=write --size=4z --numjobs=2 --offset_increment=4z
    works $nsid --rw=randrw --size=8z
    for options in '' --fixedbufs --registerfiles --hipri --sqthread_poll --nonvectored=0; do
        # shellcheck disable=SC2086
        works $nsid --rw=write --size=2z --verify=crc32c --fsync=8 $options
        # shellcheck disable=SC2086
        works $nsid --rw=randwrite --size=2z --loops=2 --verify=crc32c $options
    done
    works $nsid --rw=read --size=2z --verify=crc32c
    # The rest of each zone is finished.
    works $nsid --rw=write --bs=96k --size=4z
    [ "$(in_state $nsid $FULL)" -ge 3 ] || { cat /tmp/zones; fail 'no zone was finished'; }
done

step 'the block layer reads what commands wrote'
works 1 --rw=randwrite --size=3z --verify=md5 --do_verify=0
fathom run --name=vm --ioengine=psync --direct=1 --filename=/dev/nvme0n1 --zonemode=zbd --rw=randread \
    --bs=64k --size=3z --verify=md5 --output=report >/tmp/log 2>&1 || { cat /tmp/log report; fail 'other data'; }

step 'trims reset zones'
for options in '' --hipri; do
    for nsid in 1 2; do
        zone=4m
        [ $nsid = 1 ] || zone=3m
        works $nsid --rw=trim --bs=$zone $options
        did 0 0 16
        [ "$(in_state $nsid $EMPTY)" = 16 ] || { cat /tmp/zones; fail 'not all zones are empty'; }
        works $nsid --rw=write --size=3z
        works $nsid --rw=randtrim --bs=$zone $options
        did 0 0 3
        [ "$(in_state $nsid $EMPTY)" = 16 ] || fail 'a zone was not reset'
    done
done
works 2 --rw=write --size=2z --bs=512k
did 0 8 0
# A pair has one size, and no command writes a zone.
refused '524288 B per command' 1 --rw=trimwrite --bs=4m --size=2z
refused 'resets a whole zone' 1 --rw=trim --bs=64k

step 'jobs of both names of a namespace share its zones'
fathom run --zonemode=zbd --rw=randwrite --bs=64k --size=6z --iodepth=4 --max_open_zones=4 --output=report \
    --name=a --ioengine=io_uring_cmd --filename=/dev/ng0n1 \
    --name=b --ioengine=io_uring --direct=1 --filename=/dev/nvme0n1 >/tmp/log 2>&1 ||
    { cat /tmp/log report; fail 'they do not'; }

step 'a namespace without zones'
works 3 --rw=randwrite --zonesize=4m --size=8z --max_open_zones=2
works 3 --rw=write --zonesize=4m --size=4z --verify=crc32c
works 3 --rw=trim --bs=4m --zonesize=4m
refused 'Specifying the zone size is mandatory' 3 --rw=write

step 'what is refused'
refused 'write_mode' 1 --rw=write --write_mode=compare
works 1 --rw=write --write_mode=zeroes --size=2z
refused 'name /dev/ng0n1' /dev/nvme0n1 --rw=write
refused 'metadata after the data' 4 --rw=write
refused '`sg` opens none' /dev/sg0 --rw=write --ioengine=sg
refused 'has no room for another open or active zone' 1 --rw=randwrite --ignore_zone_limits=1 --max_open_zones=16
fathom lint --name=vm --ioengine=io_uring_cmd --filename=/dev/ng0n1 --zonemode=zbd --rw=trim --bs=64k >/tmp/log 2>&1 || true
grep -q 'resets a whole zone' /tmp/log || { cat /tmp/log; fail 'lint does not know the zones'; }

step 'a zone that another program resets'
nvme zns reset-zone /dev/nvme0n1 -s 0
# The zone has 64 blocks, which take 16 s.
fails_by_reset 4 job 1 --rw=write --size=1z --iodepth=1 --rate_iops=4

step 'a write error is recovered from'
works 1 --rw=trim --bs=4m
before=$(host_writes)
(
    within 60 writes_more_than $((before + 4))
    nvme zns reset-zone /dev/nvme0n1 -s 0
) &
# A tolerated error is in the exit code.
job 1 --rw=write --bs=16k --size=1z --iodepth=1 --rate_iops=25 --recover_zbd_write_error=1 --continue_on_error=write || true
wait
grep -q '"total_err" *: *1,' report || { cat /tmp/log report; fail 'not one error'; }
# The failed write is not counted.
did 0 255 0
