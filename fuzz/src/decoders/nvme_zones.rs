//! Zones of a namespace, as its controller reports them.

use fathom_core::ZoneReport;
use fathom_nvme::{Page, ZoneFormat, ZoneSurvey, is_zoned};

use crate::target::Verdict;

/// Takes the format from the first bytes, and the reports of a survey from the rest: each has its
/// number of zones in front. Zones that are accepted must be fit for the rules of jobs.
pub(crate) fn decode(input: &[u8]) -> Result<Verdict, String> {
    let mut input = Input(input);
    let Some((namespace, zoned)) = input.pages() else {
        return Ok(Verdict::Refused("no format".to_owned()));
    };
    // Each byte is that of an identifier, too.
    let _command_set = is_zoned(&namespace) | is_zoned(&zoned);
    let Some(format) = ZoneFormat::decode(&namespace, &zoned) else {
        return Ok(Verdict::Refused("no usable format".to_owned()));
    };
    let mut survey = ZoneSurvey::new(format);
    while survey.next().is_some() {
        let Some(report) = input.report() else {
            return Ok(Verdict::Refused("a report is missing".to_owned()));
        };
        if let Err(fault) = survey.add(report) {
            return Ok(Verdict::Refused(fault.to_string()));
        }
    }
    let report = ZoneReport {
        zones: survey.into_zones(),
        open_max: format.open_max,
        area: format.area,
        device: 1,
    };
    let is_sound = report.zones.iter().all(|zone| {
        zone.capacity <= zone.length
            && (zone.start..=zone.write_end()).contains(&zone.write_pointer)
    });
    let is_area_sound = report.area.is_none_or(|area| {
        area.granule > 0 && area.bytes > 0 && area.bytes.is_multiple_of(area.granule)
    });
    let is_sound = is_sound && is_area_sound;
    match report.is_complete() && is_sound && report.open_max != Some(0) {
        true => Ok(Verdict::Accepted),
        false => Err(format!("{format:?}: {:?}", report.zones)),
    }
}

/// Bytes that say what a controller answers.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// Returns the pages of Identify Namespace and of its extension: size in blocks, block size as
    /// a power of two, length of a zone in blocks, and the two limits.
    fn pages(&mut self) -> Option<(Page, Page)> {
        let (mut namespace, mut zoned) = ([0; 4096], [0; 4096]);
        namespace[..8].copy_from_slice(self.take(8)?);
        namespace[130] = self.take(1)?[0];
        zoned[2816..2824].copy_from_slice(self.take(8)?);
        zoned[4..12].copy_from_slice(self.take(8)?);
        Some((namespace, zoned))
    }

    /// Returns the next report, of up to 255 zones, cut where the input ends.
    fn report(&mut self) -> Option<&'a [u8]> {
        let zones = usize::from(self.take(1)?[0]);
        let bytes = (64 * (zones + 1)).min(self.0.len());
        self.take(bytes)
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }
}
