# Placement of writes by io_uring_cmd: where they land is read from the controller's log.
#
# test: NVMe passthrough: flexible data placement
# qemu: 8, the first whose NVMe places data
# vm: --nvme fdp=4
. /guest.sh

job() {
    fathom run --name=vm --ioengine=io_uring_cmd --filename=/dev/ng0n1 --rw=write --bs=4k --size=1m \
        --iodepth=8 --output=report "$@" >/tmp/log 2>&1
}

# Prints the blocks that were written to each of the four handles, of what its unit has left.
left() {
    nvme io-mgmt-recv /dev/ng0n1 --namespace-id=1 --mo=1 --data-len=4096 --raw-binary >/tmp/status \
        2>/dev/null || nvme fdp status /dev/ng0n1 --namespace-id=1 --raw-binary >/tmp/status
    for handle in 0 1 2 3; do
        od -A n -t u8 -j $((16 + handle * 32 + 8)) -N 8 /tmp/status | tr -d ' '
    done | tr '\n' ' '
}

step 'the handles'
before=$(left)
echo "blocks left: $before"

step 'two of them in turn'
job --dataplacement=fdp --plids=1,3 || { cat /tmp/log report; fail 'placed writes'; }
after=$(left)
echo "blocks left: $after"
# shellcheck disable=SC2086
set -- $before $after
[ "$1" = "$5" ] && [ "$3" = "$7" ] || fail 'other handles have got writes'
[ $(($2 - $6)) = 1024 ] && [ $(($4 - $8)) = 1024 ] || fail 'not half of the writes each'

step 'what is refused'
if job --dataplacement=fdp --plids=4; then fail 'handle 4'; fi
cat report >>/tmp/log
grep -q 'plids. from 0 to 3' /tmp/log || { cat /tmp/log; fail 'no reason'; }
if job --dataplacement=streams; then fail 'streams'; fi
grep -q 'dataplacement=fdp' /tmp/log || { cat /tmp/log; fail 'no reason'; }
