use ::parquet::file::serialized_reader::SerializedFileReader;
use ::parquet::record::Field;

use super::*;

#[test]
fn what_is_written_is_read_back() {
    let columns = [
        ("run", TableKind::Whole),
        ("a \"b\",\n(ns)", TableKind::Number),
        ("tag.x", TableKind::Text),
        ("begun", TableKind::Moment),
    ];
    let mut file = TableFile::create(Vec::new(), columns.into_iter()).unwrap();
    for first in [1, 3] {
        file.write(&[
            TableColumn::Whole(vec![Some(first), Some(first + 1)]),
            TableColumn::Number(vec![Some(0.1), None]),
            TableColumn::Text(vec![None, Some("=1+1\u{1b}\"".into())]),
            TableColumn::Whole(vec![Some(1_780_000_000_123), None]),
        ])
        .unwrap();
    }
    let bytes = file.finish().unwrap();
    let path = std::env::temp_dir().join(format!("fathom-table-{}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    let rows: Vec<Vec<(String, Field)>> = reader
        .into_iter()
        .map(|row| row.unwrap().into_columns())
        .collect();
    assert_eq!(rows.len(), 4);
    let fields = |at: usize| rows[at].iter().map(|(_, field)| field.clone());
    let want = [
        Field::Long(1),
        Field::Double(0.1),
        Field::Null,
        Field::TimestampMillis(1_780_000_000_123),
    ];
    assert!(fields(0).eq(want), "{:?}", rows[0]);
    let want = [
        Field::Long(4),
        Field::Null,
        Field::Str("=1+1\u{1b}\"".into()),
        Field::Null,
    ];
    assert!(fields(3).eq(want), "{:?}", rows[3]);
    assert_eq!(rows[0][1].0, "a \"b\",\n(ns)");
}

#[test]
fn a_column_of_another_kind_is_refused() {
    let columns = [("run", TableKind::Whole)].into_iter();
    let mut file = TableFile::create(Vec::new(), columns).unwrap();
    for wrong in [
        vec![TableColumn::Text(vec![None])],
        vec![TableColumn::Whole(vec![None]); 2],
        Vec::new(),
    ] {
        assert!(file.write(&wrong).is_err(), "{wrong:?}");
    }
}
