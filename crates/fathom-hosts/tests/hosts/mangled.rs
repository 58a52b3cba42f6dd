//! Messages with bytes changed, cut or added: refused, or read as what they now say.

use fathom_core::{Nanos, Tick};
use fathom_hosts::{
    Checks, CommonTime, FileKey, Message, Order, Progress, Report, Stage, Start, StopReason, Text,
    Wave,
};
use proptest::prelude::*;
use proptest::sample::Index;

/// Returns a message of each shape.
fn messages() -> Vec<Message> {
    let checks = Checks::new(
        &["no space\nhint: delete".to_owned(), "é".to_owned()],
        vec![FileKey::new(7), FileKey::new(u64::MAX)],
    );
    let stages = [
        Stage::Checked(checks.expect("two files")),
        Stage::Running(Wave::new(2)),
        Stage::Failed(Text::new("ä disk is full")),
        Stage::Through { code: 1 },
    ];
    let start = Start {
        wave: Wave::new(1),
        at: Tick::new(1 << 50),
        bound: Nanos::new(300),
        origin: Tick::new(1 << 49),
    };
    let others = vec![0, 3, 4_000];
    let orders = [
        Order::LayOut { others },
        Order::Start(start),
        Order::Stop(StopReason::ExitAll),
    ];
    let reports = stages.into_iter().map(|stage| {
        Message::Report(Report {
            stage,
            wants_stop: Some(StopReason::Requested),
            wants_end: None,
            progress: Progress::default(),
        })
    });
    let at = Tick::new(5);
    let time = CommonTime {
        at,
        common_ns: 1 << 60,
        bound: Nanos::new(300),
        drift_ppb: Some(-50_000),
    };
    reports
        .chain(orders.into_iter().map(Message::Order))
        .chain([
            Message::Ping {
                token: 3,
                more: true,
            },
            Message::Pong { token: 3, at },
        ])
        .chain([Message::Clock(time)])
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_accepted_is_written_as_it_was_read(
        message in prop::sample::select(messages()),
        changes in prop::collection::vec((any::<Index>(), any::<u8>()), 0..4),
        keep in prop::option::of(any::<Index>()),
        more in prop::collection::vec(any::<u8>(), 0..3),
    ) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Some(keep) = keep {
            bytes.truncate(keep.index(bytes.len()));
        }
        bytes.extend(more);
        match Message::decode(&bytes) {
            Ok(message) => {
                let mut written = Vec::new();
                message.encode(&mut written);
                prop_assert_eq!(written, bytes);
            }
            Err(error) => {
                prop_assert!(error.byte <= bytes.len());
                prop_assert!(!error.to_string().contains(char::is_control));
            }
        }
    }
}
