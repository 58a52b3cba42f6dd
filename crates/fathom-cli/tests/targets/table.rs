//! The expected outcome of each target under each kind of access.

/// One cell of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// The run succeeds, and changes nothing but the target.
    Ok,
    /// The run starts, fails with a message, and changes nothing.
    Fails,
    /// The run is refused with this text before anything happens.
    Refused(&'static str),
}

/// Columns, and the options of a run in each besides the job's name; `T` is the target.
pub(crate) const COLUMNS: &[(&str, &str)] = &[
    ("read", "--filename=T --rw=read --size=64k"),
    ("write", "--filename=T --rw=write --size=64k"),
    ("trim", "--filename=T --rw=trim --size=64k"),
    ("mmap", "--filename=T --ioengine=mmap --rw=write --size=64k"),
    ("layout", "--filename=T --rw=read --size=320k"),
    (
        "mem",
        "--filename=/dev/zero --rw=read --size=64k --mem=mmapshared:T",
    ),
    (
        "log",
        "--ioengine=null --rw=read --size=64k --write_iops_log=log",
    ),
    ("output", "--ioengine=null --rw=read --size=64k --output=T"),
    ("unlink", "--filename=T --rw=read --size=64k --unlink=1"),
];

/// `used`, `kernel`… are refusals; see [`want`].
pub(crate) const TABLE: &str = "
                 read   write  trim   mmap   layout mem    log    output unlink
file             ok     ok     ok     ok     ok     ok     ok     ok     ok
tmpfs file       ok     ok     ok     ok     ok     ok     ok     ok     ok
overlay file     ok     ok     ok     ok     ok     ok     ok     ok     ok
link             ok     ok     ok     ok     ok     ok     ok     ok     ok
dangling link    ok     ok     ok     ok     ok     ok     ok     ok     ok
link into /dev   nodev  nodev  nodev  nodev  nodev  nodev  nodev  nodev  nodev
directory        folder folder folder folder folder folder folder folder folder
pipe             seek   seek   seek   seek   seek   seek   ok     ok     seek
socket           seek   seek   seek   seek   seek   seek   socket socket seek
procfs file      kernel kernel kernel kernel kernel kernel kernel kernel kernel
sysfs file       kernel kernel kernel kernel kernel kernel kernel kernel kernel
null             fails  ok     fails  fails  fails  fails  ok     ok     fails
zero             ok     ok     fails  fails  ok     fails  ok     ok     ok
full             ok     fails  fails  fails  ok     fails  fails  fails  ok
urandom          ok     ok     fails  fails  ok     fails  ok     ok     ok
tty              unsafe unsafe unsafe unsafe unsafe unsafe fails  fails  unsafe
kmsg             unsafe unsafe unsafe unsafe unsafe unsafe unsafe unsafe unsafe
loop             ok     ok     ok     ok     ok     fails  block  block  ok
loop on tmpfs    ok     ok     ok     ok     ok     fails  block  block  ok
node by hand     ok     ok     ok     ok     ok     fails  block  block  ok
file of a loop   ok     ok     ok     ok     ok     ok     ok     ok     ok
zram             ok     ok     ok     ok     ok     fails  block  block  ok
mounted          ok     used   used   used   ok     used   block  block  ok
mounted by hand  ok     used   used   used   ok     used   block  block  ok
file of mounted  ok     used   used   used   used   used   used   used   used
second loop      ok     used   used   used   ok     used   block  block  ok
loop on mounted  ok     used   used   used   ok     used   block  block  ok
beneath mounted  ok     used   used   used   ok     used   block  block  ok
swap file        ok     used   used   used   used   used   used   used   used
swap device      ok     used   used   used   ok     used   block  block  ok
file of swap     ok     used   used   used   used   used   used   used   used
zram as swap     ok     used   used   used   ok     used   block  block  ok
";

/// Returns the expectation that a word of the table stands for.
pub(crate) fn want(word: &str) -> Want {
    Want::Refused(match word {
        "ok" => return Want::Ok,
        "fails" => return Want::Fails,
        "used" => "will not be written: ",
        "kernel" => "is an interface to the kernel",
        "unsafe" => ": it is ",
        "block" => "is a block device",
        "socket" => "is a socket",
        "nodev" => "would be stored in RAM",
        "folder" => "directory",
        "seek" => "no offsets",
        other => panic!("`{other}` stands for nothing"),
    })
}

/// Returns the rows: name, and a word for each column.
pub(crate) fn rows() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let rows = TABLE.lines().filter(|line| !line.is_empty()).skip(1);
    rows.map(|line| {
        (
            line[..NAME].trim(),
            line[NAME..].split_whitespace().collect(),
        )
    })
}

/// Width of the first column.
const NAME: usize = 17;

#[test]
fn every_row_has_a_cell_per_column() {
    let heads: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let first = TABLE.lines().find(|line| !line.is_empty()).unwrap();
    assert_eq!(first.split_whitespace().collect::<Vec<_>>(), heads);
    for (name, words) in rows() {
        assert_eq!(words.len(), heads.len(), "{name}");
        assert!(words.into_iter().map(want).count() > 0, "{name}");
    }
}
