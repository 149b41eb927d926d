//! The addresses that are closed: those of cloud metadata to everybody, and all that are not public to destinations named by outsiders.
//!
//! From the IANA registries of special-purpose addresses (RFC 6890 and its updates). For IPv6 only what is global unicast today is public,
//! so a range that is given out later is closed until it is added here. It must not know what an operator opened.

use std::net::{Ipv4Addr, Ipv6Addr};

pub(super) const METADATA_V4: &[Ipv4Addr] = &[
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

pub(super) const METADATA_V6: &[Ipv6Addr] = &[
    // Amazon: instance metadata and pod credentials.
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    // Google, Scaleway, OpenStack.
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

/// First address, length of the prefix, and what the range is for.
const CLOSED_V4: &[(Ipv4Addr, u32, &str)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8, "this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "shared by carriers"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "protocol assignments"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "6to4 relays"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "benchmarking"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved or broadcast"),
];

/// Inside global unicast, 2000::/3.
const CLOSED_V6: &[(Ipv6Addr, u32, &str)] = &[
    // Teredo, benchmarking and ORCHID are in here.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "protocol assignments"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "documentation"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "documentation"),
];

/// Outside of it, for a word that says more than "not global".
const NAMED_V6: &[(Ipv6Addr, u32, &str)] = &[
    (Ipv6Addr::UNSPECIFIED, 127, "unspecified or loopback"),
    (Ipv6Addr::UNSPECIFIED, 96, "IPv4-compatible"),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, "translation for local use"),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, "discard only"),
    (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16, "segment routing"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "unique local"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "link-local"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "site-local"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "multicast"),
];

/// The closed range in which an address lies.
pub(super) fn closed_v4(address: Ipv4Addr) -> Option<&'static str> {
    let within =
        |(first, bits, _): &&(Ipv4Addr, u32, &str)| (u32::from(address) ^ u32::from(*first)).leading_zeros() >= *bits;
    CLOSED_V4.iter().find(within).map(|(_, _, range)| *range)
}

/// The same; what only carries an IPv4 address (mapped, NAT64) is judged by that one and is not closed here.
pub(super) fn closed_v6(address: Ipv6Addr) -> Option<&'static str> {
    let within =
        |(first, bits, _): &&(Ipv6Addr, u32, &str)| (u128::from(address) ^ u128::from(*first)).leading_zeros() >= *bits;
    let global = address.segments()[0] & 0xe000 == 0x2000;
    let judged_by_v4 = matches!(address.segments(), [0, 0, 0, 0, 0, 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _]);
    if global {
        CLOSED_V6.iter().find(within).map(|(_, _, range)| *range)
    } else if judged_by_v4 {
        None
    } else {
        Some(NAMED_V6.iter().find(within).map_or("not global unicast", |(_, _, range)| *range))
    }
}
