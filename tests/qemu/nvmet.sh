# The kernel's target, nvmet, by configfs.

# Starts it with one namespace in memory: `nvmet_start NQN ADDRESS`.
nvmet_start() {
    base=/sys/kernel/config/nvmet
    subsystem=$base/subsystems/$1
    mkdir "$subsystem"
    echo 1 >"$subsystem/attr_allow_any_host"
    mkdir "$subsystem/namespaces/1"
    echo -n /dev/ram0 >"$subsystem/namespaces/1/device_path"
    echo 1 >"$subsystem/namespaces/1/enable"
    port=$base/ports/1
    mkdir "$port"
    echo tcp >"$port/addr_trtype"
    echo ipv4 >"$port/addr_adrfam"
    echo "$2" >"$port/addr_traddr"
    echo 4420 >"$port/addr_trsvcid"
    ln -s "$subsystem" "$port/subsystems/$1"
}
