//! Services of a run: programs that are started before it, asked for their numbers, and stopped.

use fathom_record::Measure;

use super::super::executor::{RunFailure, RunOutcome};
use super::commands::Commands;
use super::service_process::ServiceProcess;
use super::stats;
use crate::lab_plan::Service;

/// Running services of a run; killed on drop.
pub(super) struct Services<'a> {
    /// In the order of the lab file, in which they were started.
    running: Vec<(&'a Service, ServiceProcess)>,
}

impl<'a> Services<'a> {
    /// Starts services, one after the other: each waits until it is ready.
    pub(super) fn start(
        services: &'a [Service],
        commands: &Commands<'_>,
    ) -> Result<Self, RunFailure> {
        let mut this = Self {
            running: Vec::new(),
        };
        for service in services {
            match ServiceProcess::start(service, commands) {
                Ok(process) => this.running.push((service, process)),
                Err(why) => {
                    this.stop();
                    return Err(why);
                }
            }
        }
        Ok(this)
    }

    /// Returns whether one of them has ended.
    pub(super) fn is_one_over(&self) -> bool {
        self.running.iter().any(|(_, process)| process.is_over())
    }

    /// Takes the outcome of the run beside them. A service that ended is the reason for whatever
    /// became of the run.
    pub(super) fn judge(&self, outcome: RunOutcome) -> RunOutcome {
        let ended = self
            .running
            .iter()
            .find_map(|(_, process)| process.ended("during the run"));
        match (ended, outcome) {
            (None, outcome) | (Some(_), outcome @ Err(RunFailure::Interrupted)) => outcome,
            (Some(why), _) => Err(RunFailure::Failed(why)),
        }
    }

    /// Asks the services for their numbers.
    pub(super) fn measures(&self, commands: &Commands<'_>) -> Result<Vec<Measure>, RunFailure> {
        let mut measures = Vec::new();
        for (service, _) in &self.running {
            if let Some(line) = &service.stats {
                let output = commands.output(line)?;
                let own = stats::measures(&service.name, &output).map_err(|why| {
                    RunFailure::Failed(format!("service `{}`: `{line}` {why}", service.name))
                })?;
                measures.extend(own);
            }
        }
        Ok(measures)
    }

    /// Stops the services, the last one first.
    pub(super) fn stop(self) {
        for (_, process) in self.running.into_iter().rev() {
            process.stop();
        }
    }
}
