//! Tests that the program accepts every command line in a document or a message.

use super::arguments::Cli;
use clap::Parser as _;
use clap::error::ErrorKind;
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use std::path::{Path, PathBuf};

/// Commands that are programs in their own right, with their own arguments.
const PROGRAMS: &[&str] = &[
    "fake-cloud",
    "reference-ccm",
    "reference-ccm-mutant",
    "reference-credential-provider",
    "reference-credential-provider-mutant",
    "reference-network-proxy",
    "reference-network-proxy-mutant",
    "reference-csi-driver",
    "reference-csi-driver-mutant",
    "image-credential-recorder",
    "image-registry",
];

/// Parts of the workspace without documents of this project, and the changelog, which also has commands that were removed.
const LEFT_OUT: &[&str] = &[".git", "target", "CHANGELOG.md"];

/// The errors of a command that is mentioned without its arguments.
const MENTIONED: &[ErrorKind] =
    &[ErrorKind::MissingRequiredArgument, ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand];

/// The errors of a command in the source of a message, where the values are not known either.
const INCOMPLETE: &[ErrorKind] =
    &[MENTIONED[0], MENTIONED[1], ErrorKind::InvalidValue, ErrorKind::ValueValidation];

/// Code in a document.
struct Code {
    /// The line number, from 1.
    line: usize,
    text: String,
    /// Whether users type it, like a line of a shell block. Code within a line may name a command
    /// without its arguments.
    is_typed: bool,
}

impl Code {
    /// The errors that the document does not cause.
    fn allowed(&self) -> &'static [ErrorKind] {
        if self.is_typed { &[] } else { MENTIONED }
    }
}

#[test]
fn every_command_in_a_document_is_one_that_the_program_accepts() {
    let (commands, refused) = judged(".md", |text| {
        let of_code = |code: Code| {
            let calls = our_commands(&code.text).into_iter();
            calls.map(move |call| (code.line, call, code.allowed())).collect::<Vec<_>>()
        };
        shell_code(text).into_iter().flat_map(of_code).collect()
    });
    assert!(commands > 100, "{commands} commands were found in all documents");
    assert_eq!(refused, [""; 0]);
}

#[test]
fn every_command_in_a_message_is_one_that_the_program_accepts() {
    let (commands, refused) = judged(".rs", |text| {
        let calls = commands_in_messages(text).into_iter().flat_map(|(line, command)| {
            our_commands(&command).into_iter().map(move |call| (line, call, INCOMPLETE))
        });
        calls.collect()
    });
    assert!(commands > 70, "{commands} commands were found in all messages");
    assert_eq!(refused, [""; 0]);
}

/// A command: its line, from 1, its arguments, and the errors that the text does not cause.
type Found = (usize, Vec<String>, &'static [ErrorKind]);

/// How many commands the files with an extension have, and those that the program refuses.
fn judged(extension: &str, commands: impl Fn(&str) -> Vec<Found>) -> (usize, Vec<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    collect(&root, extension, &mut files);
    let (mut count, mut refused) = (0, Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a file is text");
        for (line, arguments, allowed) in commands(&text) {
            count += 1;
            let found = |why| format!("{}:{line}: {}: {why}", file.display(), arguments.join(" "));
            refused.extend(objection(&arguments, allowed).map(found));
        }
    }
    (count, refused)
}

#[test]
fn commands_are_found_in_messages() {
    let name = "ccm-conformance";
    let text = format!(
        "f(\"see '{name} docs {{page}}' for more\"); g(&format!(\"{name} list --only '{{}}-*'\", one));"
    );
    let found = [(1, format!("{name} docs X")), (1, format!("{name} list --only 'X-*'"))];
    assert_eq!(commands_in_messages(&text), found);
}

/// The commands in the string literals of a source: a whole literal, or a part of it in quotation marks. What is put into a
/// literal when it is formatted is `X`. The number is that of the line, from 1.
fn commands_in_messages(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, name) in source.match_indices("ccm-conformance ") {
        let quote = source[..at].chars().next_back().filter(|before| ['"', '\'', '`'].contains(before));
        let Some(end) = quote.and_then(|quote| source[at..].find(quote)) else { continue };
        // A whole literal without an option may be any text that begins with the name.
        let is_command = quote != Some('"') || source[at..at + end].contains(" --");
        let mut command = String::new();
        let mut rest = &source[at..at + end];
        while let Some((before, placeholder)) = rest.split_once('{') {
            command.push_str(before);
            command.push('X');
            rest = placeholder.split_once('}').map_or("", |(_, after)| after);
        }
        command.push_str(rest);
        // What stands for several words cannot be parsed.
        let is_whole = !command.contains("XX") && !command.starts_with(&format!("{name}X"));
        if is_command && is_whole && !command.contains(['\n', '\\']) && !command.contains("..") {
            found.push((source[..at].matches('\n').count() + 1, command));
        }
    }
    found
}

