//! `[axes]`: lists of values, and the cells that they span.

use std::ops::Range;
use std::sync::Arc;

use fathom_toml::{Entry, Fields};

use super::names;
use super::reader::Reader;
use super::settings::{self, Leaf};
use crate::lab_plan::{LabAxis, LabCell, Setting, Subject};

/// Axis with the settings of each value.
pub(super) struct Axis {
    pub(super) shown: LabAxis,
    settings: Vec<Vec<Arc<Setting>>>,
    span: Range<usize>,
}

/// Reads the axes in the order of the file: single lists, `together` and `named`.
pub(super) fn read(reader: &Reader<'_>, top: &Fields<'_>, subject: Option<&Subject>) -> Vec<Axis> {
    let Some(fields) = top.table("axes", true) else {
        return Vec::new();
    };
    let together = match fields.has("together") {
        true => fields.tables("together"),
        false => Vec::new(),
    };
    let named = match fields.has("named") {
        true => fields.tables("named"),
        false => Vec::new(),
    };
    let mut axes: Vec<Axis> = settings::leaves(reader, fields.entries(), subject)
        .iter()
        .filter_map(|leaf| list(reader, std::slice::from_ref(leaf), leaf.key_span.clone()))
        .collect();
    for table in together {
        let leaves = settings::leaves(reader, table.entries(), subject);
        axes.extend(list(reader, &leaves, table.span()));
    }
    for table in named {
        axes.extend(names_of_settings(reader, &table, subject));
    }
    axes.sort_by_key(|axis| axis.span.start);
    refuse_same_names(reader, &axes);
    axes
}

/// Returns the axis of lists that advance together; it has the name of the first.
fn list(reader: &Reader<'_>, leaves: &[Leaf<'_>], span: Range<usize>) -> Option<Axis> {
    let Some(first) = leaves.first() else {
        reader.refuse(
            &span,
            "lists that advance together: there is none",
            "add lists, as `bs = [\"4k\", \"8k\"]`",
        );
        return None;
    };
    let mut settings: Vec<Vec<Arc<Setting>>> = Vec::new();
    let mut lengths = Vec::new();
    for leaf in leaves {
        let Some(items) = leaf.value.items().filter(|items| !items.is_empty()) else {
            let why = format!("axis `{}` must be a list of values", leaf.key);
            let hint = format!(
                "write `{} = [1, 2]`; a single value belongs in the job",
                leaf.key
            );
            reader.refuse(&leaf.value.span(), why, hint);
            continue;
        };
        lengths.push((leaf, items.len()));
        settings.resize_with(settings.len().max(items.len()), Vec::new);
        for (place, item) in items.iter().enumerate() {
            let setting = settings::setting(reader, &leaf.target, &leaf.key, &leaf.key_span, item);
            settings[place].extend(setting.map(Arc::new));
        }
    }
    let (_, length) = *lengths.first()?;
    for (leaf, other) in &lengths[1..] {
        if *other != length {
            let why = format!(
                "`{}` has {length} values and `{}` has {other}: lists that advance together have \
                 the same length",
                first.key, leaf.key
            );
            reader.refuse(
                &leaf.value.span(),
                why,
                "give both the same number of values",
            );
        }
    }
    let value = |settings: &Vec<Arc<Setting>>| settings.first().map(|one| one.value.clone());
    let values: Vec<String> = settings
        .iter()
        .map(|one| value(one).unwrap_or_default())
        .collect();
    refuse_same_values(reader, first, &values);
    Some(Axis {
        shown: LabAxis {
            name: first.key.clone(),
            values,
        },
        settings,
        span,
    })
}

