//! The checker's own books: what was asked and told over HTTP, what operators did, what the receiver saw, and what was listed at the end.
//!
//! One clock for all of it: every entry takes the next tick under one lock, so "before" and "after" are never guesses. A *life* is one run of
//! the server's process, from its start to its kill. It must not know what is right.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

pub type Tick = u64;
pub type Life = u32;
pub type Id = String;

/// What the answer to a request said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// No answer came: whether it was accepted is unknown.
    Nothing,
    Delivered(Id),
    Queued(Id),
    Dead(Id),
}

impl Told {
    pub fn id(&self) -> Option<&Id> {
        match self {
            Told::Nothing => None,
            Told::Delivered(id) | Told::Queued(id) | Told::Dead(id) => Some(id),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Asked {
    pub connection: &'static str,
    /// Names the request in its body, so that it is known at the receiver even if its id was never told.
    pub key: String,
    pub asked: Tick,
    /// When the answer came, or when it was clear that none would.
    pub known: Tick,
    pub told: Told,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The body becomes the key with `EDITED` behind it.
    Edit,
    Discard,
    Retry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    Refused,
    /// The server was killed first.
    Nothing,
}

#[derive(Clone, Debug)]
pub struct Act {
    pub id: Id,
    pub deed: Deed,
    pub asked: Tick,
    pub known: Tick,
    pub life: Life,
    pub answer: Answer,
}

/// Behind the key in an edited body.
pub const EDITED: char = '!';

#[derive(Clone, Debug)]
pub struct Receipt {
    pub connection: String,
    pub id: Id,
    pub key: String,
    pub edited: bool,
    /// In which life its TCP connection was accepted.
    pub life: Life,
    pub tick: Tick,
    pub status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Try {
    pub number: u64,
    pub status: Option<u16>,
    pub interrupted: bool,
}

/// A delivery as it was listed at the end.
#[derive(Clone, Debug)]
pub struct Listed {
    pub id: Id,
    pub connection: &'static str,
    pub status: String,
    pub attempts: u64,
    pub tries: Vec<Try>,
    /// Why, when, after how many attempts (Z20).
    pub has_note: bool,
}

/// A message on the topic that dead letters are forwarded to.
#[derive(Clone, Debug)]
pub struct Letter {
    pub id: Id,
    pub key: String,
    pub has_note: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Books {
    /// The last one given out.
    pub tick: Tick,
    pub life: Life,
    pub asked: Vec<Asked>,
    pub acts: Vec<Act>,
    pub receipts: Vec<Receipt>,
    pub listed: Vec<Listed>,
    pub letters: Vec<Letter>,
    /// What no answer may ever be, told at once by whoever saw it.
    pub complaints: Vec<String>,
    pub keys: BTreeMap<Id, String>,
    pub edited: BTreeSet<Id>,
}

impl Books {
    pub fn next_tick(&mut self) -> Tick {
        self.tick += 1;
        self.tick
    }

    pub fn note_told(&mut self, connection: &'static str, key: String, asked: Tick, told: Told) {
        let known = self.next_tick();
        if let Some(id) = told.id() {
            self.keys.insert(id.clone(), key.clone());
        }
        self.asked.push(Asked { connection, key, asked, known, told });
    }
}

/// The books with their lock.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Books>>);

impl Shared {
    pub fn open(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap()
    }

    pub fn tick(&self) -> Tick {
        self.open().next_tick()
    }
}
