# Devices that a machine was asked for; busybox sh. Needs guest.sh.

null_blks=0

# Makes the next device of null_blk: `make_null_blk ATTRIBUTE=VALUE...`. It keeps its data.
make_null_blk() {
    folder=/sys/kernel/config/nullb/nullb$null_blks
    mkdir "$folder" || fail "null_blk makes no device $null_blks"
    for setting in size=256 memory_backed=1 "$@"; do
        attribute=${setting%%=*}
        [ -e "$folder/$attribute" ] || fail "null_blk has no attribute $attribute"
        echo "${setting#*=}" >"$folder/$attribute" || fail "null_blk does not take $setting"
    done
    echo 1 >"$folder/power" || fail "null_blk does not start with $*"
    within 10 test -b "/dev/nullb$null_blks"
    null_blks=$((null_blks + 1))
}

namespaces=0

# Waits for the next namespace of the emulated controller.
await_nvme() {
    namespaces=$((namespaces + 1))
    within 20 test -c "/dev/ng0n$namespaces"
}

await_scsi_debug() {
    within 20 test -c /dev/sg0
}

# Prints the value of a setting: `setting NAME DEFAULT NAME=VALUE...`.
setting() {
    name=$1
    value=$2
    shift 2
    for pair in "$@"; do
        [ "${pair%%=*}" != "$name" ] || value=${pair#*=}
    done
    echo "$value"
}

# Makes a target of the device mapper above a new device of null_blk: `make_mapped TARGET WORDS...`;
# the device's path and a 0 stand before the words.
make_mapped() {
    below=/dev/nullb$null_blks
    make_null_blk size=64
    target=$1
    shift
    # There is no udev to make the node.
    export DM_DISABLE_UDEV=1
    dmsetup create "$target" --table \
        "0 $(blockdev --getsz "$below") $target $below 0 $*" || fail "no target $target: $*"
    within 10 test -b "/dev/mapper/$target"
}

# Makes /dev/mapper/delay: `make_delay ms=READ write_ms=WRITE`.
make_delay() {
    read_ms=$(setting ms 100 "$@")
    write_ms=$(setting write_ms "$read_ms" "$@")
    make_mapped delay "$read_ms /dev/nullb$null_blks 0 $write_ms"
}

# Makes /dev/mapper/flakey, which works and fails in turns: `make_flakey up=SECONDS down=SECONDS`;
# with error_writes=1 it fails writes alone.
make_flakey() {
    words="$(setting up 5 "$@") $(setting down 2 "$@")"
    case $(setting error_writes 0 "$@") in
    0) ;;
    *) words="$words 1 error_writes" ;;
    esac
    make_mapped flakey "$words"
}
