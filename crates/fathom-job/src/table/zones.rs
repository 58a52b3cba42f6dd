//! Options on zones and on the share of random ops in parts of a file.

use fathom_core::PerDirection;

use super::general::choice;
use super::read::{byte, spread};
use super::row::{Row, ValueKind};
use crate::findings::Findings;
use crate::number;
use crate::plan::{Options, RandomDistribution};
use crate::problem::{Piece, Problem};
use crate::reading;
use crate::workload::{AccessZone, ZoneLength, ZoneMode};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "zonemode",
        "none",
        "Zone mode",
        "zonemode=strided",
        ValueKind::Choice(&[
            choice("none", "no zones", |o| o.zones.mode = ZoneMode::None),
            choice(
                "strided",
                "transfer `zonesize` bytes within `zonerange`, then skip `zoneskip`",
                |o| o.zones.mode = ZoneMode::Strided,
            ),
            choice("zbd", "zones of a zoned device", |o| {
                o.zones.mode = ZoneMode::Zbd;
            }),
        ]),
    )
    .different(
        "`zbd` needs a block device, or a namespace with `io_uring_cmd`, for which `direct` need \
         not be set; a zone has one write in flight. Trims pass conventional zones over, and a \
         replay whose writes are not at the write pointers ends with an error. With `strided`, \
         each file of a job has its own zones; fio counts the bytes of all files together. Random \
         ops go on in a zone that the end of the file cuts; in fio they may end the job there",
    ),
    Row::new(
        "zonesize",
        "",
        "Bytes to transfer per zone",
        "zonesize=1m",
        ValueKind::Int {
            min: 0,
            max: u64::MAX,
            set: |o, v| o.zones.size = v,
        },
    ),
    Row::new(
        "zonerange",
        "same as `zonesize`",
        "Zone length, bytes",
        "zonerange=4m",
        ValueKind::Int {
            min: 0,
            max: u64::MAX,
            set: |o, v| o.zones.range = v,
        },
    ),
    Row::new(
        "zoneskip",
        "0",
        "Gap between zones, bytes",
        "zoneskip=1m",
        ValueKind::Size {
            min: 0,
            set: |o, v| o.zones.skip = v,
        },
    )
    .different(
        "a percentage is refused; fio reads it as a huge byte count. With `zonemode=zbd`, a job \
         starts over at the end of its range, where fio may abort",
    ),
    Row::new(
        "zonecapacity",
        "0",
        "Writable bytes per zone, for `zonemode=zbd`",
        "zonecapacity=1m",
        ValueKind::Int {
            min: 0,
            max: u64::MAX,
            set: |o, v| o.zones.capacity = v,
        },
    )
    .different("only for a device without zones; a zoned one reports its own"),
    zbd(
        "read_beyond_wp",
        "Allow reads beyond the write pointer, for `zonemode=zbd`",
        "read_beyond_wp=1",
        |o, v| o.zones.reads_beyond = v,
    ),
    open_zones(
        "max_open_zones",
        "Open zones of all jobs together, maximum, for `zonemode=zbd`",
        "max_open_zones=8",
        |o, v| o.zones.open_max = count(v),
    ),
    open_zones(
        "job_max_open_zones",
        "Open zones per job, maximum, for `zonemode=zbd`",
        "job_max_open_zones=8",
        |o, v| o.zones.job_open_max = count(v),
    ),
    zbd(
        "ignore_zone_limits",
        "Ignore the device's limit of open zones, for `zonemode=zbd`",
        "ignore_zone_limits=1",
        |o, v| o.zones.ignores_device_limit = v,
    ),
    Row::new(
        "zone_reset_threshold",
        "",
        "Fraction of written blocks that triggers zone resets, for `zonemode=zbd`",
        "zone_reset_threshold=0.5",
        share(|o, text, findings| {
            share_ppm(text, findings).map(|ppm| o.zones.reset_threshold_ppm = ppm)
        }),
    ),
    Row::new(
        "zone_reset_frequency",
        "",
        "Zone resets per write, for `zonemode=zbd`",
        "zone_reset_frequency=0.1",
        share(|o, text, findings| {
            share_ppm(text, findings).map(|ppm| o.zones.reset_frequency_ppm = ppm)
        }),
    ),
    zbd(
        "recover_zbd_write_error",
        "Repair the write pointer after a write error, for `zonemode=zbd`",
        "recover_zbd_write_error=1",
        |o, v| o.zones.recovers = v,
    )
    .different(
        "refused for a job that ends with the failed write; any job that tolerates it goes on at \
         the pointer that the device reports",
    ),
    zbd(
        "write_zone_remainder",
        "Write the rest of a zone that is smaller than a block, for `zonemode=zbd`",
        "write_zone_remainder=1",
        |o, v| o.zones.writes_remainder = v,
    ),
    zbd(
        "zrwa",
        "Open zones with random write areas, to have several writes of a zone in flight, for \
         `zonemode=zbd`",
        "zrwa=1",
        |o, v| o.zones.areas = v,
    )
    .different("Fathom extension; needs `io_uring_cmd` and a device with such areas (ZRWA)"),
];

