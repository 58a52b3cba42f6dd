//! Rows of `cargo xtask bench nvme`.

use super::super::row::{Check, Figure, Measure, Method, On, Row};
use super::trial::{Ends, Exchange, Host, Nvme, Shape, Target};

/// All rows of this group. Programs sleep in their sockets unless a row says that they poll.
pub(crate) const ROWS: &[Row] = &[
    initiator(
        "4k",
        "4k randread, null, depth 32, one queue",
        READ_4K,
        IOPS_75,
    ),
    target("4k-target", READ_4K, IOPS_75),
    initiator(
        "4k-polled",
        "4k randread, null, depth 32, one queue, busy polling",
        polled(READ_4K),
        IOPS_75,
    ),
    target("4k-polled-target", polled(READ_4K), IOPS_75),
    initiator(
        "128k",
        "128k randread, null, depth 32, one queue",
        READ_128K,
        BANDWIDTH_85,
    ),
    target("128k-target", READ_128K, BANDWIDTH_85),
    initiator(
        "128k-polled",
        "128k randread, null, depth 32, one queue, busy polling",
        polled(READ_128K),
        BANDWIDTH_85,
    ),
    target("128k-polled-target", polled(READ_128K), BANDWIDTH_85),
    initiator(
        "depth-1",
        "4k randread, null, depth 1",
        DEPTH_1,
        LATENCY_130,
    ),
    target("depth-1-target", DEPTH_1, LATENCY_130),
    initiator(
        "depth-1-polled",
        "4k randread, null, depth 1, busy polling",
        polled(DEPTH_1),
        LATENCY_130,
    ),
    target("depth-1-polled-target", polled(DEPTH_1), LATENCY_130),
    initiator(
        "write",
        "4k randwrite in the capsule, null, depth 32",
        WRITE_4K,
        IOPS_70,
    ),
    target("write-target", WRITE_4K, IOPS_70),
    initiator(
        "write-polled",
        "4k randwrite in the capsule, null, depth 32, busy polling",
        polled(WRITE_4K),
        IOPS_70,
    ),
    target("write-polled-target", polled(WRITE_4K), IOPS_70),
    // Initiators send as much as they may in the capsule: only the bare loop asks for an R2T.
    bare(
        "r2t-target",
        "4k randwrite by R2T, null, depth 32",
        R2T_4K,
        IOPS_70,
    ),
    bare(
        "r2t-polled-target",
        "4k randwrite by R2T, null, depth 32, busy polling",
        polled(R2T_4K),
        IOPS_70,
    ),
    paced(
        "buffers-32",
        "128k randread, memory, 4 queues of depth 64, busy polling, 32 buffers",
        MEMORY_32,
    ),
    paced(
        "auto",
        "128k randread, memory, 4 queues of depth 64, busy polling, pacing auto",
        MEMORY_AUTO,
    ),
    auto(
        "auto-memory-1",
        "memory, one queue of depth 1",
        1,
        1,
        MEMORY,
    ),
    auto(
        "auto-memory-32",
        "memory, one queue of depth 32",
        1,
        32,
        MEMORY,
    ),
    auto(
        "auto-memory-256",
        "memory, 4 queues of depth 64",
        4,
        64,
        MEMORY,
    ),
    auto("auto-null-1", "null, one queue of depth 1", 1, 1, NULL_KIND),
    auto(
        "auto-null-32",
        "null, one queue of depth 32",
        1,
        32,
        NULL_KIND,
    ),
    auto(
        "auto-null-256",
        "null, 4 queues of depth 64",
        4,
        64,
        NULL_KIND,
    ),
    row(
        "idle",
        "1,000 idle connections, queue depth 128",
        Nvme::Idle { connections: 1000 },
        &[
            limit(Measure::Resident, "without", 64.0),
            limit(Measure::Processor, "without", 1.0),
        ],
    ),
    row(
        "join",
        "a host connects and reads, target at full load",
        Nvme::Join,
        &[limit(Measure::Join, "at rest", 100.0)],
    ),
];

const fn row(name: &'static str, what: &'static str, nvme: Nvme, checks: &'static [Check]) -> Row {
    Row {
        name,
        what,
        method: Method::Nvme(nvme),
        job: &[],
        on: On::Nothing,
        checks,
    }
}

/// Target and initiator beside the floor.
const fn initiator(
    name: &'static str,
    what: &'static str,
    exchange: Exchange,
    checks: &'static [Check],
) -> Row {
    row(name, what, beside_floor(exchange, Host::Fathom), checks)
}

/// The exchange of the row before, with the bare loop as host on both sides: the initiator's own
/// cost does not hide the target's.
const fn target(name: &'static str, exchange: Exchange, checks: &'static [Check]) -> Row {
    bare(
        name,
        "the same with the bare loop as host, beside either target",
        exchange,
        checks,
    )
}

const fn bare(
    name: &'static str,
    what: &'static str,
    exchange: Exchange,
    checks: &'static [Check],
) -> Row {
    row(name, what, beside_floor(exchange, Host::Bare), checks)
}

