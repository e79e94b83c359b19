//! `init`: drafts the profile of a CCM from its manifests, so that it need not be written from nothing.

mod arguments;
mod cloud;
mod container;
mod draft;
mod folder;
mod write;

pub use arguments::{InitCloudOptions, InitCommand, InitOptions, Language};
use draft::{Draft, TEMPLATE, short};
use folder::{exists, is_a_path, put};
use harness_config::{Profile, RunFile, RunPlan, WantedCluster, check_name, profile_schema, yaml};
use harness_core::bounded;
use harness_core::check::chain;
use harness_core::files::{self, built_in_folders_with};
use harness_core::output;
use harness_session::ccm::WorkloadHint;
use harness_session::{expected_boot, refused_objects};
use serde_json::Value;
use std::borrow::Cow;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use write::{Written, written};

/// How many bytes the manifests of a CCM may have.
const AT_MOST: u64 = 16 << 20;

/// Writes what the options ask for, and returns what was guessed and what is still missing. `planned` plans a run with the
/// new profile; if it cannot, it prints the reason.
///
/// # Errors
/// Manifests that cannot be used, or a folder that exists already.
pub fn init<E>(
    options: &InitOptions,
    planned: impl FnOnce(RunFile) -> Result<RunPlan<WantedCluster>, E>,
) -> Result<String, String> {
    match &options.what {
        Some(InitCommand::Cloud(options)) => cloud::make(options),
        None => make(options, planned),
    }
}

fn make<E>(
    options: &InitOptions,
    planned: impl FnOnce(RunFile) -> Result<RunPlan<WantedCluster>, E>,
) -> Result<String, String> {
    if let Some(name) = &options.name {
        check_name(name).map_err(|why| format!("--name '{name}': {why}"))?;
    }
    let documents = documents(options)?;
    let (namespace, name) = match options.workload.as_deref().map(|text| text.split_once('/')) {
        None => (None, None),
        Some(Some((namespace, name))) => (Some(namespace.to_owned()), Some(name.to_owned())),
        Some(None) => {
            let typed = options.workload.as_deref().unwrap_or_default();
            return Err(format!("--workload '{typed}': write NAMESPACE/NAME, such as kube-system/{typed}"));
        }
    };
    let hint = WorkloadHint { namespace, name, container: options.container.clone() };
    let draft = Draft::of(documents, &hint, options.name.as_deref())?;
    let folder = options.out.clone().unwrap_or_else(|| PathBuf::from(&draft.name));
    if folder.exists() {
        return Err(exists(&folder));
    }
    let texts: Result<Vec<String>, _> = draft.documents.iter().map(yaml::to_string).collect();
    let manifests = texts.map_err(|error| chain(&error))?.join("---\n");
    let Written { mut files, unknown, address } = written(&draft, manifests);
    files.push(("profile.schema.json".to_owned(), format!("{:#}\n", profile_schema())));
    put(&folder, &files)
        .map_err(|error| format!("{}: {}", folder.display(), files::why_not_written(&error)))?;
    let mut text = String::new();
    files.iter().for_each(|(name, _)| text.push_str(&format!("wrote {}\n", folder.join(name).display())));
    if let Some(address) = address {
        text.push_str(&format!("\nWhere the CCM gets the address of its cloud:\n  {address}\n"));
    }
    text.push_str("\nWhat the manifests do not say:\n");
    unknown.iter().for_each(|one| text.push_str(&format!("  {one}\n")));
    let profile = format!("{}{}", if is_a_path(&folder) { "" } else { "./" }, folder.display());
    let over = RunFile { profile: Some(profile.clone()), ..RunFile::default() };
    let Ok(plan) = planned(over) else {
        output::err(text.trim_end_matches('\n'));
        return Err(format!("the profile has errors, see above; correct {profile}/profile.yaml"));
    };
    if let Some(expected) = expected_boot(&plan.profile, plan.cluster.desired()) {
        text.push_str(&format!("\nWould a cluster boot with them?\n  {}\n", expected.replace('\n', "\n  ")));
        if expected.contains(": does not boot") {
            text.push_str(&format!(
                "  'ccm-conformance bootstrap fix' shows how to change the manifests that this profile came from; \
                 then remove {} and run init again\n",
                folder.display()
            ));
        }
    }
    let refused = refused_objects(&plan.profile, plan.cluster.desired());
    if !refused.is_empty() {
        text.push_str(&format!(
            "\nWhat the API server of a new cluster refuses:\n  {}\n",
            refused.join("\n  ")
        ));
    }
    if built_in_folders_with("profile.yaml")
        .iter()
        .any(|name| name.ends_with(&format!("/{}", plan.profile.name)) || *name == plan.profile.name)
    {
        text.push_str(&format!(
            "\nA profile of this name is built in, with more than manifests can say: --profile {}\n",
            plan.profile.name
        ));
    }
    text.push_str(&next(&profile, &plan.profile));
    Ok(text)
}

/// The next commands: they can be pasted, with the cluster and the requirements of the CCM.
fn next(folder: &str, profile: &Profile) -> String {
    let quoted = |word: &str| shlex::try_quote(word).map_or_else(|_| word.to_owned(), Cow::into_owned);
    let (folder, binary) = (quoted(folder), quoted(&format!("./{}-ccm", profile.name)));
    let image = match profile.image {
        Some(_) => "",
        None => " --image REFERENCE",
    };
    let embedded = format!("--profile {folder} --cluster embedded --binary {binary}");
    format!(
        "\nNext, with the CCM's program (built for this machine) in the place of {binary}:\n  ccm-conformance plan \
         {embedded}\n  ccm-conformance run {embedded} --only NODE-INIT-01\nThen with real kubelets ('ccm-conformance doctor' \
         says whether kind works here, and with which versions):\n  ccm-conformance run --profile {folder} --cluster \
         kind{image}\n"
    )
}

