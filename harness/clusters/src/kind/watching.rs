//! Watches for machines of a cluster that end without the run's doing.

use super::access::KindMachines;
use crate::images::Engine;
use crate::record::Machine;
use bollard::models::EventMessage;
use bollard::query_parameters::EventsOptionsBuilder;
use futures::{Stream, StreamExt};
use harness_core::probe::pause;
use k8s_openapi::jiff::Timestamp;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The label with which a container names its kind cluster.
pub(super) const CLUSTER_LABEL: &str = "io.x-k8s.kind.cluster";
/// Time limit for an inspection.
const LIMIT: Duration = Duration::from_secs(60);
/// How long a machine that has ended may take to be restarted by the engine.
const RESTART: Duration = Duration::from_secs(2);

/// The engine's events for the containers of a cluster since that second (since 1970), of one kind: `start`, `die`.
pub(super) fn container_events(
    engine: &Engine,
    cluster: &str,
    kind: &str,
    since_s: i64,
) -> impl Stream<Item = Result<EventMessage, bollard::errors::Error>> + use<> {
    let filters: HashMap<&str, Vec<String>> = HashMap::from([
        ("type", vec!["container".to_owned()]),
        ("event", vec![kind.to_owned()]),
        ("label", vec![format!("{CLUSTER_LABEL}={cluster}")]),
    ]);
    let options = EventsOptionsBuilder::new().since(&since_s.to_string()).filters(&filters).build();
    engine.docker().events(Some(options))
}

impl KindMachines {
    /// Returns a message when a machine has ended that no process of the run has switched off.
    pub(super) async fn lost(&self) -> String {
        loop {
            // Machines that end between a look and the next events are among these.
            let since = Timestamp::now().as_second();
            for machine in &self.machines {
                if let Some(why) = self.has_ended(machine).await {
                    return why;
                }
            }
            let mut deaths = std::pin::pin!(container_events(&self.engine, &self.cluster, "die", since));
            while let Some(Ok(death)) = deaths.next().await {
                let id = death.actor.and_then(|actor| actor.id).unwrap_or_default();
                let of_it = self.machines.iter().find(|machine| machine.container_id == id);
                if let Some(machine) = of_it
                    && let Some(why) = self.has_ended(machine).await
                {
                    return why;
                }
            }
            // There are no more events; an engine that is gone is reported by the code that uses it.
            pause(RESTART).await;
        }
    }

    /// That a machine has ended and stays so, as text; `None` if it runs, is switched off, or the engine does not answer.
    async fn has_ended(&self, machine: &Machine) -> Option<String> {
        for look in [true, false] {
            let asked = self.engine.docker().inspect_container(&machine.container_id, None);
            let found = self.engine.call("inspect container", &machine.name, LIMIT, asked).await.ok()?;
            let state = found.state?;
            if state.running != Some(false) || self.switched_off(machine).exists() {
                return None;
            }
            if look {
                pause(RESTART).await;
            } else {
                let code = state.exit_code.unwrap_or_default();
                return Some(format!(
                    "machine {} ended with exit code {code}, but no check switched it off: it was stopped from \
                     outside, or the machine that Docker runs on is out of memory",
                    machine.name
                ));
            }
        }
        None
    }

    /// The file that exists while a process of the run has the machine switched off.
    fn switched_off(&self, machine: &Machine) -> PathBuf {
        self.folder.join(format!("switched-off-{}", machine.name))
    }

    /// Tells all processes of the run that a machine is switched off, or no longer is.
    ///
    /// # Errors
    /// The run's folder cannot be written.
    pub(super) fn note_switched_off(&self, machine: &Machine, off: bool) -> io::Result<PathBuf> {
        let file = self.switched_off(machine);
        let noted = if off { std::fs::write(&file, "") } else { std::fs::remove_file(&file) };
        match noted {
            Err(error) if error.kind() != io::ErrorKind::NotFound || off => Err(error),
            Ok(()) | Err(_) => Ok(file),
        }
    }
}
