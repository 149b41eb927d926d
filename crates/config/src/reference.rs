//! The reference of all sections and keys as Markdown, from the same list as everything else: `docs/settings.md` is its output.

use std::fmt::Write;

use postrider_core::settings::KeyDoc;

use crate::section::{PASSED_OVER, Section};

pub fn reference(sections: &[&dyn Section]) -> String {
    let mut text = String::from(
        "# Sections and keys\n\n\
         Written by `postrider schema --markdown` from the definitions that the server reads with; do not edit it by hand. How a file is read,\n\
         applied and exported is in `yaml.md`. Each item of each section has a `name`, and those of all sections but `projects` may name their\n\
         `project`. A key that is left out, or is null, has its default.\n",
    );
    for section in sections {
        let _ = write!(text, "\n## {}\n\n{}\n", section.name(), section.meaning());
        if !section.aliases().is_empty() {
            let _ = write!(text, "\nAlso read under the name {}.\n", listed(section.aliases()));
        }
        let required = section.required();
        if !required.is_empty() {
            let _ = write!(text, "\nMust be there: {}.\n", listed(required));
        }
        let variants = section.variants();
        let of_all =
            section.keys().into_iter().filter(|doc| !variants.iter().any(|variant| variant.keys.contains(doc)));
        table(&mut text, of_all);
        for variant in &variants {
            let _ = write!(text, "\n### {}: {}\n", section.name(), variant.name);
            if !variant.required.is_empty() {
                let _ = write!(text, "\nMust be there: {}.\n", listed(variant.required));
            }
            table(&mut text, variant.keys.iter());
        }
        let (passed_over, families) = section.passed_over();
        let mut names: Vec<String> = passed_over.iter().map(|key| (*key).to_owned()).collect();
        names.extend(families.iter().map(|family| format!("{family}*")));
        if !names.is_empty() {
            let _ = write!(text, "\nAccepted with a warning, and without effect: {}.\n", listed(&names));
        }
    }
    text.push_str("\n## Other sections\n\n");
    let _ = writeln!(text, "Accepted with a warning, and without effect: {}.", listed(PASSED_OVER));
    text
}

fn table<'k>(text: &mut String, keys: impl Iterator<Item = &'k KeyDoc>) {
    for (number, doc) in keys.enumerate() {
        if number == 0 {
            text.push_str("\n| key | default | allowed | meaning |\n|---|---|---|---|\n");
        }
        row(text, doc);
    }
}

fn row(text: &mut String, doc: &KeyDoc) {
    let default = match doc.default {
        "" => "\"\"".to_owned(),
        words if words.contains(' ') || words == "none" => words.to_owned(),
        value => format!("`{value}`"),
    };
    let secret = if doc.is_secret { " Never shown." } else { "" };
    let cell = |words: &str| words.replace('|', "\\|");
    let _ = writeln!(
        text,
        "| `{}` | {} | {} | {}{secret} |",
        doc.name,
        cell(&default),
        cell(doc.allowed),
        cell(doc.meaning)
    );
}

fn listed(names: &[impl AsRef<str>]) -> String {
    names.iter().map(|name| format!("`{}`", name.as_ref())).collect::<Vec<_>>().join(", ")
}
