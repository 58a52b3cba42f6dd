//! The engine `http`: the conformance suite against a server of our own and Apache, requests as
//! servers see them, and faults.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "the whole crate is a test, and its servers sleep"
)]

mod bench;
mod moto;
mod programs;
mod server;

use bench::{Bench, Served, refused};
use fathom_conformance::{BLOCK, Subject as _, conformance, content};
use fathom_core::{Completion, Direction, Errno, OpKind};
use moto::Moto;
use programs::Apache;
use server::{Fault, Server, name};

const S3: &str = "http_mode=s3 http_s3_keyid=AKID http_s3_key=SECRETKEY";
const SWIFT: &str = "http_mode=swift http_swift_auth_token=TOKEN";

/// Runs a case in each mode, and on a server of others.
fn each(case: impl Fn(&mut Bench)) {
    for (depth, options) in [(1, ""), (16, ""), (4, S3), (4, SWIFT)] {
        let mut bench = Bench::new(Server::start(), depth, options);
        bench.open();
        case(&mut bench);
        bench.finish();
    }
    if let Some(apache) = Apache::start(false, None) {
        let mut bench = Bench::new(apache, 4, "");
        bench.open();
        case(&mut bench);
        bench.finish();
    }
}

// Without the cases of a file's end, which objects do not have, and of the rest of a short
// transfer, which would be an object of another name.
conformance! { each:
    what_was_written_is_read_back
    every_op_of_a_full_queue_completes_once
    a_queue_is_refilled_while_it_drains
    submit_waits_for_what_it_is_asked_to
    wait_comes_back_with_completions_or_when_its_time_is_up
    completions_come_without_waiting_for_them
    adjacent_writes_land_in_their_places
    syncs_complete_like_any_op
    a_file_can_be_closed_and_opened_again
}

#[test]
fn an_op_on_a_closed_file_fails() {
    each(|bench| {
        bench.close();
        assert_eq!(bench.run(bench.read(0, 0)).result, Errno::EBADF.result());
        bench.open();
        bench.run_one(bench.read(0, 0));
        bench.check(0, 0);
    });
}

#[test]
fn one_bad_op_leaves_its_neighbours_alone() {
    let mut bench = open(Server::start(), 4, S3);
    let faults = [Fault::None, Fault::Status(403, "", ""), Fault::None];
    bench.server().fail(&faults);
    for slot in 0..3 {
        bench.prepare(bench.read(slot, slot));
    }
    bench.submit(0);
    for completion in bench.collect() {
        match completion.slot.get() {
            1 => assert_eq!(completion.result, Errno::EACCES.result()),
            slot => {
                assert_eq!(completion.result, bench.block_bytes());
                bench.check(slot, slot);
            }
        }
    }
}

/// Returns a bench with an open file.
fn open(served: impl Into<Served>, depth: u32, options: &str) -> Bench {
    let mut bench = Bench::new(served, depth, options);
    bench.open();
    bench
}

#[test]
fn a_trim_deletes_an_object_and_what_is_missing_reads_as_zeroes() {
    each(|bench| {
        let mut trim = bench.read(0, 1);
        trim.kind = OpKind::Data(Direction::Trim);
        bench.run_one(trim);
        // Again: there is nothing to delete.
        bench.run_one(trim);
        bench.fill(0, 7);
        bench.run_one(bench.read(0, 1));
        assert!(bench.buffer(0).iter().all(|&byte| byte == 0));
    });
}

#[test]
fn one_connection_serves_all_requests() {
    let mut bench = open(Server::start(), 1, S3);
    bench.fill(0, 9);
    for block in 0..20 {
        bench.run_one(bench.write(0, block));
        bench.run_one(bench.read(0, block));
    }
    assert_eq!(bench.server().connections(), 1);
    let requests = bench.server().requests();
    assert_eq!(requests.len(), 40);
    assert_eq!(requests[2].line, format!("PUT {}", name(1)));
}

#[test]
fn webdav_sends_a_password_and_swift_a_token() {
    let mut bench = open(Server::start(), 1, "http_user=me http_pass=word");
    bench.run_one(bench.read(0, 0));
    let basic = bench.server().requests()[0].headers["authorization"].clone();
    assert_eq!(basic, "Basic bWU6d29yZA==");
    let mut bench = open(Server::start(), 1, SWIFT);
    bench.run_one(bench.write(0, 0));
    let headers = bench.server().requests()[0].headers.clone();
    assert_eq!(headers["x-auth-token"], "TOKEN");
    assert_eq!(headers["etag"].len(), 32);
}

