//! Machines: instances of the cloud, each for one of the check's own Nodes.

use super::cloud::{absent_is_fine, passing};
use super::undo_steps::Undo;
use super::{CheckCx, NodePlan, Target};
use harness_clouds::{Address, Instance, InstanceIds, InstanceState};
use harness_config::{AddressType, Instances};
use harness_core::check::{CheckError, SubjectName, Verdict};
use harness_core::probe::poll;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long the CCM may take at the end of a check to remove machines without Nodes from its load balancers.
const LEAVES: Duration = Duration::from_secs(1);
/// Interval between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// An address of a machine.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let internal = address("InternalIP", &cx.own_address("192.0.2.10"));
/// cx.machine(machine("a").addresses(vec![internal])).await?;
/// # Ok(()) }
/// ```
pub fn address(kind: &str, address: &str) -> Address {
    Address { kind: kind.to_owned(), address: address.to_owned() }
}

/// A machine to be created in the cloud.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let plan: MachinePlan = machine("a").named("other-name").with(|machine| machine.zone = "zone-2".to_owned());
/// let machine = cx.machine(plan).await?;
/// cx.node(machine.node()).await?;
/// # Ok(()) }
/// ```
pub struct MachinePlan {
    suffix: String,
    change: Box<dyn FnOnce(&mut Instance)>,
}

/// A running machine with a type, zone, region and two addresses; `suffix` is the end of its name.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx) -> Verdict {
/// let machine = cx.machine(machine("a")).await?;
/// let node = cx.node(machine.node()).await?;
/// node.becomes(initialised()).await?;
/// # Ok(()) }
/// ```
pub fn machine(suffix: &str) -> MachinePlan {
    MachinePlan { suffix: suffix.to_owned(), change: Box::new(|_| ()) }
}

impl MachinePlan {
    /// Changes any other property of it.
    pub fn with(self, change: impl FnOnce(&mut Instance) + 'static) -> MachinePlan {
        let before = self.change;
        let change = Box::new(move |instance: &mut Instance| {
            before(instance);
            change(instance);
        });
        MachinePlan { change, ..self }
    }

    /// Uses exactly these addresses.
    pub fn addresses(self, addresses: Vec<Address>) -> MachinePlan {
        self.with(|instance| instance.addresses = addresses)
    }

    /// Uses another name than its Node's.
    pub fn named(self, name: &str) -> MachinePlan {
        let name = name.to_owned();
        self.with(|instance| instance.name = name)
    }
}

/// A machine in the cloud; it is removed when the check ends.
///
/// ```
/// # use harness_testkit::prelude::*; async fn check(cx: &CheckCx, node: &Node<'_>) -> Verdict {
/// let machine: Machine<'_> = cx.machine(machine("a")).await?;
/// machine.stop().await?;
/// machine.delete().await?;
/// node.becomes(gone()).within(cx.limits().life()).when("once its machine is gone").await
/// # }
/// ```
pub struct Machine<'a> {
    cx: &'a CheckCx,
    instance: RefCell<Instance>,
}

impl<'a> Machine<'a> {
    /// Its properties in the cloud.
    pub fn instance(&self) -> Instance {
        self.instance.borrow().clone()
    }

    /// What the CCM must report about it: its properties in the cloud; type, zone and region only if the profile declares
    /// that the CCM reports them.
    pub fn as_reported(&self) -> Instance {
        let profile = &self.cx.session.plan().profile;
        let mut instance = self.instance();
        if let Some(kind) = &profile.instance_type {
            instance.instance_type.clone_from(kind);
        }
        if profile.location.fixed {
            instance.zone.clone_from(&profile.location.zone);
            instance.region.clone_from(&profile.location.region);
        }
        if !profile.capabilities.zones {
            instance.zone.clear();
        }
        if !profile.capabilities.reports_regions() {
            instance.region.clear();
        }
        instance
    }

    /// Its id in the cloud.
    pub fn id(&self) -> String {
        self.instance.borrow().id.clone()
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.instance.borrow().name.clone()
    }

