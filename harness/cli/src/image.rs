//! `image`: this program as a container image without a base.

use super::arguments::ImageOptions;
use harness_clusters::images::image_of_this_program;
use harness_core::check::chain;
use harness_core::files;
use harness_core::output;
use harness_report::exit;
use std::process::ExitCode;

/// Writes the archive. Exit code 2 if no image is possible.
pub(super) fn image(options: &ImageOptions) -> ExitCode {
    let made = image_of_this_program(&options.reference).map_err(|error| chain(&error)).and_then(|image| {
        let written = std::fs::write(&options.out, &image.bytes);
        written.map_err(|error| {
            format!("--out {}: {}", options.out.display(), files::why_not_written(&error))
        })?;
        Ok(image.ids.join(" "))
    });
    match made {
        Ok(id) => {
            output::err(&format!("wrote {}: {} {id}", options.out.display(), options.reference));
            ExitCode::from(exit::CONFORMANT)
        }
        Err(why) => {
            output::err(&format!("error: {why}"));
            ExitCode::from(exit::USAGE)
        }
    }
}
