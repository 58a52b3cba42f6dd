# The engine sg beside fio's in the same machine: each reads what the other has written, the commands
# leave the same data, and reads per second at depths 1 and 16 are fio's at least, less a twentieth
# for the spread. Emulated processors tell the tools' cost, not a device's.
#
# test: SCSI generic beside fio: data of each command, and ops per second
# long: measures for a minute
# vm: --scsi-debug dev_size_mb=32,lbpu=1,lbpws=1,lbpws10=1,delay=0 --program fio --limit 300
. /guest.sh

# Runs a job: `job PROGRAM OPTIONS...`. To fio, options of an engine are known behind its name.
job() {
    program=$1
    shift
    $program --name=vm --ioengine=sg --filename=/dev/sg0 --bs=4k --size=2m --iodepth=16 \
        --output=report "$@" >/tmp/log 2>&1 || {
        cat /tmp/log report
        fail "$program $*"
    }
}

sum() {
    dd if=/dev/sda bs=64k count=32 iflag=direct 2>/dev/null | md5sum
}

step 'each reads what the other has written'
job fio --rw=randwrite --verify=crc32c --do_verify=0
job 'fathom run' --rw=randread --verify=crc32c
job 'fathom run' --rw=randwrite --verify=crc32c --do_verify=0 --verify_header=fio-3.33
job fio --rw=randread --verify=crc32c

step 'each command leaves the same data'
for mode in write write_same write_same_ndob verify_bytchk_00; do
    dd if=/dev/urandom of=/dev/sda bs=64k count=32 oflag=direct 2>/dev/null
    job fio --rw=write --sg_write_mode=$mode --buffer_pattern=0x5a
    by_fio=$(sum)
    job 'fathom run' --rw=write --sg_write_mode=$mode --buffer_pattern=0x5a
    [ "$(sum)" = "$by_fio" ] || fail "other data by $mode"
done

# Prints the reads per second of one run: `rate PROGRAM OPTIONS...`.
rate() {
    program=$1
    shift
    $program --name=vm --ioengine=sg --filename=/dev/sg0 --rw=randread --bs=4k --time_based \
        --runtime=2 --output-format=terse --terse-version=3 "$@" 2>/tmp/log | cut -s -d';' -f8
}

median() {
    sort -n | sed -n 3p
}

for depth in 1 16; do
    step "random reads of 4k, depth $depth"
    : >/tmp/fio
    : >/tmp/fathom
    for _pair in 1 2 3 4 5; do
        rate fio --iodepth=$depth >>/tmp/fio
        rate 'fathom run' --iodepth=$depth >>/tmp/fathom
    done
    fio=$(median </tmp/fio)
    fathom=$(median </tmp/fathom)
    echo "fio: $(tr '\n' ' ' </tmp/fio) fathom: $(tr '\n' ' ' </tmp/fathom)"
    [ "${fio:-0}" -gt 0 ] || fail 'fio has no result'
    echo "fio $fio IOPS, fathom $fathom IOPS: $((fathom * 100 / fio)) %"
    [ $((fathom * 100)) -ge $((fio * 95)) ] || fail 'slower than fio'
done
