//! The modules of one crate according to its sources: the items that each defines, its imports, and the paths
//! in its code.
//!
//! Test code (`#[cfg(test)]`) is left out: the needs of tests are not part of the crate's structure.

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Item, ItemMod, UseTree, Visibility};

/// The number of a module in its crate.
pub(super) type ModuleId = usize;

/// A crate's modules; the first is its root.
#[derive(Debug, Default)]
pub(super) struct Modules {
    pub(super) all: Vec<Module>,
}

/// One module: a file, or a part of one.
#[derive(Debug)]
pub(super) struct Module {
    /// The file that contains it, relative to the workspace.
    pub(super) file: String,
    /// The module that declares it; none for the root.
    pub(super) parent: Option<ModuleId>,
    /// Modules it declares.
    pub(super) children: BTreeMap<String, ModuleId>,
    /// Names of the items it defines.
    pub(super) defines: BTreeSet<String>,
    /// Names it imports or re-exports, with the path each stands for.
    pub(super) imports: BTreeMap<String, Vec<String>>,
    /// Modules or enums with a glob import.
    pub(super) globs: Vec<Vec<String>>,
    /// The paths in its code.
    pub(super) named: Vec<Named>,
}

/// A path in code.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) path: Vec<String>,
    /// The line number in the file, from 1.
    pub(super) line: usize,
}

/// Reads the modules of the crate with this root file.
pub(super) fn read(workspace: &Path, root: &Path) -> Result<Modules> {
    let mut modules = Modules::default();
    let folder = root.parent().unwrap_or(root).to_owned();
    modules.read_file(workspace, root, &folder, None)?;
    Ok(modules)
}

impl Modules {
    /// Reads a file; `folder` is the folder of its own modules' files.
    fn read_file(
        &mut self,
        workspace: &Path,
        path: &Path,
        folder: &Path,
        parent: Option<ModuleId>,
    ) -> Result<ModuleId> {
        let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let file = syn::parse_file(&text).with_context(|| format!("parsing {}", path.display()))?;
        let name = path.strip_prefix(workspace).unwrap_or(path).to_string_lossy().into_owned();
        self.read_items(workspace, &name, folder, parent, &file.items)
    }

    fn read_items(
        &mut self,
        workspace: &Path,
        file: &str,
        folder: &Path,
        parent: Option<ModuleId>,
        items: &[Item],
    ) -> Result<ModuleId> {
        let id = self.all.len();
        self.all.push(Module {
            file: file.to_owned(),
            parent,
            children: BTreeMap::new(),
            defines: BTreeSet::new(),
            imports: BTreeMap::new(),
            globs: Vec::new(),
            named: Vec::new(),
        });
        for item in items {
            if is_test(attributes(item)) {
                continue;
            }
            match item {
                Item::Mod(module) => self.read_module(workspace, file, folder, id, module)?,
                Item::Use(item) => self.read_use(id, item),
                other => {
                    let mut code = Code { named: Vec::new() };
                    code.visit_item(other);
                    let module = &mut self.all[id];
                    module.named.extend(code.named);
                    module.defines.extend(defined(other));
                }
            }
        }
        Ok(id)
    }

    fn read_module(
        &mut self,
        workspace: &Path,
        file: &str,
        folder: &Path,
        parent: ModuleId,
        module: &ItemMod,
    ) -> Result<()> {
        let name = module.ident.to_string();
        let own = folder.join(&name);
        let child = match &module.content {
            Some((_, items)) => self.read_items(workspace, file, &own, Some(parent), items)?,
            None => {
                let file_folder = Path::new(file).parent().unwrap_or(Path::new(""));
                let path = match path_attribute(module) {
                    Some(path) => workspace.join(file_folder).join(path),
                    None => file_of(folder, &name),
                };
                self.read_file(workspace, &path, &own, Some(parent))?
            }
        };
        self.all[parent].children.insert(name, child);
        Ok(())
    }

    fn read_use(&mut self, id: ModuleId, item: &syn::ItemUse) {
        // Names of other crates.
        if item.leading_colon.is_some() {
            return;
        }
        let mut found = Vec::new();
        flatten(&item.tree, &mut Vec::new(), &mut found);
        let module = &mut self.all[id];
        for (name, path, line) in found {
            // A re-export is not a use.
            if matches!(item.vis, Visibility::Inherited) && name.is_some() {
                module.named.push(Named { path: path.clone(), line });
            }
            match name {
                Some(name) => drop(module.imports.insert(name, path)),
                None => module.globs.push(path),
            }
        }
    }
}

/// The file of a module that is declared without a body.
fn file_of(folder: &Path, name: &str) -> PathBuf {
    let flat = folder.join(format!("{name}.rs"));
    if flat.is_file() { flat } else { folder.join(name).join("mod.rs") }
}

fn path_attribute(module: &ItemMod) -> Option<String> {
    module.attrs.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string() == "test",
        _ => false,
    })
}

fn attributes(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name that an item defines.
fn defined(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Each name of a `use`, with its path and line; without a name: all names in that path.
type Used = (Option<String>, Vec<String>, usize);

fn flatten(tree: &UseTree, before: &mut Vec<String>, found: &mut Vec<Used>) {
    let line = tree.span().start().line;
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, found);
            before.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, found)),
        UseTree::Glob(_) => found.push((None, before.clone(), line)),
        UseTree::Name(name) => {
            let mut path = before.clone();
            // `use a::{self}` imports `a`.
            if name.ident != "self" || path.is_empty() {
                path.push(name.ident.to_string());
            }
            found.push((path.last().cloned(), path, line));
        }
        UseTree::Rename(rename) => {
            let mut path = before.clone();
            if rename.ident != "self" {
                path.push(rename.ident.to_string());
            }
            found.push((Some(rename.rename.to_string()), path, line));
        }
    }
}

/// Collects the paths in code.
struct Code {
    named: Vec<Named>,
}

impl<'ast> Visit<'ast> for Code {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.named.push(Named { path: segments, line: path.span().start().line });
        }
        visit::visit_path(self, path);
    }

    /// A `use` inside a function.
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut found = Vec::new();
        flatten(&item.tree, &mut Vec::new(), &mut found);
        self.named.extend(found.into_iter().map(|(_, path, line)| Named { path, line }));
    }

    fn visit_macro(&mut self, invoked: &'ast syn::Macro) {
        self.in_tokens(invoked.tokens.clone());
        visit::visit_macro(self, invoked);
    }

    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }
}

impl Code {
    /// The tokens of a macro call have no syntax yet: everything in them that looks like a path counts.
    fn in_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.end(&mut path, line);
                        line = name.span().start().line;
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.end(&mut path, line);
                    colons = 0;
                    self.in_tokens(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.end(&mut path, line);
                    colons = 0;
                }
            }
        }
        self.end(&mut path, line);
    }

    fn end(&mut self, path: &mut Vec<String>, line: usize) {
        let path = std::mem::take(path);
        if !path.is_empty() {
            self.named.push(Named { path, line });
        }
    }
}
