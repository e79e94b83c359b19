//! The reasons why programs cannot be confined on a machine, and the remedies.

use std::collections::BTreeMap;
use std::fmt;

use rustix::process::geteuid;

use super::tools::Tools;

/// The reason why programs are not confined, or not fully, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// The cause, as a clause.
    pub cause: String,
    /// The remedy, as an instruction.
    pub way_out: String,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.cause, self.way_out)
    }
}

/// Kernel settings that forbid namespaces: name, forbidding value, allowing value, and whether root is exempt.
const SETTINGS: [(&str, &str, &str, bool); 5] = [
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0", true),
    ("kernel.unprivileged_userns_clone", "0", "1", true),
    ("user.max_user_namespaces", "0", "15000", true),
    ("user.max_mnt_namespaces", "0", "15000", false),
    ("user.max_pid_namespaces", "0", "15000", false),
];
/// How a container has to be started.
const CONTAINER: &str = "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
                         --security-opt systempaths=unconfined (Docker), or with the fields seccompProfile and appArmorProfile \
                         of type Unconfined and procMount: Unmasked (Kubernetes)";

/// The facts about a machine that concern namespaces.
#[derive(Debug, Default)]
struct Facts {
    /// A required program that is missing.
    missing: Option<&'static str>,
    root: bool,
    /// Kernel settings by name.
    settings: BTreeMap<&'static str, String>,
    /// Whether system calls are filtered, as in a container.
    filtered: bool,
    /// The output of the failed attempt.
    said: String,
}

impl Obstacle {
    /// The obstacle on this machine. `said`: the output of the failed attempt; empty if it is not known.
    pub fn here(said: &str) -> Obstacle {
        let read = |name: &'static str| {
            let value = std::fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?;
            Some((name, value.trim().to_owned()))
        };
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        Obstacle::of(&Facts {
            missing: Tools::here().err(),
            root: geteuid().is_root(),
            settings: SETTINGS.iter().filter_map(|(name, ..)| read(name)).collect(),
            filtered: status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"])),
            said: said.to_owned(),
        })
    }

    /// The reason why a program has no `/proc` of its own although everything else works.
    pub(super) fn of_own_proc() -> Obstacle {
        Obstacle {
            cause: "parts of /proc are covered here, as in a container, and the kernel then refuses another /proc"
                .to_owned(),
            way_out: "start the container with --security-opt systempaths=unconfined (Docker), or with procMount: Unmasked \
                      (Kubernetes)"
                .to_owned(),
        }
    }

    fn of(facts: &Facts) -> Obstacle {
        if let Some(missing) = facts.missing {
            return Obstacle {
                cause: format!("the program '{missing}' is not installed"),
                way_out: "install util-linux (unshare, setpriv, mount), coreutils (chroot, env) and a shell"
                    .to_owned(),
            };
        }
        let forbids = |(name, value, _, root_is_exempt): &&(&'static str, &str, &str, bool)| {
            facts.settings.get(name).is_some_and(|now| now == value) && !(facts.root && *root_is_exempt)
        };
        if let Some((name, value, wanted, root_is_exempt)) = SETTINGS.iter().find(forbids) {
            let or_root = if *root_is_exempt { ", or run ccm-conformance as root" } else { "" };
            return Obstacle {
                cause: format!("the kernel setting {name}={value} forbids namespaces"),
                way_out: format!("run 'sudo sysctl -w {name}={wanted}'{or_root}"),
            };
        }
        let said =
            if facts.said.is_empty() { String::new() } else { format!(" ({})", one_line(&facts.said)) };
        if facts.filtered {
            return Obstacle {
                cause: format!("a container's filter of system calls forbids namespaces{said}"),
                way_out: CONTAINER.to_owned(),
            };
        }
        Obstacle {
            cause: format!("the kernel refuses namespaces{said}"),
            way_out: format!("run ccm-conformance as root; in a container, {CONTAINER}"),
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(settings: &[(&'static str, &str)]) -> Facts {
        let settings = settings.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Facts { settings, ..Facts::default() }
    }

    #[test]
    fn the_cause_and_the_remedy_are_named() {
        let ubuntu = "kernel.apparmor_restrict_unprivileged_userns";
        let cases = [
            (
                Facts { missing: Some("unshare"), ..Facts::default() },
                "'unshare' is not installed",
                "install util-linux",
            ),
            (
                facts(&[(ubuntu, "1")]),
                "kernel.apparmor_restrict_unprivileged_userns=1",
                "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0'",
            ),
            (
                facts(&[(ubuntu, "0"), ("kernel.unprivileged_userns_clone", "0")]),
                "kernel.unprivileged_userns_clone=0",
                "as root",
            ),
            (
                facts(&[("user.max_user_namespaces", "0")]),
                "user.max_user_namespaces=0",
                "user.max_user_namespaces=15000",
            ),
            (Facts { filtered: true, ..Facts::default() }, "filter of system calls", "seccomp=unconfined"),
            (Facts { said: "unshare: a\n b".to_owned(), ..Facts::default() }, "(unshare: a b)", "as root"),
        ];
        for (facts, cause, way_out) in cases {
            let obstacle = Obstacle::of(&facts);
            assert!(obstacle.cause.contains(cause), "{obstacle}");
            assert!(obstacle.way_out.contains(way_out), "{obstacle}");
        }
    }

    #[test]
    fn a_setting_that_does_not_bear_on_root_is_not_to_blame_for_root() {
        let settings =
            facts(&[("kernel.apparmor_restrict_unprivileged_userns", "1"), ("user.max_mnt_namespaces", "0")]);
        let obstacle = Obstacle::of(&Facts { root: true, ..settings });
        assert!(obstacle.cause.contains("user.max_mnt_namespaces=0"), "{obstacle}");
        assert!(!obstacle.way_out.contains("as root"), "{obstacle}");
    }
}
