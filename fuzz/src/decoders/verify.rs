//! Headers of blocks written for verification (`verify=`).

use fathom_workload::{
    CHECKSUMS, Expected, HeaderLayout, META, SizeChoice, Stamp, Verifier, VerifyConfig,
    VerifyMethod, VerifyState,
};

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
    let config = VerifyConfig {
        pattern: (flags & 0x4 != 0).then(|| b"fathom\0\0\0\0\0\0\0\0".to_vec()),
        pattern_offsets: if flags & 0xc == 0xc {
            vec![6]
        } else {
            Vec::new()
        },
        layout: match flags & 0x20 {
            0 => HeaderLayout::Fio3_42,
            _ => HeaderLayout::Fio3_33,
        },
        header_offset: u32::from(flags & 0x40) * 3,
        ..VerifyConfig::new(method_of(method))
    };
    let verifier = match Verifier::new(&config, &SizeChoice::Fixed(interval), 1) {
        Ok(verifier) => verifier,
        Err(unfit) => return Ok(Verdict::Refused(unfit.to_string())),
    };
    let expected = match flags & 0x10 {
        0 => Expected::Valid,
        _ => Expected::Write(1),
    };
    let mut read = block.to_vec();
    let verdict = match verifier.check(&mut read, offset, |_, _| expected.clone()) {
        Ok(()) => Verdict::Accepted,
        Err(error) => Verdict::Refused(error.describe("f")),
    };
    if read != block {
        return Err("the check changed the block".to_owned());
    }
    let mut ours = read;
    let stamp = Stamp {
        offset,
        sequence: 1,
        time_ns: 1,
    };
    verifier.stamp(&mut ours, &stamp);
    match verifier.check(&mut ours, offset, |_, _| Expected::Write(1)) {
        Ok(()) => Ok(verdict),
        Err(error) => Err(format!("a block just stamped is refused: {error}")),
    }
}

/// Reads a verify state, which is written again as it was; but for an incomplete one with syncs,
/// whose blocks then no longer wait for them.
pub(crate) fn decode_state(input: &[u8]) -> Result<Verdict, String> {
    let state = match VerifyState::decode(input) {
        Ok(state) => state,
        Err(error) => return Ok(Verdict::Refused(error.to_string())),
    };
    let settles = !state.is_complete && state.files.iter().any(|file| file.by_sync);
    let written = state.encode();
    match settles {
        false if written == input => Ok(Verdict::Accepted),
        true if VerifyState::decode(&written).as_ref() == Ok(&state) => Ok(Verdict::Accepted),
        _ => Err("a state is not written as it was read".to_owned()),
    }
}

/// Returns the method with this number in a header; without headers for any other.
fn method_of(number: u8) -> VerifyMethod {
    let checksum = CHECKSUMS
        .iter()
        .chain([&META])
        .find(|row| row.header_id == number);
    match (checksum, number) {
        (Some(checksum), _) => VerifyMethod::Checksum(checksum),
        (None, 17) => VerifyMethod::PatternHeader,
        (None, 19) => VerifyMethod::Null,
        (None, _) => VerifyMethod::Pattern,
    }
}
