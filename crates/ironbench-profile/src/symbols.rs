//! Names of functions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use blazesym::MaybeDefault;
use blazesym::symbolize::source::{Elf, Kernel, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};

use crate::space::{FileId, Files};
use crate::stacks::Place;

/// Suffix of the names of kernel functions, as in the collapsed stacks of other profilers.
const KERNEL_SUFFIX: &str = "_[k]";
const UNKNOWN: &str = "[unknown]";
const TRUNCATED: &str = "[truncated]";

/// The text of a frame in a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub text: String,
    /// Whether the name of the function was found.
    pub resolved: bool,
}

impl Label {
    fn function(name: &str, suffix: &str) -> Self {
        // Semicolons in names are replaced, because they separate frames.
        Self { text: name.replace(';', ":") + suffix, resolved: true }
    }

    fn unresolved(text: impl Into<String>) -> Self {
        Self { text: text.into(), resolved: false }
    }
}

/// Looks up the names of the functions at these locations.
pub fn labels(places: impl Iterator<Item = Place>, files: &Files) -> HashMap<Place, Label> {
    let mut labels = HashMap::from([
        (Place::Unknown, Label::unresolved(UNKNOWN)),
        (Place::Truncated, Label { text: TRUNCATED.to_owned(), resolved: true }),
    ]);
    let mut in_kernel = BTreeSet::new();
    let mut in_files = BTreeMap::<FileId, BTreeSet<u64>>::new();
    for place in places {
        match place {
            Place::Kernel(address) => drop(in_kernel.insert(address)),
            Place::File(file, offset) => drop(in_files.entry(file).or_default().insert(offset)),
            Place::Unknown | Place::Truncated => {}
        }
    }
    let symbolizer = Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false).build();
    let kernel = Kernel { vmlinux: MaybeDefault::None, debug_syms: false, ..Kernel::default() };
    let addresses: Vec<_> = in_kernel.into_iter().collect();
    let found = names(&symbolizer, &kernel.into(), Input::AbsAddr(&addresses));
    for (&address, name) in addresses.iter().zip(found) {
        let label = match name {
            Some(name) => Label::function(&name, KERNEL_SUFFIX),
            None => Label::unresolved(format!("{UNKNOWN}{KERNEL_SUFFIX}")),
        };
        labels.insert(Place::Kernel(address), label);
    }
    for (file, offsets) in in_files {
        let path = files.path(file);
        let offsets: Vec<_> = offsets.into_iter().collect();
        let is_file = path.starts_with('/') && Path::new(path).is_file();
        let found = if is_file {
            names(&symbolizer, &Elf::new(path).into(), Input::FileOffset(&offsets))
        } else {
            vec![None; offsets.len()]
        };
        for (offset, name) in offsets.into_iter().zip(found) {
            let label = name.map_or_else(|| Label::unresolved(file_label(path)), |name| Label::function(&name, ""));
            labels.insert(Place::File(file, offset), label);
        }
    }
    labels
}

/// Returns one name for each input. If a name is unknown, or the source cannot be read, it is None.
fn names(symbolizer: &Symbolizer, source: &Source<'_>, input: Input<&[u64]>) -> Vec<Option<String>> {
    let count = input.as_inner_ref().len();
    if count == 0 {
        return Vec::new();
    }
    let Ok(found) = symbolizer.symbolize(source, input) else { return vec![None; count] };
    let name = |symbolized: Symbolized<'_>| symbolized.into_sym().map(|symbol| symbol.name.into_owned());
    found.into_iter().map(name).collect()
}

/// Returns the label of a frame in a file without symbols, which is the file's name in brackets.
fn file_label(path: &str) -> String {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    match path.rsplit('/').next().unwrap_or_default() {
        "" => UNKNOWN.to_owned(),
        "anon" => "[anon]".to_owned(),
        name if name.starts_with('[') => name.to_owned(),
        name => format!("[{}]", name.replace(';', ":")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_without_symbol_has_its_files_name_in_brackets() {
        assert_eq!(file_label("/usr/lib/libc.so.6"), "[libc.so.6]");
        assert_eq!(file_label("/opt/my db (deleted)"), "[my db]");
        assert_eq!(file_label("[vdso]"), "[vdso]");
        assert_eq!(file_label("//anon"), "[anon]");
        assert_eq!(file_label(""), "[unknown]");
    }

    #[test]
    fn a_semicolon_in_a_name_does_not_end_the_frame() {
        assert_eq!(Label::function("a;b", "_[k]").text, "a:b_[k]");
    }

    #[test]
    fn a_file_that_is_missing_or_not_a_program_has_no_symbols() {
        let mut files = Files::default();
        let missing = Place::File(files.id("/no/such/program"), 16);
        let text = Place::File(files.id(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")), 16);
        let labels = labels([missing, text].into_iter(), &files);
        assert_eq!(labels[&missing], Label::unresolved("[program]"));
        assert_eq!(labels[&text], Label::unresolved("[Cargo.toml]"));
    }
}
