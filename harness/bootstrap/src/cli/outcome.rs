//! Exit codes of the commands, and the remedy that they share.

/// How the command line names the CCM.
pub(super) const NAME_IT: &str =
    "name it with --ccm KIND/NAME, or pass --topology hosted if it runs elsewhere";

/// Exit code: the cluster boots.
pub(super) const BOOTS: u8 = 0;
/// Exit code: the cluster does not boot, or only in some orders, or the API server refuses an object; with `--strict` also a
/// lint finding.
pub(super) const FAILS: u8 = 1;
/// Exit code: unreadable input or bad usage.
pub(super) const USAGE: u8 = 2;
