//! `docs/logs.md` has the catalogue as it is.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]

use std::path::Path;

use postrider_core::log::reference;

#[test]
fn p06_the_page_about_logs_has_every_event() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/logs.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, table) = page.split_once("\n\n| event |").unwrap();
    assert_eq!(format!("| event |{table}"), reference(), "put this table at the end of docs/logs.md");
}
