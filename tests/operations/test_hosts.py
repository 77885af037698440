from __future__ import annotations

import pytest

from harness.operations.hosts import HostFault, is_special, parse_host, parse_port, parse_url


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Docs.X.Example", "docs.x.example"),
        ("docs.x.example.", "docs.x.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[2001:DB8::0:1]", "2001:db8::1"),
        ("_dmarc.x.example", "_dmarc.x.example"),
    ],
)
def test_hosts_get_one_form(text: str, expected: str) -> None:
    assert parse_host(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "a b", "a\0b", "a\tb", "a..b", "-a.example", "a-.example", "x" * 64 + ".example",
     ("x" * 60 + ".") * 5 + "example", "127.1", "0x7f.0.0.1", "2130706433", "0177.0.0.1",
     "1.2.3.4.5", "a%2eexample", "a/b", "[::1", "..", "a..", "[1.2.3.4:80]", "x.0x1"],
)  # fmt: skip
def test_what_is_no_strict_host_is_refused(text: str) -> None:
    with pytest.raises(HostFault):
        parse_host(text)


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("https://x.example/a", "x.example", 443),
        ("HTTP://X.example:8080", "x.example", 8080),
        ("http://[::1]:81/", "::1", 81),
        ("https://x.example:/a:b", "x.example", 443),
        ("https://x.example?q#f", "x.example", 443),
    ],
)
def test_urls_name_a_host_and_a_port(url: str, host: str, port: int) -> None:
    use = parse_url(url)
    assert (use.host, use.port) == (host, port)


@pytest.mark.parametrize(
    "url",
    ["x.example", "https://", "https:///a", "file:///etc/passwd", "https://a@x.example/",
     "https://evil.example\0.x.example/a", "https://x.example:99999/",
     "https://x.example:+1/", "https://evil.example\\@x.example/", "javascript://x/",
     "https://[::1]evil.example/", "https://x.example:\uff18\uff10/"],
)  # fmt: skip
def test_urls_that_parsers_read_differently_are_refused(url: str) -> None:
    with pytest.raises(HostFault):
        parse_url(url)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "10.1.2.3", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "::1",
     "fe80::1", "fc00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "224.0.0.1",
     "localhost", "a.localhost", "metadata.google.internal", "printer.local"],
)  # fmt: skip
def test_special_purpose_addresses_are_known(host: str) -> None:
    assert is_special(host)


def test_public_addresses_are_not_special() -> None:
    assert not any(is_special(host) for host in ("x.example", "8.8.8.8", "2606:4700::1111"))


@pytest.mark.parametrize("port", ["0", "65536", "-1", "1e3", "", "٣"])
def test_ports_are_plain_numbers(port: str) -> None:
    with pytest.raises(HostFault):
        parse_port(port)
