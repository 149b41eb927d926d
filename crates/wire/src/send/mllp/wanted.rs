//! Which acknowledgment a message waits for, and what those that come mean for it.
//!
//! By its number and never by its place: the next frame on the socket may be about another message. It must not know of sockets or time.

use bytes::Bytes;
use postrider_core::ack::{Ack, AckCode, AckItem};
use postrider_core::connection::{AckMatch, ApplicationAck, MllpTarget};
use postrider_core::log;

use crate::codec::hl7::{AckWish, Outline, acknowledgment};

pub(super) struct Wanted<'a> {
    outline: &'a Outline<'a>,
    ack_match: AckMatch,
    /// `CA` is not the last word.
    application_too: bool,
    /// Of a batch, what has come so far.
    items: Vec<(Vec<u8>, AckItem)>,
    frames: Vec<Bytes>,
    has_commit: bool,
    strays: u32,
    last_stray: Option<String>,
}

pub(super) enum Taken {
    /// The acknowledgment, and its bytes as they came.
    Decided(Ack, Bytes),
    /// It says something, and not yet all.
    Waiting,
}

impl<'a> Wanted<'a> {
    pub(super) fn new(outline: &'a Outline<'a>, target: &MllpTarget) -> Self {
        Wanted {
            outline,
            ack_match: target.ack_match,
            application_too: outline.application_ack == AckWish::Always
                && target.application_ack == ApplicationAck::Same,
            items: Vec::new(),
            frames: Vec::new(),
            has_commit: false,
            strays: 0,
            last_stray: None,
        }
    }

    pub(super) fn take(&mut self, frame: Bytes) -> Taken {
        let read = match acknowledgment(&frame) {
            Ok(read) => read,
            Err(error) => return self.stray(error.to_string()),
        };
        if self.ack_match == AckMatch::Warn {
            return match read.items.into_iter().next() {
                Some((id, item)) => {
                    if !self.outline.control_ids.contains(&id) {
                        tracing::warn!(event = log::ACK_OF_ANOTHER, "an acknowledgment of another message was taken");
                    }
                    self.single(item, frame)
                }
                None => self.stray("it names no message".to_owned()),
            };
        }
        if self.outline.is_batch {
            let of_ours = |id: &&[u8]| self.outline.batch_ids.contains(id);
            let is_whole = read.of_batches.iter().any(of_ours);
            let items: Vec<(Vec<u8>, AckItem)> = read.items.into_iter().map(|(id, item)| (id.to_vec(), item)).collect();
            return self.batch(is_whole, items, frame);
        }
        match read.items.into_iter().find(|(id, _)| self.outline.control_ids.first() == Some(id)) {
            Some((_, item)) => self.single(item, frame),
            None => self.stray("it is of another message".to_owned()),
        }
    }

    fn single(&mut self, item: AckItem, frame: Bytes) -> Taken {
        if item.code == AckCode::Ca && self.application_too {
            self.has_commit = true;
            return Taken::Waiting;
        }
        Taken::Decided(Ack::single(item.code, item.text), frame)
    }

    /// A batch is answered by a batch, by one acknowledgment under its own number, or message by message until all are there.
    fn batch(&mut self, is_whole: bool, items: Vec<(Vec<u8>, AckItem)>, frame: Bytes) -> Taken {
        if is_whole && items.is_empty() {
            return Taken::Decided(Ack::single(AckCode::Aa, None), frame);
        }
        let by_number = items.iter().find(|(id, _)| self.outline.batch_ids.contains(&id.as_slice()));
        if let Some((_, item)) = by_number.filter(|_| !is_whole) {
            return Taken::Decided(Ack::single(item.code, item.text.clone()), frame);
        }
        let ours = |id: &[u8]| self.outline.control_ids.contains(&id);
        let fitting: Vec<_> = items.into_iter().filter(|(id, _)| is_whole || ours(id)).collect();
        if fitting.is_empty() {
            return self.stray("it is of another message".to_owned());
        }
        self.items.extend(fitting);
        self.frames.push(frame);
        let has = |id: &&[u8]| self.items.iter().any(|(known, _)| known == id);
        if !is_whole && !self.outline.control_ids.iter().all(has) {
            return Taken::Waiting;
        }
        let items = std::mem::take(&mut self.items).into_iter().map(|(_, item)| item).collect();
        match Ack::of_batch(items) {
            Some(ack) => Taken::Decided(ack, joined(&self.frames)),
            None => Taken::Waiting,
        }
    }

    fn stray(&mut self, why: String) -> Taken {
        self.strays = self.strays.saturating_add(1);
        self.last_stray = Some(why);
        Taken::Waiting
    }

    /// What came instead of the acknowledgment, in words; empty when nothing did.
    pub(super) fn what_came(&self) -> String {
        let mut told = Vec::new();
        if self.has_commit {
            told.push("it was committed (CA), and the application did not answer".to_owned());
        }
        if !self.items.is_empty() {
            let (have, all) = (self.items.len(), self.outline.control_ids.len());
            told.push(format!("{have} of the {all} messages of the batch were acknowledged"));
        }
        if let Some(why) = &self.last_stray {
            told.push(format!("{} other messages came, of the last of which: {why}", self.strays));
        }
        if self.outline.commit_ack == AckWish::Never && self.outline.application_ack == AckWish::Never {
            told.push("the message itself asks for none (MSH-15 and MSH-16 are NE)".to_owned());
        }
        told.join("; ")
    }
}

fn joined(frames: &[Bytes]) -> Bytes {
    match frames {
        [only] => only.clone(),
        all => {
            let ended =
                |frame: &Bytes| if frame.ends_with(b"\r") { frame.to_vec() } else { [frame, &b"\r"[..]].concat() };
            all.iter().flat_map(ended).collect()
        }
    }
}
