# Ops per second of io_uring_cmd beside fio's in the same machine, in turn: Fathom's median is to be
# fio's at least, less a twentieth for the spread. Emulated processors tell the tools' cost, not a
# device's.
#
# test: NVMe passthrough beside fio: ops per second at depth 32
# long: measures for a minute
# vm: --nvme size=256M --program fio --limit 300
. /guest.sh

# Prints the reads per second of one run: `rate PROGRAM OPTIONS...`.
rate() {
    "$@" --name=vm --ioengine=io_uring_cmd --cmd_type=nvme --filename=/dev/ng0n1 --rw=randread \
        --bs=4k --iodepth=32 --time_based --runtime=3 --output-format=terse --terse-version=3 \
        2>/tmp/log | cut -d';' -f8
}

median() {
    sort -n | sed -n 3p
}

compare() {
    for options in '' '--fixedbufs --registerfiles'; do
        step "random reads of 4k, depth 32 $options"
        : >/tmp/fio
        : >/tmp/fathom
        for _pair in 1 2 3 4 5; do
            # shellcheck disable=SC2086
            rate fio $options >>/tmp/fio
            # shellcheck disable=SC2086
            rate fathom run $options >>/tmp/fathom
        done
        fio=$(median </tmp/fio)
        fathom=$(median </tmp/fathom)
        if [ "${fio:-0}" -eq 0 ]; then
            echo "skipped: fio has no result with these options"
            continue
        fi
        echo "fio $fio IOPS, fathom $fathom IOPS: $((fathom * 100 / fio)) %"
        echo "fio: $(tr '\n' ' ' </tmp/fio) fathom: $(tr '\n' ' ' </tmp/fathom)"
        # A twentieth: the spread of single runs here is larger.
        [ $((fathom * 100)) -ge $((fio * 95)) ] || fail 'slower than fio'
    done
}
compare
