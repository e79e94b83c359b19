//! Mutants of the network proxy, which checks must catch, and conforming variants, which they must let pass. Only
//! [`super::mutant_main`] can enable them.

/// Bugs, by id.
pub const MUTANTS: &[(&str, &str)] = &[
    ("M-NP-03", "its agents dial kubelets only"),
    ("M-NP-05", "accepts an agent's name only the first time it connects"),
    ("M-NP-07", "sends a greeting of its own before the tunnel"),
    ("M-NP-07b", "answers 200 before the destination is reached"),
    ("M-NP-07c", "has a body in its 200"),
    ("M-NP-07d", "ends a tunnel after 64 KiB"),
    ("M-NP-07e", "makes an agent exit when a dial is refused"),
    ("M-NP-08", "dials only through the agent that connected first"),
    ("M-NP-08b", "gives up a tunnel when its agent is lost"),
    ("M-NP-10", "waits for agents for ever"),
    ("M-NP-10b", "exits when no agent is connected"),
];

/// Unusual but correct behaviour, by id.
pub const VARIANTS: &[(&str, &str)] = &[
    ("S-NP-02", "its agents connect 12 s after they have started"),
    ("S-NP-03", "waits for agents for all of the 30 s that an API server waits"),
    ("S-NP-04", "its agents connect 5 s after they have started, and its server hardly waits for them"),
];

/// The selected one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variation(&'static str);

impl Variation {
    /// The one with that id.
    pub(crate) fn of(id: &str) -> Result<Variation, String> {
        let known = MUTANTS.iter().chain(VARIANTS).find(|(known, _)| *known == id);
        known.map(|(known, _)| Variation(known)).ok_or_else(|| format!("unknown mutant or variant {id}"))
    }

    /// Whether it is the one with that id.
    pub(crate) fn is(self, id: &str) -> bool {
        self.0 == id
    }

    /// Ends the process.
    #[expect(clippy::disallowed_methods, reason = "what is wrong with it is that it ends")]
    pub(crate) fn ends(self) -> ! {
        std::process::exit(1)
    }
}
