//! A service: an address at which somebody's code runs, in whatever language. It must not know which channels run it.

use super::TlsSettings;
use crate::http_url::HttpUrl;

/// The hook in which a service writes the acknowledgment of a queued request itself (Z44, D42).
pub const QUEUE_RESPONSE_HOOK: &str = "queue-response";

#[derive(Clone, Debug, PartialEq)]
pub struct ServiceTarget {
    /// The path of each request goes behind it, and its query too.
    pub url: HttpUrl,
    /// Runs at once, and sockets kept open, at most.
    pub pool_size: u32,
    pub tls: TlsSettings,
    /// Whether it has the hook `queue-response`. `None`: its host is asked.
    pub has_queue_response: Option<bool>,
}

impl ServiceTarget {
    /// Where its host says which services it has, and the name that this one has there: `…/services` of `…/services/{name}`.
    pub fn announced_at(&self) -> Option<(String, String)> {
        let (list, name) = self.url.target().trim_end_matches('/').rsplit_once('/')?;
        let is_host = list.ends_with("/services") && !name.is_empty() && !name.contains('?');
        let name = percent_encoding::percent_decode_str(name).decode_utf8().ok()?;
        is_host.then(|| (list.to_owned(), name.into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z44_only_a_host_of_services_is_asked_which_hooks_it_has() {
        let of = |url: &str| {
            let (pool_size, tls) = (1, TlsSettings::PUBLIC);
            ServiceTarget { url: HttpUrl::parse(url).unwrap(), pool_size, tls, has_queue_response: None }.announced_at()
        };
        let named = |list: &str, name: &str| Some((list.to_owned(), name.to_owned()));
        assert_eq!(of("http://h:1/services/orders.order-intake"), named("/services", "orders.order-intake"));
        assert_eq!(of("http://h:1/a/services/gr%C3%BC%C3%9Fe/"), named("/a/services", "grüße"));
        for other in [
            "http://h:1",
            "http://h:1/services",
            "http://h:1/services/",
            "http://h:1/orders/x",
            "http://h:1/services/a?b=c",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
