//! Programs beside each run.

/// Program beside each run, such as a target under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Name.
    pub name: String,
    /// Command.
    pub command: String,
    /// Sign that it is ready.
    pub ready: Option<Ready>,
    /// Command whose JSON numbers become metrics.
    pub stats: Option<String>,
    /// Values for `${NAME}` in its commands, which cells and variants change.
    pub arguments: Vec<(String, String)>,
}

/// Sign that a service is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A text in its output.
    Text(String),
    /// A TCP port that accepts connections.
    Port(u16),
}

impl Service {
    /// Returns the service with the values of its arguments in its command and in `stats`.
    #[must_use]
    pub fn with_arguments(&self) -> Self {
        let fill = |text: &str| {
            let mut text = text.to_owned();
            for (name, value) in &self.arguments {
                text = text.replace(&format!("${{{name}}}"), value);
            }
            text
        };
        Self {
            command: fill(&self.command),
            stats: self.stats.as_deref().map(fill),
            ..self.clone()
        }
    }
}
