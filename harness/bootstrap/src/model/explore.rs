//! Explores all orders that matter: which Pod is bound to which Node, and when.
//!
//! Between two bindings, everything else that can happen does happen: facts only become true, so their order does not
//! matter. What remains is which Pod gets a Node or a port first. Nodes that do not differ in any respect are
//! interchangeable, so one of them represents all; the same holds for replicas that do not keep each other away.

use super::build::{Model, number};
use super::fact::Fact;
use bootstrap_manifests::workload::{Expression, Role, Workload, WorkloadKind};
use std::collections::{BTreeSet, HashSet};

/// Maximum number of states that are explored for one cluster.
const MOST_STATES: usize = 20_000;

/// The facts that are true at one moment, and which Pods are bound.
#[derive(Clone, Debug)]
pub(crate) struct State {
    holds: Vec<bool>,
    /// The number of premises that are still missing, by rule.
    open: Vec<u32>,
    /// Bound Pods as workload and Node, in the order of binding.
    pub(crate) bound: Vec<(u32, u32)>,
    /// Pods that were evicted in favour of others, in order.
    pub(crate) preempted: Vec<(u32, u32)>,
}

impl State {
    /// Whether a fact is true.
    pub(crate) fn holds(&self, fact: usize) -> bool {
        self.holds[fact]
    }
}

/// The result of exploring the orders.
#[derive(Debug)]
pub(crate) struct Exploration {
    /// How many states were explored.
    pub(crate) states: usize,
    /// Whether all states were explored.
    pub(crate) complete: bool,
    /// A final state in which all goals are reached.
    pub(crate) booted: Option<State>,
    /// A final state in which a goal is not reached.
    pub(crate) stuck: Option<State>,
    /// Workloads with a Pod on a Node that is not Ready while another Node is: in some state, and in some last state.
    pub(crate) unready_hosts: BTreeSet<(u32, bool)>,
}

/// Explores every order.
pub(crate) fn explore(model: &Model) -> Exploration {
    let engine = Engine::new(model);
    let mut found =
        Exploration { states: 0, complete: true, booted: None, stuck: None, unready_hosts: BTreeSet::new() };
    let mut seen = HashSet::new();
    let mut waiting = vec![engine.start()];
    while let Some(state) = waiting.pop() {
        if !seen.insert(engine.key(&state)) {
            continue;
        }
        if found.states == MOST_STATES {
            found.complete = false;
            break;
        }
        found.states += 1;
        let next = engine.next(&state);
        let last = next.is_empty();
        next.iter().for_each(|after| engine.note_early(&state, after, &mut found.unready_hosts));
        engine.note_unready(&state, last, &mut found.unready_hosts);
        if last {
            let reached = model.goals.iter().all(|goal| state.holds[*goal]);
            let slot = if reached { &mut found.booted } else { &mut found.stuck };
            slot.get_or_insert(state);
        }
        waiting.extend(next);
    }
    found
}

impl Model<'_> {
    /// Decides which workloads are explored: those that the boot waits for and those that could block them. Pods of
    /// DaemonSets without rivals and of bystanders are bound as soon as possible.
    pub(super) fn choose_explored(&mut self) {
        let workloads = &self.set.workloads;
        let backends = self.set.backends();
        let waited = |w: usize| workloads[w].role != Role::Other || backends.contains(&w);
        let all = 0..workloads.len();
        let waited_for: Vec<usize> = all.clone().filter(|w| waited(*w)).collect();
        let against = |w: usize, o: usize| o != w && rival(&workloads[w], &workloads[o]);
        let rivals = |w: usize| {
            if waited(w) {
                all.clone().any(|o| against(w, o))
            } else {
                waited_for.iter().any(|o| against(w, *o))
            }
        };
        let mut explored = Vec::new();
        for (w, workload) in workloads.iter().enumerate() {
            let daemon = workload.kind == WorkloadKind::DaemonSet;
            if rivals(w) || (waited(w) && !daemon) {
                explored.push(w);
                continue;
            }
            for node in 0..self.machines.len() {
                let may = self.needs(Fact::Schedulable(number(w), number(node)));
                self.rule(Fact::Bound(number(w), number(node)), vec![may]);
            }
        }
        // Every Pod that may be bound needs its fact, even if no rule mentions it.
        for w in &explored {
            for node in 0..self.machines.len() {
                self.fact(Fact::Bound(number(*w), number(node)));
            }
        }
        explored.retain(|w| !self.elsewhere(*w));
        for w in &explored {
            for v in &explored {
                if rival(&self.set.workloads[*w], &self.set.workloads[*v]) {
                    self.contest(*w, *v);
                }
            }
        }
        self.explored = explored;
    }
}