#[test]
fn every_header_of_s3_is_signed() {
    let options = format!(
        "{S3} http_s3_security_token=SESSION http_s3_storage_class=GLACIER http_s3_region=eu-x-1"
    );
    let mut bench = open(Server::start(), 1, &options);
    bench.run_one(bench.write(0, 0));
    bench.run_one(bench.read(0, 0));
    let requests = bench.server().requests();
    let put = &requests[0].headers;
    let signed = "host;x-amz-content-sha256;x-amz-date;x-amz-security-token;x-amz-storage-class";
    assert!(put["authorization"].contains(&format!("SignedHeaders={signed},")));
    assert!(put["authorization"].contains("/eu-x-1/s3/aws4_request"));
    assert_eq!(put["x-amz-storage-class"], "GLACIER");
    let get = &requests[1].headers;
    assert!(!get.contains_key("x-amz-storage-class"));
    assert_eq!(get["x-amz-security-token"], "SESSION");
}

#[test]
fn ranges_of_one_object_are_read() {
    let server = Server::start();
    let all: Vec<u8> = (0..4).flat_map(content).collect();
    server.put("/b/o", all);
    let mut bench = open(server, 1, "http_object_mode=range reads_only");
    bench.run_one(bench.read(0, 2));
    bench.check(0, 2);
    let range = bench.server().requests()[0].headers["range"].clone();
    assert_eq!(range, format!("bytes={}-{}", 2 * BLOCK, 3 * BLOCK - 1));
    let past = bench.read(0, 5);
    assert_eq!(bench.run(past).result, Errno::EINVAL.result());
    assert!(bench.said(Errno::EINVAL).contains("ends before this block"));
    bench.server().fail(&[Fault::UntoldRange]);
    let untold = bench.read(0, 1);
    assert_eq!(bench.run(untold).result, Errno::EIO.result());
    assert!(bench.said(Errno::EIO).contains("does not say which part"));
    let error = refused("http_object_mode=range");
    assert!(error.to_string().contains("cannot be written in parts"));
}

/// Checks the result of a read or write under a fault, and a part of its message.
#[track_caller]
fn fails(options: &str, fault: Fault, is_write: bool, errno: Errno, part: &str) {
    let mut bench = open(Server::start(), 1, &format!("{options} reply_timeout=1"));
    bench.server().fail(&[fault]);
    let op = if is_write {
        bench.write(0, 3)
    } else {
        bench.read(0, 3)
    };
    let result = bench.run(op).result;
    let said = bench.said(errno);
    assert_eq!(result, errno.result(), "{said}");
    assert!(said.contains(part), "{said}");
    for secret in ["AKID", "SECRETKEY", "TOKEN", "word"] {
        assert!(!said.contains(secret), "{said}");
    }
    // The next request finds a server that works, on this connection or a new one.
    bench.run_one(bench.read(0, 4));
    bench.check(0, 4);
}

#[test]
fn truncated_short_and_long_answers_are_errors() {
    fails(
        "",
        Fault::Truncated,
        false,
        Errno::ECONNRESET,
        "ends after 2048 of 4096 B",
    );
    fails(
        "",
        Fault::Short,
        false,
        Errno::EIO,
        "the object has 2048 B, and the block 4096 B",
    );
    fails("", Fault::Long, false, Errno::EIO, "more bytes");
    fails("", Fault::Garbage, false, Errno::EPROTO, "no valid HTTP");
}

#[test]
fn an_object_other_than_its_etag_is_an_error() {
    for mode in [S3, SWIFT] {
        fails(
            mode,
            Fault::Flipped,
            false,
            Errno::EILSEQ,
            "not the one of its ETag",
        );
        fails(
            mode,
            Fault::OtherEtag,
            true,
            Errno::EILSEQ,
            "stored other data",
        );
    }
    // WebDAV's ETags are not checksums.
    let mut bench = open(Server::start(), 1, "");
    bench.server().fail(&[Fault::OtherEtag]);
    bench.run_one(bench.write(0, 3));
    let mut bench = open(Server::start(), 1, &format!("{S3} http_check_etag=0"));
    bench.server().fail(&[Fault::OtherEtag]);
    bench.run_one(bench.write(0, 3));
}

