//! Labs on modelled machines: what has no part in them, and what they cannot run.

use super::problems_of;

#[test]
fn a_modelled_machine_has_no_commands_and_services() {
    let text = r#"[lab]
name = "a"
machine = "m.toml"
[job]
filename = "x"
size = "1m"
[run]
pause = 1
before = "sync"
[service.s]
command = "true"
"#;
    let found = problems_of(text, &[]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains(":9:1: the machine is modelled: `run.before` has no effect"));
    assert!(found[1].contains("the machine is modelled: `service` has no part in it"));
}

#[test]
fn a_job_that_a_modelled_machine_cannot_run_is_refused_when_the_file_is_read() {
    let text = r#"[lab]
name = "a"
machine = "m.toml"
[job]
filename = "x"
rw = "read"
size = "800m"
ioengine = "null"
[variants]
small = {}
big = { size = "1800m", ioengine = "psync" }
two = { ioengine = "psync", machine = { "device.capacity_gib" = 0.5 } }
[judge]
baseline = "small"
"#;
    let want = [
        "f/lab.toml:8:12: `ioengine=null` has no device: there is nothing to model | name an \
         engine that does I/O, as `ioengine=libaio`",
        "f/m.toml:2:1: the files on it take 1800 MiB, and it holds 1024 MiB | raise \
         `capacity_gib`, or lower the jobs' `size`",
        "f/m.toml:2:1: the files on it take 800 MiB, and it holds 512 MiB | raise \
         `capacity_gib`, or lower the jobs' `size`",
    ];
    assert_eq!(problems_of(text, &[]), want);
}
