//! Options on I/O priorities and the I/O scheduler.

use fathom_core::{Direction, IoPriority, PerDirection};

use super::read::{byte, up_to_three};
use super::row::{Row, ValueKind};
use crate::findings::Findings;
use crate::number;
use crate::plan::{Options, PriorityShare};
use crate::problem::{Piece, Problem};
use crate::reading;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "prio",
        "",
        "I/O priority level within the class; 0: highest",
        "prio=4",
        ValueKind::Int {
            min: 0,
            max: LEVEL_MAX,
            set: |o, v| o.prio = Some(byte(v)),
        },
    ),
    Row::new(
        "prioclass",
        "",
        "I/O priority class; 1: real-time, 2: best-effort, 3: idle",
        "prioclass=2",
        ValueKind::Int {
            min: 0,
            max: 3,
            set: |o, v| o.prioclass = Some(byte(v)),
        },
    ),
    Row::new(
        "priohint",
        "",
        "I/O priority hint (device-specific)",
        "priohint=1",
        ValueKind::Int {
            min: 0,
            max: HINT_MAX,
            set: |o, v| o.priohint = Some(hint(v)),
        },
    ),
    Row::new(
        "cmdprio_percentage",
        "0",
        "Percentage of ops with the priority of `cmdprio_class` and `cmdprio`",
        "cmdprio_percentage=30",
        ValueKind::PerDirection {
            min: 0,
            max: 100,
            set: |o, values| set(&mut o.cmdprio_percentage, values, byte),
        },
    )
    .only_with(|engine| engine.op_priorities),
    Row::new(
        "cmdprio_class",
        "1",
        "Priority class of those ops; 1: real-time, 2: best-effort, 3: idle",
        "cmdprio_class=2",
        ValueKind::PerDirection {
            min: 1,
            max: 3,
            set: |o, values| set(&mut o.cmdprio_class, values, byte),
        },
    )
    .only_with(|engine| engine.op_priorities),
    Row::new(
        "cmdprio",
        "0",
        "Priority level of those ops within the class; 0: highest",
        "cmdprio=3",
        ValueKind::PerDirection {
            min: 0,
            max: LEVEL_MAX,
            set: |o, values| set(&mut o.cmdprio, values, byte),
        },
    )
    .only_with(|engine| engine.op_priorities),
    Row::new(
        "cmdprio_hint",
        "0",
        "Priority hint of those ops (device-specific)",
        "cmdprio_hint=1",
        ValueKind::PerDirection {
            min: 0,
            max: HINT_MAX,
            set: |o, values| set(&mut o.cmdprio_hint, values, hint),
        },
    )
    .only_with(|engine| engine.op_priorities),
    Row::new(
        "cmdprio_bssplit",
        "",
        "Percentage of ops with a priority of their own, by block size",
        "cmdprio_bssplit=4k/30/1/0:64k/100/3/7",
        ValueKind::Special {
            form: "bs/percent[/class/level[/hint]]:…; comma-separated for read,write,trim",
            read: bssplit,
        },
    )
    .only_with(|engine| engine.op_priorities)
    .different(
        "class 0 is refused; under the name `fathom`, entries without a percentage and invalid \
         classes or levels are refused too",
    ),
    Row::new(
        "ioscheduler",
        "",
        "I/O scheduler to set on the devices below the job's files; not restored",
        "ioscheduler=mq-deadline",
        ValueKind::Text(|o, text| o.ioscheduler = Some(text.to_owned())),
    )
    .different("a scheduler unknown to the device and to Linux is refused before any job starts"),
];

fn set<T>(option: &mut PerDirection<T>, values: PerDirection<Option<u64>>, narrow: fn(u64) -> T) {
    for direction in Direction::ALL {
        if let Some(value) = values[direction] {
            option[direction] = narrow(value);
        }
    }
}

fn hint(value: u64) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

