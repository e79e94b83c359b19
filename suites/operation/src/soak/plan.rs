//! The events of a soak, round by round: the same for the same seed. Pure functions.

/// The number of Nodes that come and go.
pub(super) const NODES: usize = 6;
/// The number of Services that come, change and go.
pub(super) const SERVICES: usize = 5;
/// A leader ends in every round of this multiple, if leaders end at all.
const LEADER_EVERY: usize = 3;
/// The cloud fails in one of this many rounds.
const TROUBLE_EVERY: usize = 3;

/// The change of one Node or Service, with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A machine and its Node join, or are removed if they exist.
    Node(usize),
    /// A Service is created, or deleted if it exists.
    Service(usize),
    /// A Service gets another port; nothing happens if it does not exist.
    Port(usize, u16),
}

/// How the cloud fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    /// The HTTP status of its answers.
    pub(super) status: u16,
    /// The number of calls that fail.
    pub(super) calls: u64,
}

/// How a leader ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Killed,
    Terminated,
    CutOff,
    Frozen,
}

/// The changes that are made at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Round {
    pub(super) changes: Vec<Change>,
    pub(super) trouble: Option<Trouble>,
    pub(super) leader: Option<End>,
}

/// An endless sequence of rounds.
pub(super) struct Rounds {
    chance: fastrand::Rng,
    leaders: bool,
    done: usize,
}

impl Rounds {
    /// The rounds for a seed; `leaders` says whether leaders end.
    pub(super) fn of(seed: u64, leaders: bool) -> Rounds {
        Rounds { chance: fastrand::Rng::with_seed(seed), leaders, done: 0 }
    }

    fn change(&mut self) -> Change {
        match self.chance.u8(0..4) {
            0 | 1 => Change::Node(self.chance.usize(0..NODES)),
            2 => Change::Service(self.chance.usize(0..SERVICES)),
            _ => Change::Port(self.chance.usize(0..SERVICES), self.chance.u16(1024..32_000)),
        }
    }

    fn trouble(&mut self) -> Option<Trouble> {
        let status = *self.chance.choice([429, 500, 503].iter())?;
        let calls = self.chance.u64(1..=2);
        (self.chance.usize(0..TROUBLE_EVERY) == 0).then_some(Trouble { status, calls })
    }
}

impl Iterator for Rounds {
    type Item = Round;

    fn next(&mut self) -> Option<Round> {
        let wanted = self.chance.usize(1..=4);
        let mut changes: Vec<Change> = Vec::new();
        while changes.len() < wanted {
            let change = self.change();
            // Each Node or Service gets only one change at a time.
            if !changes.iter().any(|other| other.place() == change.place()) {
                changes.push(change);
            }
        }
        let trouble = self.trouble();
        let end = *self.chance.choice([End::Killed, End::Terminated, End::CutOff, End::Frozen].iter())?;
        self.done += 1;
        let due = self.leaders && self.done.is_multiple_of(LEADER_EVERY);
        Some(Round { changes, trouble, leader: due.then_some(end) })
    }
}

impl Change {
    /// The Node or Service that changes: whether it is a Node, and its number.
    fn place(self) -> (bool, usize) {
        match self {
            Change::Node(at) => (true, at),
            Change::Service(at) | Change::Port(at, _) => (false, at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_everything() {
        let rounds = |seed| Rounds::of(seed, true).take(200).collect::<Vec<Round>>();
        assert_eq!(rounds(7), rounds(7));
        assert_ne!(rounds(7), rounds(8));
    }

    #[test]
    fn everything_happens_and_leaders_end_only_where_they_are_to() {
        let rounds: Vec<Round> = Rounds::of(1, true).take(400).collect();
        for end in [End::Killed, End::Terminated, End::CutOff, End::Frozen] {
            assert!(rounds.iter().any(|round| round.leader == Some(end)), "{end:?}");
        }
        for status in [429, 500, 503] {
            assert!(rounds.iter().any(|round| round.trouble.is_some_and(|trouble| trouble.status == status)));
        }
        let changes: Vec<Change> = rounds.iter().flat_map(|round| round.changes.clone()).collect();
        assert!((0..NODES).all(|at| changes.contains(&Change::Node(at))));
        assert!((0..SERVICES).all(|at| changes.contains(&Change::Service(at))));
        assert!(changes.iter().any(|change| matches!(change, Change::Port(..))));
        assert!(rounds.iter().all(|round| (1..=4).contains(&round.changes.len())));
        assert!(Rounds::of(1, false).take(400).all(|round| round.leader.is_none()));
    }

    #[test]
    fn nothing_happens_twice_to_one_thing_in_a_round() {
        for round in Rounds::of(3, true).take(400) {
            let mut places: Vec<_> = round.changes.iter().map(|change| change.place()).collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), round.changes.len(), "{round:?}");
        }
    }
}
