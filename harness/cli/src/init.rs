//! `init`: what it prints, and its exit code.

use super::planning::planned;
use harness_config::Source;
use harness_core::output;
use harness_init::InitOptions;
use harness_report::exit;
use std::process::ExitCode;

/// Writes a profile or a driver, and prints what was guessed and what is still missing.
pub(super) fn init(options: &InitOptions) -> ExitCode {
    match harness_init::init(options, |typed| planned(&Source::Defaults, typed)) {
        Ok(text) => {
            output::err(text.trim_end_matches('\n'));
            ExitCode::from(exit::CONFORMANT)
        }
        Err(why) => {
            output::err(&format!("error: {why}"));
            ExitCode::from(exit::USAGE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::arguments::Cli;
    use super::*;
    use clap::Parser;
    use std::path::Path;
    use tempfile::TempDir;

    #[test]
    fn the_next_command_can_be_pasted() {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("ccm.yaml");
        let text = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: ccm-linode, namespace: kube-system}\nspec: {template: {spec: \
                    {containers: [{name: ccm, image: 'example/ccm:v1', command: [/ccm, --cloud-provider=linode]}]}}}\n";
        std::fs::write(&file, text).expect("written");
        let hcloud = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/ccms/hcloud/manifests");
        for (name, manifests, has_image) in [("hcloud", hcloud, false), ("linode", file, true)] {
            let out = Some(folder.path().join(format!("my {name}")));
            let options = InitOptions { manifests: vec![manifests], out, ..InitOptions::default() };
            let said =
                harness_init::init(&options, |typed| planned(&Source::Defaults, typed)).expect("a profile");
            let lines: Vec<&str> =
                said.lines().filter(|line| line.starts_with("  ccm-conformance ")).collect();
            let [plan, embedded, kind] = lines.as_slice() else { panic!("{said}") };
            for line in &lines {
                let words = shlex::split(line).expect("words of a shell");
                Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
            }
            assert!(plan.contains(" plan --profile '/"), "its folder has a space: {plan}");
            assert!(embedded.contains(&format!(" --cluster embedded --binary ./{name}-ccm")), "{embedded}");
            let image = if has_image { "" } else { " --image REFERENCE" };
            assert!(kind.ends_with(&format!(" --cluster kind{image}")), "{kind}");
        }
    }
}
