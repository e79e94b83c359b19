//! The patterns of a schema, each compiled once.
//!
//! They are written for Go's `regexp`; see [`super::go`]. A lazy automaton compares a text with a pattern,
//! one byte at a time, and each byte has a cost: one step where the next state is known, and more where it
//! has to be computed.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};

use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};
use serde_json::Value;

use super::go;
use crate::value::PathAccess as _;

/// The possible memory limits of a pattern in bytes: the least of these that is enough counts.
const SIZES: [usize; 4] = [1 << 14, 1 << 16, 1 << 18, 1 << 22];
/// The most bytes that the patterns of one schema may use together.
const MOST: usize = 16 << 20;

/// The patterns of a schema by their text. A pattern that is invalid here, or too large, is not included:
/// every text matches it, and the author of the definition gets a warning ([`Patterns::unread`]).
#[derive(Debug, Default)]
pub struct Patterns {
    read: BTreeMap<String, Pattern>,
    unread: BTreeMap<String, String>,
    /// The bytes of memory that they use.
    weight: usize,
}

impl Patterns {
    /// The patterns of a schema.
    pub fn of(schema: &Value) -> Self {
        let mut patterns = Self::default();
        patterns.gather(schema);
        patterns
    }

    fn gather(&mut self, schema: &Value) {
        let Some(parts) = schema.as_object() else { return };
        let pattern = schema.text("pattern");
        if !pattern.is_empty() && !self.read.contains_key(pattern) && !self.unread.contains_key(pattern) {
            self.add(pattern);
        }
        for (name, part) in parts {
            match (name.as_str(), part) {
                ("properties", Value::Object(named)) => named.values().for_each(|inner| self.gather(inner)),
                ("items" | "additionalProperties" | "not", inner) => self.gather(inner),
                ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                    all.iter().for_each(|inner| self.gather(inner))
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, pattern: &str) {
        let mut failed = "the patterns of this schema are too large together".to_owned();
        let mut tried = 0;
        for size in SIZES.into_iter().filter(|size| self.weight + size <= MOST) {
            tried = SIZES[2];
            match Pattern::read(pattern, size) {
                Ok(read) => {
                    self.weight += size;
                    self.read.insert(pattern.to_owned(), read);
                    return;
                }
                Err(Unread::TooLarge) => failed = format!("it takes more than {size} bytes"),
                Err(Unread::Wrong(why)) => {
                    failed = why;
                    break;
                }
            }
        }
        // Finding out that a pattern is too large costs time.
        self.weight += tried;
        self.unread.insert(pattern.to_owned(), failed);
    }

    /// The bytes of memory that they use.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// Whether a text matches a pattern. Subtracts the cost from `steps`; `None`, with no step left, if there
    /// are too few.
    pub(super) fn matches(&self, pattern: &str, text: &str, steps: &mut usize) -> Option<bool> {
        let Some(read) = self.read.get(pattern) else { return Some(true) };
        let holds = read.matches(text, steps);
        if holds.is_none() {
            *steps = 0;
        }
        holds
    }

    /// The patterns that are not enforced, with the reason.
    pub fn unread(&self) -> impl Iterator<Item = (&str, &str)> {
        self.unread.iter().map(|(pattern, why)| (pattern.as_str(), why.as_str()))
    }
}

impl PartialEq for Patterns {
    fn eq(&self, other: &Self) -> bool {
        self.read.keys().eq(other.read.keys()) && self.unread == other.unread
    }
}

impl Eq for Patterns {}

/// The reason why a pattern is not used.
enum Unread {
    TooLarge,
    Wrong(String),
}

/// A pattern, and the states of its automaton that are known so far.
#[derive(Debug)]
struct Pattern {
    automaton: DFA,
    known: Mutex<Option<Cache>>,
}

/// How many states of a pattern's machine are examined in one step, at least: to find the automaton's next
/// state, all of them may have to be examined.
const STATES_A_STEP: usize = 64;

impl Pattern {
    /// Compiles a pattern of at most this many bytes; its automaton may use the same number again.
    fn read(pattern: &str, size: usize) -> Result<Pattern, Unread> {
        let wrong = |why: &dyn Error| {
            let mut last = why;
            while let Some(cause) = last.source() {
                last = cause;
            }
            Unread::Wrong(last.to_string())
        };
        let config = syntax::Config::new().octal(true).utf8(false);
        let parsed = syntax::parse_with(&go::translated(pattern), &config).map_err(|why| wrong(&why))?;
        let config = thompson::Config::new().nfa_size_limit(Some(size)).which_captures(WhichCaptures::None);
        let machine: NFA =
            thompson::Compiler::new().configure(config).build_from_hir(&parsed).map_err(|why| {
                match why.size_limit() {
                    Some(_) => Unread::TooLarge,
                    None => wrong(&why),
                }
            })?;
        let config = Config::new().cache_capacity(size).skip_cache_capacity_check(true);
        let automaton =
            DFA::builder().configure(config).build_from_nfa(machine).map_err(|why| wrong(&why))?;
        Ok(Pattern { automaton, known: Mutex::default() })
    }

    fn matches(&self, text: &str, steps: &mut usize) -> Option<bool> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_with(|| self.automaton.create_cache());
        let look = self.automaton.get_nfa().states().len() / STATES_A_STEP;
        let input = Input::new(text).anchored(Anchored::No);
        let mut at = self.automaton.start_state_forward(known, &input).ok()?;
        let mut size = known.memory_usage();
        for byte in text.bytes() {
            at = self.automaton.next_state(known, at, byte).ok()?;
            // The growth of the cache, or its reset, is work that was done.
            let now = known.memory_usage();
            let found = if now == size { 0 } else { look + now.abs_diff(size) };
            size = now;
            *steps = steps.checked_sub(1 + found)?;
            // The library reports a match one byte late.
            if at.is_match() {
                return Some(true);
            }
            if at.is_dead() {
                return Some(false);
            }
        }
        Some(self.automaton.next_eoi_state(known, at).ok()?.is_match())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_are_read_wherever_they_stand_and_bounded() {
        let text = |pattern: &str| json!({"type": "string", "pattern": pattern});
        let schema = json!({"type": "object", "properties": {
            "pattern": text("^[a-z]+$"),
            "list": {"type": "array", "items": text("^\\p{L}.{1,200}$")},
            "map": {"type": "object", "additionalProperties": {"anyOf": [text("^(?i)x$"), {"not": text("[0-9]")}]}},
            "large": text("^(\\w{1,300}){1,300}$"), "long": text("^.{1,1024}$"), "wrong": text("["), "again": text("[0-9]")}});
        let patterns = Patterns::of(&schema);
        let read: Vec<&String> = patterns.read.keys().collect();
        assert_eq!(
            read,
            ["[0-9]", "^(?i)x$", "^.{1,1024}$", "^[a-z]+$", "^\\p{L}.{1,200}$"],
            "{:?}",
            patterns.unread
        );
        let unread: Vec<&str> = patterns.unread().map(|(pattern, _)| pattern).collect();
        assert_eq!(unread, ["[", "^(\\w{1,300}){1,300}$"]);
        let holds = |pattern: &str, text: &str| patterns.matches(pattern, text, &mut 1000);
        assert_eq!((holds("^[a-z]+$", "abc"), holds("^[a-z]+$", "1")), (Some(true), Some(false)));
        assert_eq!(holds("[", "anything"), Some(true));
    }

    #[test]
    fn many_patterns_take_no_more_than_they_may() {
        let named: serde_json::Map<String, Value> = (0..400)
            .map(|at| (at.to_string(), json!({"type": "string", "pattern": format!("^{at}.{{1,100}}$")})))
            .collect();
        let patterns = Patterns::of(&json!({"type": "object", "properties": named}));
        assert!(patterns.weight() < MOST + SIZES[3], "{}", patterns.weight());
        let (read, unread) = (patterns.read.len(), patterns.unread.len());
        assert!(read > 8 && unread > 0 && read + unread == 400, "{read} and {unread}");
    }

    #[test]
    fn a_text_costs_what_it_takes_and_never_more_than_there_is() {
        let long = "a description of some length, with an \u{e4} in it; ".repeat(20);
        let plain = Patterns::of(&json!({"pattern": "^.{1,1024}$"}));
        let mut steps = 1_000_000;
        assert_eq!(plain.matches("^.{1,1024}$", &long, &mut steps), Some(true));
        let first = 1_000_000 - steps;
        assert_eq!(plain.matches("^.{1,1024}$", &long, &mut steps), Some(true));
        assert!(1_000_000 - steps - first <= long.len(), "what is known costs a step a byte");
        // Each byte leads to a state that was never seen before, with thousands of alternatives.
        let hostile = "(a|b)*a((a|b){1000}){10}c";
        let patterns = Patterns::of(&json!({"pattern": hostile}));
        assert_eq!(patterns.unread().next(), None);
        let mut numbers = 1_u64;
        let text: String = (0..1_000_000)
            .map(|_| {
                numbers ^= numbers << 13;
                numbers ^= numbers >> 7;
                numbers ^= numbers << 17;
                if numbers.is_multiple_of(2) { 'a' } else { 'b' }
            })
            .collect();
        let (mut steps, began) = (4_000_000, std::time::Instant::now());
        assert_eq!((patterns.matches(hostile, &text, &mut steps), steps), (None, 0));
        // Without the limit this takes minutes.
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }
}