impl Model<'_> {
    /// Describes why one workload's Pod keeps another's off a Node.
    fn contest(&mut self, w: usize, v: usize) {
        let (own, rival) = (&self.set.workloads[w], &self.set.workloads[v]);
        let port = own.host_ports.iter().find(|(port, protocol, _)| {
            rival
                .host_ports
                .iter()
                .any(|(other, other_protocol, _)| port == other && protocol == other_protocol)
        });
        let (words, place) = match port {
            Some((port, _, place)) => {
                (format!("port {port} of the host is taken by {}", rival.title_with_place()), place.clone())
            }
            None => (
                format!("anti-affinity keeps it away from {}", rival.title_with_place()),
                own.affinity_place.clone(),
            ),
        };
        let fact = self.never(words, Some(place), None).fact;
        self.contests.push((number(w), number(v), fact));
    }
}

/// Whether Pods of the two workloads keep each other off a Node: by a port of the host, or by required anti-affinity.
pub(super) fn rival(a: &Workload, b: &Workload) -> bool {
    let port = a.host_ports.iter().any(|(port, protocol, _)| {
        b.host_ports.iter().any(|(other, other_protocol, _)| port == other && protocol == other_protocol)
    });
    port || keeps_off(a, b) || keeps_off(b, a)
}

fn keeps_off(a: &Workload, b: &Workload) -> bool {
    a.apart.iter().any(|term| term.means(&a.namespace, &b.namespace, &b.labels))
}

struct Engine<'m> {
    model: &'m Model<'m>,
    /// Rules that wait for a fact.
    waiting: Vec<Vec<usize>>,
    /// Facts by explored workload and Node: may be bound, is bound.
    may: Vec<Vec<usize>>,
    is: Vec<Vec<usize>>,
    /// How many Pods of each explored workload are bound.
    pods: Vec<usize>,
    /// Which explored workloads are rivals of each other.
    rivals: Vec<Vec<bool>>,
    /// Nodes with the same number do not differ.
    class: Vec<usize>,
}

