//! `ioengine=http` in a build without it: its options are known, and it is refused by name.

use crate::common::Folder;

const JOB: &str = "run --name=x --ioengine=http --http_host=h --http_user=me --http_pass=SECRET \
                   --filename=/dav/x --rw=write --size=4k";

#[test]
fn the_engine_is_refused_with_the_way_to_get_it() {
    let run = Folder::new().fathom(JOB).expect(2);
    assert!(
        run.err.contains("this build has no engine `http`"),
        "{run:#?}"
    );
    assert!(run.err.contains("--features http"), "{run:#?}");
}

#[test]
fn secrets_are_masked() {
    for words in ["--showcmd", "--debug=parse"] {
        let run = Folder::new().fathom(&format!("{JOB} {words}"));
        let all = format!("{}{}", run.out, run.err);
        assert!(all.contains("http_pass"), "{words}: {all}");
    }
    let run = Folder::new().fathom(&format!("{JOB} --showcmd")).expect(0);
    assert!(
        run.out.contains("***") && !run.out.contains("SECRET"),
        "{run:#?}"
    );
}
