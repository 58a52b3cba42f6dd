//! Modelled machines of `bench lab`, and the experiment on them.

/// Noise of a machine: a name, and the keys of `[noise]`.
#[derive(Debug)]
pub(super) struct Noise {
    pub(super) name: &'static str,
    keys: &'static str,
}

/// Returns a machine file. Ops take 95 to 140 µs, so that rate, mean and p90 differ from each other
/// by the ops that are drawn.
pub(super) fn machine(noise: &Noise, seed: u32) -> String {
    format!(
        "[[device]]\nnames = [\"*\"]\nmodel = \"distribution\"\ncapacity_gib = 0.1\n\
         [device.distribution]\nread = {{ latency_ns = [95_000, 100_000, 105_000, 140_000], {} }}\n\
         [noise]\nseed = {seed}\n{}\n",
        COUNTS, noise.keys
    )
}

/// Returns a lab file: a run is 40 ms with half a minute of pause before the next, so that drift,
/// wander and neighbour act between runs; `other` is 3 % slower, except in an A/A.
pub(super) fn lab(name: &str, stop: &str, repeats_max: u32, seed: u32) -> String {
    format!(
        "[lab]\nname = \"{name}\"\nmachine = \"{name}-machine.toml\"\nseed = {seed}\n\
         [job]\nrw = \"randread\"\nbs = \"4k\"\nfilename = \"/dev/m\"\nioengine = \"psync\"\n\
         direct = \"1\"\nnorandommap = \"1\"\ntime_based = true\nruntime = \"40ms\"\n\
         [variants]\nplain = {{}}\nother = {{ machine = {{ \
         \"device.distribution.read.latency_ns\" = [97_938, 103_093, 108_247, 144_330] }} }}\n\
         [judge]\nbaseline = \"plain\"\n\
         metrics = {{ \"read.iops\" = \"2%\", \"read.clat_mean\" = \"2%\", \
         \"read.clat_p90\" = \"2%\" }}\n\
         repeats = {{ min = 12, max = {repeats_max}, stop = \"{stop}\" }}\n\
         [run]\npause = \"30s\"\n"
    )
}

/// The tenth part of ops beyond p90 lies within the slowest fifth.
const COUNTS: &str = "count = [10, 60, 10, 20]";

/// Noises, which hold over an experiment of up to 80 runs and 40 minutes.
pub(super) const NOISES: [Noise; 5] = [
    Noise {
        name: "between runs",
        keys: "between_runs_percent = 2",
    },
    Noise {
        name: "drift",
        keys: "between_runs_percent = 2\ndrift_percent_per_hour = 15",
    },
    Noise {
        name: "wander",
        keys: "wander = { percent = 2, every_s = 30, correlation = 0.9 }",
    },
    Noise {
        name: "neighbour",
        keys: "between_runs_percent = 1\nneighbour = { every_s = 600, for_s = 90, times = 1.2 }",
    },
    Noise {
        name: "all",
        keys: "between_runs_percent = 1\ndrift_percent_per_hour = 15\n\
               wander = { percent = 1, every_s = 30, correlation = 0.9 }\n\
               neighbour = { every_s = 600, for_s = 90, times = 1.2 }",
    },
];
