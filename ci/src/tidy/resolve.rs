//! Finds the file of a path: through modules, imports and re-exports to where the item is defined.

use super::modules::{ModuleId, Modules};
use std::collections::{BTreeMap, BTreeSet};

/// The files that each file uses, with the line of the first use.
pub(super) type Uses = BTreeMap<String, BTreeMap<String, usize>>;

/// All uses between the files of a crate.
pub(super) fn uses(modules: &Modules) -> Uses {
    let mut uses = Uses::new();
    for (id, module) in modules.all.iter().enumerate() {
        let of_file = uses.entry(module.file.clone()).or_default();
        for named in &module.named {
            let resolver = Resolver { modules, busy: BTreeSet::new() };
            if let Some(file) = resolver.defining_file(id, &named.path).filter(|file| *file != module.file) {
                let line = of_file.entry(file).or_insert(named.line);
                *line = named.line.min(*line);
            }
        }
    }
    uses
}

/// The place that a path has reached so far.
enum Place {
    Module(ModuleId),
    /// An item of this module.
    Item(ModuleId),
}

struct Resolver<'a> {
    modules: &'a Modules,
    /// Names that are being looked up, so that circular imports end.
    busy: BTreeSet<(ModuleId, String)>,
}

impl Resolver<'_> {
    /// The file that defines what the path names; `None` for other crates, local names and modules themselves.
    fn defining_file(mut self, from: ModuleId, path: &[String]) -> Option<String> {
        match self.place(from, path)? {
            Place::Item(module) => Some(self.modules.all[module].file.clone()),
            Place::Module(_) => None,
        }
    }

    fn place(&mut self, from: ModuleId, path: &[String]) -> Option<Place> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Place::Module(0),
            "self" => Place::Module(from),
            "super" => Place::Module(self.modules.all[from].parent?),
            name => self.name(from, name)?,
        };
        while let (Place::Module(module), Some((next, after))) = (&at, rest.split_first()) {
            at = match next.as_str() {
                "super" => Place::Module(self.modules.all[*module].parent?),
                "self" => Place::Module(*module),
                name => self.name(*module, name)?,
            };
            rest = after;
        }
        Some(at)
    }

    /// The item of a name in a module.
    fn name(&mut self, module: ModuleId, name: &str) -> Option<Place> {
        let known = &self.modules.all[module];
        if let Some(child) = known.children.get(name) {
            return Some(Place::Module(*child));
        }
        if known.defines.contains(name) {
            return Some(Place::Item(module));
        }
        if !self.busy.insert((module, name.to_owned())) {
            return None;
        }
        if let Some(path) = known.imports.get(name) {
            return self.place(module, path);
        }
        known.globs.iter().find_map(|glob| match self.place(module, glob)? {
            Place::Module(target) => self.name(target, name),
            // The variants of an enum: it may be any of them.
            Place::Item(_) => None,
        })
    }
}
