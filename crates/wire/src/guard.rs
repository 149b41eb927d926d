//! Where requests may go: the last check before a socket is opened, on the resolved address.
//!
//! It judges addresses only, so that neither a name that resolves differently the second time nor an odd spelling of a literal gets
//! around it (R14). It must not know of hosts, connections or HTTP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Which addresses are closed. A further kind of destination is a further variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closed {
    /// Only the addresses at which clouds hand out credentials: private ranges are where a hospital's systems live (D33).
    Metadata,
}

/// Judges the address of every socket before it is opened.
#[derive(Clone, Debug)]
pub struct Guard {
    closed: Closed,
    opened: Vec<IpNet>,
}

/// An address that requests may not go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address} is a cloud metadata address, which has to be allowed by name as a single address")]
pub struct Refused {
    pub address: IpAddr,
}

impl Guard {
    /// The rules for outgoing connections. `opened` are the ranges that the operator named; here only those that are a single address
    /// count, so that opening `169.254.0.0/16` or `0.0.0.0/0` does not open the metadata service by accident (D33).
    pub fn for_connections(opened: &[IpNet]) -> Self {
        let single = |net: &&IpNet| net.prefix_len() == net.max_prefix_len();
        Guard { closed: Closed::Metadata, opened: opened.iter().filter(single).copied().collect() }
    }

    /// # Errors
    /// `Refused` when the address, or an IPv4 address that it carries inside (mapped, NAT64, 6to4 and the like), is closed.
    pub fn check(&self, address: IpAddr) -> Result<(), Refused> {
        let closed = match address {
            IpAddr::V4(v4) => self.closes_v4(v4),
            IpAddr::V6(v6) => self.closes_v6(v6) || carried_v4(v6).into_iter().any(|v4| self.closes_v4(v4)),
        };
        if closed && !self.opened.iter().any(|net| net.contains(&address)) {
            return Err(Refused { address });
        }
        Ok(())
    }

    fn closes_v4(&self, address: Ipv4Addr) -> bool {
        // What was opened as IPv4 is open in each of its IPv6 forms too.
        if self.opened.iter().any(|net| net.contains(&IpAddr::V4(address))) {
            return false;
        }
        match self.closed {
            Closed::Metadata => METADATA_V4.contains(&address),
        }
    }

    fn closes_v6(&self, address: Ipv6Addr) -> bool {
        match self.closed {
            Closed::Metadata => METADATA_V6.contains(&address),
        }
    }
}

impl Default for Guard {
    fn default() -> Self {
        Guard::for_connections(&[])
    }
}

const METADATA_V4: &[Ipv4Addr] = &[
    // Amazon, Google, Azure, DigitalOcean, Hetzner, OpenStack, Oracle.
    Ipv4Addr::new(169, 254, 169, 254),
    // Amazon: task and pod credentials.
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    // Tencent, Scaleway.
    Ipv4Addr::new(169, 254, 0, 23),
    Ipv4Addr::new(169, 254, 42, 42),
    // Alibaba, Oracle's older one, Azure's host agent.
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];

const METADATA_V6: &[Ipv6Addr] = &[
    // Amazon: instance metadata and pod credentials.
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    // Google, Scaleway, OpenStack.
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(guard: &Guard, address: &str) -> bool {
        guard.check(address.parse().unwrap()).is_ok()
    }

    // proves: R14 (the guard judges resolved addresses), D33
    #[test]
    fn r14_metadata_addresses_are_refused_in_every_form() {
        let guard = Guard::default();
        for address in [
            "169.254.169.254",
            "169.254.170.2",
            "100.100.100.200",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fe80::a9fe:a9fe",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "::ffff:0:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::169.254.169.254",
            "64:ff9b:1:a9fe:a9:fe00::",
            "64:ff9b:1:1:a9:fea9:fe00::",
            "2002:a9fe:a9fe::1",
            "2001:0:a9fe:a9fe::1",
            "2001:0:7f00:1:0:0:5601:5601",
            "fe80::5efe:a9fe:a9fe",
            "2001:db8::200:5efe:a9fe:a9fe",
        ] {
            assert!(!check(&guard, address), "{address} got through");
        }
    }

    #[test]
    fn d33_private_networks_are_open_to_connections() {
        let guard = Guard::default();
        for address in [
            "10.1.1.5",
            "127.0.0.1",
            "192.168.0.7",
            "169.254.1.1",
            "8.8.8.8",
            "::1",
            "fd00::1",
            "2001:db8::1",
            "2002::1",
        ] {
            assert!(check(&guard, address), "{address} was refused");
        }
    }

    #[test]
    fn d33_metadata_opens_only_by_its_single_address() {
        let opened =
            |nets: &[&str]| Guard::for_connections(&nets.iter().map(|n| n.parse().unwrap()).collect::<Vec<_>>());
        assert!(!check(&opened(&["169.254.0.0/16", "0.0.0.0/0", "::/0"]), "169.254.169.254"));
        assert!(!check(&opened(&["::/0"]), "fd00:ec2::254"));
        let one = opened(&["169.254.169.254/32", "fd00:ec2::254/128"]);
        assert!(check(&one, "169.254.169.254"));
        assert!(check(&one, "::ffff:169.254.169.254"));
        assert!(check(&one, "fd00:ec2::254"));
        assert!(!check(&one, "169.254.170.2"));
    }
}