/// Creates the row of a boolean of `zonemode=zbd`.
const fn zbd(
    name: &'static str,
    help: &'static str,
    example: &'static str,
    set: fn(&mut Options, bool),
) -> Row {
    Row::new(name, "0", help, example, ValueKind::Bool(set))
}

/// Creates the row of a number of zones, likewise.
const fn open_zones(
    name: &'static str,
    help: &'static str,
    example: &'static str,
    set: fn(&mut Options, u64),
) -> Row {
    let kind = ValueKind::Int {
        min: 0,
        max: 4096,
        set,
    };
    Row::new(name, "0", help, example, kind)
}

/// Returns the kind of a number from 0 to 1.
const fn share(read: ShareReader) -> ValueKind {
    ValueKind::Special {
        form: "number from 0 to 1",
        read,
    }
}

/// Reads a share into the options.
type ShareReader = fn(&mut Options, &str, &mut Findings) -> Result<(), Problem>;

/// Reads a number from 0 to 1, in millionths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a million at most, and not negative"
)]
fn share_ppm(text: &str, findings: &mut Findings) -> Result<u32, Problem> {
    let within = |share: &f64| (0.0..=1.0).contains(share);
    let documented = |_: &mut Findings| {
        let share = text.trim().parse().ok().filter(within);
        share.ok_or_else(|| {
            let why = match text.contains(':') {
                true => "the list exceeding max length 1 ends after its first number".to_owned(),
                false => format!("value out of range: `{text}` is not a number from 0 to 1"),
            };
            Problem::new("out-of-range", 0..text.len(), why)
        })
    };
    let fio = || reading::float(text).filter(within);
    let share = findings.documented_or_fio_value(documented, fio)?;
    Ok((share * 1e6).round() as u32)
}

/// Returns a number that the table limits to 4096.
fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Reads `zoned:access/size…` and `zoned_abs:access/bytes…`, comma-separated for the directions.
pub(super) fn zoned(
    options: &mut Options,
    piece: Piece<'_>,
    bytes: bool,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let pieces = piece.split(&[',']);
    if pieces.len() > 3 {
        return Err(Problem::new(
            "too-many-values",
            piece.range(),
            "more than three lists (read,write,trim)",
        ));
    }
    let mut lists = Vec::new();
    let unsaid = matches!(pieces[0].text.as_bytes(), [] | [b':', ..]);
    if unsaid && pieces.len() == 1 {
        findings.misread(bad_entry(piece), "zoned:100/100")?;
        let length = ZoneLength::Percent(100);
        lists.push(Some(vec![AccessZone {
            access: 100,
            length,
        }]));
    }
    let pieces = pieces.into_iter().skip(lists.len());
    for piece in pieces {
        lists.push(Some(one_list(piece, bytes, options.kb_base, findings)?));
    }
    options.random_distribution = RandomDistribution::Random;
    options.random_sequence = None;
    let lists: PerDirection<_> = spread(&lists);
    let all = |index| lists[index].clone().unwrap_or_default();
    options.access_zones = Some(PerDirection::from_fn(all));
    Ok(())
}

