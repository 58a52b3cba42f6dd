//! Headers of blocks written for verification (`verify=`).

use fathom_workload::{CHECKSUMS, SizeChoice, Stamp, Verifier, VerifyConfig, VerifyMethod};

use crate::target::Verdict;

/// Checks a block as if it was read, at the offset and by the method that the input chooses; then
/// checks that the same block passes once it is stamped by ourselves.
pub(crate) fn decode(input: &[u8]) -> Result<Verdict, String> {
    let Some((&[method, flags], rest)) = input.split_first_chunk() else {
        return Ok(Verdict::Refused("too short".to_owned()));
    };
    let Some((offset, block)) = rest.split_first_chunk() else {
        return Ok(Verdict::Refused("too short".to_owned()));
    };
    // File offsets are signed in the kernel; an op ends below 2^63.
    let offset = u64::from_le_bytes(*offset) >> 2;
    let interval = 128 << (flags & 0x3);
    let checksum = CHECKSUMS.iter().find(|row| row.header_id == method);
    let config = VerifyConfig {
        method: checksum.map_or(VerifyMethod::Pattern, VerifyMethod::Checksum),
        pattern: (flags & 0x4 != 0).then(|| b"fathom\0\0\0\0\0\0\0\0".to_vec()),
        pattern_offsets: if flags & 0xc == 0xc {
            vec![6]
        } else {
            Vec::new()
        },
        read_back: false,
        thread: 1,
    };
    let verifier = Verifier::new(&config, &SizeChoice::Fixed(interval), 1)
        .map_err(|error| format!("a header does not fit into {interval} B: {error}"))?;
    let sequence = (flags & 0x10 != 0).then_some(1);
    let verdict = match verifier.check(block, offset, sequence) {
        Ok(()) => Verdict::Accepted,
        Err(error) => Verdict::Refused(error.describe("f")),
    };
    let mut ours = block.to_vec();
    let stamp = Stamp {
        offset,
        sequence: 1,
        time_ns: 1,
    };
    verifier.stamp(&mut ours, &stamp);
    match verifier.check(&ours, offset, Some(1)) {
        Ok(()) => Ok(verdict),
        Err(error) => Err(format!("a block just stamped is refused: {error}")),
    }
}
