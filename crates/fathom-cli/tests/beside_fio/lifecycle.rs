//! Groups and lifecycle: what both make of them.

use crate::differences;
use crate::runs::both;

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
];

/// Neither takes these.
const REFUSED: &[&str] = &[
    "-ioengine=null --size=64k --name=t --wait_for=t",
    "-ioengine=null --size=64k --name=t --wait_for=nobody",
    "-ioengine=null --size=64k --name=t --name=t --name=u --wait_for=t",
    "-ioengine=null --size=64k --name=t --exit_what=nobody",
];

#[test]
fn groups_and_lifecycle_are_the_same() {
    let mut found = Vec::new();
    for line in AGREE {
        let Some([fio, ours]) = both(line, &[]) else {
            return;
        };
        found.extend(differences(line, &fio, &ours));
        if !ours.stderr.is_empty() {
            found.push(format!("{line}: standard error: {}", ours.stderr));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn what_fio_refuses_of_groups_is_refused() {
    for line in REFUSED {
        let Some([fio, ours]) = both(line, &[]) else {
            return;
        };
        let said = || format!("{line}: {}{}", ours.stdout, ours.stderr);
        assert_eq!((fio.code, ours.code), (Some(1), Some(1)), "{}", said());
        assert!(ours.files.is_empty(), "{line} left {:?}", ours.files);
    }
}
