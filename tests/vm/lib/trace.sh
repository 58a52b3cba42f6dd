# Functions of the scripts that count the commands which the NVMe driver has sent; guest.sh comes first.

# Begins to record them.
trace_commands() {
    mount -t tracefs none /sys/kernel/tracing
    echo 1 >/sys/kernel/tracing/events/nvme/nvme_setup_cmd/enable
}

# Prints how many with a name were sent since the last call: `sent NAME`.
sent() {
    grep -c "$1" /sys/kernel/tracing/trace || true
    echo >/sys/kernel/tracing/trace
}
