use super::*;
use crate::fixture::FakeHost;

#[test]
fn a_mount_line_is_taken_apart() {
    let line = r"36 35 98:0 /r /mnt/a\040b rw master:1 propagate_from:2 - ext3 /dev/sda1 rw";
    let mount = Mount::parse(line).unwrap();
    assert_eq!(mount.device.to_string(), "98:0");
    assert_eq!(mount.point, Path::new("/mnt/a b"));
    assert_eq!(mount.filesystem, "ext3");
    assert_eq!(mount.source, "/dev/sda1");
    for broken in ["", "36 35", "36 35 98 / / rw - ext3 x rw", "36 35 98:0 / /"] {
        assert_eq!(Mount::parse(broken), None, "{broken}");
    }
}

#[test]
fn escapes_are_undone_and_nothing_else() {
    for (text, want) in [
        (r"a\040b", "a b"),
        (r"a\134b", r"a\b"),
        (r"a\", r"a\"),
        (r"a\04", r"a\04"),
        (r"\999x", r"\999x"),
        ("é", "é"),
    ] {
        assert_eq!(unescape(text), want, "{text}");
    }
}

#[test]
fn the_longest_and_last_mount_wins() {
    let mount = |line: &str| Mount::parse(line).unwrap();
    let mounts = [
        mount("1 0 8:1 / / rw - ext4 /dev/sda1 rw"),
        mount("2 1 8:2 / /home rw - ext4 /dev/sda2 rw"),
        mount("3 1 8:3 / /home rw - xfs /dev/sda3 rw"),
    ];
    let on = |path: &str| mount_of(Path::new(path), &mounts).unwrap().device.minor;
    assert_eq!(on("/home/x"), 3);
    assert_eq!(on("/homely"), 1);
    assert_eq!(mount_of(Path::new("/x"), &mounts[1..]), None);
}

#[test]
fn partitions_parents_holders_and_slaves_are_found() {
    let fake = FakeHost::new("family");
    fake.device("sda", "8:0")
        .device("sda/sda1", "8:1")
        .device("dm-0", "253:0")
        .stack("dm-0", "sda/sda1");
    let tree = fake.tree();
    let disk = tree.named("sda").unwrap();
    assert_eq!(disk.whole_disk(), disk);
    let [partition] = &disk.partitions()[..] else {
        panic!("one partition expected");
    };
    assert_eq!(partition.name, "sda1");
    assert_eq!(partition.whole_disk(), disk);
    let [holder] = &partition.holders()[..] else {
        panic!("one holder expected");
    };
    assert_eq!(holder.number.to_string(), "253:0");
    assert_eq!(holder.slaves(), std::slice::from_ref(partition));
    assert_eq!(tree.device(holder.number), Some(holder.clone()));
    assert_eq!(tree.named("sdb"), None);
}

#[test]
fn scsi_disks_are_known_by_the_bus_of_their_device() {
    let fake = FakeHost::new("scsi");
    fake.device("sda", "8:0")
        .device("sda/sda1", "8:1")
        .device("vda", "254:0")
        .bus("sda", "scsi")
        .bus("vda", "virtio");
    let is_scsi = |name| fake.tree().named(name).unwrap().is_scsi_disk();
    assert!(is_scsi("sda") && !is_scsi("sda1") && !is_scsi("vda"));
}

#[test]
fn this_machine_has_a_root() {
    let mounts = BlockTree::default().mounts();
    assert!(mount_of(Path::new("/"), &mounts).is_some());
}
