//! The guard over tables of addresses: what is closed under which policy, and what an operator can open.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use proptest::prelude::*;

use super::Policy::{Connections, Public, PublicTls};
use super::*;

fn opening(nets: &[&str]) -> Guard {
    Guard::opening(&nets.iter().map(|net| net.parse::<IpNet>().unwrap()).collect::<Vec<_>>())
}

fn passes(guard: &Guard, policy: Policy, address: &str) -> bool {
    guard.check(policy, false, address.parse().unwrap()).is_ok()
}

const METADATA_FORMS: [&str; 18] = [
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
];

// proves: R14 (the guard judges resolved addresses), D33
#[test]
fn r14_metadata_addresses_are_refused_in_every_form_to_all() {
    let guard = Guard::default();
    for address in METADATA_FORMS {
        for policy in [Connections, Public, PublicTls] {
            let refused = guard.check(policy, true, address.parse().unwrap());
            assert!(matches!(refused, Err(Refused::Metadata { .. })), "{address} got through: {refused:?}");
        }
    }
}

#[test]
fn d33_private_networks_are_open_to_connections_and_closed_to_outsiders() {
    let guard = Guard::default();
    for address in ["10.1.1.5", "127.0.0.1", "192.168.0.7", "169.254.1.1", "::1", "fd00::1", "2001:db8::1", "2002::1"] {
        assert!(passes(&guard, Connections, address), "{address} was refused");
        assert!(!passes(&guard, Public, address), "{address} got through");
    }
}

#[test]
fn d33_metadata_opens_only_by_its_single_address() {
    let wide = opening(&["169.254.0.0/16", "0.0.0.0/0", "::/0"]);
    let one = opening(&["169.254.169.254/32", "fd00:ec2::254/128"]);
    for policy in [Connections, Public] {
        assert!(!passes(&wide, policy, "169.254.169.254"));
        assert!(!passes(&wide, policy, "fd00:ec2::254"));
        assert!(passes(&one, policy, "169.254.169.254"));
        assert!(passes(&one, policy, "::ffff:169.254.169.254"));
        assert!(passes(&one, policy, "fd00:ec2::254"));
        assert!(!passes(&one, policy, "169.254.170.2"));
    }
    assert!(wide.check_name(Connections, "metadata.google.internal").is_err());
    assert!(one.check_name(Connections, "metadata.google.internal").is_ok());
}

