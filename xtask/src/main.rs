//! House rules, benchmarks and continuous integration.
fn main() {}
