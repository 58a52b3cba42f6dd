//! Rules about the choice of blocks and the content of writes.

use fathom_job::{RandomDistribution, RandomGenerator, Verify};
use fathom_workload::BufferFill;

use super::view::JobView;
use super::{Rule, RuleMatch};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "blocks-left-out",
        "random writes that leave blocks out, without a map",
        blocks_left_out,
    ),
    Rule::new(
        "verify-without-map",
        "verification of blocks that may be written repeatedly",
        verify_without_map,
    ),
    Rule::new(
        "distribution-has-no-map",
        "options of the random map with a random distribution",
        distribution_has_no_map,
    ),
    Rule::new("zeros", "zeros, which cost less to store than data", zeros),
    Rule::new(
        "same-content",
        "buffers whose contents never change",
        same_content,
    ),
    Rule::new(
        "compressible",
        "compressible content on storage that compresses",
        compressible,
    ),
    Rule::new(
        "refill-has-nothing",
        "refilled buffers whose contents cannot change",
        refill_has_nothing,
    ),
];

fn blocks_left_out(view: &JobView<'_>) -> Option<RuleMatch> {
    let options = view.options;
    let covers = options.norandommap && options.random && view.writes() && !view.reads();
    let limited = view.runtime().is_some() || options.io_size.is_some();
    if !covers || limited || options.number_ios.is_some() || view.setup.worker.loops > 1 {
        return None;
    }
    RuleMatch::new(
        &["norandommap"],
        "without the random map blocks repeat: after as many writes as there are blocks, 37 % of \
         them are unwritten and others were written several times",
        "remove `norandommap` to write each block once",
    )
}

fn verify_without_map(view: &JobView<'_>) -> Option<RuleMatch> {
    let options = view.options;
    let repeats = options.norandommap || !is_uniform(view);
    if options.verify == Verify::None || !repeats || !options.random || !view.writes() {
        return None;
    }
    RuleMatch::new(
        &["norandommap", "random_distribution", "verify"],
        "blocks may be written repeatedly, and each is checked against its last write: a lost \
         write is not noticed if a later one succeeded",
        "remove `norandommap` and `random_distribution`, so that each block is written once",
    )
}

fn distribution_has_no_map(view: &JobView<'_>) -> Option<RuleMatch> {
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
    RuleMatch::new(
        at,
        format!("`random_distribution` uses no random map: `{name}` has no effect"),
        format!("remove `{name}` or `random_distribution`"),
    )
}

fn zeros(view: &JobView<'_>) -> Option<RuleMatch> {
    let all_zeros = view.setup.worker.buffers.fill == BufferFill::Zero;
    if !all_zeros || !view.has_storage() || !view.writes() {
        return None;
    }
    RuleMatch::new(
        &["zero_buffers", "buffer_compress_percentage"],
        "the job writes zeros: storage that detects them (thin volumes, arrays, some flash drives) \
         stores nothing",
        "remove it to write data that must be stored",
    )
}

fn same_content(view: &JobView<'_>) -> Option<RuleMatch> {
    let buffers = &view.setup.worker.buffers;
    let varies = buffers.scramble || buffers.refill || buffers.fill != BufferFill::Random;
    if varies || !view.writes() || !view.has_storage() {
        return None;
    }
    let why = "the job writes the same buffers again and again: storage that deduplicates stores \
               each once";
    match view.options.content.compress_percentage {
        Some(0) => RuleMatch::new(
            &["buffer_compress_percentage"],
            why,
            "remove `buffer_compress_percentage=0`, or add `refill_buffers`",
        ),
        Some(_) => RuleMatch::new(&["refill_buffers"], why, "remove `refill_buffers=0`"),
        None => RuleMatch::new(
            &["scramble_buffers"],
            why,
            "remove `scramble_buffers=0`, or add `refill_buffers`",
        ),
    }
}

fn compressible(view: &JobView<'_>) -> Option<RuleMatch> {
    let options = view.options;
    let pattern = options.buffer_pattern.is_some();
    let laid_out = view.reads() && options.zero_buffers;
    if !view.storage_facts.compresses() || !(pattern && view.writes() || laid_out) {
        return None;
    }
    let storage = &view.storage_facts.storage;
    let what = match storage.device.as_str() {
        device if device.starts_with("zram") => device,
        _ => &storage.filesystem,
    };
    RuleMatch::new(
        &["buffer_pattern", "zero_buffers"],
        format!(
            "the contents repeat within each op and {what} can compress them: less is stored and \
             transferred than reported"
        ),
        "remove it for random contents, or set `buffer_compress_percentage`",
    )
}

fn refill_has_nothing(view: &JobView<'_>) -> Option<RuleMatch> {
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
    RuleMatch::new(
        &["refill_buffers"],
        "the buffers always hold the same zeros or pattern: `refill_buffers` has no effect",
        "remove `refill_buffers`",
    )
}

/// Returns true if all blocks are equally likely.
fn is_uniform(view: &JobView<'_>) -> bool {
    let options = view.options;
    options.random_distribution == RandomDistribution::Random && options.access_zones.is_none()
}
