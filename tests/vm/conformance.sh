# The conformance suites of io_uring_cmd and sg in the settings that `passthrough` and `sg` leave out: with
# protection information, and on a SCSI disk's block and bsg nodes.
#
# test: conformance suites with protection information, and on block and bsg nodes
# long: runs each suite twice more, for half a minute
# vm: --nvme ms=8,pi=1 --test passthrough
# vm: --scsi-debug dev_size_mb=32,lbpu=1,lbpws=1,lbpws10=1,write_same_length=256,unmap_max_desc=8 --test sg
. /guest.sh

step 'io_uring_cmd: protection information by the controller'
FATHOM_NVME=/dev/ng0n1 FATHOM_NVME_OPTIONS=pi_chk=GUARD+APPTAG+REFTAG passthrough-tests -q
step 'io_uring_cmd: protection information by the host'
FATHOM_NVME=/dev/ng0n1 FATHOM_NVME_OPTIONS=pi_act=0,md_per_io_size=64,pi_chk=GUARD+REFTAG \
    passthrough-tests -q

for node in /dev/sda /dev/bsg/*:0:0:0; do
    step "sg: $node"
    FATHOM_SG=$node sg-tests -q
done
