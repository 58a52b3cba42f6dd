#!/bin/busybox sh
# First process of the guest: loads the modules, makes the devices, runs /script.sh or a shell, and
# turns the machine off. Lines that begin with `@` are for the harness; the others are only shown.
export PATH=/bin:/usr/sbin:/sbin
/bin/busybox --install -s /bin

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
# Of the kernel, only errors: its lines would run into those for the harness.
dmesg -n 4

end() {
    [ "$1" = 0 ] || [ -e /interactive ] || dmesg | tail -n 40
    # On a line of its own, whatever the script has printed last.
    printf '\n@ended %s\n' "$1"
    # -f: no other process remains to be ended.
    poweroff -f
}

while read -r module parameters; do
    # shellcheck disable=SC2086
    insmod "/modules/$module" $parameters || echo "init: cannot load $module $parameters"
done </modules/order
mount -t configfs configfs /sys/kernel/config 2>/dev/null

ip link set lo up
if [ -e /sys/class/net/eth0 ]; then
    ip addr add 10.0.2.15/24 dev eth0
    ip link set eth0 up
    ip route add default via 10.0.2.2
fi

(
    . /guest.sh
    . /devices.sh
    . /machine.sh
) || end 70
cd /tmp || end 70

if [ -e /interactive ]; then
    setsid cttyhack sh
    end $?
fi
# The console must not echo what the harness answers.
stty -echo
sh -eu /script.sh
end $?
