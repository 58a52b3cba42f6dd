# The kernel's target, nvmet, by configfs.

# Starts it with one namespace in memory: `nvmet_start NQN ADDRESS`.
nvmet_start() {
    base=/sys/kernel/config/nvmet
    subsystem=$base/subsystems/$1
    mkdir "$subsystem"
    echo 1 >"$subsystem/attr_allow_any_host"
    mkdir "$subsystem/namespaces/1"
    echo -n /dev/ram0 >"$subsystem/namespaces/1/device_path"
    # The same after a restart: a host takes a namespace of another identity for another one.
    echo 0a8c7b66-52b1-4f04-9a0e-3f0b5d0c5a11 >"$subsystem/namespaces/1/device_uuid"
    echo 1 >"$subsystem/namespaces/1/enable"
    port=$base/ports/1
    mkdir "$port"
    echo tcp >"$port/addr_trtype"
    echo ipv4 >"$port/addr_adrfam"
    echo "$2" >"$port/addr_traddr"
    echo 4420 >"$port/addr_trsvcid"
    ln -s "$subsystem" "$port/subsystems/$1"
}

# Ends it with its connections, in the middle of whatever they carry; /dev/ram0 keeps its data.
nvmet_stop() {
    base=/sys/kernel/config/nvmet
    subsystem=$base/subsystems/$1
    rm "$base/ports/1/subsystems/$1"
    rmdir "$base/ports/1"
    rmdir "$subsystem/namespaces/1" "$subsystem"
}

# Returns success if a host has a connection to it: port 4420, established.
nvmet_is_connected() {
    grep -q ':1144 [0-9A-F]*:[0-9A-F]* 01 ' /proc/net/tcp
}

nvmet_is_alone() {
    ! nvmet_is_connected
}
