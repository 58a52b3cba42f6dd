//! Texts of small tables.

use super::*;

fn table() -> Table {
    let figure = |group: &str, name: &str| {
        Column::figure(format!("{group}_{name}"), name).in_group(format!("{group}, µs"))
    };
    let row = |depth, figures: [u64; 4]| {
        let key = [Cell::Count(1), Cell::Count(depth), Cell::Missing];
        key.into_iter().chain(figures.map(Cell::Count)).collect()
    };
    Table {
        head: TableHead {
            name: "reads".into(),
            about: "reads, \"by\" depth".into(),
            origin: "nowhere".into(),
            has_plot: false,
        },
        columns: vec![
            Column::key("threads", "threads"),
            Column::key("depth", "depth"),
            Column::hidden("gap"),
            figure("slat", "mean"),
            figure("clat", "mean"),
            figure("clat", "p99"),
            figure("slat", "p99"),
        ],
        rows: vec![row(1, [1, 2, 3, 4]), row(64, [10, 20, 30, 40])],
        notes: vec!["a | b".into()],
        panels: Vec::new(),
    }
}

#[test]
fn groups_stand_side_by_side() {
    let want = "\
reads, \"by\" depth
a | b
published: nowhere
all rows: threads 1

       slat, µs    clat, µs
       ---------   ---------
depth  mean  p99   mean  p99
    1     1    4      2    3
   64    10   40     20   30
";
    assert_eq!(table().text(80), want);
}

#[test]
fn columns_may_be_wider_than_a_format_can_say() {
    let mut table = table();
    table.rows[0][1] = Cell::Text("x".repeat(70_000));
    table.rows[1][5] = Cell::Text("y".repeat(70_000));
    let longest = table.text(80).lines().map(str::len).max();
    assert!(longest.unwrap() > 140_000, "{longest:?}");
}

#[test]
fn narrow_terminals_get_blocks() {
    let text = table().text(20);
    let (_, blocks) = text.split_once("threads 1\n").unwrap();
    assert_eq!(blocks.matches("\n\n").count(), 1, "{text}");
    assert_eq!(blocks.matches("depth").count(), 2, "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 20),
        "{text}"
    );
    // A group that is wider than the terminal is split; its title stays over each part.
    let text = table().text(14);
    assert_eq!(text.matches("slat").count(), 2, "{text}");
    assert!(
        text.lines().skip(1).all(|line| line.chars().count() <= 14),
        "{text}"
    );
}

#[test]
fn rows_without_a_value_are_left_out_of_later_blocks() {
    let mut table = table();
    for column in [4, 5] {
        table.rows[0][column] = Cell::Missing;
    }
    let text = table.text(20);
    let blocks: Vec<&str> = text.split("\n\n").collect();
    assert_eq!(blocks[1].lines().count(), 3 + 2, "{text}");
    assert_eq!(blocks[2].lines().count(), 3 + 1, "{text}");
    assert!(blocks[2].ends_with("   64    20   30\n"), "{text}");
}

#[test]
fn sections_and_names_are_for_people() {
    let mut table = table();
    table.columns[0] = Column::section("place");
    table.columns[1] = Column::key("source", "source");
    for (row, place) in table.rows.iter_mut().zip(["disk", "memory"]) {
        row[0] = Cell::Text(place.into());
        row[1] = Cell::Named {
            word: "after",
            name: "with the patches".into(),
        };
    }
    table.rows[0][1] = Cell::Text("measured".into());
    let text = table.text(80);
    let rows: Vec<&str> = text.lines().rev().take(4).collect();
    assert_eq!(rows[3], "disk:");
    assert!(rows[2].starts_with("measured          "), "{text}");
    assert_eq!(rows[1], "memory:");
    assert!(rows[0].starts_with("with the patches  "), "{text}");
    let value: Value = serde_json::from_str(&table.json()).unwrap();
    assert_eq!(value["rows"][1]["source"], "after");
    assert!(
        table
            .markdown()
            .contains("| memory | with the patches | 10 |")
    );
}

#[test]
fn rows_are_objects_and_gaps_are_null() {
    let value: Value = serde_json::from_str(&table().json()).unwrap();
    assert_eq!(
        value["rows"][0],
        json!({"threads": 1, "depth": 1, "gap": null, "slat_mean": 1, "clat_mean": 2,
               "clat_p99": 3, "slat_p99": 4})
    );
}

#[test]
fn csv_has_the_keys_and_values_of_json() {
    let mut table = table();
    table.rows[1][2] = Cell::Text("a \"b\", c".into());
    let want = "\
threads,depth,gap,slat_mean,clat_mean,clat_p99,slat_p99
1,1,,1,2,3,4
1,64,\"a \"\"b\"\", c\",10,20,30,40
";
    assert_eq!(table.csv(), want);
}

#[test]
fn markdown_has_one_heading_per_column() {
    let want = "\
reads, \"by\" depth

| threads | depth | slat, µs: mean | clat, µs: mean | clat, µs: p99 | slat, µs: p99 |
|--:|--:|--:|--:|--:|--:|
| 1 | 1 | 1 | 2 | 3 | 4 |
| 1 | 64 | 10 | 20 | 30 | 40 |

- a \\| b
- published: nowhere
";
    assert_eq!(table().markdown(), want);
}

#[test]
fn programs_get_numbers_in_full() {
    let mut table = table();
    let numbers = [Cell::Rate(0.4), Cell::Tenths(7.26), Cell::Ratio(0.123_45)];
    table.rows.truncate(1);
    table.rows[0].splice(3..6, numbers);
    let value: Value = serde_json::from_str(&table.json()).unwrap();
    let found = ["slat_mean", "clat_mean", "clat_p99"].map(|key| value["rows"][0][key].as_f64());
    assert_eq!(found, [Some(0.4), Some(7.26), Some(0.123_45)]);
    assert!(
        table.csv().ends_with("0.4,7.26,0.12345,4\n"),
        "{}",
        table.csv()
    );
    assert!(table.text(80).contains("7.3"), "{}", table.text(80));
}

#[test]
fn names_do_not_turn_the_direction_of_writing() {
    let mut table = table();
    table.head.about = "a\u{202e}b".into();
    table.columns[1] = Column::key("d\u{2066}", "d\u{2066}").in_group("\u{200f}g");
    table.rows[0][1] = Cell::Text("x\u{1b}[31m\u{202e}".into());
    table.notes.push("note \u{2067}".into());
    let (heads, rows) = table.shown();
    for text in [
        table.text(80),
        table.markdown(),
        heads.concat(),
        rows.concat().concat(),
    ] {
        let acting = text
            .chars()
            .find(|one| *one != '\n' && fathom_report::acts_on_terminal(*one));
        assert_eq!(acting, None, "{text}");
    }
    assert!(
        table.text(80).contains("x\\u{1b}[31m\\u{202e}"),
        "{}",
        table.text(80)
    );
    assert!(table.json().contains('\u{202e}'));
}
