//! Collects the texts of all errors and warnings from the sources of the library.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::support::root;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, Lit, Macro, Token};

/// Types whose text is a part of other messages, after a colon.
pub const REASONS: [&str; 2] = ["BlobError", "Damage"];
/// Types that hold the text of `usage` and of `BadValue::new`.
pub const HOLDERS: [&str; 2] = ["BadValue", "UsageError"];
/// Functions and macros that make a message.
const FUNCTIONS: [&str; 3] = ["usage", "Warning::new", "BadValue::new"];
/// Code that prints a message, or makes the type that holds its text. Only a few files may have it.
const ELSEWHERE: [&str; 5] = [
    "Error::msg",
    "io::stderr",
    "Warning",
    "BadValue",
    "UsageError",
];
/// The files that may have it.
const SPEAKERS: [&str; 4] = [
    "src/message.rs",
    "src/app/messages.rs",
    "src/app/mod.rs",
    "src/progress/bars.rs",
];
const MACROS: [&str; 3] = ["anyhow", "bail", "ensure"];

/// Reads a file and the files of its modules, which are in `folder`.
fn collect(path: &Path, folder: &Path, found: &mut Vec<(PathBuf, syn::File)>) {
    let text = std::fs::read_to_string(path).expect("a source");
    let file = syn::parse_file(&text).expect("Rust");
    for item in &file.items {
        let Item::Mod(module) = item else { continue };
        if module.content.is_some() || is_for_tests(&module.attrs) {
            continue;
        }
        let module_folder = folder.join(module.ident.to_string());
        let flat = module_folder.with_extension("rs");
        let path = match flat.exists() {
            true => flat,
            false => module_folder.join("mod.rs"),
        };
        collect(&path, &module_folder, found);
    }
    found.push((path.to_owned(), file));
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test = |list: &syn::MetaList| list.tokens.to_string() == "test";
        attribute.path().is_ident("cfg") && attribute.meta.require_list().is_ok_and(is_test)
    })
}

/// The messages in the sources.
#[derive(Default)]
pub struct FoundMessages {
    /// Shared ways out and other constants, by name.
    constants: BTreeMap<String, String>,
    /// The messages in the form of the page, with their files and ids.
    pub messages: BTreeMap<String, (PathBuf, String)>,
    /// Types with messages of their own.
    pub owners: BTreeSet<String>,
    /// Types whose text is the text of another type.
    pub transparent: BTreeSet<String>,
    /// Forbidden code: file and reason.
    pub refused: Vec<String>,
}

/// Visits one file.
struct Visitor<'a> {
    found: &'a mut FoundMessages,
    /// Constants of this file.
    constants: BTreeMap<String, String>,
    path: PathBuf,
    /// The type whose variants or functions are visited.
    owner: String,
    /// The variant or the function that makes messages.
    maker: String,
}

impl FoundMessages {
    /// Reads all files of the library that are not for tests.
    pub fn read() -> Self {
        let mut sources = Vec::new();
        collect(
            &root().join("src/lib.rs"),
            &root().join("src"),
            &mut sources,
        );
        let mut found = Self::default();
        let shared = sources
            .iter()
            .find(|(path, _)| path.ends_with("src/message.rs"));
        found.constants = constants(&shared.expect("the file of shared texts").1);
        for (path, file) in &sources {
            let mut visitor = Visitor {
                constants: constants(file),
                found: &mut found,
                path: path.strip_prefix(root()).expect("a source").to_owned(),
                owner: String::new(),
                maker: String::new(),
            };
            visitor.visit_file(file);
        }
        found
    }
}

/// Returns the constants of a file that are texts.
fn constants(file: &syn::File) -> BTreeMap<String, String> {
    let constants = file.items.iter().filter_map(|item| match item {
        Item::Const(item) => Some((item.ident.to_string(), literal(&item.expr)?)),
        _ => None,
    });
    constants.collect()
}

