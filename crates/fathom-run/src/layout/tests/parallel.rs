//! Files laid out side by side, by one run and by several.

use super::*;

#[test]
fn files_laid_out_side_by_side_are_those_laid_out_in_turn() {
    let scratch = Scratch::new("beside");
    let jobs = scratch.beside(&["a", "d/b", "d/e/c", "d/e/c"], 3 << 20);
    let report = lay(&jobs).unwrap();
    assert_eq!(report.written_bytes, 9 << 20);
    assert_eq!(report.created().count(), 3);
    let side_by_side = ["a", "d/b", "d/e/c"].map(|name| scratch.read(name));
    assert_eq!(report.undo(), []);
    assert_eq!(scratch.list(), []);
    let in_turn = jobs.into_iter().map(|job| LayoutJob {
        in_parallel: false,
        ..job
    });
    lay(&in_turn.collect::<Vec<_>>()).unwrap();
    let in_turn = ["a", "d/b", "d/e/c"].map(|name| scratch.read(name));
    assert!(side_by_side == in_turn);
}

#[test]
fn what_was_laid_out_side_by_side_is_unmade_when_one_fails() {
    let scratch = Scratch::new("beside-failing");
    scratch.write("kept", b"what was there");
    let jobs = scratch.beside(&["d/a", "d/e/b", "kept", "f"], 3 << 20);
    let error = lay_failing(&jobs, 1 << 20, 5);
    assert!(
        matches!(error.kind, LayoutErrorKind::System { .. }),
        "{error}"
    );
    assert_eq!(error.left_behind, []);
    assert_eq!(scratch.list(), [("kept".to_owned(), 14)]);
    assert_eq!(scratch.read("kept"), b"what was there");
}

#[test]
fn a_stop_ends_all_that_are_laid_out_side_by_side() {
    let scratch = Scratch::new("beside-stopped");
    let stopped = LayoutOptions {
        stop: &|| true,
        ..options()
    };
    let jobs = scratch.beside(&["a", "b"], 1 << 30);
    let error = lay_out(&jobs, &stopped, &mut |_| {}).unwrap_err();
    assert!(matches!(error.kind, LayoutErrorKind::Interrupted));
    assert_eq!(scratch.list(), []);
}

#[test]
fn runs_that_begin_at_the_same_time_share_their_new_file() {
    let scratch = Scratch::new("race");
    let job = scratch.job(&[("x/y/a", 256 << 10, true), ("x/b", 4096, false)]);
    for round in 0..30 {
        std::thread::scope(|scope| {
            let runs = [(); 4].map(|()| scope.spawn(|| lay(std::slice::from_ref(&job)).map(drop)));
            for run in runs {
                run.join()
                    .unwrap()
                    .unwrap_or_else(|error| panic!("round {round}: {error}"));
            }
        });
        let data = scratch.read("x/y/a");
        assert_eq!(data.len(), 256 << 10);
        assert!(
            data.chunks(512)
                .all(|block| block.iter().any(|&byte| byte != 0))
        );
        assert_eq!(scratch.read("x/b").len(), 4096);
        fs::remove_dir_all(scratch.0.join("x")).unwrap();
    }
}
