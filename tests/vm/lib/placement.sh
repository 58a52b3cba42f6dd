# Functions of the scripts that place data on /dev/ng0n1, which has four handles; guest.sh comes first.

# Prints the blocks that the unit of each handle has left: I/O Management Receive, of the status of
# handles. nvme-cli 2.3 prints only the start of it as it comes.
blocks_left() {
    nvme io-passthru /dev/ng0n1 --opcode=0x12 --namespace-id=1 --cdw10=1 --cdw11=255 --data-len=1024 \
        --read --raw-binary >/tmp/status 2>/tmp/log || { cat /tmp/log >&2; fail 'no status of handles'; }
    for handle in 0 1 2 3; do
        od -A n -t u8 -j $((16 + handle * 32 + 8)) -N 8 /tmp/status | tr -d ' '
    done | tr '\n' ' '
}

# Requires that each handle has taken so many blocks since it had those of BEFORE left:
# `takes BEFORE BLOCKS BLOCKS BLOCKS BLOCKS`.
takes() {
    left_before=$1
    shift
    left_now=$(blocks_left)
    echo "blocks left: $left_before, then $left_now"
    for left in $left_before; do
        [ $((left - ${left_now%% *})) = "$1" ] || fail "not $1 blocks: $left, then $left_now"
        left_now=${left_now#* }
        shift
    done
}
