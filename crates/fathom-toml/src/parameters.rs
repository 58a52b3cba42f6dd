//! Tables as the readers of models and layers see them.

use std::ops::RangeInclusive;

use fathom_block::Parameters;

use crate::Fields;

/// For models and layers, which read their own keys.
impl Parameters for Fields<'_> {
    fn whole(&self, key: &'static str, bounds: RangeInclusive<u64>, default: Option<u64>) -> u64 {
        self.whole(key, bounds, default)
    }

    fn number(&self, key: &'static str, bounds: RangeInclusive<f64>, default: Option<f64>) -> f64 {
        self.number(key, bounds, default)
    }

    fn flag(&self, key: &'static str, default: bool) -> bool {
        self.flag(key, default)
    }

    fn text(&self, key: &'static str) -> Option<&str> {
        self.text(key, false).map(|(text, _)| text)
    }

    fn wholes(&self, key: &'static str) -> Option<Vec<u64>> {
        self.wholes(key)
    }

    fn table(&self, key: &'static str, optional: bool) -> Option<Box<dyn Parameters + '_>> {
        let table = self.table(key, optional)?;
        Some(Box::new(table))
    }

    fn tables(&self, key: &'static str) -> Vec<Box<dyn Parameters + '_>> {
        let tables = self.tables(key).into_iter();
        tables.map(|table| Box::new(table) as _).collect()
    }

    fn has(&self, key: &str) -> bool {
        self.has(key)
    }

    fn refuse(&self, key: &'static str, why: &str, hint: &str) {
        self.refuse(key, why, hint);
    }

    fn finish(&self) {
        self.finish();
    }
}