/// The manifests, from any of the sources.
fn documents(options: &InitOptions) -> Result<Vec<Value>, String> {
    let mut documents = Vec::new();
    let mut take = |text: &str, of: &Path| {
        let template = if text.contains("{{") { TEMPLATE } else { "" };
        let read: Vec<Value> =
            yaml::from_str_multi(text, of).map_err(|error| format!("{}{template}", chain(&error)))?;
        if let Some(other) = read.iter().find(|document| !document.is_null() && !document.is_object()) {
            return Err(format!(
                "{}: a document is not an object of Kubernetes: {}",
                of.display(),
                short(other)
            ));
        }
        documents.extend(read);
        Ok::<_, String>(())
    };
    for path in &options.manifests {
        let of_option = |why| format!("--manifests: {why}");
        for file in files_of(path).map_err(of_option)? {
            take(&text_of(&file).map_err(of_option)?, &file)?;
        }
    }
    if let Some(chart) = &options.helm {
        let mut command = Command::new("helm");
        command.args(["template", options.name.as_deref().unwrap_or("ccm")]).arg(chart);
        command.args(["--namespace", "kube-system"]);
        for file in &options.values {
            command.arg("--values").arg(file);
        }
        take(&rendered(command, "install Helm, or render the chart elsewhere and give --manifests")?, chart)?;
    }
    if let Some(folder) = &options.kustomize {
        if !folder.is_dir() {
            let why =
                if folder.exists() { "is not a folder" } else { "there is no such folder; check the path" };
            return Err(format!("--kustomize {}: {why}", folder.display()));
        }
        let mut command = Command::new("kubectl");
        command.arg("kustomize").arg(folder);
        take(&rendered(command, "install kubectl, or build it elsewhere and give --manifests")?, folder)?;
    }
    Ok(documents)
}

/// Files that kustomize reads itself.
const KUSTOMIZATIONS: [&str; 2] = ["kustomization.yaml", "kustomization.yml"];

/// A file, or the files in a folder.
fn files_of(path: &Path) -> Result<Vec<PathBuf>, String> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let all = files::list(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let has = |file: &PathBuf, name: &str| file.file_name().is_some_and(|file| file == name);
    let folder = path.display();
    if all.iter().any(|file| has(file, "Chart.yaml")) {
        return Err(format!("{folder} is the folder of a Helm chart (Chart.yaml); use --helm {folder}"));
    }
    let of_kustomize = |file: &PathBuf| KUSTOMIZATIONS.iter().any(|name| has(file, name));
    if let Some(file) = all.iter().find(|file| of_kustomize(file)) {
        output::err(&format!(
            "warning: {}: is not built: the files of its folder are read as they are; to build it, use --kustomize {folder}",
            file.display()
        ));
    }
    let is = |file: &PathBuf| {
        file.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known))
    };
    let files: Vec<PathBuf> = all.into_iter().filter(|file| is(file) && !of_kustomize(file)).collect();
    if files.is_empty() {
        Err(format!(
            "{} itself holds no .yaml, .yml or .json file; name the folder that does",
            path.display()
        ))
    } else {
        Ok(files)
    }
}

/// The text of a regular file, or for `-` of standard input.
fn text_of(path: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{}: {}", path.display(), files::why(&error));
    let reader: Box<dyn std::io::Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        let file = std::fs::File::open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(format!("{} is not a regular file", path.display()));
        }
        Box::new(file)
    };
    let mut text = String::new();
    let read = reader.take(AT_MOST + 1).read_to_string(&mut text);
    read.map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => {
            format!("{} is not text (UTF-8); save it as UTF-8, or give another file", path.display())
        }
        _ => failed(error),
    })?;
    match text.len() as u64 > AT_MOST {
        true => Err(format!("{}: more than {} MiB", path.display(), AT_MOST >> 20)),
        false => Ok(text),
    }
}

/// The output of a program that renders manifests.
fn rendered(mut command: Command, way_out: &str) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let ran = bounded::output_of(command.stdin(Stdio::null()));
    let output = ran.map_err(|error| format!("cannot run '{program}': {}; {way_out}", cause(&error)))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        let why: Vec<String> = why.trim().lines().map(without_klog).collect();
        return Err(format!("'{program}' failed ({}): {}", files::ended(output.status), why.join("\n")));
    }
    let text = String::from_utf8(output.stdout);
    let text = text.map_err(|error| format!("'{program}' printed no text: {error}"))?;
    match text.trim().is_empty() {
        true => Err(format!("'{program}' printed nothing: what it has rendered holds no objects")),
        false => Ok(text),
    }
}

/// A line without what the log library of Kubernetes' programs puts around its message:
/// `E1129 00:17:56.310715   32746 run.go:72] "command failed" err="kustomization.yaml is empty"`.
fn without_klog(line: &str) -> String {
    let is_head = |head: &str| {
        let digits = head.get(1..5).is_some_and(|date| date.bytes().all(|digit| digit.is_ascii_digit()));
        head.starts_with(['I', 'W', 'E', 'F']) && digits && head.split_whitespace().count() == 4
    };
    match line.split_once("] ").filter(|(head, _)| is_head(head)) {
        None => line.to_owned(),
        Some((_, message)) => {
            let error = message.split_once(" err=").map(|(_, quoted)| quoted);
            error.and_then(|quoted| serde_json::from_str(quoted).ok()).unwrap_or_else(|| message.to_owned())
        }
    }
}

/// Why a program did not start.
fn cause(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "it is not in PATH".to_owned(),
        _ => files::why(error),
    }
}

#[cfg(test)]
mod tests;
