"""Host names and addresses, read strictly before anything is matched against them."""

from __future__ import annotations

import functools
import ipaddress
import re

import idna

from harness.values.operations import HostUse

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC = re.compile(r"(0x[0-9a-f]*|[0-9]+)")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,15})://([^/?#\\]*)")
PORTS = {"http": 80, "https": 443, "ftp": 21, "ssh": 22, "git": 9418, "ws": 80, "wss": 443}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_LOCAL_NAMES = ("localhost", "local", "internal", "lan", "home.arpa")


class HostFault(ValueError):
    """The text is no host; the message says what is wrong."""


@functools.lru_cache(maxsize=2048)
def parse_host(text: str) -> str:
    """Lower case, IDNA form, one trailing dot stripped; addresses in their canonical form.

    Raises `HostFault`. Follows RFC 1123 syntax with underscores, and IDNA 2008 with UTS 46
    mapping; numbers that only some resolvers take for an address are refused.
    """
    if not text or len(text) > 1024:
        raise HostFault("a host is empty or too long")
    if any(ord(c) <= 0x20 or ord(c) == 0x7F for c in text):
        raise HostFault("a host holds a control character or a blank")
    if text.startswith("[") and text.endswith("]"):
        return _address(text[1:-1])
    if ":" in text:
        return _address(text)
    name = text.removesuffix(".")
    if not name.isascii():
        try:
            name = idna.encode(name, uts46=True).decode("ascii")
        except (idna.IDNAError, UnicodeError) as error:
            raise HostFault(f"a host is no international domain name: {error}") from None
    name = name.lower()
    labels = name.split(".")
    if _NUMERIC.fullmatch(labels[-1]):
        return _address(name)
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise HostFault("a host has a character or a length that no host has")
    return name


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise HostFault("a host is a number but no plain address") from None


def parse_port(text: str) -> int:
    """A port in decimal. Raises `HostFault`."""
    if not text.isascii() or not text.isdigit() or len(text) > 5 or not 0 < int(text) < 65536:
        raise HostFault("a port is not a number from 1 to 65535")
    return int(text)


def split_port(text: str) -> tuple[str, str | None]:
    """`host:port` in two; brackets keep an IPv6 address together."""
    if text.startswith("["):
        host, bracket, rest = text.partition("]")
        if rest and not rest.startswith(":"):
            raise HostFault("something stands after the brackets of an address")
        return host + bracket, rest[1:] if rest else None
    if text.count(":") == 1:
        host, _, port = text.partition(":")
        return host, port
    return text, None


def parse_url(url: str, *, schemes: frozenset[str] = frozenset(PORTS)) -> HostUse:
    """The host and port a URL connects to. Raises `HostFault`; credentials in it are refused."""
    if len(url) > 8192:
        raise HostFault("a URL is longer than 8192 characters")
    if any(ord(c) < 0x20 or ord(c) == 0x7F for c in url):
        raise HostFault("a URL holds a control character")
    found = _URL.match(url)
    if found is None:
        raise HostFault("a URL has no scheme and host, or a backslash before its path")
    if url[found.end() : found.end() + 1] == "\\":
        raise HostFault("a URL has a backslash where its path begins")
    scheme = found[1].lower()
    if scheme not in schemes:
        raise HostFault(f"a URL's scheme is `{scheme}`")
    if "@" in found[2]:
        raise HostFault("a URL carries a name or a password before its host")
    host, port = split_port(found[2])
    number = parse_port(port) if port else PORTS.get(scheme)
    return HostUse(parse_host(host), number)


@functools.lru_cache(maxsize=2048)
def is_special(host: str) -> bool:
    """Whether a parsed host is an address or a name of a special-purpose range: loopback,
    private, link-local, metadata, multicast, and what maps to them (IANA registries)."""
    if host in _LOCAL_NAMES or host.endswith(tuple("." + name for name in _LOCAL_NAMES)):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_special(str(inner))
        if address.teredo is not None:
            return True
    return not address.is_global or address.is_multicast
