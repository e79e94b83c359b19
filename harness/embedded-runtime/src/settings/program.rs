//! Images that are programs of this machine, and how files reach them.

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
    /// Whether a container's `command` is dropped: it names a path inside the image that is not on this machine.
    pub keeps_entry_point: bool,
    /// Whether a registry hands the image out; else it is on the machines and cannot be pulled.
    pub pulls: bool,
    /// The user of the image, where that is known: root may not run where a Pod says `runAsNonRoot`.
    pub user: Option<i64>,
    /// Arguments added at the end. `${NODE_LOOPBACK}`, `${NODE_NAME}` and `${POD_IP}` are filled in.
    pub more_arguments: Vec<String>,
    /// Environment added to the container's own, with the same placeholders.
    pub environment: BTreeMap<String, String>,
    /// What the program sees of this machine besides the system's programs and libraries and its own folder.
    pub shares: Vec<Share>,
}

/// A file or folder of this machine that a program sees where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Its absolute path.
    pub path: PathBuf,
    /// Whether the program may write to it.
    pub writable: bool,
}

impl Program {
    /// A program for this image, with the first arguments it always has. The container's own `args` follow them.
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

/// What the program of a container may take of this machine. One that takes more is ended, as a kernel does it with a
/// container that is over its limit, but for processor time: it then yields to everybody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Memory of all its processes, bytes, where its container has no `resources.limits.memory`.
    pub memory: u64,
    /// How many processes it may have at once.
    pub processes: usize,
    /// The share of this machine's processors that it may use for [`Bounds::PATIENCE_S`] seconds, percent.
    pub processor: u64,
}

impl Bounds {
    /// For how long, seconds, a program may use more of the processors than its share.
    pub const PATIENCE_S: u64 = 10;
}

impl Default for Bounds {
    /// 2 GiB, 4096 processes, three quarters of the processors.
    fn default() -> Bounds {
        Bounds { memory: 2 << 30, processes: 4096, processor: 75 }
    }
}

/// How the paths of volume mounts reach a program, and whether it is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mounts {
    /// In a root folder and namespaces of its own where this machine allows that, else [`Mounts::Rewritten`].
    Detect,
    /// Its arguments and environment are rewritten to where the files are.
    Rewritten,
}