/// Returns the axis of one `[[axes.named]]`: `name`, and a table `values` of names with settings.
fn names_of_settings(
    reader: &Reader<'_>,
    table: &Fields<'_>,
    subject: Option<&Subject>,
) -> Option<Axis> {
    let name = names::read(reader, table, "name");
    let values = table.table("values", false);
    table.finish();
    let entries: Vec<Entry<'_>> = values?.entries();
    let mut axis = Axis {
        shown: LabAxis {
            name: name?,
            values: Vec::new(),
        },
        settings: Vec::new(),
        span: table.span(),
    };
    for entry in entries {
        names::check(reader, entry.key, &entry.key_span);
        let Some(fields) = entry.value.fields(entry.key) else {
            let why = format!("`{}` must be a table of settings", entry.key);
            reader.refuse(&entry.value.span(), why, "write `NAME = { bs = \"4k\" }`");
            continue;
        };
        let leaves = settings::leaves(reader, fields.entries(), subject);
        let of_value = leaves
            .iter()
            .filter_map(|leaf| leaf.setting(reader).map(Arc::new));
        axis.settings.push(of_value.collect());
        axis.shown.values.push(entry.key.to_owned());
    }
    if axis.settings.is_empty() {
        reader.refuse(
            &axis.span,
            "a named axis has no values",
            "write `values = { small = { bs = \"4k\" }, large = { bs = \"1m\" } }`",
        );
    }
    Some(axis)
}

fn refuse_same_names(reader: &Reader<'_>, axes: &[Axis]) {
    for (at, axis) in axes.iter().enumerate() {
        let same = |other: &Axis| other.shown.name == axis.shown.name;
        if axes[..at].iter().any(same) {
            let why = format!("another axis is called `{}`", axis.shown.name);
            reader.refuse(
                &axis.span,
                why,
                "keep one of them, or give each its own name",
            );
        }
    }
}

/// Notes cells that would be the same.
fn refuse_same_values(reader: &Reader<'_>, first: &Leaf<'_>, values: &[String]) {
    let mut seen = std::collections::HashSet::new();
    for (value, item) in values.iter().zip(first.value.items().into_iter().flatten()) {
        if !seen.insert(value) {
            let why = format!("axis `{}` has the value `{value}` twice", first.key);
            reader.refuse(&item.span(), why, "remove one");
        }
    }
}

/// Returns every combination of the axes' values; `None` if there are too many.
pub(super) fn cells(reader: &Reader<'_>, top: &Fields<'_>, axes: &[Axis]) -> Option<Vec<LabCell>> {
    let sizes = axes.iter().map(|axis| axis.settings.len());
    let count = sizes.fold(1_usize, usize::saturating_mul);
    if count > CELLS_MAX {
        let span = top.value("axes").map_or(0..0, |axes| axes.span());
        let why = format!("the axes have {count} cells, and the limit is {CELLS_MAX}");
        reader.refuse(
            &span,
            why,
            "shorten the axes, or let lists advance together",
        );
        return None;
    }
    let longest = |axis: &Axis| {
        let values = axis.shown.values.iter().map(String::len);
        axis.shown.name.len() + values.max().unwrap_or_default() + 3
    };
    let label = axes.iter().map(longest).sum::<usize>();
    if count.saturating_mul(label) > LABELS_MAX {
        let span = top.value("axes").map_or(0..0, |axes| axes.span());
        let why = format!(
            "{count} cells have names of up to {label} bytes, more than {LABELS_MAX} in all"
        );
        let hint = "give long values short names, with `[[axes.named]]`";
        reader.refuse(&span, why, hint);
        return None;
    }
    Some((0..count).map(|number| cell(axes, number)).collect())
}

fn cell(axes: &[Axis], number: usize) -> LabCell {
    let mut values = vec![0; axes.len()];
    let mut rest = number;
    // The last axis varies the fastest.
    for (place, axis) in axes.iter().enumerate().rev() {
        values[place] = rest % axis.settings.len();
        rest /= axis.settings.len();
    }
    let mut settings = Vec::new();
    let mut label = String::new();
    for (axis, &value) in axes.iter().zip(&values) {
        settings.extend_from_slice(&axis.settings[value]);
        if !label.is_empty() {
            label.push_str(", ");
        }
        label.push_str(&format!("{}={}", axis.shown.name, axis.shown.values[value]));
    }
    LabCell {
        number,
        values,
        settings,
        label,
    }
}

/// Most bytes of the labels of all cells.
const LABELS_MAX: usize = 16 << 20;
/// Most cells: each takes memory, and a row of the table.
pub(super) const CELLS_MAX: usize = 100_000;
