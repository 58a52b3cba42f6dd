//! A record in fio's text and JSON.
