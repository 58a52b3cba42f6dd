//! Outcome of a command: success, or the reason of its failure, named as in the standard.

use fathom_sys::scsi::ScsiOutcome;

use super::sense::Sense;

/// Returns the reason if a command failed, of whose data `length` bytes were to be transferred.
///
/// Transfers cut short are failures: nothing else says which bytes are not as they should be.
pub(crate) fn failure(outcome: &ScsiOutcome, length: u32) -> Option<String> {
    let sense = Sense::decode(outcome.sense());
    if outcome.host != 0 {
        return Some(host_failure(outcome.host));
    }
    match (outcome.status, sense) {
        (GOOD | CONDITION_MET, _) if outcome.driver & !DRIVER_SENSE != 0 => Some(format!(
            "the kernel's SCSI layer: driver status {:x}h",
            outcome.driver
        )),
        (CHECK_CONDITION, Some(sense)) if !sense.is_success() => Some(sense.to_string()),
        (CHECK_CONDITION, None) => Some("CHECK CONDITION without sense data (status 02h)".into()),
        (GOOD | CONDITION_MET | CHECK_CONDITION, _) => short_transfer(outcome, length),
        (status, _) => Some(match STATUSES.iter().find(|row| row.0 == status) {
            Some((_, name)) => format!("{name} (status {status:02x}h)"),
            None => format!("status {status:02x}h"),
        }),
    }
}

/// Returns whether the device reports an event, such as a reset, instead of executing the command.
pub(crate) fn is_unit_attention(outcome: &ScsiOutcome) -> bool {
    Sense::decode(outcome.sense()).is_some_and(|sense| sense.is_unit_attention())
}

/// Adds advice to the reason why an UNMAP or WRITE SAME failed, if the device found a field of it
/// invalid: it limits the blocks of these commands apart from those of transfers.
pub(crate) fn advise_limits(outcome: &ScsiOutcome, why: String) -> String {
    match Sense::decode(outcome.sense()).is_some_and(|sense| sense.is_invalid_field()) {
        true => format!(
            "{why}; the device may limit the blocks of this command: see its page Block Limits \
             (`sg_vpd -p bl`), and lower bs"
        ),
        false => why,
    }
}

/// More reports of events than a device keeps for one initiator: kinds of events, not events.
pub(crate) const ATTENTIONS_MAX: u32 = 32;

fn short_transfer(outcome: &ScsiOutcome, length: u32) -> Option<String> {
    let residual = outcome.residual.min(length);
    (residual > 0).then(|| {
        let moved = length - residual;
        format!("short transfer: {moved} of {length} B, residual {residual} B")
    })
}

fn host_failure(host: u16) -> String {
    match HOST_STATUSES.iter().find(|row| row.0 == host) {
        Some((_, name, text)) => format!("host adapter: {text} ({name}, {host:02x}h)"),
        None => format!("host adapter: host status {host:02x}h"),
    }
}

const GOOD: u8 = 0x00;
const CHECK_CONDITION: u8 = 0x02;
const CONDITION_MET: u8 = 0x04;
/// States only that there is sense data (`DRIVER_SENSE`).
const DRIVER_SENSE: u16 = 0x08;

/// Statuses of SAM-5.
const STATUSES: &[(u8, &str)] = &[
    (0x08, "BUSY"),
    (0x18, "RESERVATION CONFLICT"),
    (0x28, "TASK SET FULL"),
    (0x30, "ACA ACTIVE"),
    (0x40, "TASK ABORTED"),
];

/// Host statuses of Linux (<scsi/scsi_status.h>), and their meanings.
const HOST_STATUSES: &[(u16, &str, &str)] = &[
    (0x01, "DID_NO_CONNECT", "no connection to the device"),
    (0x02, "DID_BUS_BUSY", "bus busy until the time-out"),
    (0x03, "DID_TIME_OUT", "the command timed out"),
    (0x04, "DID_BAD_TARGET", "the device does not answer"),
    (0x05, "DID_ABORT", "the command was aborted"),
    (0x06, "DID_PARITY", "parity error"),
    (0x07, "DID_ERROR", "internal error"),
    (0x08, "DID_RESET", "reset by another command"),
    (0x0b, "DID_SOFT_ERROR", "transient error"),
    (0x0c, "DID_IMM_RETRY", "to be sent again at once"),
    (0x0d, "DID_REQUEUE", "to be sent again"),
    (0x0e, "DID_TRANSPORT_DISRUPTED", "transport disrupted"),
    (0x0f, "DID_TRANSPORT_FAILFAST", "transport failed"),
    (
        0x10,
        "DID_TARGET_FAILURE",
        "permanent failure of the device",
    ),
    (0x11, "DID_NEXUS_FAILURE", "failure of the path"),
    (0x12, "DID_ALLOC_FAILURE", "the device has no space"),
    (0x13, "DID_MEDIUM_ERROR", "error of the medium"),
    (0x14, "DID_TRANSPORT_MARGINAL", "marginal transport"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(outcome: ScsiOutcome, want: Option<&str>) {
        assert_eq!(failure(&outcome, 4096).as_deref(), want, "{outcome:?}");
    }

    fn sense(key: u8, code: u8) -> ScsiOutcome {
        let sense = [0x72, key, code, 0, 0, 0, 0, 0];
        let mut outcome = ScsiOutcome::new(2, &sense, 0);
        outcome.driver = 8;
        outcome
    }

    #[test]
    fn sense_that_informs_is_success() {
        check(ScsiOutcome::default(), None);
        check(ScsiOutcome::new(4, &[], 0), None);
        check(sense(1, 0x17), None);
        check(sense(0, 0x5d), None);
    }

    #[test]
    fn advice_is_for_invalid_fields() {
        let advised = |outcome| advise_limits(&outcome, "why".into());
        for code in [0x24, 0x26] {
            assert!(advised(sense(5, code)).starts_with("why; the device may limit"));
        }
        assert_eq!(advised(sense(5, 0x20)), "why");
        assert_eq!(advised(sense(3, 0x24)), "why");
        assert_eq!(advised(ScsiOutcome::default()), "why");
    }

    #[test]
    fn failures_are_named() {
        check(
            sense(3, 0x11),
            Some("MEDIUM ERROR, UNRECOVERED READ ERROR (sense 3h/11h/00h)"),
        );
        check(
            ScsiOutcome::new(2, &[], 0),
            Some("CHECK CONDITION without sense data (status 02h)"),
        );
        check(
            ScsiOutcome::new(0x18, &[], 0),
            Some("RESERVATION CONFLICT (status 18h)"),
        );
        check(ScsiOutcome::new(0x22, &[], 0), Some("status 22h"));
        let host = |host| {
            let mut outcome = ScsiOutcome::default();
            outcome.host = host;
            outcome
        };
        check(
            host(3),
            Some("host adapter: the command timed out (DID_TIME_OUT, 03h)"),
        );
        check(host(0x55), Some("host adapter: host status 55h"));
        let mut driver = ScsiOutcome::default();
        driver.driver = 6;
        check(driver, Some("the kernel's SCSI layer: driver status 6h"));
    }

    #[test]
    fn short_transfers_are_failures() {
        let want = "short transfer: 3584 of 4096 B, residual 512 B";
        check(ScsiOutcome::new(0, &[], 512), Some(want));
        let mut recovered = sense(1, 0x17);
        recovered.residual = 512;
        check(recovered, Some(want));
        // A command that moves no data may report anything.
        assert_eq!(failure(&ScsiOutcome::new(0, &[], 512), 0), None);
    }
}