// proves: R14 (every special range, at both of its ends)
#[test]
fn r14_the_ends_of_every_special_range_are_closed_to_outsiders() {
    let guard = Guard::default();
    for (first, last) in [
        ("0.0.0.0", "0.255.255.255"),
        ("10.0.0.0", "10.255.255.255"),
        ("100.64.0.0", "100.127.255.255"),
        ("127.0.0.0", "127.255.255.255"),
        ("169.254.0.0", "169.254.255.255"),
        ("172.16.0.0", "172.31.255.255"),
        ("192.0.0.0", "192.0.0.255"),
        ("192.0.2.0", "192.0.2.255"),
        ("192.88.99.0", "192.88.99.255"),
        ("192.168.0.0", "192.168.255.255"),
        ("198.18.0.0", "198.19.255.255"),
        ("198.51.100.0", "198.51.100.255"),
        ("203.0.113.0", "203.0.113.255"),
        ("224.0.0.0", "239.255.255.255"),
        ("240.0.0.0", "255.255.255.255"),
        ("::", "::1"),
        ("::2", "::ffff:ffff"),
        ("::ffff:0:8.8.8.8", "::ffff:0:10.0.0.1"),
        ("::ffff:10.0.0.0", "::ffff:127.255.255.255"),
        ("64:ff9b::10.0.0.1", "64:ff9b::192.168.255.255"),
        ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"),
        ("100::", "100::ffff:ffff:ffff:ffff"),
        ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("2001:2::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("2002:a00::", "2002:c0a8:ffff::1"),
        ("2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:192.168.0.1"),
        ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("4000::", "4000::1"),
        ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ] {
        for address in [first, last] {
            let refused = guard.check(Public, true, address.parse().unwrap());
            assert!(matches!(refused, Err(Refused::NotPublic { .. })), "{address}: {refused:?}");
        }
    }
}

#[test]
fn r14_public_addresses_are_open_up_to_the_special_ranges() {
    let guard = Guard::default();
    for address in [
        "1.0.0.0",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2001:200::1",
        "2606:4700:4700::1111",
        "2001:db7:ffff::1",
        "2001:db9::1",
        "3ffe::1",
        "3fff:1000::1",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
    ] {
        assert!(passes(&guard, Public, address), "{address} was refused");
    }
}

#[test]
fn d33_an_opened_range_is_open_to_outsiders_and_permits_http() {
    let guard = opening(&["10.20.0.0/16", "fd00::/8", "127.0.0.1/32"]);
    for address in ["10.20.0.1", "::ffff:10.20.255.255", "64:ff9b::10.20.0.1", "fd12::1", "127.0.0.1"] {
        assert!(passes(&guard, Public, address), "{address} was refused");
        assert!(passes(&guard, PublicTls, address), "http to {address} was refused");
    }
    for address in ["10.21.0.1", "::ffff:10.21.0.1", "127.0.0.2", "fc00::1", "fd00:ec2::254"] {
        assert!(!passes(&guard, Public, address), "{address} got through");
    }
    assert_eq!(guard.check(PublicTls, false, "8.8.8.8".parse().unwrap()), Err(Refused::NotEncrypted));
    assert_eq!(guard.check(PublicTls, true, "8.8.8.8".parse().unwrap()), Ok(()));
    assert_eq!(guard.check(Public, false, "8.8.8.8".parse().unwrap()), Ok(()));
    assert_eq!(guard.check_name(Public, "localhost"), Ok(()));
    assert!(opening(&["10.0.0.0/8"]).check_name(Public, "localhost").is_err());
}

#[test]
fn r14_a_refusal_says_what_an_operator_can_do() {
    let refused = Guard::default().check(Public, true, "10.0.0.1".parse().unwrap()).unwrap_err().to_string();
    assert!(refused.contains("10.0.0.1") && refused.contains("private") && refused.contains("POSTRIDER_ALLOW_PRIVATE"));
}

proptest! {
    // proves: R14 (an IPv4 address is judged the same in every form that carries it)
    #[test]
    fn r14_no_ipv6_form_passes_where_its_ipv4_address_does_not(bits: u32, form in 0usize..6, rest: u64) {
        let v4 = Ipv4Addr::from(bits);
        let [a, b] = [(bits >> 16) as u16, bits as u16];
        let tail = [(rest >> 48) as u16, (rest >> 32) as u16, (rest >> 16) as u16, rest as u16];
        let v6 = match form {
            0 => v4.to_ipv6_mapped(),
            1 => Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a, b),
            2 => Ipv6Addr::new(0x2002, a, b, tail[0], tail[1], tail[2], tail[3], 1),
            3 => Ipv6Addr::new(0x2001, 0, tail[0], tail[1], tail[2], tail[3], !a, !b),
            4 => Ipv6Addr::new(0x2606, tail[0], tail[1], tail[2], 0x200, 0x5efe, a, b),
            _ => Ipv6Addr::new(0, 0, 0, 0, 0, 0, a, b),
        };
        let guard = Guard::default();
        let passes = |address: IpAddr| guard.check(Public, true, address).is_ok();
        prop_assert!(passes(IpAddr::V4(v4)) || !passes(IpAddr::V6(v6)), "{v6} carries {v4}");
    }

    #[test]
    fn d33_what_outsiders_may_reach_connections_may_too(bits: u128, v4: u32, is_v4: bool) {
        let address = if is_v4 { IpAddr::V4(v4.into()) } else { IpAddr::V6(bits.into()) };
        let guard = Guard::default();
        if guard.check(Public, true, address).is_ok() {
            prop_assert!(guard.check(Connections, true, address).is_ok());
        }
    }

    #[test]
    fn r14_any_name_is_taken_or_refused(name in "\\PC{0,40}") {
        let guard = Guard::default();
        if guard.check_name(Public, &name).is_ok() {
            prop_assert!(name.is_ascii() && guard.check_name(Connections, &name).is_ok());
            prop_assert!(name.trim_end_matches('.').parse::<IpAddr>().is_err());
        }
    }
}
