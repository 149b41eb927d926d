//! One page of what the engine holds in memory, in the order of ids. It must not know what is listed.

use std::fmt::Display;
use std::str::FromStr;

use postrider_store::PageRequest;

use crate::problem::{Problem, bad_cursor};

/// Those of the page, of what is there in ascending order of their ids, and the cursor of the next page; a cursor is the last id shown.
///
/// # Errors
/// The cursor is no id.
pub fn page<T, I>(all: Vec<T>, asked: &PageRequest, id: impl Fn(&T) -> I) -> Result<(Vec<T>, Option<String>), Problem>
where
    I: FromStr + Ord + Display,
{
    let after = match &asked.cursor {
        Some(cursor) => Some(cursor.parse::<I>().map_err(|_| bad_cursor())?),
        None => None,
    };
    let limit = usize::try_from(asked.limit).unwrap_or(usize::MAX);
    let mut rest = all.into_iter().filter(|known| after.as_ref().is_none_or(|after| id(known) > *after));
    let shown: Vec<T> = rest.by_ref().take(limit).collect();
    let next = rest.next().and(shown.last()).map(|last| id(last).to_string());
    Ok((shown, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(limit: u32, cursor: Option<&str>) -> Result<(Vec<u8>, Option<String>), Problem> {
        page((1..=5).collect(), &PageRequest { limit, cursor: cursor.map(str::to_owned) }, |number| *number)
    }

    #[test]
    fn pages_follow_each_other_and_the_last_has_no_next() {
        assert_eq!(numbers(2, None).unwrap(), (vec![1, 2], Some("2".to_owned())));
        assert_eq!(numbers(2, Some("2")).unwrap(), (vec![3, 4], Some("4".to_owned())));
        assert_eq!(numbers(2, Some("4")).unwrap(), (vec![5], None));
        assert_eq!(numbers(5, None).unwrap().1, None);
        assert_eq!(numbers(5, Some("9")).unwrap(), (vec![], None));
        assert!(numbers(5, Some("x")).is_err());
    }
}
