//! Lists in the order that a caller asks for: `?sort=name`, or `?sort=-waiting` for the largest first. Of what the engine holds in memory, with the kept
//! counters of queues; nothing is counted for it.
//!
//! It must not know how what is listed is shown.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

use postrider_core::connection::Connection;
use postrider_core::id::ConnectionId;
use postrider_store::{PageRequest, QueueSummary};

use crate::problem::{Problem, bad_cursor, clipped};
use crate::read::Query;

/// What a list goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Name,
    Type,
    Waiting,
    /// Since when the oldest waits; where nothing waits comes last, either way round.
    Oldest,
    Dead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    by: By,
    is_falling: bool,
}

/// The words of `sort`, for descriptions.
pub const WORDS: [&str; 10] =
    ["name", "-name", "type", "-type", "waiting", "-waiting", "oldest", "-oldest", "dead", "-dead"];
const ALLOWED: &str = "one of name, type, waiting, oldest, dead, with `-` in front for the other way round";

impl Sort {
    /// `None`: by id, as things were made.
    pub fn take(query: &mut Query) -> Result<Option<Sort>, Problem> {
        let Some(given) = query.take("sort") else { return Ok(None) };
        let (word, is_falling) = given.strip_prefix('-').map_or((given.as_str(), false), |word| (word, true));
        let by = match word {
            "name" => By::Name,
            "type" => By::Type,
            "waiting" => By::Waiting,
            "oldest" => By::Oldest,
            "dead" => By::Dead,
            _ => {
                let message = format!("`sort` is `{}`: allowed is {ALLOWED}", clipped(&given));
                return Err(Problem::bad_request("sort", message, ALLOWED));
            }
        };
        Ok(Some(Sort { by, is_falling }))
    }

    /// Those of the page, and the cursor of the next one: how many were shown. What changes meanwhile may be shown twice or not at all.
    pub fn page(
        self,
        mut all: Vec<Arc<Connection>>,
        summaries: &BTreeMap<ConnectionId, QueueSummary>,
        asked: &PageRequest,
    ) -> Result<(Vec<Arc<Connection>>, Option<String>), Problem> {
        let skipped = match &asked.cursor {
            Some(cursor) => cursor.parse::<usize>().map_err(|_| bad_cursor())?,
            None => 0,
        };
        all.sort_by(|a, b| self.compare(a, summaries.get(&a.id), b, summaries.get(&b.id)));
        let limit = usize::try_from(asked.limit).unwrap_or(usize::MAX);
        let end = skipped.saturating_add(limit);
        let next = (end < all.len()).then(|| end.to_string());
        Ok((all.into_iter().skip(skipped).take(limit).collect(), next))
    }

    fn compare(
        self,
        a: &Connection,
        of_a: Option<&QueueSummary>,
        b: &Connection,
        of_b: Option<&QueueSummary>,
    ) -> Ordering {
        let turned = |ordering: Ordering| if self.is_falling { ordering.reverse() } else { ordering };
        let waiting = |of: Option<&QueueSummary>| of.map_or(0, |of| of.waiting);
        let dead = |of: Option<&QueueSummary>| of.map_or(0, |of| of.dead);
        let oldest = |of: Option<&QueueSummary>| of.and_then(|of| of.oldest_waiting_since);
        let first = match self.by {
            By::Name => turned(by_name(a, b)),
            By::Type => turned(a.kind().as_str().cmp(b.kind().as_str())),
            By::Waiting => turned(waiting(of_a).cmp(&waiting(of_b))),
            By::Dead => turned(dead(of_a).cmp(&dead(of_b))),
            By::Oldest => match (oldest(of_a), oldest(of_b)) {
                (Some(a), Some(b)) => turned(a.cmp(&b)),
                (a, b) => Reverse(a.is_some()).cmp(&Reverse(b.is_some())),
            },
        };
        first.then_with(|| by_name(a, b)).then(a.id.cmp(&b.id))
    }
}

/// As people look for a name: capitals do not matter.
fn by_name(a: &Connection, b: &Connection) -> Ordering {
    a.name.to_lowercase().cmp(&b.name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i09_an_order_is_read_or_refused_by_name() {
        let take = |text: &str| Sort::take(&mut Query::parse(text));
        assert_eq!(take("").unwrap(), None);
        assert_eq!(take("sort=-dead").unwrap(), Some(Sort { by: By::Dead, is_falling: true }));
        for word in WORDS {
            assert!(take(&format!("sort={word}")).unwrap().is_some());
        }
        for text in ["sort=", "sort=--name", "sort=colour"] {
            assert!(take(text).is_err(), "{text}");
        }
    }
}
