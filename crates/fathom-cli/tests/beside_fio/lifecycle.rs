//! Groups and lifecycle: what both make of them.

use crate::{check_refused, check_same};

/// Each line is one run; words before the first `--name` hold for all jobs. Not here:
/// `group_reporting` in a later job of a group alone, for which fio adds an empty element.
const AGREE: &[&str] = &[
    "-ioengine=null --rw=read --size=64k --name=t --name=u --wait_for=t",
    "-ioengine=null --rw=read --size=64k --name=t --numjobs=2 --name=u --wait_for=t --stonewall",
    "-ioengine=null --rw=read --size=64k --exit_what=all --exitall_on_error --name=t",
    "-ioengine=null --rw=read --size=64k --exitall --exit_what=stonewall --name=t --name=u \
     --stonewall",
    "-ioengine=null --rw=read --size=64k --group_reporting --name=t --name=u --new_group \
     --numjobs=2",
    "-ioengine=null --rw=read --size=64k --number_ios=5 --loops=3 --name=t",
    "-ioengine=null --rw=read --size=64k --number_ios=5 --bsrange=4k-4k --name=t",
    "-ioengine=null --rw=read --size=64k --flow=2 --flow_id=1 --flow_sleep=10 --name=t",
    "-ioengine=null --rw=read --size=64k --max_latency=10s --name=t",
    "-ioengine=null --rw=read --size=64k --unified_rw_reporting=0 --name=t",
    "-ioengine=null --rw=write --size=64k --unified_rw_reporting=mixed --name=t",
    "-ioengine=null --rw=read --size=64k --unified_rw_reporting=both --name=t --name=u",
    "-ioengine=null --rw=read --size=64k --unified_rw_reporting=1 --group_reporting --name=t \
     --numjobs=2",
    "-ioengine=null --rw=read --size=64k --ss=iops_slope:5% --ss_dur=30 --ss_ramp=1 --name=t",
    "-ioengine=null --rw=read --size=64k --ignore_error=EIO:5,ENOSPC --error_dump=1 --name=t",
];

/// Neither takes these.
const REFUSED: &[&str] = &[
    "-ioengine=null --size=64k --name=t --wait_for=t",
    "-ioengine=null --size=64k --name=t --wait_for=nobody",
    "-ioengine=null --size=64k --name=t --name=t --name=u --wait_for=t",
    "-ioengine=null --size=64k --name=t --exit_what=nobody",
    "-ioengine=null --size=64k --name=t --ignore_error=ENOTHING",
    "-ioengine=null --size=64k --name=t --unified_rw_reporting=maybe",
    "-ioengine=null --size=64k --name=t --steadystate=cpu:5%",
];

#[test]
fn groups_and_lifecycle_are_the_same() {
    check_same(AGREE);
}

#[test]
fn what_fio_refuses_of_groups_is_refused() {
    check_refused(REFUSED, 1);
}
