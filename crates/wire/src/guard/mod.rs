//! Where requests may go: the last check before a socket is opened, on the resolved address.
//!
//! It judges addresses, and names only where an odd spelling could mean two things, so that neither a name that resolves differently the
//! second time nor a literal in disguise gets around it (R14). It must not know of connections, endpoints or HTTP.

mod names;
mod ranges;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Whose destination it is; that decides how much is closed (R14, D20, D33).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Set up by operators: only the addresses at which clouds hand out credentials are closed, since private ranges are where a
    /// hospital's systems live.
    Connections,
    /// Named by people outside, such as webhook endpoints: public addresses only.
    Public,
    /// The same, and only over TLS (the preset `patient`).
    PublicTls,
}

impl Policy {
    const fn is_public(self) -> bool {
        matches!(self, Policy::Public | Policy::PublicTls)
    }
}

/// Judges the name and the address of every socket before it is opened.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// What the operator opened (`POSTRIDER_ALLOW_PRIVATE`).
    opened: Vec<IpNet>,
}

/// Why requests may not go somewhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("{address} is a cloud metadata address, which has to be allowed by name as a single address")]
    Metadata { address: IpAddr },
    #[error("{address} is not a public address ({range}); `POSTRIDER_ALLOW_PRIVATE` can open its range")]
    NotPublic { address: IpAddr, range: &'static str },
    #[error("it is reached without TLS, and only https is allowed here")]
    NotEncrypted,
    #[error("the host is {what}")]
    Name { what: &'static str },
}

impl Guard {
    /// `opened` are the ranges that the operator named. A metadata address is opened only by a range that is that single address, so that
    /// opening `169.254.0.0/16` or `0.0.0.0/0` does not open it by accident (D33).
    pub fn opening(opened: &[IpNet]) -> Self {
        Guard { opened: opened.to_vec() }
    }

    /// Judges a host that is not the plain text of an address, before it is resolved.
    ///
    /// # Errors
    /// `Refused::Name` when it is no plain ASCII name, when it spells an address in a way that programs read differently (octal,
    /// hexadecimal, one number, too few parts), or when it names this machine or a cloud's metadata service.
    pub fn check_name(&self, policy: Policy, name: &str) -> Result<(), Refused> {
        names::check(name)?;
        if names::is_metadata(name) && !self.opens_some_metadata() {
            return Err(Refused::Name { what: "the name of a cloud metadata service" });
        }
        if policy.is_public() && names::is_this_machine(name) && !self.opens_loopback() {
            return Err(Refused::Name { what: "a name of this machine" });
        }
        Ok(())
    }

    /// Judges a resolved address; `tls` tells whether it will be reached over TLS.
    ///
    /// # Errors
    /// `Refused` when the address, or an IPv4 address that it carries inside (mapped, NAT64, 6to4 and the like), is closed.
    pub fn check(&self, policy: Policy, tls: bool, address: IpAddr) -> Result<(), Refused> {
        if self.is_closed_metadata(address) {
            return Err(Refused::Metadata { address });
        }
        if !policy.is_public() {
            return Ok(());
        }
        if let Some(range) = self.closed_range(address) {
            return Err(Refused::NotPublic { address, range });
        }
        // An opened range is the operator's own network, where http is as good as it gets (D33).
        if policy == Policy::PublicTls && !tls && !self.opens(address) {
            return Err(Refused::NotEncrypted);
        }
        Ok(())
    }

    fn is_closed_metadata(&self, address: IpAddr) -> bool {
        let single = |address: IpAddr| self.singles().any(|net| net.contains(&address));
        // What was opened as IPv4 is open in each of its IPv6 forms too.
        let closed_v4 = |v4: Ipv4Addr| ranges::METADATA_V4.contains(&v4) && !single(IpAddr::V4(v4));
        let closed = match address {
            IpAddr::V4(v4) => closed_v4(v4),
            IpAddr::V6(v6) => ranges::METADATA_V6.contains(&v6) || carried_v4(v6).into_iter().any(closed_v4),
        };
        closed && !single(address)
    }

    /// The closed range in which the address lies, if the operator has not opened it.
    fn closed_range(&self, address: IpAddr) -> Option<&'static str> {
        let contains = |address: IpAddr| self.opened.iter().any(|net| net.contains(&address));
        if contains(address) {
            return None;
        }
        match address {
            IpAddr::V4(v4) => ranges::closed_v4(v4),
            IpAddr::V6(v6) => {
                let closed_inside = || {
                    let carried = carried_v4(v6);
                    carried.into_iter().filter(|v4| !contains(IpAddr::V4(*v4))).find_map(ranges::closed_v4)
                };
                ranges::closed_v6(v6).or_else(closed_inside)
            }
        }
    }

    /// Whether the operator opened a range for this address, itself or each IPv4 address that it carries.
    fn opens(&self, address: IpAddr) -> bool {
        let contains = |address: IpAddr| self.opened.iter().any(|net| net.contains(&address));
        let carried = match address {
            IpAddr::V4(_) => Vec::new(),
            IpAddr::V6(v6) => carried_v4(v6),
        };
        contains(address) || (!carried.is_empty() && carried.into_iter().all(|v4| contains(IpAddr::V4(v4))))
    }

    fn opens_loopback(&self) -> bool {
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        loopback.iter().any(|address| self.opened.iter().any(|net| net.contains(address)))
    }

    fn opens_some_metadata(&self) -> bool {
        self.singles().any(|net| match net.addr() {
            IpAddr::V4(v4) => ranges::METADATA_V4.contains(&v4),
            IpAddr::V6(v6) => ranges::METADATA_V6.contains(&v6),
        })
    }

    fn singles(&self) -> impl Iterator<Item = &IpNet> {
        self.opened.iter().filter(|net| net.prefix_len() == net.max_prefix_len())
    }
}

/// Every IPv4 address that packets to this IPv6 address may end at: compatible, mapped and translated forms (RFC 4291, RFC 2765),
/// NAT64 (RFC 6052, RFC 8215), 6to4 (RFC 3056), Teredo (RFC 4380), ISATAP (RFC 5214).
fn carried_v4(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let octets = address.octets();
    let segments = address.segments();
    let at = |places: [usize; 4]| Ipv4Addr::from(places.map(|place| octets[place]));
    let last = at([12, 13, 14, 15]);
    let mut carried = Vec::new();
    match segments {
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => {
            carried.push(last);
        }
        // The prefix for local use: where the address sits depends on the length that the network chose.
        [0x64, 0xff9b, 1, ..] => {
            carried.extend([at([6, 7, 9, 10]), at([7, 9, 10, 11]), at([9, 10, 11, 12]), last]);
        }
        [0x2002, ..] => carried.push(at([2, 3, 4, 5])),
        [0x2001, 0, ..] => {
            carried.push(at([4, 5, 6, 7]));
            carried.push(Ipv4Addr::from(last.octets().map(|octet| !octet)));
        }
        _ => {}
    }
    if matches!(segments, [_, _, _, _, 0 | 0x200, 0x5efe, _, _]) {
        carried.push(last);
    }
    carried
}
