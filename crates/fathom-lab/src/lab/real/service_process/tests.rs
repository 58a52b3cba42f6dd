use std::net::TcpListener;

use fathom_sys::clock::Clock;

use super::*;
use crate::lab_plan::RunSettings;

fn service(command: &str, ready: Option<Ready>) -> Service {
    Service {
        name: "s".into(),
        command: command.into(),
        ready,
        stats: None,
        arguments: Vec::new(),
    }
}

/// Starts a service with a limit, and returns it or the reason why it did not start.
fn started(limit: Nanos, service: &Service, stops: u32) -> Result<ServiceProcess, RunFailure> {
    let commands = Commands {
        run: &RunSettings::default(),
        search_path: &std::env::var_os("PATH").unwrap_or_default(),
        stops: &|| stops,
        clock: &Clock::monotonic(),
    };
    ServiceProcess::start_within(limit, service, &commands)
}

fn text(text: &str) -> Option<Ready> {
    Some(Ready::Text(text.into()))
}

#[track_caller]
fn refuse(limit: Nanos, service: &Service, want: &str) {
    match started(limit, service, 0) {
        Err(RunFailure::Failed(why)) => assert_eq!(why, want),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("started"),
    }
}

/// Beyond any start on a busy machine.
const LONG: Nanos = Nanos::from_secs(600);

#[test]
fn a_service_is_ready_when_it_says_so() {
    let up = service(
        "sh -c 'echo starting; echo UP >&2; exec sleep 1000'",
        text("UP"),
    );
    let process = started(LONG, &up, 0).unwrap();
    assert!(!process.is_over());
    let id = process.child.borrow().id();
    process.stop();
    assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
}

#[test]
fn a_port_counts_only_if_the_service_opens_it() {
    let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = other.local_addr().unwrap().port();
    assert!(accepts(port));
    let want = format!("service `s` cannot start: another program listens on port {port} already");
    refuse(LONG, &service("sleep 1000", Some(Ready::Port(port))), &want);
}

#[test]
fn a_service_that_ends_or_stays_silent_is_told_with_its_last_lines() {
    let ends = service("sh -c 'seq 9; echo no such device >&2; exit 3'", text("UP"));
    let want = "service `s` ended before it was ready with exit status: 3; its last lines: 8 / 9 / \
                no such device";
    refuse(LONG, &ends, want);
    let silent = service("sleep 1000", text("UP"));
    let want = "service `s` was not ready within 0 s; it printed nothing";
    refuse(Nanos::ZERO, &silent, want);
    // The pipe is full many times over, and the sign comes last.
    let loud = service(
        "sh -c 'head -c 1000000 /dev/zero; echo UP; exec sleep 1000'",
        text("UP"),
    );
    started(LONG, &loud, 0).unwrap().stop();
    let interrupted = started(LONG, &silent, 1);
    assert!(matches!(interrupted, Err(RunFailure::Interrupted)));
}
