# ruff: noqa: E501 (patterns)
"""Detect addresses in other spellings: `name [at] host [dot] de`, IPs in host names, bare MACs."""

from collections.abc import Iterator

from tracemill.privacy.core.rule import Detector, Span, TextView, build_rule_pattern, make_probed_detector
from tracemill.privacy.personal.emails_and_ips import is_hardware, is_person

_AT_SAID = build_rule_pattern(
    r"(?P<local>(?<![\w.+-])[A-Za-z0-9][\w.+-]{1,63})[ ]?[\[(<{][ ]?(?:at|AT|\xe4t)[ ]?[\])>}][ ]?"
    r"(?P<host>[A-Za-z0-9-]{2,63}(?:[ ]?(?:[\[(<{][ ]?(?:dot|DOT|punkt)[ ]?[\])>}]|\.)[ ]?[A-Za-z0-9-]{2,63}){0,3}?"
    r"[ ]?(?:[\[(<{][ ]?(?:dot|DOT|punkt)[ ]?[\])>}]|\.)[ ]?(?P<tld>[A-Za-z]{2,18}))(?![\w-])"
)
_DASHED = build_rule_pattern(
    r"(?i)(?<![\w-])(?:(?:ec2|ip|host|static|dyn(?:amic)?|pool|client|cpe|dsl|node|vps|server)[-.])?"
    r"(?P<v>\d{1,3}(?:-\d{1,3}){3})(?=\.[a-z][\w-]*\.[a-z])|(?<![\w-])(?:ec2|ip)-(?P<w>\d{1,3}(?:-\d{1,3}){3})(?![\w-])"
)
_BARE_MAC = build_rule_pattern(
    r"(?i)(?<!\w)(?:ether|hwaddr|mac(?:[ _-]?addr(?:ess)?)?)[\"']?[ \t:=]{1,4}[\"']?(?P<v>[0-9a-f]{12})(?![0-9a-z])"
)


def find_said_emails(view: TextView) -> Iterator[Span]:
    """Find e-mail addresses with words for their signs: `name [at] host [dot] de`."""
    for match in _AT_SAID.finditer(view.text):
        if is_person(match["local"], match):
            yield Span(*match.span(), "EMAIL")


def find_named_addresses(view: TextView) -> Iterator[Span]:
    """Find the IP address in a host name that a provider made of it, as in `ec2-` and `ip-` names."""
    for match in _DASHED.finditer(view.text):
        group = "v" if match["v"] else "w"
        numbers = [int(octet) for octet in match[group].split("-")]
        if max(numbers) < 256 and numbers[0] not in (0, 127) and len(set(numbers)) > 1:
            yield Span(*match.span(group), "IP")


def find_bare_macs(view: TextView) -> Iterator[Span]:
    """Find hardware addresses without separators, after a word that labels them."""
    for match in _BARE_MAC.finditer(view.text):
        if is_hardware(match["v"]):
            yield Span(*match.span("v"), "MAC")


DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(find_said_emails, r"[\[(<{] ?(?:at|AT|\xe4t) ?[\])>}]"),
    make_probed_detector(
        find_named_addresses,
        r"\d-\d{1,3}-\d{1,3}-\d{1,3}\.[A-Za-z][\w-]*\.[A-Za-z]|(?i:ec2|ip)-\d{1,3}-\d{1,3}-\d{1,3}-\d",
    ),
    make_probed_detector(
        find_bare_macs, r"(?i)(?:ether|hwaddr|mac|addr(?:ess)?)[\"']?[ \t:=]+[\"']?[0-9a-f]{12}"
    ),
)
