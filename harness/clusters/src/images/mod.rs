//! Images: of this program or of one compiled here, without a base image, or from the local Docker engine; and that
//! engine itself.
//!
//! They are independent of clusters. `engine` is the interface to Docker for this module and the two that follow.

mod archive;
mod build;
mod engine;
#[cfg(test)]
mod fake_engine;
mod names;
mod own;
mod pending;
mod prepare;

pub use archive::{ImageArchive, ImageContent, ImageFile, ImageRun, docker_archive, oci_archive};
pub use build::{BuildError, Program, static_binary, unknown_part};
pub use engine::{Engine, EngineError, EngineRecord};
pub use names::{COMPONENT_LABEL, IMAGE_REGISTRY, NAME_PREFIX, OWNER_LABEL, RUN_LABEL, RunId};
pub use own::{own_program, set_own_program};
pub use prepare::{
    Folders, ImageError, ImageSource, PreparedImage, file_digest, image_of_this_program, load_into_engine,
    of_commands, prepare,
};

pub(crate) use build::last_lines;
#[cfg(test)]
pub(crate) use fake_engine::FakeEngine;
pub(crate) use names::is_named;
pub(crate) use pending::{begin, settled};
pub use prepare::{find_digest, pull};
