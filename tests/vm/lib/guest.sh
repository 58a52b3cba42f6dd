# Functions of the scripts that run in the guest; busybox sh.

# Names the next step, with the seconds since the guest was started.
step() {
    read -r seconds _ </proc/uptime
    echo "step (${seconds%.*} s): $*"
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

# Requires that the script's function `job` succeeds; it leaves its messages in /tmp/log and its
# report in the file `report`.
works() {
    job "$@" || {
        cat /tmp/log report
        fail "job $*"
    }
}

# Requires that the script's `job` fails with these words: `refused WORDS ARGUMENTS...`.
refused() {
    words=$1
    shift
    if job "$@"; then fail "it works: $*"; fi
    cat report >>/tmp/log 2>/dev/null || true
    grep -q -- "$words" /tmp/log || {
        cat /tmp/log
        fail "no \`$words\` for $*"
    }
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

# Prints the value of a field from the output of nvme-cli: `field NAME`, which reads its input.
field() {
    sed -n "s/^$1[[:space:]]*: *//p" | sed 's/ *$//' | head -n 1
}

# Waits until a controller of a subsystem has a block device, and prints the controller.
connected() {
    within 20 controller_of "$1"
    controller=$(controller_of "$1")
    within 20 test -b "/dev/${controller}n1"
    echo "$controller"
}

# Reads identity and logs of a controller: `inspect CONTROLLER NQN`.
inspect() {
    nvme list | grep -q "/dev/${1}n1" || fail "nvme list does not show $1"
    identity=$(nvme id-ctrl "/dev/$1")
    [ "$(echo "$identity" | field subnqn)" = "$2" ] || fail 'id-ctrl has another NQN'
    [ "$(echo "$identity" | field sqes)" = 0x66 ] || fail 'id-ctrl has another entry size'
    nvme id-ns "/dev/${1}n1" | field nsze | grep -q '^0x[1-9a-f]' || fail 'the namespace is empty'
    nvme list-ns "/dev/$1" | grep -q '0x1$' || fail 'list-ns does not show namespace 1'
    nvme ns-descs "/dev/${1}n1" | grep -Eq 'nguid|uuid' || fail 'the namespace has no identifier'
    # nvmet reports no temperature, and 0 K is as good as any.
    nvme smart-log "/dev/$1" | field percentage_used | grep -q '%' || fail 'no smart-log'
    nvme error-log "/dev/$1" -e 4 | grep -q 'Entry\[ *3\]' || fail 'no error-log of 4 entries'
    nvme get-feature "/dev/$1" -f 7 | grep -q 'Current value' || fail 'no number of queues'
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

# Runs the commands that a file system sends beside reads and writes.
other_commands() {
    dd if=/dev/urandom of="$1" bs=64k count=1 oflag=direct 2>/dev/null
    nvme flush "$1" -n 1 >/dev/null || fail 'flush'
    nvme write-zeroes "$1" -n 1 -s 0 -c 7 >/dev/null || fail 'write zeroes'
    echo 3 >/proc/sys/vm/drop_caches
    dd if="$1" of=/tmp/read bs=4k count=1 iflag=direct 2>/dev/null
    cmp -n 4096 /tmp/read /dev/zero || fail 'zeroed blocks are not zero'
    nvme dsm "$1" -n 1 --ad -s 0 -b 8 >/dev/null || fail 'deallocate'
}
