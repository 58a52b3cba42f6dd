//! Compressed logs hold what the logs of the same run hold as text.

use std::collections::BTreeMap;

use fathom_core::Nanos;
use fathom_log::inflate_log;
use fathom_sim::Constant;
use fathom_virtual::simulate_logged;

use crate::common::plan;

/// Returns each file's name without `.fz`, and its text.
fn texts(words: &str) -> BTreeMap<String, String> {
    let device = Constant::new(Nanos::from_micros(70));
    let (_, files) = simulate_logged(&plan(words), &device).expect(words);
    let files = files.into_iter().map(|(name, bytes)| {
        let (name, text) = match name.strip_suffix(".fz") {
            None => (name, bytes),
            Some(name) => {
                let mut text = Vec::new();
                inflate_log(&*bytes, &mut text).expect("a compressed log");
                (name.to_owned(), text)
            }
        };
        (name, String::from_utf8(text).expect("text"))
    });
    files.collect()
}

#[test]
fn inflated_they_are_the_same() {
    let logs = "--write_bw_log=p --write_lat_log=p --write_iops_log=p --write_hist_log=p \
                --log_hist_msec=100";
    for more in [
        "",
        "--log_offset=1",
        "--log_prio=1 --prioclass=1 --prio=3",
        "--prioclass=1",
        "--log_offset=1 --log_prio=1 --cmdprio_percentage=30 --ioengine=io_uring --direct=1",
        "--log_avg_msec=1",
        "--log_avg_msec=1 --log_max_value=1 --log_offset=1",
        "--log_alternate_epoch=1 --per_job_logs=0",
    ] {
        let words = format!(
            "--name=t --size=8m --rw=randrw --iodepth=4 --ioengine=libaio --numjobs=2 {logs} {more}"
        );
        let plain = texts(&words);
        assert!(plain.values().any(|text| text.lines().count() > 20));
        assert_eq!(
            plain,
            texts(&format!("{words} --log_store_compressed=1")),
            "{more}"
        );
    }
}
