//! The `retryableStatuses` language (R06): a list means what its terms mean one by one, and nothing else is a list.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use postrider_core::status_set::{StatusSet, StatusSetError};

/// The input is the list.
pub fn holds(data: &[u8]) {
    let Some(text) = crate::text_of(data) else { return };
    let read = text.parse::<StatusSet>();
    let Some(meant) = meaning_of_list(text) else {
        let error = read.expect_err("no list by the model, and yet it was read");
        if let StatusSetError::BadTerm { term, .. } = &error {
            assert!(text.split(',').any(|written| written.trim() == term), "{term:?} is not in {text:?}");
            assert!(error.to_string().contains(term.as_str()), "the bad term is named");
        }
        return;
    };
    let set = read.unwrap_or_else(|error| panic!("{text:?} was refused: {error}"));
    for status in 0..1000u16 {
        assert_eq!(set.contains(status), meant(status), "{status} in {text:?}");
    }
    assert_eq!(set.as_str(), text);
    let stored = serde_json::to_string(&set).expect("a text is JSON");
    assert_eq!(serde_json::from_str::<StatusSet>(&stored).ok(), Some(set));
}

fn meaning_of_list(text: &str) -> Option<impl Fn(u16) -> bool> {
    let terms: Vec<&str> = text.split(',').map(str::trim).collect();
    if terms.len() > 32 {
        return None;
    }
    let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
    for term in terms {
        match term.strip_prefix('!') {
            Some(rest) => unwanted.push(statuses_of(rest.trim_start())?),
            None => wanted.push(statuses_of(term)?),
        }
    }
    // Exclusions alone mean the default set less those.
    if wanted.is_empty() {
        wanted.push([vec![408, 429], (500..=599).collect()].concat());
    }
    Some(move |status| {
        wanted.iter().any(|set| set.contains(&status)) && !unwanted.iter().any(|set| set.contains(&status))
    })
}

/// The statuses of a term: looked up among all spellings there are, but for ranges, which are too many.
fn statuses_of(term: &str) -> Option<Vec<u16>> {
    let spellings = SPELLINGS.get_or_init(all_spellings);
    if let Some(statuses) = spellings.get(term) {
        return Some(statuses.clone());
    }
    let (from, to) = term.split_once('-')?;
    match (spellings.get(from)?.as_slice(), spellings.get(to)?.as_slice()) {
        ([from], [to]) if from <= to && term.len() == 7 => Some((*from..=*to).collect()),
        _ => None,
    }
}

static SPELLINGS: OnceLock<BTreeMap<String, Vec<u16>>> = OnceLock::new();

fn all_spellings() -> BTreeMap<String, Vec<u16>> {
    let all = || 100..=599u16;
    let mut spellings = BTreeMap::new();
    for bound in all() {
        spellings.insert(format!("{bound}"), vec![bound]);
        spellings.insert(format!(">={bound}"), all().filter(|status| *status >= bound).collect());
        spellings.insert(format!(">{bound}"), all().filter(|status| *status > bound).collect());
        spellings.insert(format!("<={bound}"), all().filter(|status| *status <= bound).collect());
        spellings.insert(format!("<{bound}"), all().filter(|status| *status < bound).collect());
    }
    for class in 1..=5u16 {
        for x in ["xx", "xX", "Xx", "XX"] {
            spellings.insert(format!("{class}{x}"), all().filter(|status| status / 100 == class).collect());
        }
    }
    spellings
}