fn one_list(
    list: Piece<'_>,
    bytes: bool,
    kb_base: u64,
    findings: &mut Findings,
) -> Result<Vec<AccessZone>, Problem> {
    let mut zones = Vec::new();
    let mut blank = 0;
    for entry in list.split(&[':']) {
        if entry.text.is_empty() {
            // fio reads as far as the first empty entry.
            let shown = &list.text[..entry.at - list.at];
            findings.misread(bad_entry(entry), shown.trim_end_matches(':'))?;
            break;
        }
        let (access, length) = match entry.split(&['/'])[..] {
            [access, length] => (access, length),
            [access] => {
                let absent = if bytes { "0" } else { "" };
                findings.misread(bad_entry(entry), format!("{}/{absent}", access.text))?;
                (access, entry.part(entry.text.len()..entry.text.len()))
            }
            [access, length, ..] => {
                let shown = format!("{}/{}", access.text, length.text);
                findings.misread(bad_entry(entry), shown)?;
                (access, length)
            }
            [] => return Err(bad_entry(entry)),
        };
        let no_size = bytes && !entry.text.contains('/');
        let access = number::read_part(access, kb_base, 0, 100, findings)?;
        let length = if length.text.trim().is_empty() && !bytes {
            blank += 1;
            None
        } else if no_size {
            Some(ZoneLength::Bytes(0))
        } else if bytes {
            let length = number::read_part(length, kb_base, 0, u64::MAX, findings)?;
            Some(ZoneLength::Bytes(length))
        } else {
            let percent = number::read_part(percentage(length), kb_base, 0, 100, findings)?;
            Some(ZoneLength::Percent(byte(percent)))
        };
        zones.push((byte(access), length));
    }
    let access: u32 = zones.iter().map(|&(access, _)| u32::from(access)).sum();
    if access != 100 || zones.len() > ZONES_MAX {
        let why = format!("the access percentages add up to {access}, not 100");
        return Err(Problem::new("bad-zones", list.range(), why)
            .fix("write each zone as access/size in percent, as in `60/10:40/90`"));
    }
    let given = |length: &Option<ZoneLength>| match length {
        Some(ZoneLength::Percent(percent)) => u32::from(*percent),
        _ => 0,
    };
    let sizes: u32 = zones.iter().map(|(_, length)| given(length)).sum();
    let Some(rest) = 100_u32.checked_sub(sizes) else {
        let why = format!("the sizes add up to {sizes} % of the file");
        return Err(
            Problem::new("bad-zones", list.range(), why).fix("lower them to a total of 100")
        );
    };
    let share = ZoneLength::Percent(byte(u64::from(rest / blank.max(1))));
    let zone = |(access, length): (u8, Option<ZoneLength>)| AccessZone {
        access,
        length: length.unwrap_or(share),
    };
    Ok(zones.into_iter().map(zone).collect())
}

/// Returns a number without its `%`.
fn percentage(piece: Piece<'_>) -> Piece<'_> {
    let piece = piece.trim();
    match piece.text.strip_suffix('%') {
        Some(text) => piece.part(0..text.len()),
        None => piece,
    }
}

fn bad_entry(entry: Piece<'_>) -> Problem {
    let why = match entry.text {
        "" => "an entry between the colons is empty".to_owned(),
        text => format!("`{text}` is not an access percentage and a size"),
    };
    Problem::new("bad-zones", entry.range(), why).fix("write it like `60/10`")
}

/// fio's limit of zones in a list.
const ZONES_MAX: usize = 64;
