//! The option `ignore_error`, with errno names.

use crate::findings::Findings;
use crate::plan::Options;
use crate::problem::{Piece, Problem};

/// Reads `READ_LIST,WRITE_LIST,VERIFY_LIST`, each a colon-separated list of names or numbers.
pub(super) fn ignore_error(
    options: &mut Options,
    text: &str,
    _findings: &mut Findings,
) -> Result<(), Problem> {
    let lists = Piece::new(text).split(&[',']);
    if let Some(fourth) = lists.get(3) {
        let why = "more than three lists (read,write,verify)";
        return Err(Problem::new("too-many-values", fourth.range(), why).fix("remove it"));
    }
    let mut errors: [Vec<u32>; 3] = Default::default();
    for (list, errors) in lists.iter().zip(&mut errors) {
        let named = list.split(&[':']).into_iter().map(Piece::trim);
        for piece in named.filter(|piece| !piece.text.is_empty()) {
            errors.push(errno(piece)?);
        }
    }
    // Listed errors are tolerated without `continue_on_error`, as in fio.
    let tolerate = &mut options.continue_on_error;
    tolerate.read |= !errors[0].is_empty();
    tolerate.write |= !errors[1].is_empty();
    tolerate.verify |= !errors[2].is_empty();
    options.lifecycle.ignore_error = errors;
    Ok(())
}

fn errno(piece: Piece<'_>) -> Result<u32, Problem> {
    if let Ok(number) = piece.text.parse() {
        return Ok(number);
    }
    let place = ERRORS.iter().find(|(name, _)| *name == piece.text);
    place.map(|(_, errno)| *errno).ok_or_else(|| {
        let why = format!("`{}` is not an errno name or number", piece.text);
        Problem::new("bad-value", piece.range(), why)
            .fix("write names or numbers, as in `ignore_error=EAGAIN,ENOSPC:122`")
            .when_run()
    })
}

/// Names and numbers on Linux of the errors of reads, writes and syncs.
#[rustfmt::skip]
const ERRORS: &[(&str, u32)] = &[
    ("EPERM", 1), ("ENOENT", 2), ("EINTR", 4), ("EIO", 5), ("ENXIO", 6), ("EBADF", 9),
    ("EAGAIN", 11), ("EWOULDBLOCK", 11), ("ENOMEM", 12), ("EACCES", 13), ("EFAULT", 14),
    ("EBUSY", 16), ("EEXIST", 17), ("ENODEV", 19), ("EINVAL", 22), ("ENFILE", 23),
    ("EMFILE", 24), ("ETXTBSY", 26), ("EFBIG", 27), ("ENOSPC", 28), ("ESPIPE", 29),
    ("EROFS", 30), ("EPIPE", 32), ("ERANGE", 34), ("ENOSYS", 38), ("ENODATA", 61),
    ("ETIME", 62), ("ENOLINK", 67), ("EPROTO", 71), ("EBADMSG", 74), ("EOVERFLOW", 75),
    ("EILSEQ", 84), ("EOPNOTSUPP", 95), ("ENOTSUP", 95), ("ENOBUFS", 105), ("ETIMEDOUT", 110),
    ("ECONNREFUSED", 111), ("EHOSTDOWN", 112), ("EHOSTUNREACH", 113), ("EALREADY", 114),
    ("EINPROGRESS", 115), ("ESTALE", 116), ("EDQUOT", 122), ("ENOMEDIUM", 123),
    ("EMEDIUMTYPE", 124), ("ECANCELED", 125), ("EREMOTEIO", 121), ("EKEYREJECTED", 129),
];
