//! Queries of the user's own: they read, and change nothing.

use rusqlite::types::ValueRef;
use serde_json::{Value, json};

use super::History;
use super::error::{HistoryError, HistoryProblem};

/// Answer to a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SqlAnswer {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Values, a row each; a blob is a text of hexadecimal digits.
    pub rows: Vec<Vec<Value>>,
}

impl History {
    /// Answers one query.
    ///
    /// # Errors
    /// It is not valid SQL, has several statements, or would change something.
    pub fn sql(&self, query: &str) -> Result<SqlAnswer, HistoryError> {
        let refused = |why: &str| HistoryError::new(&self.path, HistoryProblem::Query(why.into()));
        let wrong = |error: rusqlite::Error| match error {
            rusqlite::Error::MultipleStatement => refused("one statement at a time"),
            rusqlite::Error::SqlInputError { msg, .. } => refused(&msg),
            rusqlite::Error::SqliteFailure(failure, Some(text))
                if failure.extended_code == rusqlite::ffi::SQLITE_ERROR =>
            {
                refused(&text)
            }
            other => self.failed()(other),
        };
        let mut statement = self.connection.prepare(query).map_err(wrong)?;
        // The connection may be read-only, but another file is not: `VACUUM INTO`, `ATTACH`.
        if !statement.readonly() || statement.column_count() == 0 {
            return Err(refused("only queries that read"));
        }
        let columns = statement.column_names().map(str::to_owned);
        let columns: Vec<String> = columns.collect();
        let mut rows = Vec::new();
        let mut found = statement.query([]).map_err(wrong)?;
        while let Some(row) = found.next().map_err(wrong)? {
            let values = (0..columns.len()).map(|at| row.get_ref(at).map(value));
            rows.push(values.collect::<Result<_, _>>().map_err(wrong)?);
        }
        drop(found);
        drop(statement);
        Ok(SqlAnswer { columns, rows })
    }
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            json!(digits.collect::<String>())
        }
    }
}
