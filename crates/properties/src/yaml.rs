//! Configuration files (D18): read to their end whatever is in them, each refusal on a line that there is; what is taken is made once, and comes
//! back from an export as it was.

use std::cell::Cell;

use postrider_config::document::{DOCUMENT_BYTES_MAX, read as read_document};
use postrider_config::{Action, File, Finding, Plan, Refused, SECTIONS, State, export, plan, read};
use postrider_core::Timestamp;
use postrider_core::id::ProjectId;
use postrider_store::{ConfigChange, Project, ProjectSettings};

/// The input is the file. `Env.HOST` has a value, nothing else of the environment.
pub fn holds(data: &[u8]) {
    let Some(text) = crate::text_of(data) else { return };
    let lines = text.lines().count() + text.matches(['\r', '\u{85}', '\u{2028}', '\u{2029}']).count() + 1;
    let (root, findings) = read_document(text);
    assert!(root.is_some() || !findings.is_empty() || text.len() < DOCUMENT_BYTES_MAX);
    findings.iter().for_each(|finding| stands_in(finding, lines));

    let mut state = State::default();
    let (id, created_at) = (ProjectId::from_u128(1), Timestamp::from_millis(0));
    state.make(&ConfigChange::CreateProject(Project {
        id,
        name: "default".to_owned(),
        settings: ProjectSettings::default(),
        created_at,
    }));
    let file = file(text);
    let first = match planned(&file, &state) {
        Ok(plan) => plan,
        Err(Refused(findings)) => {
            assert!(!findings.is_empty() && findings.is_sorted_by_key(|finding| finding.place));
            return findings.iter().for_each(|finding| stands_in(finding, lines));
        }
    };
    assert!(file.check().is_ok());
    first.warnings.iter().for_each(|warning| stands_in(warning, lines));
    first.changes.iter().for_each(|change| state.make(change));
    state.know_secrets(first.secrets);
    is_without_change(&file, &state, text);

    let exported = export(&state, SECTIONS, None).expect("all projects");
    // An export holds no secret, so the environment of the next import has other ones.
    let again = read(&exported, SECTIONS, &|_| Some("x".to_owned()));
    assert!(again.check().is_ok(), "{exported}\n{:?}", again.check());
    let plan = planned(&again, &state).unwrap_or_else(|refused| panic!("{exported}\n{refused:?}"));
    let mut changed = plan.differences.iter().filter(|difference| difference.action != Action::Unchanged);
    assert!(
        changed
            .all(|difference| difference.section == "security" && difference.keys.iter().all(|key| key.key.is_secret)),
        "{exported}"
    );
    let mut copy = State::default();
    let plan = planned(&again, &copy).unwrap_or_else(|refused| panic!("{exported}\n{refused:?}"));
    plan.changes.iter().for_each(|change| copy.make(change));
    assert_eq!(export(&copy, SECTIONS, None).as_deref(), Some(exported.as_str()));
}

fn file(text: &str) -> File<'static> {
    read(text, SECTIONS, &|name| (name == "HOST").then(|| "https://env.example.org".to_owned()))
}

fn planned(file: &File<'_>, state: &State) -> Result<Plan, Refused> {
    let next = Cell::new(1);
    plan(file, state.clone(), "default", Timestamp::from_millis(0), &|| {
        next.set(next.get() + 1);
        next.get()
    })
}

fn is_without_change(file: &File<'_>, state: &State, text: &str) {
    let plan = planned(file, state).unwrap_or_else(|refused| panic!("{text}\n{refused:?}"));
    assert!(plan.changes.is_empty() && plan.count(Action::Unchanged) == plan.differences.len(), "{text}");
}

fn stands_in(finding: &Finding, lines: usize) {
    assert!(
        finding.place.line >= 1 && finding.place.line as usize <= lines && finding.place.column >= 1,
        "{finding:?}"
    );
    assert!(!finding.message.is_empty() && finding.message.chars().count() < 3000, "{finding:?}");
}