const fn beside_floor(exchange: Exchange, host: Host) -> Nvme {
    Nvme::Beside {
        exchange,
        other: Ends {
            target: Target::Floor,
            host: Host::Bare,
        },
        fathom: Ends {
            target: Target::Fathom(NULL),
            host,
        },
    }
}

/// A paced target beside one whose buffers are not limited.
const fn paced(name: &'static str, what: &'static str, options: &'static [&'static str]) -> Row {
    let nvme = Nvme::Beside {
        exchange: Exchange {
            warm_up: Some(SEARCH_SECONDS),
            ..polled(read_128k(4, 64))
        },
        other: bare_host(MEMORY_UNLIMITED),
        fathom: bare_host(options),
    };
    row(
        name,
        what,
        nvme,
        &[Check {
            measure: Measure::Bandwidth,
            beside: "unlimited",
            figure: Figure::AtLeast(1.15),
        }],
    )
}

/// Pacing that finds its own limit beside the best fixed setting.
const fn auto(name: &'static str, what: &'static str, queues: u32, depth: u32, kind: Kind) -> Row {
    let nvme = Nvme::BestFixed {
        exchange: Exchange {
            warm_up: Some(SEARCH_SECONDS),
            ..polled(read_128k(queues, depth))
        },
        settings: kind.fixed,
        paced: bare_host(kind.auto),
    };
    row(
        name,
        what,
        nvme,
        &[Check {
            measure: Measure::Bandwidth,
            beside: "best fixed",
            figure: Figure::AtLeast(0.97),
        }],
    )
}

/// Target with these options, and the bare loop as host.
pub(crate) const fn bare_host(options: Options) -> Ends {
    Ends {
        target: Target::Fathom(options),
        host: Host::Bare,
    }
}

const fn polled(exchange: Exchange) -> Exchange {
    Exchange {
        is_polled: true,
        ..exchange
    }
}

const fn read_128k(queues: u32, depth: u32) -> Exchange {
    Exchange {
        shape: Shape::Read,
        bytes: 128 << 10,
        depth,
        queues,
        warm_up: None,
        is_polled: false,
    }
}

const fn limit(measure: Measure, beside: &'static str, most: f64) -> Check {
    Check {
        measure,
        beside,
        figure: Figure::Limit(most),
    }
}

const fn at_least(measure: Measure, ratio: f64) -> Check {
    Check {
        measure,
        beside: "floor",
        figure: Figure::AtLeast(ratio),
    }
}

/// Time in which `auto` finds its limit after a change of the load.
const SEARCH_SECONDS: u32 = 2;
const IOPS_75: &[Check] = &[at_least(Measure::Iops, 0.75)];
const IOPS_70: &[Check] = &[at_least(Measure::Iops, 0.7)];
const BANDWIDTH_85: &[Check] = &[at_least(Measure::Bandwidth, 0.85)];
const LATENCY_130: &[Check] = &[Check {
    measure: Measure::MeanLatency,
    beside: "floor",
    figure: Figure::AtMost(1.3),
}];

const READ_4K: Exchange = Exchange {
    shape: Shape::Read,
    bytes: 4096,
    depth: 32,
    queues: 1,
    warm_up: None,
    is_polled: false,
};
const READ_128K: Exchange = read_128k(1, 32);
const DEPTH_1: Exchange = Exchange {
    depth: 1,
    ..READ_4K
};
const WRITE_4K: Exchange = Exchange {
    shape: Shape::Capsule,
    ..READ_4K
};
const R2T_4K: Exchange = Exchange {
    shape: Shape::ReadyToTransfer,
    ..READ_4K
};

/// Options of `fathom target`.
pub(crate) type Options = &'static [&'static str];

/// Settings of one kind of namespace.
#[derive(Clone, Copy)]
struct Kind {
    fixed: &'static [Options],
    auto: Options,
}

pub(crate) const NULL: Options = &["--null", "8G"];
const MEMORY_UNLIMITED: Options = &["--memory", "1G", "--pacing", "none"];
const MEMORY_32: Options = &["--memory", "1G", "--buffers", "32"];
const MEMORY_AUTO: Options = &["--memory", "1G", "--pacing", "auto"];
const MEMORY: Kind = Kind {
    fixed: &[
        MEMORY_UNLIMITED,
        &["--memory", "1G", "--buffers", "96"],
        &["--memory", "1G", "--buffers", "48"],
        MEMORY_32,
        &["--memory", "1G", "--buffers", "16"],
        &["--memory", "1G", "--buffers", "8"],
    ],
    auto: MEMORY_AUTO,
};
const NULL_KIND: Kind = Kind {
    fixed: &[
        &["--null", "8G", "--pacing", "none"],
        &["--null", "8G", "--buffers", "96"],
        &["--null", "8G", "--buffers", "32"],
        &["--null", "8G", "--buffers", "16"],
    ],
    auto: &["--null", "8G", "--pacing", "auto"],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (index, row) in ROWS.iter().enumerate() {
            let mut earlier = ROWS[..index].iter();
            assert!(earlier.all(|other| other.name != row.name), "{}", row.name);
        }
    }
}
