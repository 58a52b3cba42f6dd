//! Rules on zones.

use super::JobCheck;
use crate::plan::{Options, Size};
use crate::problem::Problem;
use crate::workload::ZoneMode;

impl JobCheck<'_> {
    /// `zonemode` and its family; sizes in zones become bytes.
    pub(super) fn zones(&mut self) {
        if let Err(found) = resolve(&mut self.layer.options) {
            let (name, problem) = *found;
            self.error_at(&[name], problem);
        }
    }
}

/// Checks the options of zones against each other, and converts sizes in zones to bytes.
fn resolve(options: &mut Options) -> Result<(), Box<(&'static str, Problem)>> {
    let problem = |name, why: &str, fix: &str| {
        let problem = Problem::new("bad-zones", 0..0, why).fix(fix);
        Err(Box::new((name, problem)))
    };
    let zones = options.zones;
    let strided = zones.mode == ZoneMode::Strided;
    if zones.areas && zones.mode != ZoneMode::Zbd {
        return problem(
            "zrwa",
            "`zrwa` opens zones of a zoned device",
            "add `zonemode=zbd`, or remove `zrwa`",
        );
    }
    if zones.mode == ZoneMode::Zbd && zones.size == 0 {
        // Sizes in zones are those of the device, which is not known yet.
        return Ok(());
    }
    let zoned = strided || zones.mode == ZoneMode::Zbd;
    if !zoned && zones.size > 0 {
        return problem(
            "zonesize",
            "`zonesize` needs a `zonemode`, as in fio",
            "add `zonemode=strided`",
        );
    }
    if strided && zones.size == 0 {
        return problem(
            "zonemode",
            "`zonemode=strided` needs a `zonesize`, as in fio",
            "add one, as in `zonesize=1m`",
        );
    }
    if matches!(zones.skip, Size::Percent(_)) {
        return problem(
            "zoneskip",
            "`zoneskip` is a number of bytes or zones",
            "write it like `1m` or `1z`",
        );
    }
    if options.zones.range == 0 {
        options.zones.range = zones.size;
    }
    let unit = zones.size;
    let names = ["size", "io_size", "offset", "offset_increment", "zoneskip"];
    let sizes = [
        options.size.as_mut(),
        options.io_size.as_mut(),
        Some(&mut options.offset),
        Some(&mut options.offset_increment),
        Some(&mut options.zones.skip),
    ];
    for (name, size) in names.into_iter().zip(sizes) {
        if let Some(size) = size
            && let Size::Zones(count) = *size
        {
            if !zoned {
                let why =
                    "a size in zones needs `zonemode=strided` and a `zonesize`, or `zonemode=zbd`";
                return problem(name, why, "write the size in bytes or percent");
            }
            *size = Size::Bytes(u64::from(count).saturating_mul(unit));
        }
    }
    Ok(())
}
