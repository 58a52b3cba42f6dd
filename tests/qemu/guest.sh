# Functions of the scripts that run in the guest; busybox sh.

# Names the next step.
step() {
    echo "step: $*"
}

fail() {
    echo "failed: $*"
    exit 1
}

# Has the harness run a command on the machine around the guest, with `fathom` as the program under
# test; prints the command's line or output. The forms are:
#   outside start NAME COMMAND...   starts it; prints its first line of output
#   outside stop NAME               ends it with SIGTERM; fails unless it exits with 0
#   outside run COMMAND...          runs it to its end; fails if it does
#   outside port                    prints the port that leads to port 4420 of the guest
outside() {
    echo "@$*" >/dev/console
    while read -r answer; do
        case $answer in
        'answer: '*) echo "${answer#answer: }" ;;
        'answer done') return 0 ;;
        'answer failed') return 1 ;;
        esac
    done
    return 1
}

# Waits until a command succeeds: `within SECONDS COMMAND...`.
within() {
    limit=$1
    shift
    while ! "$@" >/dev/null 2>&1; do
        limit=$((limit - 1))
        [ "$limit" -gt 0 ] || fail "no success in time: $*"
        sleep 1
    done
}

# Prints the controller, such as nvme0, of a subsystem.
controller_of() {
    for folder in /sys/class/nvme/nvme*; do
        [ -e "$folder/subsysnqn" ] || continue
        if [ "$(cat "$folder/subsysnqn")" = "$1" ]; then
            basename "$folder"
            return 0
        fi
    done
    return 1
}

# Prints the value of a field of `nvme id-ctrl` and the like: `field NAME`, which reads the input.
field() {
    sed -n "s/^$1 *: *//p" | sed 's/ *$//' | head -n 1
}

# Writes random data to a block device past the cache and reads them back in another way.
write_and_verify() {
    dd if=/dev/urandom of=/tmp/written bs=64k count="$2" 2>/dev/null
    dd if=/tmp/written of="$1" bs=64k oflag=direct 2>/dev/null
    # Small writes, which travel in the capsule.
    dd if=/tmp/written of="$1" bs=4k count=16 skip=16 seek=16 oflag=direct conv=notrunc 2>/dev/null
    sync
    echo 3 >/proc/sys/vm/drop_caches
    dd if="$1" of=/tmp/read bs=64k count="$2" iflag=direct 2>/dev/null
    cmp /tmp/written /tmp/read || fail "$1 does not return what was written"
    dd if="$1" of=/tmp/read bs=4k count=$(($2 * 16)) 2>/dev/null
    cmp /tmp/written /tmp/read || fail "$1 does not return what was written, read in blocks of 4k"
    rm /tmp/written /tmp/read
}
