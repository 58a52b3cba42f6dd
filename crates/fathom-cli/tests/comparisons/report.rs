//! `fathom report`: pages of runs that were kept.

use crate::common::{Folder, Run};

const MACHINE: &str = "[[device]]\nnames = [\"/dev/sdx\"]\nmodel = \"constant\"\ncapacity_gib = 1\n\
                       [device.constant]\nlatency_us = 100\n";

/// Returns a folder with the record of a modelled run.
fn recorded() -> Folder {
    let folder = Folder::new();
    folder.write("m.toml", MACHINE);
    let job = "--name=</script><script> --filename=/dev/sdx --rw=randread --bs=4k --iodepth=4 \
               --ioengine=libaio --time_based --runtime=2";
    folder
        .fathom(&format!("run --machine m.toml --record run.json {job}"))
        .expect(0);
    folder
}

#[test]
fn a_record_becomes_a_page() {
    let folder = recorded();
    folder.fathom("report run.json --html run.html").expect(0);
    let page = std::fs::read_to_string(folder.path().join("run.html")).unwrap();
    for text in [
        "default-src 'none'",
        "modelled on m.toml",
        "Latency by percentile",
        "Group 0, read",
        "[&lt;/script&gt;&lt;script&gt;]",
        "rw=randread",
        "40000",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert_eq!(page.matches("<script").count(), 1, "only its own");
    // The namespace of SVG is not an address that anything is loaded from.
    let page = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!page.contains("http:") && !page.contains("https:"));
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    // The same record gives the same page.
    folder.fathom("report run.json --html again.html").expect(0);
    let again = std::fs::read_to_string(folder.path().join("again.html")).unwrap();
    assert_eq!(page, again.replace("http://www.w3.org/2000/svg", ""));
}

#[test]
fn outputs_do_not_replace_what_they_are_made_from() {
    let folder = recorded();
    let record = std::fs::read(folder.path().join("run.json")).unwrap();
    std::os::unix::fs::symlink("run.json", folder.path().join("link.html")).unwrap();
    folder.write("job.fio", "[j]\nioengine=null\nsize=1m\n");
    folder.write(
        "lab.toml",
        "[lab]\nname = \"l\"\n[job]\nfile = \"job.fio\"\n",
    );
    folder.write("more.fio", "bs=4k\n");
    folder.write(
        "other.fio",
        "[j]\nfilename=/dev/modelled\nsize=1m\ninclude more.fio\n",
    );
    folder.write("machine.toml", crate::MACHINE);
    folder.write("published.csv", "depth,iops\n1,2\n");
    folder.write(
        "model.toml",
        "[lab]\nname = \"m\"\nmachine = \"machine.toml\"\n\
         [job]\nfilename = \"/dev/modelled\"\nsize = \"1m\"\n[axes]\niodepth = [1, 2]\n\
         [variants]\none = {}\nother = { file = \"other.fio\" }\n\
         [judge]\nbaseline = \"one\"\nmetrics = { \"read.iops\" = \"2%\" }\n\
         [[published]]\nfile = \"published.csv\"\nkeys = { iodepth = \"depth\" }\n\
         columns = [{ metric = \"read.iops\", variant = \"one\", column = \"iops\" }]\n\
         origin = \"a list\"\n",
    );
    for (words, kept) in [
        ("report run.json --html run.json", "run.json"),
        ("report run.json --html link.html", "run.json"),
        ("ab job.fio --set iodepth=1,2 --save ./job.fio", "job.fio"),
        ("lab lab.toml --html lab.toml", "lab.toml"),
        ("lab lab.toml --html job.fio", "job.fio"),
        ("ab other.fio --set iodepth=1,2 --save more.fio", "more.fio"),
        ("lab model.toml --html machine.toml", "machine.toml"),
        ("lab model.toml --html other.fio", "other.fio"),
        ("lab model.toml --html more.fio", "more.fio"),
        ("lab model.toml --html published.csv", "published.csv"),
    ] {
        let before = std::fs::read(folder.path().join(kept)).unwrap();
        let run = folder.fathom(words).expect(2);
        assert!(run.err.contains("would replace"), "{words}: {run:#?}");
        assert_eq!(std::fs::read(folder.path().join(kept)).unwrap(), before);
    }
    assert_eq!(
        std::fs::read(folder.path().join("run.json")).unwrap(),
        record
    );
}

#[test]
fn figures_are_written_one_by_one() {
    let folder = recorded();
    folder
        .fathom("report run.json --html run.html --svg-dir a/b")
        .expect(0);
    let figures = folder.path().join("a/b");
    for name in [
        "latency-by-percentile",
        "course-group-0-read",
        "heat-map-group-0-read",
    ] {
        let svg = std::fs::read_to_string(figures.join(format!("{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg ") && !svg.contains("@media"), "{svg}");
    }
    let run = folder.fathom("report run.json --html run.html --svg-dir run.json");
    let err = run.expect(2).err;
    assert!(err.contains("--svg-dir: run.json"), "{err}");
    assert!(
        err.contains("hint: the figures were kept as run.1.json\n"),
        "{err}"
    );
    let kept = std::fs::read_dir(folder.path().join("run.1.json")).unwrap();
    let drawn = std::fs::read_dir(&figures).unwrap();
    assert_eq!(kept.count(), drawn.count());
    // The figures are written even where the page is not, and both are told.
    let run = folder.fathom("report run.json --html no/run.html --svg-dir others");
    let err = run.expect(2).err;
    assert!(err.contains("the page was kept as"), "{err}");
    assert!(
        folder
            .path()
            .join("others/heat-map-group-0-read.svg")
            .exists()
    );
}

#[test]
fn a_page_that_cannot_be_written_is_kept() {
    let folder = recorded();
    folder.write("taken.1.html", "somebody's");
    std::fs::create_dir(folder.path().join("taken.html")).unwrap();
    for (name, kept) in [
        ("taken.html", "taken.2.html"),
        ("no/such/a.html", "a.1.html"),
        ("/proc/b.html", "b.1.html"),
        ("/dev/full", "full.1.html"),
    ] {
        let words = format!("report run.json --html {name}");
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &words);
        let err = Run::of({
            command.env("TMPDIR", folder.path());
            command
        });
        let err = err.expect(2).err;
        assert!(
            err.starts_with(&format!("fathom: report: --html: {name}: ")),
            "{err}"
        );
        assert_eq!(err.matches(name).count(), 1, "{err}");
        assert!(
            err.contains(&format!("kept as {kept}")) || err.contains(&format!("/{kept}")),
            "{err}"
        );
        let page = std::fs::read_to_string(folder.path().join(kept)).unwrap();
        assert!(page.ends_with("</html>\n"));
    }
    let taken = std::fs::read_to_string(folder.path().join("taken.1.html")).unwrap();
    assert_eq!(taken, "somebody's");
}

#[test]
fn what_has_no_page_is_refused() {
    let folder = recorded();
    folder.write("fio.json", "{\"fio version\": \"fio-3.33\", \"jobs\": []}");
    folder.write("later.json", "{\"version\": 99, \"jobs\": []}");
    for (words, why) in [
        ("report nowhere.json --html a.html", "nowhere.json"),
        ("report fio.json --html a.html", "has no job"),
        ("report later.json --html a.html", "later.json"),
    ] {
        let run = folder.fathom(words).expect(2);
        assert!(run.err.contains(why), "{words}: {}", run.err);
    }
    assert!(!folder.path().join("a.html").exists());
}
