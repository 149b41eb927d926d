//! What an answer over FHIR says. This module must not know what any of it looks like in JSON or XML.

use serde::Serialize;

/// Refused entries that an error tells of, at most.
const ENTRIES_TOLD_MAX: usize = 5;
/// Conditional entries that an error counts, at most.
const CONDITIONS_TOLD_MAX: usize = 20;

/// What an answer says about the resource and about the outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FhirAnswer {
    /// Of the resource that the answer is about: the body's, or where that is an OperationOutcome or nothing, what `Location` names.
    pub resource_type: Option<String>,
    pub id: Option<String>,
    /// `meta.versionId`, or what `ETag` or `Location` says.
    pub version_id: Option<String>,
    /// Of an OperationOutcome, in its order.
    pub issues: Vec<Issue>,
    /// Of the answer to a batch or a transaction, in the order of its request.
    pub entries: Vec<Entry>,
    /// Entries of the batch or the transaction that was sent of which the answer says nothing.
    pub missing: usize,
    /// The link to the next page, as the server wrote it.
    pub next: Option<String>,
    /// The answer of a conditional read: what the caller has is still right.
    pub not_modified: bool,
    /// Entries of the transaction that was sent which have a condition, from 1: where a server says that one failed and not which (F22).
    pub conditional: Vec<usize>,
    /// What a body that is no OperationOutcome says, in a line.
    pub text: Option<String>,
    /// What is wrong with an answer that may still be a delivery (D24).
    pub remark: Option<String>,
}

/// One issue of an OperationOutcome. What is empty was not said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Issue {
    /// `fatal`, `error`, `warning`, `information`, or what the server made of it.
    pub severity: String,
    pub code: String,
    pub diagnostics: String,
    /// The text of `details`.
    pub details: String,
    /// FHIRPath, or the older `location`.
    pub expression: Vec<String>,
}

/// What became of one entry of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// `None`: the server did not say, which is no success.
    pub status: Option<u16>,
    pub resource_type: Option<String>,
    pub id: Option<String>,
    pub version_id: Option<String>,
    pub issues: Vec<Issue>,
}

impl Entry {
    /// 304 answers a conditional read inside a batch.
    pub fn is_ok(&self) -> bool {
        matches!(self.status, Some(200..300 | 304))
    }

    fn shown(&self) -> String {
        let status = self.status.map_or_else(|| "without a status".to_owned(), |status| format!("HTTP {status}"));
        match self.issues.first() {
            Some(issue) => format!("{status}: {}", issue.shown()),
            None => status,
        }
    }
}

impl Issue {
    /// `error:not-found: no such patient (Patient.id)`.
    pub fn shown(&self) -> String {
        let codes: Vec<&str> = [&*self.severity, &*self.code].into_iter().filter(|word| !word.is_empty()).collect();
        let codes = codes.join(":");
        let said = [&self.diagnostics, &self.details].into_iter().find(|text| !text.is_empty());
        let mut shown = match said {
            Some(said) if codes.is_empty() => said.clone(),
            Some(said) => format!("{codes}: {said}"),
            None => codes,
        };
        if let Some(place) = self.expression.first() {
            shown.push_str(&format!(" ({place})"));
        }
        shown
    }
}

impl FhirAnswer {
    /// The first issue, and how many more there are; else what the body says in text.
    pub fn explained(&self) -> Option<String> {
        let Some(first) = self.issues.first() else { return self.text.clone() };
        Some(match self.issues.len() {
            1 => first.shown(),
            2 => format!("{}; 1 more issue", first.shown()),
            all => format!("{}; {} more issues", first.shown(), all - 1),
        })
    }

    /// Which entries of a batch were not done, in words; `None` where all were.
    pub fn refused_entries(&self) -> Option<String> {
        let refused = || self.entries.iter().enumerate().filter(|(_, entry)| !entry.is_ok());
        let count = refused().count() + self.missing;
        let mut told: Vec<String> = refused()
            .take(ENTRIES_TOLD_MAX)
            .map(|(at, entry)| format!("entry {}: {}", at + 1, entry.shown()))
            .collect();
        let more = if refused().count() > told.len() { "; …" } else { "" };
        if self.missing > 0 {
            let said = self.issues.first().map(|issue| format!(" ({})", issue.shown())).unwrap_or_default();
            told.push(format!("of {} the answer says nothing{said}", self.missing));
        }
        let all = self.entries.len() + self.missing;
        (count > 0).then(|| format!("{count} of {all} entries were not done: {}{more}", told.join("; ")))
    }

    /// `; entries with a condition: 1, 4`.
    pub fn conditional_entries(&self) -> Option<String> {
        let told: Vec<String> = self.conditional.iter().take(CONDITIONS_TOLD_MAX).map(ToString::to_string).collect();
        let more = if self.conditional.len() > told.len() { ", …" } else { "" };
        (!told.is_empty()).then(|| format!("; entries with a condition: {}{more}", told.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f08_an_issue_is_told_by_severity_code_words_and_place() {
        let issue = |severity: &str, code: &str, diagnostics: &str, details: &str, place: &[&str]| Issue {
            severity: severity.to_owned(),
            code: code.to_owned(),
            diagnostics: diagnostics.to_owned(),
            details: details.to_owned(),
            expression: place.iter().map(|text| (*text).to_owned()).collect(),
        };
        for (issue, shown) in [
            (
                issue("error", "invalid", "no date", "", &["Patient.birthDate"]),
                "error:invalid: no date (Patient.birthDate)",
            ),
            (issue("error", "409", "", "taken", &[]), "error:409: taken"),
            (issue("", "", "odd", "", &[]), "odd"),
            (issue("fatal", "exception", "", "", &[]), "fatal:exception"),
            (issue("", "", "", "", &[]), ""),
        ] {
            assert_eq!(issue.shown(), shown);
        }
        let lost = FhirAnswer { missing: 2, issues: vec![issue("fatal", "x", "no", "", &[])], ..FhirAnswer::default() };
        let told = "2 of 2 entries were not done: of 2 the answer says nothing (fatal:x: no)";
        assert_eq!(lost.refused_entries().as_deref(), Some(told), "F13");
        let done = Entry { status: Some(201), ..Entry::default() };
        assert_eq!(FhirAnswer { entries: vec![done], ..FhirAnswer::default() }.refused_entries(), None);
        let answer = FhirAnswer { issues: vec![issue("error", "a", "", "", &[]); 3], ..FhirAnswer::default() };
        assert_eq!(answer.explained().as_deref(), Some("error:a; 2 more issues"));
    }
}
