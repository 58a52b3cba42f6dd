//! Output of `fathom report`: the page, and its figures one by one.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use fathom_host::output_file::{self, Stop};
use fathom_report::{Drawing, Page};
use fathom_sys::signals::Interrupts;

use crate::kept_output::{Kept, at, keep_folder, with_place, write_or_keep};

/// Writes a page, and each of its figures into a directory if one is named.
///
/// An output that cannot be written under its name is kept under another, which the error names.
/// Figures are written even if the page is not.
pub(crate) fn write(page: &Page, html: &Path, svg_dir: Option<&Path>) -> Result<()> {
    let interrupts = Interrupts::install().context("signals")?;
    let stop = Stop::when(move || interrupts.count() > 0);
    let written = write_or_keep(html, page.html().as_bytes(), PAGE, &stop);
    let written = written.context("--html");
    let Some(folder) = svg_dir.filter(|_| !stop.is_asked()) else {
        return written;
    };
    let drawings = page.drawings();
    let drawn = draw(folder, &drawings, &stop).map_err(|error| {
        if stop.is_asked() {
            return error;
        }
        let files = drawings.iter();
        let files: Vec<_> = files
            .map(|drawing| (file_name(drawing), drawing.svg.as_bytes()))
            .collect();
        let kept = keep_folder(folder, &files);
        with_place(&error, FIGURES, kept)
    });
    let drawn = drawn.context("--svg-dir");
    match (written, drawn) {
        (Err(page), Err(figures)) => Err(anyhow!("{page:#}\nfathom: report: {figures:#}")),
        (written, drawn) => written.and(drawn),
    }
}

fn draw(folder: &Path, drawings: &[Drawing], stop: &Stop) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| at(folder, error))?;
    for drawing in drawings {
        let path = folder.join(file_name(drawing));
        let written = output_file::write(&path, drawing.svg.as_bytes(), stop);
        written.map_err(|error| at(&path, error))?;
    }
    Ok(())
}

fn file_name(drawing: &Drawing) -> String {
    format!("{}.svg", drawing.name)
}

const PAGE: Kept = Kept {
    words: "the page was",
    extension: "html",
};
const FIGURES: Kept = Kept {
    words: "the figures were",
    extension: "",
};
