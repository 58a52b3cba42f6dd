#!/bin/busybox sh
# First process of the guest: loads the modules, brings up the network, runs /test.sh and turns the
# machine off. Lines that begin with `@` are for the harness; the others are only shown.
export PATH=/bin:/usr/sbin
/bin/busybox --install -s /bin

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
# Of the kernel, only errors: its lines would run into those for the harness.
dmesg -n 4

while read -r module; do
    insmod "/modules/$module" || echo "init: cannot load $module"
done </modules/order
mount -t configfs configfs /sys/kernel/config 2>/dev/null

ip link set lo up
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip route add default via 10.0.2.2

# The console must not echo what the harness answers.
stty -echo

if sh -eu /test.sh; then
    echo "@passed"
else
    dmesg | tail -n 40
    echo "@failed"
fi
# -f: no other process remains to be ended.
poweroff -f
