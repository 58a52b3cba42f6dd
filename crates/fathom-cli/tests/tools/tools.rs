//! fio's own tools, as Debian's package installs them, on output files of this program.

use std::process::Command;

use crate::common::Folder;

/// Runs a tool in the directory; `None` if it is not installed.
fn tool(folder: &Folder, name: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(name)
        .args(words)
        .current_dir(folder.path())
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: no {name}");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("ModuleNotFoundError") || errors.contains("No such file or directory") {
        eprintln!("skipped: {name} lacks something: {errors}");
        return None;
    }
    assert!(output.status.success(), "{name}: {text}{errors}");
    Some(text)
}

#[test]
fn jsonplus_clat2csv_takes_json_plus() {
    let folder = Folder::new();
    let words = "--name=a --ioengine=null --rw=randrw --size=1m --iodepth=4 --slat_percentiles=1 \
                 --clat_percentiles=1 --lat_percentiles=1 --name=b --ioengine=null --rw=read \
                 --size=64k --rate_iops=1000 --output-format=json+ --output=report.json";
    folder.fio(words).expect(0);
    let both = ["report.json", "report.csv"];
    if tool(&folder, "fio_jsonplus_clat2csv", &both).is_none() {
        return;
    }
    let words = [both[0], both[1], "--validate"];
    let said = tool(&folder, "fio_jsonplus_clat2csv", &words).unwrap();
    assert_eq!(said.matches("validated").count(), 2, "{said}");
    let csv = std::fs::read_to_string(folder.path().join("report_job1.csv")).unwrap();
    // The last line of what was read: all sixteen, the hundredth percentile.
    let last = csv
        .lines()
        .rev()
        .find(|line| line.contains(", 16, 1.0"))
        .unwrap_or_default();
    assert!(!last.is_empty(), "{csv}");
}

#[test]
fn fio2gnuplot_takes_logs() {
    let folder = Folder::new();
    let words = "--name=t --ioengine=null --rw=read --size=1g --rate_iops=2000 --runtime=1 \
                 --time_based --write_bw_log=t --write_iops_log=t --log_avg_msec=100";
    folder.fio(words).expect(0);
    for (pattern, log) in [("-b", "t_bw.1.log"), ("-i", "t_iops.1.log")] {
        assert!(
            folder.names().iter().any(|name| name == log),
            "{:?}",
            folder.names()
        );
        let Some(said) = tool(&folder, "fio2gnuplot", &[pattern, "-o", "plot"]) else {
            return;
        };
        assert!(said.contains(log), "{said}");
    }
    // Of the last call: ops by second, the rate that was asked for.
    let all = std::fs::read_to_string(folder.path().join("plot.global")).unwrap();
    let average = all.lines().find_map(|line| line.strip_prefix("avg="));
    let average: f64 = average.unwrap().parse().unwrap();
    assert!((500.0..2500.0).contains(&average), "{all}");
}

#[test]
fn fio_plot_draws_reports_and_logs() {
    let folder = Folder::new();
    for depth in [1, 4] {
        let prefix = format!("randread-iodepth-{depth}-numjobs-1");
        let words = format!(
            "--name=t --ioengine=null --rw=randread --bs=4k --iodepth={depth} --numjobs=1 \
             --size=1g --rate_iops=1000 --runtime=1 --time_based --output-format=json \
             --output=randread-{depth}-1.json --write_bw_log={prefix} --write_iops_log={prefix} \
             --write_lat_log={prefix} --log_avg_msec=100"
        );
        folder.fio(&words).expect(0);
    }
    for (kind, more) in [
        ("-l", &[][..]),
        ("-L", &["-t", "iops"]),
        (
            "-g",
            &["-t", "lat", "iops", "bw", "-d", "1", "4", "-n", "1"],
        ),
        ("-H", &["-d", "1", "-n", "1"]),
    ] {
        let image = format!("plot{kind}.png");
        let mut words = vec![
            "-i", ".", "-T", "title", "-r", "randread", "-o", &image, kind,
        ];
        words.extend(more);
        if tool(&folder, "fio-plot", &words).is_none() {
            return;
        }
        assert!(folder.names().contains(&image), "{:?}", folder.names());
    }
}
