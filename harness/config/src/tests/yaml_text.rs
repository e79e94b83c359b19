//! The YAML wrapper.

use crate::yaml::{self, Tree, YamlError};
use serde_json::{Value, json};
use std::path::Path;

fn read(text: &str) -> Result<Vec<Value>, YamlError> {
    yaml::from_str_multi(text, Path::new("m.yaml"))
}

#[test]
fn scalars_are_what_kubectl_makes_of_them() {
    for (text, value) in [
        ("yes", json!(true)),
        ("Off", json!(false)),
        ("y", json!(true)),
        ("n", json!(false)),
        ("true", json!(true)),
        ("'yes'", json!("yes")),
        ("\"on\"", json!("on")),
        ("~", Value::Null),
        ("0644", json!(420)),
        ("0o644", json!(420)),
        ("0x1f", json!(31)),
        ("1_000", json!(1000)),
        ("-7", json!(-7)),
        ("1.30", json!(1.3)),
        ("1e3", json!(1000.0)),
        ("2026-03-01", json!("2026-03-01")),
        ("12:30", json!("12:30")),
        ("1.2.3", json!("1.2.3")),
        ("100m", json!("100m")),
        ("10.0.0.0/8", json!("10.0.0.0/8")),
        ("!!str 5", json!("5")),
        ("|\n  two\n  lines\n", json!("two\nlines\n")),
        (">-\n  one\n  line\n", json!("one line")),
    ] {
        assert_eq!(
            read(&format!("a: {text}\n")).expect("the text is YAML"),
            [json!({ "a": value })],
            "{text}"
        );
    }
}

#[test]
fn a_second_document_is_refused_where_there_must_be_one() {
    let error =
        yaml::from_str::<Value>("a: 1\n---\nb: 2\n", Path::new("report.yaml")).expect_err("two documents");
    let text = error.to_string();
    assert!(text.starts_with("report.yaml:"), "{text}");
    assert!(
        text.ends_with(": another document begins here ('---'), and this file must contain only one"),
        "{text}"
    );
}

#[test]
fn documents_are_split_and_empty_ones_left_out() {
    let text = "# head\n---\nkind: A\n---\n---\n# nothing\n---\nkind: B\nlist: &l [1, 2]\nagain: *l\n...\n";
    assert_eq!(
        read(text).expect("the text is YAML"),
        [json!({"kind": "A"}), json!({"kind": "B", "list": [1, 2], "again": [1, 2]})]
    );
    assert_eq!(read("").expect("no document"), Vec::<Value>::new());
    assert_eq!(read("{\"kind\": \"A\"}").expect("JSON is YAML"), [json!({"kind": "A"})]);
}

#[test]
fn errors_have_a_place() {
    for (text, said) in [
        ("a: 1\nb: 2\na: 3\n", "m.yaml:3:1: the key 'a' is given twice"),
        ("kind: A\n---\nx: {a: 1, a: 2}\n", "m.yaml:3:11: the key 'a' is given twice"),
        ("a: [1\n", "m.yaml:1:4: unclosed bracket '['"),
        ("a:\n\tb: 1\n", "m.yaml:2:2: tabs disallowed within this context (block indentation)"),
        (
            "a:\n  b: 1\n\tc: [\n",
            "m.yaml:2:6: while scanning a plain scalar, found a tab; line 3 is indented with a tab; use spaces",
        ),
        ("a: *x\n", "m.yaml:1:4: alias references unknown anchor"),
        ("a: .inf\n", "m.yaml:1:4: non-finite float `.inf` rejected by the configured policy"),
    ] {
        assert_eq!(read(text).expect_err("the text is faulty").to_string(), said, "{text}");
    }
}

#[test]
fn a_text_field_gets_the_text_as_written() {
    let map: std::collections::BTreeMap<String, String> =
        yaml::from_str("a: 1.30\nb: 0644\nc: on\n", Path::new("m.yaml")).expect("the text is YAML");
    assert_eq!(Vec::from_iter(map.values()), ["1.30", "0644", "on"]);
}

#[test]
fn a_tree_knows_lines_and_spellings() {
    let root = yaml::tree("a: 1.30\nb:\n  - x\n  - c: 007\n", Path::new("m.yaml")).expect("the text is YAML");
    let Tree::Map(entries) = &root.tree else { panic!("a map was written") };
    let (Tree::Number(_, spelt), 1) = (&entries[0].1.tree, entries[0].1.line) else { panic!("{entries:?}") };
    assert_eq!(spelt, "1.30");
    let Tree::List(items) = &entries[1].1.tree else { panic!("{entries:?}") };
    assert_eq!((entries[1].1.line, items[0].line, items[1].line), (2, 3, 4));
}

#[test]
fn written_yaml_is_read_back() {
    for text in [
        "",
        " ",
        "yes",
        "null",
        "1.30",
        "0644",
        "a: b",
        "# x",
        "two\nlines",
        "\nlead",
        "trail\n",
        "trail\n\n",
        "tab\there",
        "\u{1b}[31mred\u{0}",
        "- dash",
        "'quote\"",
        "\\",
        "日本",
        "\r\n",
        "  two\n one",
        "%x",
        "@x",
        "2026-03-01T12:00:00Z",
        "\u{fffe}\u{85}\u{2028}",
    ] {
        for long in [text.to_owned(), format!("{text}{}", " word".repeat(60))] {
            let value = json!({ "a": long, "b": [long] });
            let written = yaml::to_string(&value).expect("text is plain data");
            let read: Value =
                yaml::from_str(&written, Path::new("w.yaml")).expect("what was written is YAML");
            assert_eq!(read, value, "{written}");
        }
    }
}

#[test]
fn endless_expansions_are_refused_quickly() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for at in 1..10 {
        let before = vec![format!("*a{}", at - 1); 10].join(", ");
        bomb.push_str(&format!("a{at}: &a{at} [{before}]\n"));
    }
    let error = read(&bomb).expect_err("it would be ten thousand million words");
    assert!(error.what.contains("alias"), "{error:?}");
}