fn literal(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the arguments of a macro, if they are expressions.
fn arguments(call: &Macro) -> Option<Vec<Expr>> {
    let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
    let arguments = call.parse_body_with(parser).ok()?;
    Some(arguments.into_iter().collect())
}

/// Returns the literal that an argument is or formats, and whether it is formatted.
fn template(argument: &Expr) -> Option<(String, bool)> {
    match argument {
        Expr::Macro(call) if call.mac.path.is_ident("format") => {
            Some((literal(arguments(&call.mac)?.first()?)?, true))
        }
        other => Some((literal(other)?, false)),
    }
}

/// Writes a path with at most its last two names.
fn name(path: &syn::Path) -> String {
    let names = path
        .segments
        .iter()
        .map(|segment| segment.ident.to_string());
    let names: Vec<String> = names.collect();
    names[names.len().saturating_sub(2)..].join("::")
}

impl Visitor<'_> {
    fn refuse(&mut self, why: &str) {
        let refused = format!("{}: {why}", self.path.display());
        self.found.refused.push(refused);
    }

    /// Records the text of a message; if it is `formatted`, it has placeholders.
    fn take(&mut self, text: &str, formatted: bool) {
        let text = match formatted {
            true => self.filled(text),
            false => text.to_owned(),
        };
        // More lines can follow.
        let line = text.lines().next().unwrap_or_default();
        let line = line.trim_end_matches(":...").trim_end_matches(':');
        let id = self.new_id();
        let message = self.found.messages.entry(line.to_owned());
        message.or_insert((self.path.clone(), id));
    }

    /// Makes an id of the module and the maker, or of the type if the maker's name is too general;
    /// from the second message on, with a number.
    fn new_id(&self) -> String {
        let mut parts = self.path.iter().skip(1);
        let room = parts.next().and_then(|part| Path::new(part).file_stem());
        let name = match &*self.maker {
            "new" | "from_str" | "from" | "parse" => &self.owner,
            maker => maker,
        };
        let id = format!("{}-{}", room.expect("a room").display(), kebab(name)).replace('_', "-");
        let numbered = (2..).map(|number| format!("{id}-{number}"));
        let mut ids = std::iter::once(id.clone()).chain(numbered);
        let is_taken = |id: &String| self.found.messages.values().any(|(_, taken)| taken == id);
        ids.find(|id| !is_taken(id)).expect("one that is free")
    }

    /// Fills in shared ways out, and `...` in other places.
    fn filled(&self, template: &str) -> String {
        let mut filled = String::new();
        let mut rest = template;
        while let Some(start) = rest.find(['{', '}']) {
            filled += &rest[..start];
            let (brace, after) = rest[start..].split_at(1);
            if let Some(after) = after.strip_prefix(brace) {
                filled += brace;
                rest = after;
                continue;
            }
            let (name, after) = after.split_once('}').expect("the end of a place");
            let maps = [&self.constants, &self.found.constants];
            let constant = maps.iter().find_map(|constants| constants.get(name));
            filled += constant.map_or("...", |text| text);
            rest = after;
        }
        filled += rest;
        while filled.contains("....") {
            filled = filled.replace("....", "...");
        }
        filled
    }

    /// Reads the text of `#[error(...)]`.
    fn attributes(&mut self, attributes: &[Attribute], fields: &syn::Fields) {
        let mut metas = attributes.iter().map(|attribute| &attribute.meta);
        let error = metas.find(|meta| meta.path().is_ident("error"));
        let Some(syn::Meta::List(list)) = error else {
            return;
        };
        if list.tokens.to_string() == "transparent" {
            let types = fields.iter().filter_map(|field| match &field.ty {
                syn::Type::Path(path) => Some(name(&path.path)),
                _ => None,
            });
            self.found.transparent.extend(types);
            return;
        }
        self.found.owners.insert(self.owner.clone());
        let is_in = |list: &[&str]| list.contains(&&*self.owner);
        match first_text(list) {
            Some(text) if text == "{0}" && is_in(&HOLDERS) => {}
            Some(_) if is_in(&REASONS) => {}
            Some(text) => self.take(&text, true),
            None => self.refuse("an error without a literal"),
        }
    }
}

