//! Rules on which blocks are visited and on what is written to them.

use fathom_job::{RandomDistribution, RandomGenerator, Verify};
use fathom_workload::BufferFill;

use super::view::View;
use super::{Fault, Rule};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "blocks-left-out",
        "random writes without a map, that are to cover everything",
        blocks_left_out,
    ),
    Rule::new(
        "verify-without-map",
        "verification of blocks that may be written more than once",
        verify_without_map,
    ),
    Rule::new(
        "distribution-has-no-map",
        "a distribution beside options of the map of visited blocks",
        distribution_has_no_map,
    ),
    Rule::new("zeros", "zeros, which cost less to store than data", zeros),
    Rule::new(
        "same-content",
        "buffers that hold the same all the time",
        same_content,
    ),
    Rule::new(
        "compressible",
        "content that compresses, on what compresses",
        compressible,
    ),
    Rule::new(
        "refill-has-nothing",
        "new content for each op where there is none to renew",
        refill_has_nothing,
    ),
];

fn blocks_left_out(view: &View<'_>) -> Option<Fault> {
    let options = view.options;
    let covers = options.norandommap && options.random && view.writes() && !view.reads();
    let limited = view.runtime().is_some() || options.io_size.is_some();
    if !covers || limited || options.number_ios.is_some() || view.setup.worker.loops > 1 {
        return None;
    }
    Fault::new(
        &["norandommap"],
        "without the map blocks are drawn anew each time: when the job has written as many as \
         there are, 37 % have not been written, and others several times",
        "leave `norandommap` out if each block is to be written once",
    )
}

fn verify_without_map(view: &View<'_>) -> Option<Fault> {
    let options = view.options;
    let repeats = options.norandommap || !is_uniform(view);
    if options.verify == Verify::None || !repeats || !options.random || !view.writes() {
        return None;
    }
    Fault::new(
        &["norandommap", "random_distribution", "verify"],
        "blocks may be written more than once, and each is checked against what was written last: \
         a write that was lost and then repeated is not noticed",
        "leave `norandommap` and `random_distribution` out, so that each block is written once",
    )
}

fn distribution_has_no_map(view: &View<'_>) -> Option<Fault> {
    let options = view.options;
    if is_uniform(view) || !options.random {
        return None;
    }
    let map = [
        (
            "norandommap",
            view.wrote("norandommap") && !options.norandommap,
        ),
        ("softrandommap", options.softrandommap),
        (
            "random_generator",
            options.random_generator == RandomGenerator::Lfsr,
        ),
    ];
    let (name, _) = map.into_iter().find(|(_, asked)| *asked)?;
    let at: &'static [&'static str] = match name {
        "norandommap" => &["norandommap"],
        "softrandommap" => &["softrandommap"],
        _ => &["random_generator"],
    };
    Fault::new(
        at,
        format!(
            "`random_distribution` visits some blocks often and others never, without a map: \
             `{name}` does nothing"
        ),
        format!("leave `{name}` or `random_distribution` out"),
    )
}

fn zeros(view: &View<'_>) -> Option<Fault> {
    let all_zeros = view.setup.worker.buffers.fill == BufferFill::Zero;
    if !all_zeros || !view.has_storage() || !view.writes() {
        return None;
    }
    Fault::new(
        &["zero_buffers", "buffer_compress_percentage"],
        "zeros are written: what detects them (thin volumes, arrays, some flash) notes that they \
         are there and stores nothing",
        "leave it out for content that cannot be left out",
    )
}

fn same_content(view: &View<'_>) -> Option<Fault> {
    let buffers = &view.setup.worker.buffers;
    let varies = buffers.scramble || buffers.refill || buffers.fill != BufferFill::Random;
    if varies || !view.writes() || !view.has_storage() {
        return None;
    }
    let why = "each of the job's buffers is written again and again as it is: what deduplicates \
               stores it once";
    match view.options.content.compress_percentage {
        Some(0) => Fault::new(
            &["buffer_compress_percentage"],
            why,
            "leave `buffer_compress_percentage=0` out, or add `refill_buffers`",
        ),
        Some(_) => Fault::new(&["refill_buffers"], why, "leave `refill_buffers=0` out"),
        None => Fault::new(
            &["scramble_buffers"],
            why,
            "leave `scramble_buffers=0` out, or add `refill_buffers`",
        ),
    }
}

fn compressible(view: &View<'_>) -> Option<Fault> {
    let options = view.options;
    let pattern = options.buffer_pattern.is_some();
    let laid_out = view.reads() && options.zero_buffers;
    if !view.under.compresses() || !(pattern && view.writes() || laid_out) {
        return None;
    }
    let storage = &view.under.storage;
    let what = match storage.device.as_str() {
        device if device.starts_with("zram") => device,
        _ => &storage.filesystem,
    };
    Fault::new(
        &["buffer_pattern", "zero_buffers"],
        format!(
            "the content repeats within each op, and {what} can compress it: less is stored and \
             moved than is reported"
        ),
        "leave it out for random content, or say how much with `buffer_compress_percentage`",
    )
}

fn refill_has_nothing(view: &View<'_>) -> Option<Fault> {
    let (options, buffers) = (view.options, &view.setup.worker.buffers);
    let asked = options.refill_given && options.refill_buffers;
    let fixed = match buffers.fill {
        BufferFill::Random => false,
        BufferFill::Zero => true,
        BufferFill::Pattern(_) => !view.reads(),
    };
    if !asked || !fixed || buffers.compress.is_some() || !view.writes() {
        return None;
    }
    Fault::new(
        &["refill_buffers"],
        "the buffers are always the same zeros or pattern: `refill_buffers` changes nothing",
        "leave `refill_buffers` out",
    )
}

/// Whether all blocks are as likely to be drawn.
fn is_uniform(view: &View<'_>) -> bool {
    let options = view.options;
    options.random_distribution == RandomDistribution::Random && options.access_zones.is_none()
}
