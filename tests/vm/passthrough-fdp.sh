# Placement of writes by io_uring_cmd: where they land is read from the controller's log.
#
# test: NVMe passthrough: flexible data placement
# qemu: 8, the first whose NVMe places data
# vm: --nvme fdp=4
. /guest.sh
. /placement.sh

job() {
    fathom run --name=vm --ioengine=io_uring_cmd --filename=/dev/ng0n1 --rw=write --bs=4k --size=1m \
        --iodepth=8 --output=report "$@" >/tmp/log 2>&1
}

step 'two handles in turn'
before=$(blocks_left)
works --dataplacement=fdp --plids=1,3
takes "$before" 0 1024 0 1024

step 'all of them, and one'
before=$(blocks_left)
works --dataplacement=fdp
takes "$before" 512 512 512 512
before=$(blocks_left)
works --fdp=1 --fdp_pli=2 --verify=crc32c
takes "$before" 0 0 2048 0

step 'handles that are drawn'
before=$(blocks_left)
works --dataplacement=fdp --plid_select=random
after=$(blocks_left)
echo "blocks left: $before, then $after"
# shellcheck disable=SC2086
set -- $before $after
[ $(($1 + $2 + $3 + $4 - $5 - $6 - $7 - $8)) = 2048 ] || fail 'not all writes'
for handle in 0 1 2 3; do
    [ "$1" -gt "$5" ] || fail "nothing at handle $handle"
    shift
done

step 'what is refused'
refused 'plids. from 0 to 3' --dataplacement=fdp --plids=4
refused 'dataplacement=fdp' --dataplacement=streams
