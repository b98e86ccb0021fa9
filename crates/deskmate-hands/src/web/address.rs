//! Which addresses are on the public internet. The list is that of IANA's special-purpose registries: everything in them
//! that does not lead to a stranger's server is refused, and so is what clouds tell their machines at public addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks of IPv4 that are not the public internet, and how many bits name them.
const NOT_PUBLIC: [(Ipv4Addr, u32); 16] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Shared between a provider's customers; one cloud's metadata are here, too.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local; most clouds' metadata are here.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // A public address at which a cloud serves its own machines.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Multicast, and all that is reserved beyond.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// Networks within IPv6's global range that are not the public internet, and how many bits name them.
const NOT_PUBLIC_6: [(Ipv6Addr, u32); 4] = [
    // Protocols of their own, Teredo among them, which holds an IPv4 address.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    // 6to4 holds an IPv4 address, and nobody uses it any more.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether an address is a stranger's on the public internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_4(address),
        IpAddr::V6(address) => is_public_6(address),
    }
}

fn is_public_4(address: Ipv4Addr) -> bool {
    !NOT_PUBLIC.iter().any(|(network, bits)| (address.to_bits() ^ network.to_bits()).leading_zeros() >= *bits)
}

fn is_public_6(address: Ipv6Addr) -> bool {
    let within = |network: Ipv6Addr, bits: u32| (address.to_bits() ^ network.to_bits()).leading_zeros() >= bits;
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_4(inner);
    }
    // What networks without IPv4 of their own say for an IPv4 address.
    if within(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96) {
        let [.., a, b, c, d] = address.octets();
        return is_public_4(Ipv4Addr::new(a, b, c, d));
    }
    // Of all the rest, only this range has been given to anybody.
    within(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3) && !NOT_PUBLIC_6.iter().any(|(network, bits)| within(*network, *bits))
}
