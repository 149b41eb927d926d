//! What a list goes by: the heads of its columns are links that ask for it, so that it works without script. It must not know what is listed.

use super::visit::segment;
use crate::read::Query;

/// As the API takes it: `name`, or `-waiting` for the largest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The page without a query.
    page: String,
    by: String,
    is_falling: bool,
}

impl Order {
    /// By name where nothing is asked for. What no list goes by is refused by the API.
    pub fn take(query: &mut Query, page: &str) -> Order {
        let given = query.take("sort").unwrap_or_else(|| "name".to_owned());
        let (by, is_falling) = given.strip_prefix('-').map_or((given.as_str(), false), |by| (by, true));
        Order { page: page.to_owned(), by: by.to_owned(), is_falling }
    }

    /// `sort=-waiting`, for the API and for the next page.
    pub fn query(&self) -> String {
        format!("sort={}{}", if self.is_falling { "-" } else { "" }, segment(&self.by))
    }

    /// The page in this order, for the links to other parts of the list.
    pub fn base(&self) -> String {
        format!("{}?{}", self.page, self.query())
    }

    /// Where the head of this column leads: the other way round if the list goes by it already. Numbers begin with the largest.
    pub fn link(&self, by: &str, is_number: bool) -> String {
        let is_falling = if self.by == by { !self.is_falling } else { is_number };
        format!("{}?sort={}{by}", self.page, if is_falling { "-" } else { "" })
    }

    /// What is said of this column to those who hear the page; nothing where the list goes by another one.
    pub fn said(&self, by: &str) -> &'static str {
        match (self.by == by, self.is_falling) {
            (false, _) => "",
            (true, false) => "ascending",
            (true, true) => "descending",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i09_a_head_turns_the_order_round_and_numbers_begin_with_the_largest() {
        let order = Order::take(&mut Query::parse(""), "/p");
        assert_eq!((order.query().as_str(), order.said("name"), order.said("dead")), ("sort=name", "ascending", ""));
        assert_eq!(
            (order.link("name", false), order.link("dead", true)),
            ("/p?sort=-name".into(), "/p?sort=-dead".into())
        );
        let order = Order::take(&mut Query::parse("sort=-dead"), "/p");
        assert_eq!((order.link("dead", true), order.said("dead")), ("/p?sort=dead".into(), "descending"));
        let hostile = Order::take(&mut Query::parse("sort=%22%3E%3Cscript%3E"), "/p");
        assert_eq!(hostile.query(), "sort=%22%3E%3Cscript%3E");
    }
}
