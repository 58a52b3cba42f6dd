//! Lines that fio prints before a run: one per job section, and the number of jobs starting.

use fathom_record::JobRecord;

use crate::rate::Units;

/// Formats the line of a job section, followed by `...` if it has clones.
#[must_use]
pub fn job_header(job: &JobRecord, clones: u32) -> String {
    let units = Units::of(&job.display);
    let [read, write, trim] = job.block_sizes.each().map(|&(min, max)| {
        let (min, max) = (units.size(min).0, units.size(max).0);
        format!("{min}-{max}")
    });
    let last = match job.block_sizes_by_order {
        true => "bs_is_seq_rand".to_owned(),
        false => format!("(T) {trim}"),
    };
    format!(
        "{}: (g={}): rw={}, bs=(R) {read}, (W) {write}, {last}, ioengine={}, iodepth={}\n{}",
        job.name,
        job.group_id,
        job.rw,
        job.engine,
        job.iodepth,
        if clones > 1 { "...\n" } else { "" },
    )
}

/// Formats a line such as `Starting 1 thread and 2 processes`.
#[must_use]
pub fn starting_line(threads: u32, processes: u32) -> String {
    let threads = counted(threads, "thread", "threads");
    let processes = counted(processes, "process", "processes");
    let both: Vec<String> = [threads, processes].into_iter().flatten().collect();
    format!("Starting {}\n", both.join(" and "))
}

fn counted(count: u32, one: &str, several: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {several}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_fios() {
        let mut job = JobRecord {
            name: "a".to_owned(),
            rw: "randread".to_owned(),
            engine: "psync".to_owned(),
            iodepth: 1,
            ..JobRecord::default()
        };
        job.block_sizes.read = (1024, 65_536);
        job.block_sizes.write = (1 << 20, 1 << 20);
        job.block_sizes.trim = (4096, 4096);
        let line = "a: (g=0): rw=randread, bs=(R) 1024B-64.0KiB, (W) 1024KiB-1024KiB, \
                    (T) 4096B-4096B, ioengine=psync, iodepth=1\n";
        assert_eq!(job_header(&job, 1), line);
        assert_eq!(job_header(&job, 2), format!("{line}...\n"));
        job.block_sizes_by_order = true;
        assert!(job_header(&job, 1).contains("(W) 1024KiB-1024KiB, bs_is_seq_rand, ioengine"));
        job.block_sizes_by_order = false;
        job.display.kb_base = 1000;
        assert!(job_header(&job, 1).contains("(R) 1024B-65.5kB, (W) 1049kB-1049kB"));
    }

    #[test]
    fn starting_counts_both_kinds() {
        assert_eq!(starting_line(0, 1), "Starting 1 process\n");
        assert_eq!(starting_line(2, 0), "Starting 2 threads\n");
        assert_eq!(starting_line(1, 2), "Starting 1 thread and 2 processes\n");
    }
}
