//! State of an invented target, shown.

use fathom_record::{EventsRecord, PacerRecord, TARGET_VERSION};

use super::*;

/// Target of one thread with one connection, of which nothing is zero.
pub(crate) fn example() -> TargetRecord {
    let commands = CommandsRecord {
        reads: 4000,
        read_bytes: 4000 << 12,
        writes: 100,
        written_bytes: 100 << 17,
        others: 5,
        errors: 2,
        digest_errors: 1,
    };
    TargetRecord {
        version: TARGET_VERSION,
        timestamp_ms: 1_700_000_000_000,
        uptime_ns: 2 * NS_PER_S,
        pid: 4711,
        listen: vec!["127.0.0.1:4420".into()],
        received_bytes: 14 << 20,
        sent_bytes: 17 << 20,
        commands,
        buffers: BuffersRecord {
            count: Some(32),
            buffer_bytes: 131_072,
            in_use: 3,
            pending: 2,
            policy: "rate".into(),
        },
        events: EventsRecord {
            accepted: 6,
            turned_away: 1,
            connected: 4,
            refused: 2,
            expired: 1,
            terminated: 1,
        },
        threads: vec![ThreadRecord {
            thread: 0,
            cpu: Some(1),
            connections: 1,
            turns: 5000,
            idle_turns: 100,
            receives: 2000,
            sends: 1900,
            commands,
            buffers_in_use: 3,
            in_use_bytes: 3 << 12,
            granted: 1 << 12,
            in_use_bytes_sum: 3 << 24,
            buffers_cached: 8,
            pending: 2,
            pending_total: 77,
            cache_hits: 900,
            pool_hits: 100,
            pacer: Some(PacerRecord {
                polls: 10_000,
                periods: 500,
                grants: 400,
                granted_bytes: 3 << 20,
                period_ns: 23_000,
                period_measured_ns: 24_500,
                limit_bytes: None,
                evidence: String::new(),
            }),
        }],
        namespaces: vec![NamespaceRecord {
            nqn: "nqn.2026-01.org.example:a".into(),
            nsid: 1,
            device: "8 GiB null".into(),
            commands,
        }],
        connections: vec![connection(commands)],
    }
}

fn connection(commands: CommandsRecord) -> ConnectionRecord {
    ConnectionRecord {
        thread: 0,
        peer: "127.0.0.1:50000".into(),
        nqn: "nqn.2026-01.org.example:a".into(),
        host_nqn: String::new(),
        cntlid: Some(1),
        qid: Some(2),
        in_flight: 4,
        commands,
        admin_commands: 0,
        received_bytes: 14 << 20,
        sent_bytes: 17 << 20,
    }
}

#[test]
fn state_is_shown_in_tables() {
    let want = "\
target 4711 on 127.0.0.1:4420, up 2 s
buffers: 3 of 32 in use, 128 KiB each, pacing rate
connections: 1 now, 6 accepted, 1 turned away at a limit
Connect: 4 succeeded, 2 refused; ended: 1 by a timer, 1 by a protocol error
rates: since the start

thread  CPU  conns  IOPS  MiB/s  in use  cached  from cache  pending  waited
     0    1      1  2052   14.1       3       8      90.0 %        2      77
pacer of thread 0: 400 grants, 3.0 MiB, 500 periods in 10000 polls
  period 23.00 us, measured 24.50 us

ns  IOPS  MiB/s  reads  writes  others  errors      device
subsystem nqn.2026-01.org.example:a
 1  2052   14.1   4000     100       5       2  8 GiB null

     connection  thread  ctrl  queue  in flight  IOPS  MiB/s  errors
host without a name
127.0.0.1:50000       0     1      2          4  2052   14.1       2
";
    assert_eq!(target_state(&example(), None), want);
}

#[test]
fn automatic_pacing_gives_its_evidence() {
    let mut record = example();
    let pacer = PacerRecord {
        limit_bytes: Some(3 << 20),
        evidence: "4000 MiB/s here, 3500 below".into(),
        ..PacerRecord::default()
    };
    record.threads[0].pacer = Some(pacer);
    let want = "pacer of thread 0: at most 3.00 MiB in flight\n  4000 MiB/s here, 3500 below\n";
    let text = target_state(&record, None);
    assert!(text.contains(want), "{text}");
}

#[test]
fn rates_are_those_of_the_interval() {
    let earlier = example();
    let mut record = example();
    record.uptime_ns += NS_PER_S / 2;
    record.threads[0].commands.reads += 1000;
    record.threads[0].commands.read_bytes += 1000 << 12;
    let text = target_state(&record, Some(&earlier));
    assert!(text.contains("rates: over the last 0.5 s"), "{text}");
    assert!(text.contains("     0    1      1  2000    7.8 "), "{text}");
    // A target that was restarted meanwhile has nothing in common.
    let text = target_state(&earlier, Some(&record));
    assert!(text.contains("rates: since the start"), "{text}");
}

#[test]
fn json_survives() {
    let record = example();
    let text = record.to_json().unwrap();
    assert_eq!(TargetRecord::from_json(&text).unwrap(), record);
    let later = text.replace("\"version\":1", "\"version\":2");
    assert!(TargetRecord::from_json(&later).is_err());
}

#[test]
fn busy_targets_fit_a_terminal() {
    let mut record = example();
    record.threads[0].pending_total = 123_456_789;
    record.threads[0].pacer = Some(PacerRecord {
        evidence: "1054 MiB/s here, 2832 MiB/s below, at 271 KiB, 1275 MiB/s above, at 1086 KiB; \
                   16 slow devices get 1/16 of it; 2 sweeps, 23 trials"
            .into(),
        ..PacerRecord::default()
    });
    let namespace = &mut record.namespaces[0];
    namespace.device = "1 TiB model + delay + fault".into();
    namespace.commands.reads = 12_345_678_901;
    namespace.commands.writes = 12_345_678_901;
    let mut connection = record.connections[0].clone();
    connection.peer = "192.168.100.100:50000".into();
    connection.host_nqn =
        "nqn.2014-08.org.nvmexpress:uuid:3d1219c7-c4c5-404a-aa1f-6d2a48adfda4".into();
    record.connections.resize(100, connection);
    let text = target_state(&record, None);
    let too_long = text.lines().find(|line| line.chars().count() > COLUMNS);
    assert_eq!(too_long, None, "{text}");
    assert!(text.ends_with("and 36 more; `--json` has all\n"), "{text}");
    assert_eq!(text.matches("host nqn.2014-08.org").count(), 1, "{text}");
}