#[test]
fn silence_ends() {
    fails("", Fault::Silent, false, Errno::ETIMEDOUT, "reply_timeout");
    fails("", Fault::Silent, true, Errno::ETIMEDOUT, "reply_timeout");
    fails("", Fault::Stalled, false, Errno::ETIMEDOUT, "reply_timeout");
}

#[test]
fn answers_that_never_end_are_given_up() {
    for (status, is_write, errno, part) in [
        (500, false, Errno::EIO, "HTTP 500"),
        (403, true, Errno::EACCES, "HTTP 403"),
        (201, true, Errno::ETIMEDOUT, "reply_timeout"),
    ] {
        let begun = std::time::Instant::now();
        fails("", Fault::Dribbling(status), is_write, errno, part);
        // The body would take minutes.
        assert!(begun.elapsed().as_secs() < 30, "{status}");
    }
}

#[test]
fn refusals_name_their_cause() {
    let denied = Fault::Status(403, "", "<Error><Code>AccessDenied</Code></Error>");
    fails(S3, denied, false, Errno::EACCES, "http_s3_keyid");
    fails(
        SWIFT,
        Fault::Status(401, "", ""),
        false,
        Errno::EACCES,
        "http_swift_auth_token",
    );
    fails(
        "",
        Fault::Status(401, "", ""),
        true,
        Errno::EACCES,
        "set http_user",
    );
    let given = "http_user=me http_pass=word";
    fails(
        given,
        Fault::Status(401, "", ""),
        true,
        Errno::EACCES,
        "http_pass is wrong",
    );
    let moved = Fault::Status(301, "x-amz-bucket-region: eu-north-1\r\n", "");
    fails(
        S3,
        moved,
        false,
        Errno::EREMOTEIO,
        "set http_s3_region=eu-north-1",
    );
    let bucket = Fault::Status(404, "", "<Error><Code>NoSuchBucket</Code></Error>");
    fails(S3, bucket, false, Errno::ENOENT, "does not exist");
    fails(
        "",
        Fault::Status(409, "", ""),
        true,
        Errno::ENOENT,
        "create it first",
    );
    fails(
        "",
        Fault::Status(507, "", ""),
        true,
        Errno::ENOSPC,
        "no space",
    );
}

#[test]
fn nothing_is_repeated_unless_the_job_says_so() {
    let slow = Fault::Status(503, "", "<Error><Code>SlowDown</Code></Error>");
    fails(S3, slow, true, Errno::EBUSY, "(SlowDown)");
    fails(
        S3,
        Fault::Closed,
        true,
        Errno::ECONNRESET,
        "closed the connection",
    );
}

#[test]
fn busy_servers_and_lost_connections_are_tried_again() {
    let busy = |status| Fault::Status(status, "retry-after: 0\r\n", "");
    let faults = [busy(503), Fault::Closed, busy(500), busy(429), busy(502)];
    let mut bench = open(Server::start(), 1, &format!("{S3} http_retries=5"));
    bench.server().fail(&faults);
    let begun = bench.now();
    bench.fill(0, 9);
    bench.run_one(bench.write(0, 3));
    bench.check_stored(3, 9);
    assert_eq!(bench.server().requests().len(), 6);
    // The only pause that the server did not set is the one after the lost connection.
    assert!((bench.now() - begun).as_millis() >= 100);
    let mut bench = open(Server::start(), 1, &format!("{S3} http_retries=2"));
    bench.server().fail(&[busy(503), busy(503), busy(503)]);
    assert_eq!(bench.run(bench.write(0, 3)).result, Errno::EBUSY.result());
    assert_eq!(bench.server().requests().len(), 3);
    // What cannot become better is not tried again.
    let mut bench = open(Server::start(), 1, &format!("{S3} http_retries=5"));
    bench.server().fail(&[Fault::Status(403, "", "")]);
    assert_eq!(bench.run(bench.write(0, 3)).result, Errno::EACCES.result());
    assert_eq!(bench.server().requests().len(), 1);
}

#[test]
fn a_stop_request_ends_the_pauses_between_tries() {
    let mut bench = open(Server::start(), 1, &format!("{S3} http_retries=15"));
    let busy = || Fault::Status(503, "retry-after: 5\r\n", "");
    bench.server().fail(&[busy(), busy()]);
    bench.stop.request();
    let completion = bench.run(bench.write(0, 3));
    assert_eq!(completion.result, Completion::ENDED);
    assert_eq!(bench.server().requests().len(), 1);
}

