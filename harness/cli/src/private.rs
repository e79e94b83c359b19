//! A vendor's own suites next to those of the contract.

use harness_testkit::Suite;

/// All suites, the vendor's last.
///
/// # Errors
/// A private suite has the name of another one, or one of its checks the id of a check in the contract.
pub(super) fn joined(
    suites: &'static [Suite],
    private: &'static [Suite],
) -> Result<&'static [Suite], String> {
    for (at, suite) in private.iter().enumerate() {
        if suites.iter().chain(&private[..at]).any(|other| other.name == suite.name) {
            return Err(format!("private suite '{}': there is another of that name; rename it", suite.name));
        }
        if let Some(check) = suite.checks().find(|check| !check.is_private()) {
            return Err(format!(
                "private check {} in suite '{}': the contract has this id; begin ids of your own checks with your name, \
                 as in ACME-LABEL-01",
                check.id, suite.name
            ));
        }
    }
    let copy = |suite: &Suite| Suite {
        name: suite.name,
        proves: suite.proves,
        judges: suite.judges,
        tables: suite.tables,
    };
    // Once for the process, for its whole lifetime.
    Ok(suites.iter().chain(private).map(copy).collect::<Vec<Suite>>().leak())
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::check::Party;
    use harness_testkit::Check;

    const fn check(id: &'static str) -> Check {
        Check::own(id, "it holds", "a handbook", |_| Box::pin(async { Ok(()) }))
    }

    const fn suite(name: &'static str, tables: &'static [&'static [Check]]) -> Suite {
        Suite { name, proves: "it", judges: Party::Ccm, tables }
    }

    const OURS: &[Suite] = &[suite("routes", &[&[check("ROUTE-01")]])];

    #[test]
    fn a_private_suite_comes_last_and_is_marked_as_private() {
        const ACME: &[Suite] = &[suite("acme", &[&[check("ACME-LABEL-01")]])];
        let all = joined(OURS, ACME).expect("they differ");
        assert_eq!(all.iter().map(|suite| suite.name).collect::<Vec<_>>(), ["routes", "acme"]);
        const SAME_NAME: &[Suite] = &[suite("routes", &[&[check("ACME-LABEL-01")]])];
        let refused = joined(OURS, SAME_NAME).err().unwrap_or_default();
        assert!(refused.contains("'routes'") && refused.contains("rename it"), "{refused}");
        const OF_THE_CONTRACT: &[Suite] = &[suite("acme", &[&[check("SVC-DEL-02")]])];
        let refused = joined(OURS, OF_THE_CONTRACT).err().unwrap_or_default();
        assert!(refused.contains("SVC-DEL-02") && refused.contains("ACME-LABEL-01"), "{refused}");
    }
}
