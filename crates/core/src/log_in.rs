//! How often log-in may be tried: each name and each address has tries that come back with time (P07).
//!
//! Tries are spent before a password is looked at, so that many at once are no way around, and a success gives them back. Pure: `now` is an
//! argument. It must not know whether a name exists: unknown ones are throttled alike, so nothing can be learned from it.

use core::net::{IpAddr, Ipv6Addr};
use std::collections::BTreeMap;

use crate::{Timestamp, Wait};

/// `log_in_tries_max`: failures of one name before it has to wait, and how long one try takes to come back.
pub const OF_NAME: Tries = Tries { most: 10, one_in: Wait::from_secs(60) };
/// The same of one address, behind which many people may sit.
pub const OF_ADDRESS: Tries = Tries { most: 50, one_in: Wait::from_secs(6) };
/// `log_in_throttled_max`: names and addresses that are remembered; beyond it those that have most tries left are forgotten.
pub const REMEMBERED_MAX: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tries {
    pub most: u32,
    pub one_in: Wait,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Name(String),
    Address(IpAddr),
}

/// Who has how many tries, as far as some are spent.
#[derive(Debug, Default)]
pub struct LogInThrottle {
    /// When all tries of each would be back.
    full_at: BTreeMap<Who, Timestamp>,
}

impl LogInThrottle {
    /// Spends a try of both.
    ///
    /// # Errors
    /// One of them has none left: how long until it has, and nothing is spent.
    pub fn spend(&mut self, name: &str, address: Option<IpAddr>, now: Timestamp) -> Result<(), Wait> {
        let whos = whos(name, address);
        let longest = whos.iter().filter_map(|(who, tries)| self.wait(who, *tries, now)).max();
        if let Some(wait) = longest {
            return Err(wait);
        }
        for (who, tries) in whos {
            let full_at = self.full_at.get(&who).map_or(now, |at| (*at).max(now)) + tries.one_in;
            self.full_at.insert(who, full_at);
        }
        self.forget(now);
        Ok(())
    }

    /// It was the right password: what was spent for it comes back. What others have spent stays spent.
    pub fn give_back(&mut self, name: &str, address: Option<IpAddr>) {
        for (who, tries) in whos(name, address) {
            if let Some(at) = self.full_at.get_mut(&who) {
                *at = *at - tries.one_in;
            }
        }
    }

    /// `None`: there is a try left.
    fn wait(&self, who: &Who, tries: Tries, now: Timestamp) -> Option<Wait> {
        let spent = self.full_at.get(who)?.since(now).as_millis();
        let room = tries.one_in.as_millis() * u64::from(tries.most.saturating_sub(1));
        (spent > room).then(|| Wait::from_millis(spent - room))
    }

    fn forget(&mut self, now: Timestamp) {
        if self.full_at.len() <= REMEMBERED_MAX {
            return;
        }
        self.full_at.retain(|_, at| *at > now);
        while self.full_at.len() > REMEMBERED_MAX {
            let least = self.full_at.iter().min_by_key(|(_, at)| **at).map(|(who, _)| who.clone());
            let Some(least) = least else { return };
            self.full_at.remove(&least);
        }
    }
}

fn whos(name: &str, address: Option<IpAddr>) -> Vec<(Who, Tries)> {
    let name = name.chars().take(crate::person::USER_NAME_CHARS_MAX).collect();
    let mut whos = vec![(Who::Name(name), OF_NAME)];
    whos.extend(address.map(|address| (Who::Address(network(address)), OF_ADDRESS)));
    whos
}

/// Whoever has one IPv6 address has a /64 of them.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1000)
    }

    fn address(text: &str) -> Option<IpAddr> {
        text.parse().ok()
    }

    #[test]
    fn p07_a_name_runs_out_of_tries_from_wherever_they_come_and_they_come_back() {
        let mut throttle = LogInThrottle::default();
        for number in 0..10 {
            assert_eq!(throttle.spend("ada", address(&format!("10.0.0.{number}")), at(0)), Ok(()));
        }
        assert_eq!(throttle.spend("ada", address("10.0.1.1"), at(0)), Err(Wait::from_secs(60)));
        assert_eq!(throttle.spend("ada", None, at(59)), Err(Wait::from_secs(1)));
        assert_eq!(throttle.spend("bob", address("10.0.0.1"), at(0)), Ok(()), "another name goes on");
        assert_eq!(throttle.spend("ada", None, at(60)), Ok(()));
        assert_eq!(throttle.spend("ada", None, at(60)), Err(Wait::from_secs(60)));
    }

    #[test]
    fn p07_an_address_runs_out_whatever_names_it_tries() {
        let mut throttle = LogInThrottle::default();
        for number in 0..50 {
            let of_the_same_network = address(&format!("2001:db8:1:2::{number:x}"));
            assert_eq!(throttle.spend(&format!("user{number}"), of_the_same_network, at(0)), Ok(()));
        }
        assert_eq!(throttle.spend("ada", address("2001:db8:1:2:ffff::1"), at(0)), Err(Wait::from_secs(6)));
        assert_eq!(throttle.spend("ada", address("2001:db8:1:3::1"), at(0)), Ok(()));
    }

    #[test]
    fn p07_a_success_costs_nothing_and_forgives_nothing() {
        let mut throttle = LogInThrottle::default();
        for _ in 0..9 {
            throttle.spend("ada", None, at(0)).unwrap();
        }
        for _ in 0..100 {
            throttle.spend("ada", None, at(0)).unwrap();
            throttle.give_back("ada", None);
        }
        throttle.spend("ada", None, at(0)).unwrap();
        assert!(throttle.spend("ada", None, at(0)).is_err());
    }

    #[test]
    fn a_refused_try_spends_nothing() {
        let mut throttle = LogInThrottle::default();
        for _ in 0..10 {
            throttle.spend("ada", None, at(0)).unwrap();
        }
        for _ in 0..200 {
            assert!(throttle.spend("ada", address("10.0.0.1"), at(0)).is_err());
        }
        assert_eq!(throttle.spend("bob", address("10.0.0.1"), at(0)), Ok(()));
    }

    #[test]
    fn what_is_remembered_has_a_bound_and_those_who_tried_most_stay() {
        let mut throttle = LogInThrottle::default();
        for _ in 0..10 {
            throttle.spend("ada", None, at(0)).unwrap();
        }
        for number in 0..REMEMBERED_MAX + 50 {
            throttle.spend(&format!("user{number}"), None, at(0)).unwrap();
        }
        assert_eq!(throttle.full_at.len(), REMEMBERED_MAX);
        assert!(throttle.spend("ada", None, at(0)).is_err());
    }
}