/// A byte comes now and then, so that the server never is silent for `reply_timeout`.
#[test]
fn a_stop_request_bounds_the_wait_for_a_block() {
    let mut bench = open(Server::start(), 1, &format!("{S3} reply_timeout=1"));
    bench.server().fail(&[Fault::Dribbling(200)]);
    bench.stop.request();
    let begun = std::time::Instant::now();
    let result = bench.run(bench.read(0, 3)).result;
    assert_eq!(result, Errno::ETIMEDOUT.result());
    // The block would take minutes.
    assert!(begun.elapsed().as_secs() < 30);
}

#[test]
fn servers_that_are_not_there_are_named() {
    let mut bench = open(Server::start(), 1, "http_host=127.0.0.1:1");
    let result = bench.run(bench.read(0, 0)).result;
    assert_eq!(result, -111, "ECONNREFUSED");
    for host in ["127.0.0.1:90000", "localhost:x", "localhost:"] {
        let error = refused(&format!("http_host={host}")).to_string();
        assert!(error.contains("invalid port"), "{error}");
    }
    let mut bench = open(Server::start(), 1, "http_host=no-such-host.invalid");
    assert_eq!(bench.run(bench.read(0, 0)).result, Errno::ENOENT.result());
    assert!(bench.said(Errno::ENOENT).contains("http_host"));
    for host in ["me:word@h", "h/dav", "h?x"] {
        let error = refused(&format!("http_host={host}")).to_string();
        assert!(
            error.contains("not HOST") && !error.contains("word"),
            "{error}"
        );
    }
}

#[test]
fn apache_checks_passwords() {
    // SHA-1 of `word`, in base64.
    let Some(apache) = Apache::start(false, Some("PLzZCtxLGSqHpiWFC38jHK3fDrM=")) else {
        return;
    };
    let mut bench = open(apache, 1, "http_user=me http_pass=wrong");
    assert_eq!(bench.run(bench.read(0, 0)).result, Errno::EACCES.result());
    let Some(apache) = Apache::start(false, Some("PLzZCtxLGSqHpiWFC38jHK3fDrM=")) else {
        return;
    };
    let mut bench = open(apache, 1, "http_user=me http_pass=word");
    bench.run_one(bench.read(0, 3));
    bench.check(0, 3);
}

#[test]
fn certificates_are_checked() {
    let Some(apache) = Apache::start(true, None) else {
        return;
    };
    let mut bench = open(apache, 1, "https=insecure");
    bench.run_one(bench.read(0, 3));
    bench.check(0, 3);
    if !std::fs::exists("/etc/ssl/certs/ca-certificates.crt").unwrap() {
        println!("skipped: no CA certificates");
        return;
    }
    let Some(apache) = Apache::start(true, None) else {
        return;
    };
    let mut bench = open(apache, 1, "https=on");
    assert_eq!(bench.run(bench.read(0, 3)).result, Errno::EPROTO.result());
    let said = bench.said(Errno::EPROTO);
    assert!(
        said.contains("certificate") && said.contains("SSL_CERT_FILE"),
        "{said}"
    );
    // Plain HTTP where TLS is expected.
    fails_without_tls();
}

/// Objects that a server encrypts with a key of the job (SSE-C) are read with that key alone.
#[test]
fn moto_takes_a_customer_key() {
    let Some(moto) = Moto::start() else {
        return;
    };
    let key = |key: &str| {
        let options = format!(
            "{S3} in_bucket https=insecure http_s3_storage_class=STANDARD_IA \
             http_s3_sse_customer_key={key}"
        );
        open(&moto, 4, &options)
    };
    let right = "0123456789abcdef0123456789abcdef";
    let mut bench = key(right);
    for block in 0..4 {
        bench.fill(0, block);
        bench.run_one(bench.write(0, block));
        bench.run_one(bench.read(1, block));
        bench.check(1, block);
    }
    // Whether a wrong key is refused cannot be seen here: moto does not look at it.
}

fn fails_without_tls() {
    let mut bench = open(
        Server::start(),
        1,
        "https=insecure reply_timeout=1 connect_timeout=1",
    );
    let result = bench.run(bench.read(0, 3)).result;
    assert!(result < 0, "{result}");
}