    /// The providerID that its Node has or will have.
    pub fn provider_id(&self) -> String {
        self.instance.borrow().provider_id.clone().unwrap_or_default()
    }

    /// A Node with its name, not registered yet.
    pub fn node(&self) -> NodePlan {
        NodePlan::of(&self.instance(), self.cx.cloud.ids())
    }

    /// Its Node as a CCM initialises it.
    pub fn initialised_node(&self) -> NodePlan {
        NodePlan::initialised(&self.instance(), self.cx.cloud.ids(), self.provider_id())
    }

    /// The target for faults and barriers for calls about it.
    pub fn cloud(&self) -> Target<'a> {
        let Instance { id, name, provider_id, .. } = self.instance();
        let about = SubjectName { kind: "Machine", name: name.clone(), uid: Some(id.clone()) };
        Target { cx: self.cx, about, names: [id, name].into_iter().chain(provider_id).collect() }
    }

    /// Creates it in the cloud.
    ///
    /// # Errors
    /// As [`CheckCx::machine`].
    pub async fn appears(&self) -> Result<(), CheckError> {
        self.cx.put_instance(&self.instance()).await
    }

    /// Changes its properties in the cloud.
    ///
    /// # Errors
    /// As [`CheckCx::machine`].
    pub async fn change(&self, change: impl FnOnce(&mut Instance)) -> Result<(), CheckError> {
        let mut changed = self.instance();
        change(&mut changed);
        self.cx.put_instance(&changed).await?;
        *self.instance.borrow_mut() = changed;
        Ok(())
    }

    /// Shuts it down: it still exists.
    ///
    /// # Errors
    /// When the cloud refuses.
    pub async fn stop(&self) -> Result<(), CheckError> {
        self.change(|instance| instance.state = InstanceState::Stopped).await
    }

    /// Starts it again.
    ///
    /// # Errors
    /// When the cloud refuses.
    pub async fn start(&self) -> Result<(), CheckError> {
        self.change(|instance| instance.state = InstanceState::Running).await
    }

    /// Removes it, as a cloud's operator would.
    ///
    /// # Errors
    /// When the cloud refuses.
    pub async fn delete(&self) -> Result<(), CheckError> {
        Ok(self.cx.cloud.remove_instance(&self.id()).await?)
    }
}

