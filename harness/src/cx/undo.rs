//! What a check leaves to be undone, last first.

use super::{CheckCx, ServiceRef};

/// One thing to undo.
#[derive(Clone, Debug)]
pub(super) enum Undo {
    /// Delete a Node.
    Node(String),
    /// Delete a Node's heartbeat Lease.
    Heartbeat(String),
    /// Delete an instance from the cloud.
    Instance(String),
    /// Delete a Service and see it gone.
    Service(ServiceRef),
    /// Delete a namespace.
    Namespace(String),
    /// Clear a fault.
    Fault(u64),
    /// Release a barrier.
    Barrier(u64),
    /// Start the CCM again, with a fresh Pod for the replica that was made to end.
    Ccm { ended: String },
    /// Give the seat at the leader's crash back; the last one brings the CCM back up.
    Crash,
    /// Take the CCM as shipped away and set the pod network up.
    Cold,
}

impl CheckCx {
    pub(super) fn on_end(&self, undo: Undo) {
        self.undo.lock().expect("no holder of this lock panics").push(undo);
    }

    /// Undoes everything, last first, trying all of it. Faults and barriers go before anything else: a check that
    /// failed with one still in force must not jam its own cleanup.
    ///
    /// # Errors
    /// What could not be undone, one line each.
    pub async fn clean_up(&self) -> Result<(), String> {
        let mut list: Vec<Undo> =
            std::mem::take(&mut *self.undo.lock().expect("no holder of this lock panics"));
        list.reverse();
        let turn = |undo: &Undo| match undo {
            Undo::Fault(_) | Undo::Barrier(_) => 0,
            // Services need a CCM to let go of them.
            Undo::Ccm { .. } | Undo::Crash => 1,
            _ => 2,
        };
        list.sort_by_key(turn);
        // Services of one check wait for the same CCM: side by side, not one after the other.
        let services: Vec<ServiceRef> = list
            .iter()
            .filter_map(|undo| if let Undo::Service(service) = undo { Some(service.clone()) } else { None })
            .collect();
        let mut failures = Vec::new();
        let mut services_done = services.is_empty();
        for undo in list {
            let outcome = match &undo {
                Undo::Service(_) if services_done => Ok(()),
                Undo::Service(_) => {
                    services_done = true;
                    let all = futures::future::join_all(services.iter().map(|s| self.undo_service(s))).await;
                    all.into_iter().collect::<Result<Vec<()>, String>>().map(|_| ())
                }
                Undo::Node(name) => self.undo_node(name).await,
                Undo::Heartbeat(name) => self.undo_heartbeat(name).await,
                Undo::Namespace(name) => self.undo_namespace(name).await,
                Undo::Instance(id) => self.undo_instance(id).await,
                Undo::Fault(id) => self.undo_fault(*id).await,
                Undo::Barrier(id) => self.undo_barrier(*id).await,
                Undo::Ccm { ended } => self.undo_ccm(Some(ended), !services.is_empty()).await,
                Undo::Crash => self.undo_crash(!services.is_empty()).await,
                Undo::Cold => self.undo_cold().await,
            };
            if let Err(why) = outcome {
                failures.push(format!("{undo:?}: {why}"));
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
    }
}
