# ruff: noqa: E501 (patterns)
"""Detect secrets in configurations of network devices and SNMP agents.

A statement is a line of words: what it configures, the word for a secret, often the encoding of the value (`7`,
`encrypted`), and the value.
"""

import re
from collections.abc import Iterator

from tracemill.privacy.core.chosen_passwords import is_joined_words, is_word_chain
from tracemill.privacy.core.entropy import (
    has_all_kinds,
    is_mixed_case,
    is_password,
    is_stand_in,
    shape_wordiness,
)
from tracemill.privacy.core.ordinary_values import is_ordinary
from tracemill.privacy.core.rule import (
    Detector,
    Span,
    TextView,
    build_rule_pattern,
    build_words_pattern,
    make_anywhere_detector,
    make_probed_detector,
)

# A line or a quoted text begins, perhaps with the prompt of a device, `set` or `no`.
_LINE = r"(?<![^\n\"'`])[ \t]*(?:[\w.-]{1,64}(?:\([\w.-]{1,40}\))?[#>][ \t]?)?(?:(?:set|no|add)[ \t]+)?"
_WORDS = r"(?:[^\s\"'`;]{1,64}[ \t]+){0,10}?"
_SECRET_WORD = r"(?:[\w-]{0,24}(?:password|secret|key-string|psk|pre-shared-key|authentication-key))"
_ENCODING = (
    r"(?:(?:0|[4-9]|1[0-9]|encrypted|ENC|cipher|simple|hidden|hash|plain-?text|ascii(?:-text)?|hex)[ \t]+)"
)
_VALUE = r"\\*\"?(?P<v>[^\s\"'`;\\]{4,512})(?=[\s\"'`;\\]|$)"
_COMMUNITIES = frozenset(("public", "private", "string", "name", "read", "write", "read-only", "read-write"))


def _is_set(value: str) -> bool:
    if is_stand_in(value):
        return False
    return is_password(value) or is_word_chain(value) or (value.isdigit() and len(value) >= 8)


def _is_community(value: str) -> bool:
    """Tell whether a community string is neither a default that every manual names nor a stand-in."""
    return value.lower() not in _COMMUNITIES and not is_stand_in(value) and not is_ordinary(value)


def _is_drawn(value: str) -> bool:
    """Tell whether a value under a plain word has letters of both cases and digits, and is no name."""
    return has_all_kinds(value) and is_password(value) and shape_wordiness(value) < 0.5


_WORD_FOR_PASSWORD = re.compile(build_words_pattern((b"pass", b"secret", b"rootpw")))
_STATEMENT = build_rule_pattern(
    rf"(?i:password|passwd|passphrase|secret|(?<![a-z])pass|rootpw)[\w.-]{{0,20}}[ \t]+(?:--\w+[ \t]+)?{_VALUE}(?=\\*\"?;?[ \t]*(?:\r?\n|$))"
)
_BEFORE = build_rule_pattern(rf"{_LINE}{_WORDS}[\w./-]{{0,60}}\Z")


def find_statements(view: TextView) -> Iterator[Span]:
    """Find the value of a line of plain words whose last one but that is a word for a password."""
    for word in view.near(_WORD_FOR_PASSWORD):
        if found := _STATEMENT.match(view.text, word.start()):
            line = view.text.rfind("\n", 0, found.start()) + 1
            if (
                found.start() - line < 200
                and _BEFORE.match(view.text, line, found.start())
                and (_is_drawn(found["v"]) or (word[0] != b"secret" and is_joined_words(found["v"])))
            ):
                yield Span(*found.span("v"), "PASSWORD")


DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(
        find_statements,
        r"(?i)(?:pass(?:word|wd|phrase)?|rootpw|secret)[\w.-]*[ \t]+(?:--\w+[ \t]+)?\\*\"?[^\s\"'`;\\]*[0-9][^\s\"'`;\\]*\\*\"?;?[ \t]*(?:\r?\n|$)",
        located=True,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?<![^\n])[ \t]*(?:(?:stats[ \t]+)?auth[ \t]+[\w.@-]{1,64}|\[[\w.-]{1,100}\](?::\d{2,5})?[ \t]+[\w.@+-]{1,64}|(?:root|admin|deploy|ubuntu|debian|centos|ec2-user)):(?P<v>[^\s\"'`:;|\\/]{8,128})(?=[ \t]*(?:\r?\n|$))",
        r"(?:auth[ \t]+[\w.@-]+|\][:\d]*[ \t]+[\w.@+-]+|(?:root|admin|deploy|ubuntu|debian|centos|ec2-user)):[^\s\"'`:;|\\/]{8,128}[ \t]*(?:\r?\n|$)",
        _is_drawn,
    ),
    make_anywhere_detector(
        "SECRET",
        r"(?<![\w-])[\"']?encrypt[\"']?[ \t]*[:=][ \t]*[\"'](?P<v>[A-Za-z0-9+/]{22,43}={1,2})[\"']",
        r"encrypt[\"']?[ \t]*[:=][ \t]*[\"'][A-Za-z0-9+/]{22}",
        is_mixed_case,
    ),
    make_anywhere_detector(
        "PASSWORD",
        rf"{_LINE}{_WORDS}{_SECRET_WORD}[ \t]+{_ENCODING}{{1,2}}{_VALUE}",
        r"(?:password|secret|key-string|psk|-key)[ \t]+(?:[0-9]|1[0-9]|encrypted|ENC|cipher|simple|hidden|hash|plain|ascii|hex)[\w-]*[ \t]+[^\s;]",
        _is_set,
    ),
    make_anywhere_detector(
        "PASSWORD",
        rf"{_LINE}(?:enable|username|user|tacacs|radius|tacacs-server|radius-server|aaa|crypto|neighbor|ip|ipv6|ntp|ppp|isis|area|standby|vrrp|server|snmp-server|key-string|wpa-psk)[ \t]+"
        rf"{_WORDS}(?:password|secret|(?<![\w-])key|key-string|md5|sha|psk|authentication-key|auth-key|auth|priv)[ \t]+(?:aes|des|3des|128|192|256|\d{{1,2}})?(?:[ \t]+)?{_VALUE}",
        r"(?:enable|user(?:name)?|tacacs|radius|(?:tacacs|radius|snmp)-server|aaa|crypto|neighbor|ip(?:v6)?|ntp|ppp|isis|area|standby|vrrp|server)[ \t][^\n]*(?:password|secret|key|key-string|md5|sha|psk|auth|priv)[ \t]+[^\s;]",
        _is_set,
    ),
    make_anywhere_detector(
        "PASSWORD",
        rf"(?<![^\n])[ \t]*set[ \t]+(?:psksecret|passphrase|passwd|password|private-key|secret|ppk-secret)[ \t]+{_VALUE}",
        r"set[ \t]+(?:psksecret|passphrase|passwd|password|secret|ppk-secret)[ \t]+[^\s;]{4}",
        _is_set,
    ),
    make_anywhere_detector(
        "PASSWORD",
        rf"(?<![^\n\"'`])[ \t]*line (?:vty|con|console|aux|tty)\b[^\n]{{0,40}}\n(?:[ \t][^\n]{{0,120}}\n){{0,8}}?[ \t]+password[ \t]+{_VALUE}",
        r"line (?:vty|con|console|aux|tty)[^\n]*\n",
        _is_set,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?<![^\n\"'`])(?:/[a-z][\w /-]{1,60}[ \t](?:add|set)|add|set)[ \t][^\n]{0,200}?(?<=[ \t])(?:[\w-]{0,24}(?:password|secret|passphrase|pre-shared-key))=\"?(?P<v>[^\s\"';]{4,128})",
        r"(?:add|set)[ \t][^\n]*(?:password|secret|passphrase|pre-shared-key)=[^\s;]{4}",
        _is_set,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"\"(?P<v>[^\"\n]{4,512})\";?[ \t]*(?:/\*|##) SECRET-DATA",
        r"\" *;? *(?:/\*|##) SECRET-DATA",
    ),
    make_anywhere_detector(
        "PASSWORD_HASH",
        r"(?<![\w$])(?P<v>\$[89]\$[\w./-]{8,64}(?:\$[\w./-]{20,86})?)(?![\w$])",
        r"\$[89]\$[\w./-]{8}",
        is_password,
    ),
    make_anywhere_detector(
        "SNMP_COMMUNITY",
        rf"{_LINE}(?:snmp(?:-server|-agent)?[ \t]+(?:[\w-]+[ \t]+){{0,2}}?community[ \t]+(?:(?:read|write|cipher|simple|name)[ \t]+){{0,2}}|(?:ro|rw|trap)community6?[ \t]+|com2sec6?[ \t]+(?:-Cn[ \t]+\S+[ \t]+)?\S{{1,64}}[ \t]+\S{{1,128}}[ \t]+|trap2?sink[ \t]+\S{{1,128}}[ \t]+){_VALUE}",
        r"snmp(?:-server|-agent)?[ \t]+[^\n]*community[ \t]+\S{4}|(?:ro|rw|trap)community6?[ \t]|com2sec6?[ \t]|trap2?sink[ \t]",
        _is_community,
    ),
    make_anywhere_detector(
        "SNMP_COMMUNITY",
        r"\bsnmp(?:walk|get|getnext|set|bulkwalk|bulkget|table|trap|df|status|translate)\b[^\n|;&]{0,200}?[ \t]-c[ \t]*\\*[\"']?(?P<v>[^\s\"'\\|;&]{4,64})",
        r"snmp[a-z]+\b[^\n|;&]*[ \t]-c[ \t]*[^\s|;&]{4}",
        _is_community,
    ),
    make_anywhere_detector(
        "SNMP_COMMUNITY",
        r"(?i)(?:\bsnmp[\w.-]{0,24}community(?:[_-]?string)?|\bsnmp\w{0,12}[\"']?[ \t]*[:=]?[ \t]*\{?[ \t]*\r?\n(?:[ \t]+[^\n]{0,120}\n){0,8}?[ \t]+(?:-[ \t]+)?[\"']?community(?:[_-]?string)?)[\"']?[ \t]*[:=][ \t]*\\*[\"']?(?P<v>[^\s\"'\\,;(){}\[\]]{4,64})(?![\w(\[.])",
        r"(?i)snmp[^\n]*\n?[^\0]*community(?:[_-]?string)?[\"']?[ \t]*[:=][ \t]*[^\s,;(){}\[\]]{4}",
        _is_community,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?<![^\n\"'`])[ \t]*createUser[ \t]+(?:-e[ \t]+\S+[ \t]+)?\S{1,64}[ \t]+(?:MD5|SHA(?:-?\d{3})?)[ \t]+\"?(?P<v>[^\s\"']{8,128})",
        r"createUser[ \t]",
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?:(?<![^\n\"'`])[ \t]*createUser[ \t][^\n]{1,200}?[ \t](?:AES|DES)(?:-?\d{3})?[ \t]+|\bsnmp[a-z]{2,12}\b[^\n|;&]{0,200}?[ \t]-X[ \t]*)\\*[\"']?(?P<v>[^\s\"'\\|;&]{8,128})",
        r"createUser[ \t]|snmp[a-z]+\b[^\n|;&]*[ \t]-X[ \t]*[^\s|;&]{8}",
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"\bsnmp[a-z]{2,12}\b[^\n|;&]{0,200}?[ \t]-A[ \t]*\\*[\"']?(?P<v>[^\s\"'\\|;&]{8,128})",
        r"snmp[a-z]+\b[^\n|;&]*[ \t]-A[ \t]*[^\s|;&]{8}",
    ),
)