impl CheckCx {
    /// Creates a machine in the cloud.
    ///
    /// # Errors
    /// [`CheckError::NotObservable`] when the cloud's API cannot show its addresses, or that it has no providerID;
    /// otherwise that the cloud refuses.
    pub async fn machine(&self, plan: MachinePlan) -> Result<Machine<'_>, CheckError> {
        let machine = self.absent_machine(plan);
        machine.appears().await?;
        Ok(machine)
    }

    /// A machine that does not exist in the cloud yet.
    pub fn absent_machine(&self, plan: MachinePlan) -> Machine<'_> {
        let profile = &self.session.plan().profile;
        let name = self.name(&plan.suffix);
        let id = self.cloud.ids().make(&name);
        let mut instance = Instance {
            provider_id: Some(profile.provider_id.render(&id)),
            id,
            name,
            instance_type: "m1.small".to_owned(),
            zone: profile.location.zone.clone(),
            region: profile.location.region.clone(),
            addresses: self.usual_addresses(),
            labels: BTreeMap::new(),
            state: InstanceState::Running,
        };
        (plan.change)(&mut instance);
        if self.cloud.ids() == InstanceIds::Name && instance.id != instance.name {
            // A machine is known by its name alone, so another name is another id.
            instance.id.clone_from(&instance.name);
            instance.provider_id = instance.provider_id.map(|_| profile.provider_id.render(&instance.id));
        }
        Machine { cx: self, instance: RefCell::new(instance) }
    }

    /// A private and a public address of the next machine, or the one of them that the cloud's API can show.
    fn usual_addresses(&self) -> Vec<Address> {
        let both = self.network.addresses(self.machines_made.fetch_add(1, Ordering::Relaxed));
        match self.cloud.shown().part_of(both.clone()) {
            shown if shown.is_empty() => both,
            shown => shown,
        }
    }

    /// This check's own address in place of one of a documentation range. The contract's vectors use those ranges and run
    /// at the same time, and machines of one cloud must have different addresses.
    pub fn own_address(&self, written: &str) -> String {
        self.network.address(written)
    }

    /// Whether the CCM reads zone and region from the machine that it looks up.
    pub fn reports_the_machines_location(&self) -> bool {
        !self.session.plan().profile.location.fixed
    }

    /// Whether the CCM reads the type of a machine from the cloud, so that machines of a run can have different types.
    pub fn reports_the_machines_type(&self) -> bool {
        self.session.plan().profile.instance_type.is_none()
    }

    /// What a check of types requires.
    ///
    /// # Errors
    /// [`CheckError::NotObservable`] where all machines have one type.
    pub fn types_differ(&self) -> Verdict {
        match self.reports_the_machines_type() {
            true => Ok(()),
            false => {
                Err(CheckError::NotObservable("the cloud reports the same type for every machine".to_owned()))
            }
        }
    }

    /// Whether the CCM may initialise a Node without a providerID: it looks up machines by interface v1, which can report
    /// that there is none (contract NODE-INIT-09).
    pub fn may_do_without_provider_ids(&self) -> bool {
        self.session.plan().profile.capabilities.instances == Instances::V1
    }

    /// Whether the CCM reports the host name of a machine as an address, so that it always reports at least one.
    pub fn reports_host_names(&self) -> bool {
        self.session.plan().profile.address_order.contains(&AddressType::Hostname)
    }

    /// Addresses, type and value, as the CCM reports them: in its order, provided ones first, and with the host name as
    /// an `InternalDNS` if it reports such addresses.
    pub fn in_reported_order(&self, addresses: &mut Vec<(String, String)>, provided: &[&str]) {
        self.session.in_reported_order(addresses, provided);
    }

    async fn put_instance(&self, instance: &Instance) -> Result<(), CheckError> {
        let cloud = &self.cloud;
        let nameless = instance.provider_id.is_none() && !cloud.shown().provider_ids;
        let nameless = nameless.then(|| "a machine without a providerID".to_owned());
        let dotted = instance.name.contains('.') && !cloud.shown().dotted_names;
        let dotted = dotted.then(|| "a machine with a dot in its name".to_owned());
        if let Some(lack) = cloud.shown().lacks(&instance.addresses).or(nameless).or(dotted) {
            let driver = cloud.driver();
            let why = format!("the API of the cloud behind driver {driver} cannot show it: {lack}");
            return Err(CheckError::NotObservable(why));
        }
        // Whether or not the answer is still received.
        let undo = Undo::Instance(instance.id.clone());
        if !self.is_to_be_undone(&undo) {
            self.on_end(undo);
        }
        cloud.put_instance(instance).await?;
        Ok(())
    }

    /// Waits until no load balancer sends traffic to machines without Nodes, at most for [`LEAVES`]. Otherwise a cloud
    /// would refuse to change backends that include a removed machine, the CCM would process the whole Service again, and
    /// a check that runs at the same time would see an edit followed that was never noticed.
    pub(super) async fn get_no_traffic(&self, machines: &[Undo]) {
        let id = |undo: &Undo| match undo {
            Undo::Instance(id) => Some(id.clone()),
            _ => None,
        };
        let ids: BTreeSet<String> = machines.iter().filter_map(id).collect();
        if ids.is_empty() || !self.session.plan().profile.capabilities.load_balancer {
            return;
        }
        let left = async |seen: &mut String| {
            let held = self.cloud.inventory().await.map_err(passing)?;
            let mut backends = held.load_balancers.iter().flat_map(|lb| &lb.backends);
            Ok(match backends.find(|backend| ids.contains(*backend)) {
                Some(backend) => {
                    backend.clone_into(seen);
                    None
                }
                None => Some(()),
            })
        };
        let _ = poll("machines that are not backends any more", LEAVES, LOOK, left).await;
    }

    pub(super) async fn undo_instance(&self, id: &str) -> Result<(), String> {
        absent_is_fine(self.cloud.remove_instance(id).await)
    }
}
