//! Images that are programs of this machine, and how they see files.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// An image that is a program of this machine.
#[derive(Debug, Clone)]
pub struct Program {
    /// The image reference as Pods name it.
    pub image: String,
    /// The image's entry point: program and first arguments. A container's `command` replaces it,
    /// unless [`Program::keeps_entry_point`].
    pub entry_point: Vec<String>,
    /// The image's default arguments; a container's `args` replace them.
    pub arguments: Vec<String>,
    /// Whether a container's `command` is ignored: it names a path in the image that does not exist on this
    /// machine.
    pub keeps_entry_point: bool,
    /// Whether the image can be pulled from a registry; otherwise it is already on the machines and cannot be
    /// pulled.
    pub pulls: bool,
    /// The user of the image, if known: root may not run in a Pod with `runAsNonRoot`.
    pub user: Option<i64>,
    /// Arguments added at the end. `${NODE_LOOPBACK}`, `${NODE_NAME}` and `${POD_IP}` are filled in.
    pub more_arguments: Vec<String>,
    /// Environment added to the container's own, with the same placeholders.
    pub environment: BTreeMap<String, String>,
    /// Files of this machine that the program sees, in addition to the system's programs and libraries and
    /// its own folder.
    pub shares: Vec<Share>,
}

/// A file or folder of this machine that a program sees at the same path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Its absolute path.
    pub path: PathBuf,
    /// Whether the program may write to it.
    pub writable: bool,
}

impl Program {
    /// A program for this image, with its fixed first arguments. The container's own `args` follow them.
    #[must_use]
    pub fn new<S: Into<String>>(
        image: impl Into<String>,
        entry_point: impl IntoIterator<Item = S>,
    ) -> Program {
        Program {
            image: image.into(),
            entry_point: entry_point.into_iter().map(Into::into).collect(),
            arguments: Vec::new(),
            keeps_entry_point: false,
            pulls: true,
            user: None,
            more_arguments: Vec::new(),
            environment: BTreeMap::new(),
            shares: Vec::new(),
        }
    }
}

/// The resources that the program of a container may use on this machine. A program that uses more memory or
/// processes is ended, like a container over its limit. A program that uses more processor time gets a lower
/// priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The memory of all its processes in bytes, if its container has no `resources.limits.memory`.
    pub memory: u64,
    /// How many processes it may have at the same time.
    pub processes: usize,
    /// The share of this machine's processors, in percent, that it may use for [`Bounds::PATIENCE_S`] seconds.
    pub processor: u64,
}

impl Bounds {
    /// For how many seconds a program may use more of the processors than its share.
    pub const PATIENCE_S: u64 = 10;
}

impl Default for Bounds {
    /// 2 GiB, 4096 processes, three quarters of the processors.
    fn default() -> Bounds {
        Bounds { memory: 2 << 30, processes: 4096, processor: 75 }
    }
}

/// How a program sees its volume mounts, and whether it is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mounts {
    /// In its own root folder and namespaces if this machine allows that, otherwise [`Mounts::Rewritten`].
    Detect,
    /// Paths in its arguments and environment are rewritten to the real paths.
    Rewritten,
}
