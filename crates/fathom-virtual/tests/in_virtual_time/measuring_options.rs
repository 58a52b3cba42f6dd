//! Options that disable measurements: which numbers remain, and which logs have lines. Each row
//! matches fio 3.33.

use fathom_core::Nanos;
use fathom_sim::Constant;
use fathom_virtual::simulate_logged;

use crate::common::{plan, record};

/// Job at 1000 IOPS for 1.2 s.
const JOB: &str = "--name=t --rw=read --size=8m --rate_iops=1000 --time_based --runtime=1200ms";

/// Presence of slat, clat and lat; bandwidth samples are always recorded.
#[test]
fn what_is_disabled_is_not_measured_but_sampled_it_is() {
    let check = |words: &str, [slat, clat, lat]: [bool; 3]| {
        let record = record(&format!("{JOB} --ioengine=libaio --iodepth=4 {words}"));
        let read = &record.jobs[0].directions.read;
        let counts = [&read.slat, &read.clat, &read.lat].map(Option::is_some);
        assert_eq!(counts, [slat, clat, lat], "{words}");
        let samples = (read.bandwidth.count(), read.iops.count());
        assert_eq!(samples, (2, 2), "{words}");
    };
    check("", [true; 3]);
    check("--disable_slat=1", [false, true, true]);
    check("--disable_clat=1", [true, false, true]);
    check("--disable_lat=1", [true, true, false]);
    check("--disable_lat=1 --disable_clat=1", [true, false, false]);
    check("--disable_bw_measurement=1", [true; 3]);
    check("--gtod_reduce=1", [false; 3]);
    check("--gtod_reduce=1 --lat_percentiles=1", [false; 3]);
    check("--gtod_reduce=0 --disable_bw=1", [true; 3]);
}

/// Log files, and whether they have lines.
#[test]
fn logs_of_what_is_not_measured_are_empty_or_missing() {
    let logs = "--write_bw_log=x --write_iops_log=x --write_lat_log=x --write_hist_log=x \
                --log_hist_msec=500";
    let check = |words: &str, want: &str| {
        let words = format!("{JOB} --ioengine=null {logs} {words}");
        let device = Constant::new(Nanos::from_micros(100));
        let (_, files) = simulate_logged(&plan(&words), &device).expect(&words);
        let said = |(name, lines): (String, Vec<u8>)| {
            let kind = name.strip_prefix("x_")?.strip_suffix(".1.log")?;
            let mark = if lines.is_empty() { "-" } else { "" };
            Some(format!("{kind}{mark}"))
        };
        let mut found: Vec<String> = files.into_iter().filter_map(said).collect();
        found.sort();
        assert_eq!(found.join(" "), want, "{words}");
    };
    check("", "bw clat clat_hist iops lat slat-");
    check("--disable_bw=1", "bw- clat clat_hist iops lat slat-");
    check(
        "--disable_bw=1 --log_avg_msec=500",
        "bw clat clat_hist iops lat slat-",
    );
    check("--disable_clat=1", "bw clat_hist- iops lat slat-");
    check("--disable_lat=1", "bw clat clat_hist iops slat-");
    check("--disable_slat=1", "bw clat clat_hist iops lat");
    check("--gtod_reduce=1", "bw- clat_hist- iops-");
    check("--gtod_reduce=1 --log_avg_msec=500", "bw clat_hist- iops");
}
