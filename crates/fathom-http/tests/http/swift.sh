#!/bin/sh
# Runs Swift in a folder: memcached, account, container, object and proxy server, one process each,
# with tempauth and the S3 interface, for the user test:tester with the key testing. Ends them when
# its standard input ends.
#
#   swift.sh FOLDER PORT        the proxy listens on PORT, the others on the four ports after it
#
# No test starts it yet. A bucket needs a name of three letters or more. Needs Debian's swift-proxy, swift-account, swift-container, swift-object and memcached.
set -eu
folder=$1 port=$2
cd "$folder"
mkdir -p etc disk/d1

ring() { # NAME PORT
    swift-ring-builder "etc/$1.builder" create 2 1 0 >/dev/null
    swift-ring-builder "etc/$1.builder" add "r1z1-127.0.0.1:$2/d1" 1 >/dev/null
    swift-ring-builder "etc/$1.builder" rebalance >/dev/null
}

server() { # NAME PORT
    cat >"etc/$1.conf" <<CONF
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = $2
workers = 0
user = $(id -un)
swift_dir = $folder/etc
devices = $folder/disk
mount_check = false
log_level = ERROR
[pipeline:main]
pipeline = $1-server
[app:$1-server]
use = egg:swift#$1
CONF
    "swift-$1-server" "etc/$1.conf" >"$1.log" 2>&1 &
    started="$started $!"
}

ring account $((port + 1))
ring container $((port + 2))
ring object $((port + 3))
started=
trap 'kill $started 2>/dev/null; wait' EXIT
memcached -l 127.0.0.1 -p $((port + 4)) -u "$(id -un)" -m 16 &
started=$!
server account $((port + 1))
server container $((port + 2))
server object $((port + 3))
cat >etc/proxy.conf <<CONF
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = $port
workers = 0
user = $(id -un)
swift_dir = $folder/etc
log_level = ERROR
[pipeline:main]
pipeline = catch_errors cache s3api tempauth proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:$((port + 4))
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
CONF
swift-proxy-server etc/proxy.conf >proxy.log 2>&1 &
started="$started $!"
cat >/dev/null
