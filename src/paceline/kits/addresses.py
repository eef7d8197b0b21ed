"""Which IP addresses are on the public internet, so that calling them reaches nothing of ours; and which are on this
machine.

A list of what is not public is never complete, so IPv6 goes the other way round: only what is handed out for public use
(2000::/3) counts, less the parts of it that carry an IPv4 address or belong to nobody.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_NOT_PUBLIC_4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers; also a cloud's metadata (100.100.100.200)
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # looks public; answers inside a cloud's machines only
        "169.254.0.0/16",  # link-local, metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # special purposes, metadata of another cloud
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_PUBLIC_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # special purposes: Teredo carries an IPv4 address, ORCHID is no address
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4 carries an IPv4 address
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
        "3ffe::/16",  # given back
    )
)


def is_public(address: str) -> bool:
    """Whether it is an address, and a public one. One with a zone (`fe80::1%eth0`) is not."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv4Address):
        return not any(found in network for network in _NOT_PUBLIC_4)
    if found.scope_id is not None or found not in _PUBLIC_6:
        return False
    return not any(found in network for network in _NOT_PUBLIC_6)


def host_address(host: str) -> IPv4Address | IPv6Address | None:
    """The address a URL's host is, in the one usual form of it; None for everything else."""
    try:
        return ip_address(host) if "%" not in host else None
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address. A name we cannot judge counts as reachable."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