#[test]
fn command_lines_that_the_program_rejects_are_found() {
    let objections = |text: &str| {
        let of_code = |code: Code| our_commands(&code.text).into_iter().map(move |one| (one, code.allowed()));
        let commands = shell_code(text).into_iter().flat_map(of_code);
        commands.filter_map(|(arguments, allowed)| objection(&arguments, allowed)).collect::<Vec<_>>()
    };
    let sound = "`ccm-conformance` `ccm-conformance explain ID` `ccm-conformance explain`\n\n```sh\nA=b ccm-conformance run --only 'X-*' \\\n  --quick # --odd\n\
                 helm template x | ccm-conformance bootstrap check - > out\ncargo run --release -- run\ncargo run -p other -- odd\n```\n\n\
                 ```yaml\nccm-conformance odd\n```\n";
    assert_eq!(objections(sound), [""; 0]);
    for wrong in ["odd", "run --odd", "run --only X --cluster odd"] {
        assert_eq!(objections(&format!("`ccm-conformance {wrong}`")).len(), 1, "{wrong}");
        assert_eq!(objections(&format!("```sh\nx && ccm-conformance {wrong}\n```\n")).len(), 1, "{wrong}");
    }
    for typed in ["cargo run --release -- odd", "ccm-conformance replay"] {
        assert_eq!(objections(&format!("```sh\n{typed}\n```\n")).len(), 1, "{typed}");
    }
}

fn collect(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the workspace") {
        let path = entry.expect("a folder of the workspace").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if LEFT_OUT.contains(&name) {
            continue;
        }
        if path.is_dir() {
            collect(&path, extension, files);
        } else if name.ends_with(extension) {
            files.push(path);
        }
    }
}

/// The code within lines, and each command in shell blocks with its continued lines joined.
fn shell_code(text: &str) -> Vec<Code> {
    let mut found = Vec::new();
    let mut is_shell = false;
    for (event, place) in Parser::new_ext(text, pulldown_cmark::Options::ENABLE_TABLES).into_offset_iter() {
        let line = text[..place.start].matches('\n').count() + 1;
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(name))) => is_shell = *name == *"sh",
            Event::End(TagEnd::CodeBlock) => is_shell = false,
            Event::Code(code) => found.push(Code { line, text: code.into_string(), is_typed: false }),
            Event::Text(block) if is_shell => {
                let mut continued = String::new();
                for (line, part) in (line..).zip(block.lines()) {
                    continued.push_str(part.trim_end_matches('\\'));
                    if !part.ends_with('\\') {
                        found.push(Code { line, text: std::mem::take(&mut continued), is_typed: true });
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// The arguments of each call of the program in a line for a shell.
fn our_commands(code: &str) -> Vec<Vec<String>> {
    let words: Vec<String> = shlex::Shlex::new(code).collect();
    let ends = |word: &String| ["|", "&&", "||", ";", ">", ">>", "2>"].contains(&&**word);
    let mut commands = Vec::new();
    for call in words.split(ends) {
        let is_variable = |word: &String| word.split_once('=').is_some_and(|(name, _)| !name.contains('-'));
        let call: Vec<String> = call.iter().skip_while(|word| is_variable(word)).cloned().collect();
        match call.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["ccm-conformance", _, ..] => commands.push(call[1..].to_vec()),
            ["cargo", "run", cargos @ ..]
                if !cargos.iter().any(|word| ["-p", "--package"].contains(word)) =>
            {
                let own = call.iter().skip_while(|word| *word != "--").skip(1);
                commands.push(own.cloned().collect());
            }
            _ => {}
        }
    }
    commands
}

/// The program's error for these arguments, if it is not one of the allowed ones.
fn objection(arguments: &[String], allowed: &[ErrorKind]) -> Option<String> {
    if arguments.first().is_some_and(|first| PROGRAMS.contains(&first.as_str())) {
        return None;
    }
    let line = std::iter::once("ccm-conformance").chain(arguments.iter().map(String::as_str));
    let error = Cli::try_parse_from(line).err().filter(clap::Error::use_stderr)?;
    let is_allowed = allowed.contains(&error.kind());
    (!is_allowed).then(|| error.to_string().lines().next().unwrap_or_default().to_owned())
}
