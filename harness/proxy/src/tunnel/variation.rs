//! Mutants of the network proxy, which checks must catch, and conforming variants, which they must let pass. Only
//! [`super::mutant_main`] can enable them.

/// The ids of the bugs; `fixtures/ccms/mutants/mutants.yaml` says what each is.
pub const MUTANTS: &[&str] = &[
    "M-NP-03", "M-NP-05", "M-NP-07", "M-NP-07b", "M-NP-07c", "M-NP-07d", "M-NP-07e", "M-NP-08", "M-NP-08b",
    "M-NP-10", "M-NP-10b",
];

/// The ids of unusual but correct behaviours; `variants.yaml` next to that file says what each is.
pub const VARIANTS: &[&str] = &["S-NP-02", "S-NP-03", "S-NP-04"];

/// The selected one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variation(&'static str);

impl Variation {
    /// The one with that id.
    pub(crate) fn of(id: &str) -> Result<Variation, String> {
        let known = MUTANTS.iter().chain(VARIANTS).find(|known| **known == id);
        known.map(|known| Variation(known)).ok_or_else(|| format!("unknown mutant or variant {id}"))
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