fn bssplit(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let kb_base = options.kb_base;
    let whole = Piece::new(text);
    let mut text = text;
    if let Some(fourth) = whole.split(&[',']).get(3) {
        let why = "more than three lists (read,write,trim)";
        let problem = Problem::new("too-many-values", fourth.range(), why).fix("remove it");
        findings.misread(problem, reading::NOTHING)?;
        text = &text[..fourth.at - 1];
    }
    let lists = up_to_three(text, "lists", |piece| one_list(piece, kb_base, findings));
    options.cmdprio_bssplit = lists
        .map_err(Problem::when_run)?
        .map(Option::unwrap_or_default);
    Ok(())
}

/// Reads `bs/percent[/class/level[/hint]]:…` of one direction.
fn one_list(
    piece: Piece<'_>,
    kb_base: u64,
    findings: &mut Findings,
) -> Result<Vec<PriorityShare>, Problem> {
    let mut list: Vec<PriorityShare> = Vec::new();
    for entry in piece.split(&[':']) {
        let parts = entry.split(&['/']);
        let percent = parts.get(1).map_or("", |percent| percent.text.trim());
        if !percent.starts_with(|digit: char| digit.is_ascii_digit()) && parts.len() < 3 {
            // fio's percentage is then 0: no op gets a priority.
            findings.misread(bad_entry(entry), reading::NOTHING)?;
            continue;
        }
        let share = one_entry(entry, kb_base, findings)?;
        let of_size = list.iter().filter(|known| known.bytes == share.bytes);
        let given: u32 = of_size.map(|known| u32::from(known.percent)).sum();
        let total = given + u32::from(share.percent);
        if total > 100 {
            let why = format!(
                "the percentages for a block size of {} B add up to {total}",
                share.bytes
            );
            return Err(Problem::new("bad-split", entry.range(), why)
                .fix("lower them to a total of at most 100"));
        }
        list.push(share);
    }
    Ok(list)
}

fn one_entry(
    entry: Piece<'_>,
    kb_base: u64,
    findings: &mut Findings,
) -> Result<PriorityShare, Problem> {
    let parts = entry.split(&['/']);
    let (size, percent, priority) = match *parts.as_slice() {
        [size, percent] => (size, percent, None),
        [size, percent, class, level] => (size, percent, Some((class, level, None))),
        [size, percent, class, level, hint] => (size, percent, Some((class, level, Some(hint)))),
        [size, percent, class, level, hint, ..] => {
            findings.misread(bad_entry(entry), "its first five parts")?;
            (size, percent, Some((class, level, Some(hint))))
        }
        _ => return Err(bad_entry(entry)),
    };
    let bytes = number::read_part(size, kb_base, 1, u64::MAX, findings)?;
    // fio reduces values that are too large.
    let mut number = |piece: Piece<'_>, min, max| {
        let fio =
            || Some(reading::count(piece.text.trim(), kb_base)?.min(max)).filter(|n| *n >= min);
        findings.documented_or_fio_value(|f| number::counted(piece, kb_base, min, max, f), fio)
    };
    let percent = byte(number(percent, 0, 100)?);
    let priority = match priority {
        None => None,
        Some((class, level, spoken)) => Some(IoPriority {
            class: byte(number(class, 1, 3)?),
            level: byte(number(level, 0, LEVEL_MAX)?),
            hint: match spoken {
                None => 0,
                Some(spoken) => hint(number(spoken, 0, HINT_MAX)?),
            },
        }),
    };
    Ok(PriorityShare {
        bytes,
        percent,
        priority,
    })
}

fn bad_entry(entry: Piece<'_>) -> Problem {
    let why = format!(
        "`{}` is not a size, a percentage and a priority",
        entry.text
    );
    Problem::new("bad-split", entry.range(), why).fix("write it like `4k/60` or `4k/60/2/3`")
}

/// Limits of <linux/ioprio.h>: three bits of level, ten bits of hint.
const LEVEL_MAX: u64 = 7;
const HINT_MAX: u64 = 1023;
