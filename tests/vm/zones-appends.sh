# Jobs with `write_mode=zone_append` on QEMU's zoned namespaces: one with limits, one whose zones have
# less capacity than length, one with random write areas, and one with metadata.
#
# test: appends to zones
# long: four namespaces, for one minute
# vm: --nvme zoned,zoned.zone_size=4M,zoned.max_open=4,zoned.max_active=4,size=64M
# vm: --nvme zoned,zoned.zone_size=3M,zoned.zone_capacity=2M,size=48M
# vm: --nvme zoned,zoned.zone_size=4M,zoned.max_open=4,zoned.max_active=4,zoned.zrwas=128K,zoned.zrwafg=16K,zoned.numzrwa=3,logical_block_size=512,size=64M
# vm: --nvme zoned,zoned.zone_size=4M,ms=64,size=64M --nvme-module poll_queues=2 --limit 170
. /guest.sh
. /trace.sh
. /zones.sh

# Runs a job: `job NSID OPTIONS...`.
job() {
    device=/dev/ng0n$1
    shift
    fathom run --name=vm --ioengine=io_uring_cmd --filename="$device" --zonemode=zbd \
        --write_mode=zone_append --bs=16k --iodepth=16 --output=report \
        --output-format=normal,json --eta=never "$@" >/tmp/log 2>&1
}

trace_commands

for nsid in 1 2; do
    step "namespace $nsid: appends, several in flight"
    sent any >/dev/null
    works $nsid --rw=write --size=4z --buffer_pattern=0x5a
    has_zones 4 $nsid 0xe0
    appends=$(sent nvme_cmd_zone_append)
    # 4 MiB or 2 MiB in each of four zones.
    [ "$appends" = $((nsid == 1 ? 1024 : 512)) ] || fail "$appends appends"
    grep -q 'IO depths .* 16=[89][0-9]' report || {
        cat report
        fail 'not 16 in flight'
    }
    works $nsid --rw=read --size=4z --verify=pattern --verify_pattern=0x5a
    works $nsid --rw=randwrite --size=8z --numjobs=2 --max_open_zones=3
    works $nsid --rw=randrw --size=8z --loops=2
    works $nsid --rw=write --size=2z --bssplit=4k/30:12k/30:64k/40 --loops=3
    for options in --fixedbufs --registerfiles --hipri --sqthread_poll --nonvectored=0; do
        works $nsid --rw=randwrite --size=4z $options
    done
    # Where only one is in flight, its place is known.
    works $nsid --rw=write --size=2z --iodepth=1 --verify=crc32c
    works $nsid --rw=randwrite --size=2z --iodepth=1 --verify=crc32c --loops=2
    # As one of several commands, it is alone in its zone.
    works $nsid --rw=write --size=2z --write_mode=write/50:zone_append/50
    [ "$(sent nvme_cmd_zone_append)" -gt 500 ] || fail 'no appends'
    nvme zns reset-zone /dev/ng0n$nsid -a
done

step 'beside a job that writes at the pointer'
fathom run --ioengine=io_uring_cmd --filename=/dev/ng0n1 --zonemode=zbd --bs=16k --iodepth=8 --rw=randwrite \
    --size=8z --max_open_zones=3 --name=appends --write_mode=zone_append \
    --name=writes --write_mode=write >/tmp/log 2>&1 || { cat /tmp/log; fail 'two kinds of jobs'; }
nvme zns reset-zone /dev/ng0n1 -a

step 'zones with random write areas'
# The zone of the first job is left open with its area; the second one finishes it.
fathom run --name=vm --ioengine=io_uring_cmd --filename=/dev/ng0n3 --zonemode=zbd --zrwa=1 --bs=16k --rw=write \
    --size=1z --io_size=1m >/tmp/log 2>&1 || { cat /tmp/log; fail 'no area'; }
works 3 --rw=write --size=2z --bs=64k
has_zones 2 3 0xe0
nvme zns reset-zone /dev/ng0n3 -a

step 'metadata without protection information'
works 4 --rw=write --size=2z --md_per_io_size=4096

step 'what is refused'
refused 'needs a namespace with zones' 1 --rw=write --zonemode=none --size=1m
refused 'the place of each is not known' 1 --rw=write --verify=crc32c --size=1z
refused 'with random write areas' 3 --rw=write --zrwa=1 --size=1z
refused 'B per command at most' 1 --rw=write --bs=1m --size=1z

step 'a zone that another program finishes'
# The zone has 256 blocks, which take 16 s.
before=$(host_writes)
job 1 --rw=write --size=1z --rate_iops=16 &
within 60 writes_more_than $((before + 16))
nvme zns finish-zone /dev/ng0n1 -s 0
if wait $!; then fail 'the job did not notice'; fi
cat report >>/tmp/log
grep -q 'something other than this run has written or finished it' /tmp/log || {
    cat /tmp/log
    fail 'no reason'
}