/// Converts `MissingTable` to `missing-table`.
fn kebab(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push('-');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// Returns the literal at the beginning of an attribute.
fn first_text(list: &syn::MetaList) -> Option<String> {
    let text = list.parse_args_with(|input: syn::parse::ParseStream<'_>| {
        let text: syn::LitStr = input.parse()?;
        input.parse::<proc_macro2::TokenStream>()?;
        Ok(text.value())
    });
    text.ok()
}

fn is_named(given: &syn::Type, name: &str) -> bool {
    matches!(given, syn::Type::Path(given) if given.path.is_ident(name))
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(module) => &module.attrs,
            Item::Fn(function) => &function.attrs,
            Item::Impl(block) => &block.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.owner = item.ident.to_string();
        for variant in &item.variants {
            self.maker = variant.ident.to_string();
            self.attributes(&variant.attrs, &variant.fields);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.owner = item.ident.to_string();
        self.maker = self.owner.clone();
        self.attributes(&item.attrs, &item.fields);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.maker = signature.ident.to_string();
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = item.trait_.as_ref().map(|(_, path, _)| name(path));
        match of.as_deref() {
            Some("Error" | "error::Error") => self.refuse("an error without `thiserror`"),
            Some("FromStr" | "str::FromStr") => {
                let is_other = |item: &syn::ImplItem| match item {
                    syn::ImplItem::Type(alias) => !is_named(&alias.ty, "BadValue"),
                    _ => false,
                };
                if item.items.iter().any(is_other) {
                    self.refuse("a value that is parsed without `BadValue`");
                }
            }
            _ => {}
        }
        if let syn::Type::Path(of) = &*item.self_ty {
            self.owner = name(&of.path);
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let Expr::Path(function) = &*call.func {
            let name = name(&function.path);
            if FUNCTIONS.contains(&&*name) {
                match call.args.first().and_then(template) {
                    Some((text, formatted)) => self.take(&text, formatted),
                    None => self.refuse(&format!("{name} without a literal")),
                }
            }
            let may_say = SPEAKERS.iter().any(|file| self.path.ends_with(file));
            if ELSEWHERE.contains(&&*name) && !may_say {
                self.refuse(&name);
            }
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if call.method == "context" || call.method == "with_context" {
            let mut texts = Texts::default();
            call.args.iter().for_each(|arg| texts.visit_expr(arg));
            // A file, which is no literal, or an option and its value.
            let is_place = |text: &String| {
                let option = text.strip_suffix(" {}").unwrap_or(text);
                option == "{option}" || option.starts_with("--") && !option.contains(": ")
            };
            if !texts.0.iter().all(is_place) {
                self.refuse("a context that is no place");
            }
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let name = name(&call.path);
        let name = name.rsplit("::").next().unwrap_or_default();
        if ["eprintln", "eprint", "dbg"].contains(&name) {
            self.refuse(name);
        }
        let Some(arguments) = arguments(call) else {
            let tokens = call.tokens.to_string().replace(' ', "");
            let has = |function: &&&str| tokens.contains(&format!("{function}("));
            if let Some(function) = FUNCTIONS.iter().find(has) {
                self.refuse(&format!("{function} in {name}!, where it is not found"));
            }
            return;
        };
        if MACROS.contains(&name) {
            let text = arguments.get(usize::from(name == "ensure"));
            match text.and_then(literal) {
                Some(text) => self.take(&text, true),
                None => self.refuse(&format!("{name}! without a literal")),
            }
        }
        arguments.iter().for_each(|expr| self.visit_expr(expr));
    }
}

/// Collects all texts in an expression, also in `format!`.
#[derive(Default)]
struct Texts(Vec<String>);

impl<'ast> Visit<'ast> for Texts {
    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        self.0.push(text.value());
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let arguments = arguments(call).unwrap_or_default();
        arguments.iter().for_each(|expr| self.visit_expr(expr));
    }
}
