//! The models that a machine file may name, and their parameters.

use fathom_core::Nanos;
use fathom_sim::{Constant, Device};

use super::fields::Fields;

/// A model with its parameters.
#[derive(Clone, Debug)]
pub(crate) enum Model {
    /// Every op takes as long.
    Constant {
        /// How long.
        latency: Nanos,
    },
}

impl Model {
    /// The model that a `[[device]]` names, from the table of that name.
    pub(super) fn read(device: &Fields<'_>, _capacity_bytes: u64) -> Option<Self> {
        let (name, _) = device.text("model", false)?;
        let parameters = |name| device.table(name, false);
        match name {
            "constant" => Some(constant(parameters("constant")?)),
            _ => {
                let why = format!("there is no model `{name}`");
                device.refuse("model", why, &format!("models: {}", MODELS.join(", ")));
                None
            }
        }
    }

    /// Its name.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Constant { .. } => "constant",
        }
    }

    /// A new device of `capacity_bytes`.
    pub(super) fn device(&self, _capacity_bytes: u64) -> Box<dyn Device> {
        match self {
            Self::Constant { latency } => Box::new(Constant::new(*latency)),
        }
    }
}

fn constant(fields: Fields<'_>) -> Model {
    let latency = fields.time("latency_us", US, 0.001..=1e9, None);
    fields.finish();
    Model::Constant { latency }
}

const MODELS: [&str; 1] = ["constant"];
const US: Nanos = Nanos::from_micros(1);
