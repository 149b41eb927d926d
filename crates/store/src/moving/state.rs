//! How far a move is, and the marks that both stores carry meanwhile. It must not know how they are stored.

use std::collections::BTreeMap;

use postrider_core::Timestamp;
use serde::{Deserialize, Serialize};

/// The name of the value, in both stores.
pub(crate) const MARK: &str = "store.moving";

/// What the source carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// The same as in the target's state.
    pub id: String,
    pub state: MarkState,
    /// The target, for people.
    pub to: String,
    pub at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MarkState {
    /// Whoever opens the store to serve it takes the mark away: the move cannot go on from it.
    Moving,
    /// Nobody serves it any more.
    Moved,
}

/// What the target carries, written with each batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub id: String,
    /// All of it was read back.
    pub verified: bool,
    parts: BTreeMap<String, Part>,
}

/// How far one table is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub rows: u64,
    #[serde(with = "hex")]
    pub sum: u128,
    /// The key of the last row, as the source reads it back.
    pub cursor: Option<String>,
    pub ended: bool,
}

impl State {
    pub const fn begin(id: String) -> Self {
        State { id, verified: false, parts: BTreeMap::new() }
    }

    pub fn part(&self, table: &str) -> Part {
        self.parts.get(table).cloned().unwrap_or_default()
    }

    pub fn set_part(&mut self, table: &str, part: Part) {
        self.parts.insert(table.to_owned(), part);
    }

    pub fn rows(&self) -> u64 {
        self.parts.values().map(|part| part.rows).sum()
    }
}

/// JSON's numbers end before ours do.
mod hex {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub fn serialize<S: Serializer>(number: &u128, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{number:032x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
        let text = String::deserialize(from)?;
        u128::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}