impl<'m> Engine<'m> {
    fn new(model: &'m Model<'m>) -> Engine<'m> {
        let mut waiting = vec![Vec::new(); model.facts.len()];
        for (index, rule) in model.rules.iter().enumerate() {
            for premise in &rule.body {
                waiting[premise.fact].push(index);
            }
        }
        let nodes = model.machines.len();
        let workload = |w: usize| &model.set.workloads[w];
        let find = |fact| model.find(fact).unwrap_or(usize::MAX);
        let facts = |make: fn(u32, u32) -> Fact| {
            let row = |w: &usize| (0..nodes).map(|n| find(make(number(*w), number(n)))).collect();
            model.explored.iter().map(row).collect::<Vec<Vec<usize>>>()
        };
        let pods = |w: &usize| {
            let workload = workload(*w);
            let replicas = usize::try_from(workload.replicas).unwrap_or(usize::MAX);
            match workload.kind {
                WorkloadKind::DaemonSet => nodes,
                // Interchangeable and free to share a Node: one represents all.
                _ if !rival(workload, workload) => replicas.min(1),
                _ => replicas.min(nodes),
            }
        };
        let rivals = |a: &usize| model.explored.iter().map(|b| rival(workload(*a), workload(*b))).collect();
        let mut kinds = Vec::new();
        let class = |machine: &bootstrap_manifests::cluster::Machine| {
            let mut labels = machine.labels.clone();
            labels.remove("kubernetes.io/hostname");
            let kind = (machine.taints.clone(), labels);
            kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            })
        };
        Engine {
            model,
            waiting,
            may: facts(Fact::Schedulable),
            is: facts(Fact::Bound),
            pods: model.explored.iter().map(pods).collect(),
            rivals: model.explored.iter().map(rivals).collect(),
            class: model.machines.iter().map(class).collect(),
        }
    }

    fn start(&self) -> State {
        let open = self.model.rules.iter().map(|rule| number(rule.body.len())).collect();
        let mut state = State {
            holds: vec![false; self.model.facts.len()],
            open,
            bound: Vec::new(),
            preempted: Vec::new(),
        };
        let free = self.model.rules.iter().filter(|rule| rule.body.is_empty()).map(|rule| rule.head);
        self.follow(&mut state, self.model.given.iter().copied().chain(free).collect());
        state
    }

    /// Makes facts true, and all that follows from them.
    fn follow(&self, state: &mut State, mut queue: Vec<usize>) {
        while let Some(fact) = queue.pop() {
            if std::mem::replace(&mut state.holds[fact], true) {
                continue;
            }
            for rule in &self.waiting[fact] {
                state.open[*rule] -= 1;
                if state.open[*rule] == 0 {
                    queue.push(self.model.rules[*rule].head);
                }
            }
        }
    }

    /// Bound workloads of a Node, as bits over the explored ones.
    fn mask(&self, state: &State, node: usize) -> u64 {
        let bit =
            |row: &Vec<usize>| row.get(node).is_some_and(|fact| *fact != usize::MAX && state.holds[*fact]);
        self.is.iter().enumerate().filter(|(_, row)| bit(row)).fold(0, |mask, (w, _)| mask | 1 << (w % 64))
    }

    /// A key that identifies a state; interchangeable Nodes may be swapped.
    fn key(&self, state: &State) -> Vec<(usize, u64, u64)> {
        let nodes = 0..self.model.machines.len();
        let mut key: Vec<_> = nodes.map(|node| (self.class[node], self.mask(state, node), 0)).collect();
        key.sort_unstable();
        if !state.preempted.is_empty() {
            // Facts stay true after the Pods that made them true are gone.
            let bits = state.holds.chunks(64);
            key.extend(bits.map(|bits| {
                let word = bits.iter().enumerate().fold(0, |word, (at, bit)| word | u64::from(*bit) << at);
                (usize::MAX, word, 1)
            }));
        }
        key
    }

    fn next(&self, state: &State) -> Vec<State> {
        let mut states = Vec::new();
        for (x, w) in self.model.explored.iter().enumerate() {
            let count = state.bound.iter().filter(|(bound, _)| *bound == number(*w)).count();
            if count >= self.pods[x] {
                continue;
            }
            let mut tried = HashSet::new();
            let possible = |node: &usize| {
                let (may, is) = (self.may[x][*node], self.is[x][*node]);
                state.holds[may] && !state.holds[is] && !self.comes_second(state, x, *node)
            };
            let possible: Vec<usize> = (0..self.model.machines.len()).filter(possible).collect();
            for node in self.preferred(state, x, possible) {
                let is = self.is[x][node];
                if !tried.insert((self.class[node], self.mask(state, node))) {
                    continue;
                }
                let in_the_way = self.in_the_way(state, x, node);
                let weaker = |(other, _): &(u32, u32)| {
                    let priority = |w: usize| self.model.set.workloads[w].priority;
                    priority(*other as usize) < priority(*w)
                };
                if in_the_way.is_empty() {
                    let mut after = state.clone();
                    after.bound.push((number(*w), number(node)));
                    self.follow(&mut after, vec![is]);
                    states.push(after);
                } else if self.model.set.workloads[*w].preempts && in_the_way.iter().all(weaker) {
                    states.push(self.preempt(state, (number(*w), number(node)), &in_the_way));
                }
            }
        }
        states
    }

    /// The Nodes among these to which the scheduler binds a Pod: not those that its affinity does not prefer at all, while one
    /// that it prefers is free. On a new cluster the other scores differ by less than that (`getDefaultPlugins`), unless it
    /// also prefers to be away from other Pods.
    fn preferred(&self, state: &State, x: usize, nodes: Vec<usize>) -> Vec<usize> {
        let own = &self.model.set.workloads[self.model.explored[x]];
        let is_decided =
            own.rather_apart.is_empty() && own.kind != WorkloadKind::DaemonSet && own.node_name.is_none();
        if own.preferred_nodes.is_empty() || !is_decided {
            return nodes;
        }
        let score = |node: &usize| -> i64 {
            let machine = &self.model.machines[*node];
            let holds = |wanted: &Expression| {
                wanted.holds(if wanted.field { Some(&machine.name) } else { machine.labels.get(&wanted.key) })
            };
            let fitting = own.preferred_nodes.iter().filter(|(_, term)| term.expressions.iter().all(holds));
            fitting.map(|(weight, _)| weight).sum()
        };
        let free = |node: &usize| self.in_the_way(state, x, *node).is_empty();
        if !nodes.iter().any(|node| free(node) && score(node) > 0) {
            return nodes;
        }
        nodes.into_iter().filter(|node| score(node) > 0).collect()
    }

    /// Whether a Pod that comes earlier in the same file gets the Node first: both wait for it, and the scheduler takes the
    /// stronger one, or one that no controller has to create first.
    fn comes_second(&self, state: &State, x: usize, node: usize) -> bool {
        let all = &self.model.set.workloads;
        let own = &all[self.model.explored[x]];
        self.model.explored.iter().enumerate().any(|(y, g)| {
            let other = &all[*g];
            let count = state.bound.iter().filter(|(bound, _)| *bound == number(*g)).count();
            let (may, is) = (self.may[y][node], self.is[y][node]);
            let is_bare = |workload: &Workload| workload.kind == WorkloadKind::Pod;
            self.rivals[x][y]
                && (other.priority > own.priority
                    || (is_bare(other) && !is_bare(own) && (other.priority == own.priority || !own.preempts)))
                && other.object < own.object
                && other.place.file == own.place.file
                && count < self.pods[y]
                && state.holds[may]
                && !state.holds[is]
                && self.in_the_way(state, y, node).is_empty()
        })
    }

    /// Bound Pods that keep this one off the Node.
    fn in_the_way(&self, state: &State, x: usize, node: usize) -> Vec<(u32, u32)> {
        let model = self.model;
        let own = &model.set.workloads[model.explored[x]];
        let blocking = |(other, at): &&(u32, u32)| {
            let Some(y) = model.explored.iter().position(|w| number(*w) == *other) else { return false };
            if !self.rivals[x][y] {
                return false;
            }
            let rival = &model.set.workloads[*other as usize];
            let same_node = *at as usize == node;
            let ports = same_node
                && own.host_ports.iter().any(|(port, protocol, _)| {
                    rival.host_ports.iter().any(|(o, op, _)| port == o && protocol == op)
                });
            let place = |node: usize, key: &str| model.machines[node].labels.get(key);
            let apart = |a: &Workload, b: &Workload| {
                a.apart.iter().any(|term| {
                    let own_place = place(node, &term.topology_key);
                    let same = own_place.is_some() && own_place == place(*at as usize, &term.topology_key);
                    same && term.means(&a.namespace, &b.namespace, &b.labels)
                })
            };
            ports || apart(own, rival) || apart(rival, own)
        };
        state.bound.iter().filter(blocking).copied().collect()
    }

    /// Binds the stronger Pod and evicts the weaker ones. What they did for Nodes stays.
    fn preempt(&self, state: &State, pod: (u32, u32), victims: &[(u32, u32)]) -> State {
        let lasting = |fact: &usize| {
            let lasts = matches!(
                self.model.facts[*fact],
                Fact::Initialised(_) | Fact::Addressed(_) | Fact::Networked(_) | Fact::Made(_)
            );
            lasts && state.holds[*fact]
        };
        let mut after = self.start();
        after.bound = state.bound.iter().filter(|bound| !victims.contains(bound)).copied().collect();
        after.bound.push(pod);
        after.preempted.clone_from(&state.preempted);
        after.preempted.extend_from_slice(victims);
        let mut queue: Vec<usize> = (0..self.model.facts.len()).filter(lasting).collect();
        let bound = after.bound.iter();
        queue.extend(bound.filter_map(|(w, n)| self.model.find(Fact::Bound(*w, *n))));
        self.follow(&mut after, queue);
        after
    }

    /// A CCM that is bound to a Node before that Node is Ready may see other Nodes become Ready first.
    fn note_early(&self, before: &State, after: &State, found: &mut BTreeSet<(u32, bool)>) {
        let Some((w, node)) = after.bound.last().copied() else { return };
        let ready =
            |state: &State, n: u32| self.model.find(Fact::Ready(n)).is_some_and(|fact| state.holds[fact]);
        let of_ccm = self.model.set.workloads[w as usize].role == Role::Ccm;
        let others = (0..self.model.machines.len()).map(number).filter(|n| *n != node);
        if of_ccm && !ready(before, node) && others.into_iter().any(|n| ready(after, n)) {
            found.insert((w, false));
        }
    }

    fn note_unready(&self, state: &State, last: bool, found: &mut BTreeSet<(u32, bool)>) {
        let nodes = 0..self.model.machines.len();
        let ready = |n: u32| self.model.find(Fact::Ready(n)).is_some_and(|fact| state.holds[fact]);
        let unready = nodes.clone().filter(|n| !ready(number(*n))).count();
        let all = self.model.machines.len();
        // With no Ready Node at all, or with most of a small cluster down, evictions stop
        // (`handleDisruption`, `ReducedQPSFunc` of the node lifecycle controller).
        let disrupted = unready > 2 && unready * 100 >= all * 55 && all <= 50;
        if unready == 0 || unready == all || disrupted {
            return;
        }
        for (w, workload) in self.model.set.workloads.iter().enumerate() {
            let bound = |n: u32| {
                let fact = self.model.find(Fact::Bound(number(w), n));
                fact.is_some_and(|fact| state.holds[fact])
            };
            let stranded =
                workload.role == Role::Ccm && nodes.clone().map(number).any(|n| bound(n) && !ready(n));
            if stranded {
                found.insert((number(w), last));
            }
        }
    }
}
