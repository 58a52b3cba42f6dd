//! `cargo xtask gallery`: the pictures of `docs/GALLERY.md`, drawn by the commands that stand
//! there.
//!
//! The document is the list: each picture is followed by a block of commands, and by a paragraph
//! that begins with `Modelled` or with `Measured on`, which this command writes.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::bench::{machine, programs};
use crate::process;

/// Runs `cargo xtask gallery [--only NAME] [--modelled] [--fathom FILE] [--list]`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    let root = process::root()?;
    let path = root.join(DOCUMENT);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let wanted: Vec<Picture> = pictures(&text)?
        .into_iter()
        .filter(|picture| options.wants(picture))
        .collect();
    if wanted.is_empty() {
        bail!("no picture has such a name: --list shows them");
    }
    if options.list {
        for picture in wanted {
            println!("{:16} {}", picture.name, picture.commands);
        }
        return Ok(());
    }
    let fathom = match &options.fathom {
        Some(path) => Path::new(path).canonicalize().context("--fathom")?,
        None => programs::build()?,
    };
    for picture in wanted {
        println!("gallery: {}", picture.name);
        draw(&picture, &fathom, &root).with_context(|| format!("gallery: {}", picture.name))?;
        if !picture.is_modelled {
            let text = fs::read_to_string(&path)?;
            fs::write(&path, measured(&text, &picture.name, &here()?)?)?;
        }
    }
    Ok(())
}

struct Options {
    only: Option<String>,
    modelled: bool,
    fathom: Option<String>,
    list: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self {
            only: None,
            modelled: false,
            fathom: None,
            list: false,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--only" => options.only = Some(value()?.clone()),
                "--modelled" => options.modelled = true,
                "--fathom" => options.fathom = Some(value()?.clone()),
                "--list" => options.list = true,
                other => bail!("gallery has no option `{other}`: `cargo xtask help` lists them"),
            }
        }
        Ok(options)
    }

    fn wants(&self, picture: &Picture) -> bool {
        let is_named = |part: &String| picture.name.contains(part.as_str());
        self.only.as_ref().is_none_or(is_named) && (picture.is_modelled || !self.modelled)
    }
}

/// Picture of the document.
#[derive(Debug, PartialEq, Eq)]
struct Picture {
    /// Name; the file is `docs/gallery/NAME.svg`.
    name: String,
    /// Lines of its block.
    commands: String,
    /// Drawn in virtual time.
    is_modelled: bool,
}

/// Returns the pictures of the document, each with the commands and the paragraph after it.
fn pictures(text: &str) -> Result<Vec<Picture>> {
    let mut pictures = Vec::new();
    for part in text.split("](gallery/").skip(1) {
        let (name, rest) = part.split_once(".svg)").context("a picture is no SVG")?;
        let block = rest
            .split_once("```sh\n")
            .and_then(|(_, rest)| rest.split_once("\n```\n\n"));
        let (commands, after) = block.with_context(|| format!("{name}: no block of commands"))?;
        if !commands.contains(&format!("--svg docs/gallery/{name}.svg")) {
            bail!("{name}: its commands do not draw it");
        }
        let is_modelled = after.starts_with("Modelled");
        pictures.push(Picture {
            name: name.into(),
            commands: commands.into(),
            is_modelled,
        });
    }
    Ok(pictures)
}

/// Runs the commands of a picture, with the program in front of the others of its name.
fn draw(picture: &Picture, fathom: &Path, root: &Path) -> Result<()> {
    let mut path: OsString = fathom.parent().context("the program's folder")?.into();
    if let Some(others) = std::env::var_os("PATH") {
        path.push(":");
        path.push(others);
    }
    let mut command = Command::new("bash");
    command.args(["-e", "-c", &picture.commands]);
    command.env("PATH", path).current_dir(root);
    // Runs for pictures belong into no history.
    command.env_remove("FATHOM_HISTORY");
    process::capture(&mut command)?;
    let file = root.join(format!("docs/gallery/{}.svg", picture.name));
    let bytes = fs::metadata(&file)
        .with_context(|| file.display().to_string())?
        .len();
    if bytes > BYTES_MAX {
        bail!("{bytes} bytes: at most {BYTES_MAX} are kept in the repository");
    }
    Ok(())
}

/// Returns the sentence about place and time of a measurement.
fn here() -> Result<String> {
    let date = process::capture(Command::new("date").args(["+%-d %B %Y"]).env("LC_ALL", "C"))?;
    Ok(format!(
        "Measured on {}, {}.",
        machine::describe(),
        date.trim()
    ))
}

/// Writes the sentence into the paragraph after the commands of a picture.
fn measured(text: &str, name: &str, sentence: &str) -> Result<String> {
    let picture = text.find(&format!("](gallery/{name}.svg)"));
    let place = picture.and_then(|at| {
        let end = text[at..].find("\n```\n\n")?;
        Some(at + end + "\n```\n\n".len())
    });
    let (before, after) = text.split_at(place.context("the picture is not in the document")?);
    // A sentence of an earlier measurement has a paragraph of its own.
    let after = match after.strip_prefix("Measured on ") {
        Some(rest) => rest.split_once("\n\n").map_or("", |(_, rest)| rest),
        None => after,
    };
    Ok(format!("{before}{sentence}\n\n{after}"))
}

const DOCUMENT: &str = "docs/GALLERY.md";
/// Largest picture that the repository takes.
const BYTES_MAX: u64 = 100 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_picture_of_the_document_is_there_with_its_commands() {
        let root = process::root().unwrap();
        let text = fs::read_to_string(root.join(DOCUMENT)).unwrap();
        let pictures = pictures(&text).unwrap();
        let modelled = pictures.iter().filter(|picture| picture.is_modelled);
        assert_eq!((pictures.len(), modelled.count()), (7, 3));
        for picture in pictures {
            let file = root.join(format!("docs/gallery/{}.svg", picture.name));
            let bytes = fs::metadata(&file)
                .map(|data| data.len())
                .unwrap_or_default();
            assert!(
                (1..=BYTES_MAX).contains(&bytes),
                "{}: {bytes}",
                picture.name
            );
            assert!(
                picture.is_modelled || text.contains("Measured on "),
                "{}",
                picture.name
            );
        }
    }

    #[test]
    fn a_later_measurement_replaces_the_sentence_of_an_earlier_one() {
        let text =
            "![a](gallery/a.svg)\n\n```sh\nfathom x --svg docs/gallery/a.svg\n```\n\nWhat.\n";
        let once = measured(text, "a", "Measured on A.").unwrap();
        assert!(once.ends_with("```\n\nMeasured on A.\n\nWhat.\n"), "{once}");
        let twice = measured(&once, "a", "Measured on B.").unwrap();
        assert_eq!(twice, once.replace("on A.", "on B."));
        assert!(measured(text, "b", "").is_err());
        let found = pictures(text).unwrap();
        assert_eq!(found[0].commands, "fathom x --svg docs/gallery/a.svg");
        assert!(!found[0].is_modelled);
    }
}
