//! Options on features of the device: atomic writes, write streams, preconditioning.

use super::general::choice;
use super::read::narrow;
use super::row::{Row, ValueKind};
use crate::device::{DataPlacement, StreamChoice};
use crate::findings::Findings;
use crate::plan::Options;
use crate::problem::{Piece, Problem};
use crate::reading;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "atomic",
        "0",
        "Store each write whole or not at all (RWF_ATOMIC)",
        "atomic=1",
        ValueKind::Bool(|o, v| o.device.atomic = v),
    )
    .stricter(
        "flags a job whose engine, `direct`, block size or alignment excludes atomic writes, and \
         a file whose storage has none or not of this size",
    ),
    Row::new(
        "dataplacement",
        "none",
        "Mark writes with streams of the device (block devices: Linux 6.16)",
        "dataplacement=fdp",
        ValueKind::Choice(&[
            choice("none", "no", |o| {
                o.device.data_placement = Some(DataPlacement::None);
            }),
            choice("fdp", "flexible data placement of NVMe", |o| {
                o.device.data_placement = Some(DataPlacement::Fdp);
            }),
            choice(
                "streams",
                "same as `fdp`, but not with `io_uring_cmd`",
                |o| o.device.data_placement = Some(DataPlacement::StreamsDirective),
            ),
        ]),
    )
    .aliases(&["data_placement"])
    .stricter(
        "flags engines other than `io_uring` and `io_uring_cmd`, buffered writes, and a device \
         without write streams",
    ),
    Row::new(
        "fdp",
        "0",
        "Same as `dataplacement=fdp`",
        "fdp=1",
        ValueKind::Bool(|o, v| o.device.fdp = v),
    )
    .stricter("as `dataplacement`"),
    Row::new(
        "plids",
        "all",
        "Placement identifiers of the streams, from 0",
        "plids=0-2,5",
        ValueKind::Special {
            form: "comma-separated numbers and ranges from 0 to 254",
            read: placement,
        },
    )
    .aliases(&["fdp_pli"]),
    Row::new(
        "plid_select",
        "roundrobin",
        "Stream of the next write",
        "plid_select=random",
        ValueKind::Choice(&[
            choice("roundrobin", "the next one", |o| {
                o.device.stream_choice = StreamChoice::RoundRobin;
            }),
            choice("random", "drawn", |o| {
                o.device.stream_choice = StreamChoice::Random;
            }),
            choice("scheme", "by its offset, as `dp_scheme` says", |o| {
                o.device.stream_choice = StreamChoice::Scheme;
            }),
        ]),
    )
    .aliases(&["fdp_pli_select"])
    .stricter("flags `scheme` without its file, and with `io_uring`"),
    Row::new(
        "dp_scheme",
        "",
        "File with lines `start,end,identifier`: `plid_select=scheme` places a write by the first \
         line whose range of bytes its offset is in, and under 0 if there is none",
        "dp_scheme=zones.scheme",
        ValueKind::Text(|o, text| o.device.scheme = Some(text.to_owned())),
    )
    .different("up to 1024 lines (fio: 32) are read; flags a line that fio would stop at"),
    Row::new(
        "block_error_percentiles",
        "0",
        "Report the trims that blocks survived before a write or trim of them failed",
        "block_error_percentiles=1",
        ValueKind::Bool(|o, v| o.device.block_errors = v),
    )
    .different(
        "a block has the size of a trim (the smallest of a range) and keeps its state after a \
         failure; percentiles are those of the blocks that failed. fio 3.33 aborts",
    ),
    Row::new(
        "sprandom",
        "0",
        "Write the physical capacity of an SSD once, so that it ends in the steady state of random \
         writes",
        "sprandom=1",
        ValueKind::Bool(|o, v| o.device.sprandom = v),
    )
    .different(
        "each region outdates the share of its blocks that theory gives for a drive that collects \
         its oldest flash first; the order of the blocks is not fio's. Flags what has no meaning \
         beside it: other patterns than `rw=randwrite`, several block sizes, several files",
    ),
    Row::new(
        "spr_num_regions",
        "100",
        "Number of regions of `sprandom`",
        "spr_num_regions=200",
        ValueKind::Int {
            min: 2,
            max: REGIONS_MAX,
            set: |o, v| o.device.spr_num_regions = narrow(v),
        },
    )
    .stricter("flags fewer than 2, of which none could be written again, and more than 1048576"),
    Row::new(
        "spr_op",
        "0.15",
        "Over-provisioning of the drive for `sprandom`, as a share of its capacity",
        "spr_op=0.28",
        ValueKind::Special {
            form: "number above 0, at most 1",
            read: over_provisioning,
        },
    )
    .stricter("flags lists and numbers beyond 1"),
    Row::new(
        "spr_cs",
        "0",
        "Write cache of the drive, bytes; `sprandom` writes no block again before it has left it",
        "spr_cs=1g",
        ValueKind::Int {
            min: 0,
            max: u64::MAX,
            set: |o, v| o.device.spr_cs = v,
        },
    )
    .stricter("flags regions smaller than twice the cache"),
];

/// Reads `plids`.
fn placement(options: &mut Options, text: &str, _findings: &mut Findings) -> Result<(), Problem> {
    let mut ids = Vec::new();
    for piece in Piece::new(text).split(&[',']) {
        let (low, high) = piece
            .text
            .split_once('-')
            .unwrap_or((piece.text, piece.text));
        match (low.trim().parse::<u8>(), high.trim().parse::<u8>()) {
            (Ok(low), Ok(high)) if low <= high && high < u8::MAX => ids.extend(low..=high),
            _ => {
                let why = format!("`{}` is not a placement identifier or range", piece.text);
                let problem = Problem::new("bad-value", piece.range(), why);
                return Err(problem.fix("write numbers from 0 to 254, as in `plids=0-2,5`"));
            }
        }
    }
    options.device.placement = ids;
    Ok(())
}

/// Reads `spr_op`.
fn over_provisioning(
    options: &mut Options,
    text: &str,
    _findings: &mut Findings,
) -> Result<(), Problem> {
    let plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let share = text.bytes().all(plain).then(|| reading::float(text));
    match share.flatten() {
        Some(share) if share > 0.0 && share <= 1.0 => {
            options.device.spr_op = share;
            Ok(())
        }
        _ => {
            let why = format!("`{text}` is not a share above 0 and at most 1");
            Err(Problem::new("bad-value", 0..text.len(), why).fix("write 15 % as `spr_op=0.15`"))
        }
    }
}

/// Limit of a table with 24 bytes for each.
const REGIONS_MAX: u64 = 1 << 20;
