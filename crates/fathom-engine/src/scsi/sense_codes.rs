//! Names of sense keys and additional sense codes, as in SPC-5: those that disks return.

/// Sense keys by number.
pub(crate) const KEYS: [&str; 16] = [
    "NO SENSE",
    "RECOVERED ERROR",
    "NOT READY",
    "MEDIUM ERROR",
    "HARDWARE ERROR",
    "ILLEGAL REQUEST",
    "UNIT ATTENTION",
    "DATA PROTECT",
    "BLANK CHECK",
    "VENDOR SPECIFIC",
    "COPY ABORTED",
    "ABORTED COMMAND",
    "sense key Ch",
    "VOLUME OVERFLOW",
    "MISCOMPARE",
    "COMPLETED",
];

/// Returns the name of an additional sense code: that of its qualifier, or else that of
/// qualifier 0; `None` if it is not in the table, or there is nothing to add.
pub(crate) fn additional_sense(code: u8, qualifier: u8) -> Option<&'static str> {
    let named = |qualifier| {
        let at = CODES.binary_search_by_key(&(code, qualifier), |row| (row.0, row.1));
        at.ok().map(|at| CODES[at].2)
    };
    named(qualifier).or_else(|| named(0))
}

/// Code, qualifier and name, in their order.
const CODES: &[(u8, u8, &str)] = &[
    (0x03, 0x00, "PERIPHERAL DEVICE WRITE FAULT"),
    (0x04, 0x00, "LOGICAL UNIT NOT READY, CAUSE NOT REPORTABLE"),
    (0x04, 0x01, "LOGICAL UNIT IS IN PROCESS OF BECOMING READY"),
    (
        0x04,
        0x02,
        "LOGICAL UNIT NOT READY, INITIALIZING COMMAND REQUIRED",
    ),
    (
        0x04,
        0x03,
        "LOGICAL UNIT NOT READY, MANUAL INTERVENTION REQUIRED",
    ),
    (0x04, 0x04, "LOGICAL UNIT NOT READY, FORMAT IN PROGRESS"),
    (0x04, 0x09, "LOGICAL UNIT NOT READY, SELF-TEST IN PROGRESS"),
    (
        0x04,
        0x0a,
        "LOGICAL UNIT NOT ACCESSIBLE, ASYMMETRIC ACCESS STATE TRANSITION",
    ),
    (
        0x04,
        0x0b,
        "LOGICAL UNIT NOT ACCESSIBLE, TARGET PORT IN STANDBY STATE",
    ),
    (
        0x04,
        0x0c,
        "LOGICAL UNIT NOT ACCESSIBLE, TARGET PORT IN UNAVAILABLE STATE",
    ),
    (0x04, 0x1b, "LOGICAL UNIT NOT READY, SANITIZE IN PROGRESS"),
    (0x05, 0x00, "LOGICAL UNIT DOES NOT RESPOND TO SELECTION"),
    (0x08, 0x00, "LOGICAL UNIT COMMUNICATION FAILURE"),
    (0x08, 0x01, "LOGICAL UNIT COMMUNICATION TIME-OUT"),
    (0x0b, 0x00, "WARNING"),
    (0x0b, 0x01, "WARNING - SPECIFIED TEMPERATURE EXCEEDED"),
    (0x0c, 0x00, "WRITE ERROR"),
    (0x0c, 0x02, "WRITE ERROR - AUTO REALLOCATION FAILED"),
    (0x0c, 0x03, "WRITE ERROR - RECOMMEND REASSIGNMENT"),
    (0x10, 0x00, "ID CRC OR ECC ERROR"),
    (0x10, 0x01, "LOGICAL BLOCK GUARD CHECK FAILED"),
    (0x10, 0x02, "LOGICAL BLOCK APPLICATION TAG CHECK FAILED"),
    (0x10, 0x03, "LOGICAL BLOCK REFERENCE TAG CHECK FAILED"),
    (0x11, 0x00, "UNRECOVERED READ ERROR"),
    (0x11, 0x01, "READ RETRIES EXHAUSTED"),
    (
        0x11,
        0x04,
        "UNRECOVERED READ ERROR - AUTO REALLOCATE FAILED",
    ),
    (
        0x11,
        0x0b,
        "UNRECOVERED READ ERROR - RECOMMEND REASSIGNMENT",
    ),
    (
        0x11,
        0x14,
        "READ ERROR - LBA MARKED BAD BY APPLICATION CLIENT",
    ),
    (0x14, 0x01, "RECORD NOT FOUND"),
    (
        0x17,
        0x00,
        "RECOVERED DATA WITH NO ERROR CORRECTION APPLIED",
    ),
    (0x18, 0x00, "RECOVERED DATA WITH ERROR CORRECTION APPLIED"),
    (0x19, 0x00, "DEFECT LIST ERROR"),
    (0x1a, 0x00, "PARAMETER LIST LENGTH ERROR"),
    (0x1d, 0x00, "MISCOMPARE DURING VERIFY OPERATION"),
    (0x20, 0x00, "INVALID COMMAND OPERATION CODE"),
    (0x21, 0x00, "LOGICAL BLOCK ADDRESS OUT OF RANGE"),
    (0x21, 0x04, "UNALIGNED WRITE COMMAND"),
    (0x21, 0x05, "WRITE BOUNDARY VIOLATION"),
    (0x21, 0x06, "ATTEMPT TO READ INVALID DATA"),
    (0x21, 0x07, "READ BOUNDARY VIOLATION"),
    (0x24, 0x00, "INVALID FIELD IN CDB"),
    (0x25, 0x00, "LOGICAL UNIT NOT SUPPORTED"),
    (0x26, 0x00, "INVALID FIELD IN PARAMETER LIST"),
    (0x27, 0x00, "WRITE PROTECTED"),
    (0x27, 0x01, "HARDWARE WRITE PROTECTED"),
    (0x27, 0x02, "LOGICAL UNIT SOFTWARE WRITE PROTECTED"),
    (0x27, 0x07, "SPACE ALLOCATION FAILED WRITE PROTECT"),
    (
        0x28,
        0x00,
        "NOT READY TO READY CHANGE, MEDIUM MAY HAVE CHANGED",
    ),
    (0x29, 0x00, "POWER ON, RESET, OR BUS DEVICE RESET OCCURRED"),
    (0x29, 0x01, "POWER ON OCCURRED"),
    (0x29, 0x02, "SCSI BUS RESET OCCURRED"),
    (0x29, 0x03, "BUS DEVICE RESET FUNCTION OCCURRED"),
    (0x29, 0x07, "I_T NEXUS LOSS OCCURRED"),
    (0x2a, 0x01, "MODE PARAMETERS CHANGED"),
    (0x2a, 0x03, "RESERVATIONS PREEMPTED"),
    (0x2a, 0x06, "ASYMMETRIC ACCESS STATE CHANGED"),
    (0x2a, 0x09, "CAPACITY DATA HAS CHANGED"),
    (0x2c, 0x00, "COMMAND SEQUENCE ERROR"),
    (0x2f, 0x00, "COMMANDS CLEARED BY ANOTHER INITIATOR"),
    (0x30, 0x00, "INCOMPATIBLE MEDIUM INSTALLED"),
    (0x31, 0x00, "MEDIUM FORMAT CORRUPTED"),
    (0x31, 0x01, "FORMAT COMMAND FAILED"),
    (0x38, 0x07, "THIN PROVISIONING SOFT THRESHOLD REACHED"),
    (0x3a, 0x00, "MEDIUM NOT PRESENT"),
    (0x3e, 0x00, "LOGICAL UNIT HAS NOT SELF-CONFIGURED YET"),
    (0x3e, 0x01, "LOGICAL UNIT FAILURE"),
    (0x3f, 0x00, "TARGET OPERATING CONDITIONS HAVE CHANGED"),
    (0x3f, 0x01, "MICROCODE HAS BEEN CHANGED"),
    (0x3f, 0x03, "INQUIRY DATA HAS CHANGED"),
    (0x3f, 0x0e, "REPORTED LUNS DATA HAS CHANGED"),
    (0x44, 0x00, "INTERNAL TARGET FAILURE"),
    (0x47, 0x00, "SCSI PARITY ERROR"),
    (0x48, 0x00, "INITIATOR DETECTED ERROR MESSAGE RECEIVED"),
    (0x4b, 0x00, "DATA PHASE ERROR"),
    (0x4b, 0x06, "INITIATOR RESPONSE TIMEOUT"),
    (0x4e, 0x00, "OVERLAPPED COMMANDS ATTEMPTED"),
    (0x55, 0x00, "SYSTEM RESOURCE FAILURE"),
    (0x55, 0x03, "INSUFFICIENT RESOURCES"),
    (0x55, 0x0e, "INSUFFICIENT ZONE RESOURCES"),
    (0x5d, 0x00, "FAILURE PREDICTION THRESHOLD EXCEEDED"),
    (0x74, 0x71, "LOGICAL UNIT ACCESS NOT AUTHORIZED"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_their_order() {
        for pair in CODES.windows(2) {
            assert!(
                (pair[0].0, pair[0].1) < (pair[1].0, pair[1].1),
                "{:02x?}",
                pair[1]
            );
        }
    }

    #[test]
    fn unknown_qualifiers_take_the_name_of_the_code() {
        assert_eq!(
            additional_sense(0x21, 0x05),
            Some("WRITE BOUNDARY VIOLATION")
        );
        assert_eq!(
            additional_sense(0x20, 0x77),
            Some("INVALID COMMAND OPERATION CODE")
        );
        assert_eq!(additional_sense(0x80, 0), None);
        assert_eq!(additional_sense(0, 0), None);
    }
}
