//! Lists come in pages; a cursor leads to the next one. It must not know what is listed.

use serde::{Deserialize, Serialize};

use super::segment;

/// One page of a list. `next_cursor` is `None` on the last one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Page<T> {
    pub data: Vec<T>,
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// Which page: at most `limit` entries (1 to 1000; the server's default when `None`), behind `cursor`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageQuery {
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

impl PageQuery {
    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        let limit = self.limit.map(|limit| ("limit", limit.to_string()));
        let cursor = self.cursor.clone().map(|cursor| ("cursor", cursor));
        limit.into_iter().chain(cursor).collect()
    }
}

/// `?a=b&c=d`, or nothing.
pub(super) fn query<N: AsRef<str>>(pairs: &[(N, String)]) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        text.push(if text.is_empty() { '?' } else { '&' });
        text.push_str(&format!("{}={}", segment(name.as_ref()), segment(value)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_encoded_and_empty_when_nothing_is_asked() {
        assert_eq!(query(&PageQuery::default().pairs()), "");
        let asked = PageQuery { limit: Some(5), cursor: Some("a&b".into()) };
        assert_eq!(query(&asked.pairs()), "?limit=5&cursor=a%26b");
    }
}
