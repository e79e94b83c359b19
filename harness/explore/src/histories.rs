//! Random histories: what users, kubelets and the cloud might do, chosen by a seed.

use crate::scenario::{Scenario, ServiceType, Step};
use std::collections::BTreeMap;

/// How many steps are chosen, not counting waits and the removal of everything at the end.
const ACTIONS: usize = 8;
/// The most Services and machines at the same time.
const MOST: usize = 2;
/// After how many of ten steps there is a wait.
const WAITS: u8 = 4;
const PORTS: [u16; 4] = [80, 443, 8080, 8443];

/// This many random histories. The same seed gives the same ones.
pub fn random(seed: u64, count: usize) -> Vec<Scenario> {
    (1..=count).map(|number| history(seed, number)).collect()
}

fn history(seed: u64, number: usize) -> Scenario {
    let mut random = fastrand::Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
    let mut state = State::default();
    let mut steps = Vec::new();
    for _ in 0..ACTIONS {
        let possible = state.possible(&mut random);
        let step = possible[random.usize(..possible.len())].clone();
        state.take(&step);
        steps.push(step);
        if random.u8(..10) < WAITS {
            steps.push(Step::Settle);
        }
    }
    // Everything goes in the end, so that nothing may be left.
    if steps.last() != Some(&Step::Settle) {
        steps.push(Step::Settle);
    }
    let services = state.services.keys().map(|service| Step::DeleteService { service: service.clone() });
    let machines = state.machines.keys().map(|machine| Step::DeleteMachine { machine: machine.clone() });
    let rest: Vec<Step> = services.chain(machines).collect();
    if !rest.is_empty() {
        steps.extend(rest);
        steps.push(Step::Settle);
    }
    let about = format!("Random steps, chosen by seed {seed}.");
    Scenario { name: format!("random-{seed}-{number}"), about, steps }
}

/// What exists after the steps so far.
#[derive(Default)]
struct State {
    services: BTreeMap<String, ServiceType>,
    machines: BTreeMap<String, Node>,
    /// How many Services and machines there have been; names are not used again.
    made: usize,
}

/// The Node of a machine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Absent,
    Excluded,
    Backend,
}

impl State {
    fn possible(&self, random: &mut fastrand::Rng) -> Vec<Step> {
        let mut ports = || -> Vec<u16> {
            let count = random.usize(1..=2);
            let mut chosen = PORTS.to_vec();
            random.shuffle(&mut chosen);
            chosen.truncate(count);
            chosen
        };
        let next = self.made + 1;
        let mut all = Vec::new();
        if self.services.len() < MOST {
            all.push(Step::CreateService { service: format!("s{next}"), ports: ports() });
        }
        if self.machines.len() < MOST {
            all.push(Step::CreateMachine { machine: format!("m{next}") });
        }
        for (service, kind) in &self.services {
            let service = service.clone();
            all.push(Step::SetPorts { service: service.clone(), ports: ports() });
            let to = match kind {
                ServiceType::ClusterIp => ServiceType::LoadBalancer,
                ServiceType::LoadBalancer => ServiceType::ClusterIp,
            };
            all.push(Step::SetType { service: service.clone(), to });
            all.push(Step::DeleteService { service });
        }
        for (machine, node) in &self.machines {
            let machine = machine.clone();
            all.push(Step::DeleteMachine { machine: machine.clone() });
            match node {
                Node::Absent => {
                    all.push(Step::RegisterNode { machine: machine.clone() });
                    all.push(Step::RegisterBackend { machine });
                }
                Node::Backend => {
                    all.push(Step::ExcludeNode { machine: machine.clone() });
                    all.push(Step::DeleteNode { machine });
                }
                Node::Excluded => all.push(Step::DeleteNode { machine }),
            }
        }
        all
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::CreateService { service, .. } => {
                self.made += 1;
                self.services.insert(service.clone(), ServiceType::LoadBalancer);
            }
            Step::SetType { service, to } => {
                self.services.insert(service.clone(), *to);
            }
            Step::DeleteService { service } => {
                self.services.remove(service);
            }
            Step::CreateMachine { machine } => {
                self.made += 1;
                self.machines.insert(machine.clone(), Node::Absent);
            }
            Step::RegisterNode { machine } | Step::ExcludeNode { machine } => {
                self.machines.insert(machine.clone(), Node::Excluded);
            }
            Step::RegisterBackend { machine } => {
                self.machines.insert(machine.clone(), Node::Backend);
            }
            Step::DeleteNode { machine } => {
                self.machines.insert(machine.clone(), Node::Absent);
            }
            Step::DeleteMachine { machine } => {
                self.machines.remove(machine);
            }
            Step::SetPorts { .. }
            | Step::SetNodePort { .. }
            | Step::SetAffinity { .. }
            | Step::SetRanges { .. }
            | Step::Settle => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_thousand_histories_are_sound_and_mostly_different() {
        let all = random(7, 1_000);
        for scenario in &all {
            assert_eq!(scenario.check(), Ok(()), "{:#?}", scenario.steps);
        }
        let distinct: BTreeSet<String> = all.iter().map(|one| format!("{:?}", one.steps)).collect();
        assert!(distinct.len() > 900, "{}", distinct.len());
        assert_eq!(random(7, 3), all[..3], "the same seed");
        assert_ne!(random(8, 1)[0].steps, all[0].steps, "another seed");
    }

    #[test]
    fn every_step_is_used() {
        let all = random(1, 300);
        let words: BTreeSet<String> = all
            .iter()
            .flat_map(|one| &one.steps)
            .map(|step| step.to_string().split(' ').take(2).collect::<Vec<_>>().join(" "))
            .collect();
        assert!(words.len() >= 8, "{words:?}");
    }
}
