# ruff: noqa: E501 (patterns)
"""Detect keys in the forms in which tools print them on request: disk and VPN keys, recovery keys, join commands.

What stands around such a value says what it is: its label, the columns beside it, or the block that it is in.
"""

import re
from collections.abc import Iterator

from tracemill.privacy.core.entropy import is_mixed_case, is_password, is_random, is_stand_in, is_token
from tracemill.privacy.core.rule import (
    UUID,
    Detector,
    Span,
    TextView,
    build_rule_pattern,
    make_anywhere_detector,
    make_probed_detector,
)
from tracemill.privacy.core.secret_variables import is_secret_variable_name
from tracemill.privacy.core.set_passwords import is_chosen_key, is_set_password
from tracemill.privacy.secrets.secret_commands import split_camel_case

_REACH = 300  # characters on either side of a login by role that may hold its other half
_LEAST_SALT = 16  # characters
_HEX = re.compile(r"[0-9a-fA-F]+")
_BYTES = build_rule_pattern(
    r"(?i:(?:MK|master[ -]key|volume[ -]key|private[ -]?(?:key|exponent)|prime[12]|exponent[12]|coefficient|priv)(?: dump)?:)[ \t]*\r?\n?"
    r"(?P<all>(?:[ \t]*(?:[0-9a-f]{2}[: ]){3,31}(?:[0-9a-f]{2})?[ \t]*(?:\r?\n|$)){1,200})"
)
_BYTE_LINE = build_rule_pattern(r"[0-9a-f]{2}(?:[: ][0-9a-f]{2})*")


def find_byte_dumps(view: TextView) -> Iterator[Span]:
    """Find private keys that are printed byte by byte, as `openssl` and `cryptsetup` do."""
    for dump in _BYTES.finditer(view.text):
        for line in _BYTE_LINE.finditer(view.text, *dump.span("all")):
            yield Span(*line.span(), "PRIVATE_KEY")


_SECRET_ID = build_rule_pattern(rf"(?<![A-Za-z])secret_id[\"']?(?:\s*[:=]\s*|[ \t]+)[\"']?(?P<v>{UUID})")
_BY_ROLE = build_rule_pattern(r"secret_id_(?:accessor|ttl|num_uses)|(?<![A-Za-z])role_id|approle")


def find_role_logins(view: TextView) -> Iterator[Span]:
    """Find the secret id of an AppRole of Vault, beside its accessor or the id of the role."""
    text = view.text
    for found in _SECRET_ID.finditer(text):
        if _BY_ROLE.search(text, max(0, found.start() - _REACH), found.end() + _REACH):
            yield Span(*found.span("v"), "SECRET")


_DRAWN = build_rule_pattern(
    r"resource[ \t]+\"random_(?:password|bytes|string)\"[ \t]+\"[^\"\n]{1,200}\"[ \t]*\{(?P<body>[^{}]{1,2000})"
)
_DRAWN_VALUE = build_rule_pattern(
    r"(?<![^\n])[ \t+~-]*(?:result|base64|hex|bcrypt_hash)[ \t]*=[ \t]*\"(?P<v>[^\"\n]{4,512})\""
)


def find_drawn_resources(view: TextView) -> Iterator[Span]:
    """Find what Terraform drew at random, in the state of a resource that is shown."""
    for block in _DRAWN.finditer(view.text):
        for value in _DRAWN_VALUE.finditer(view.text, block.start("body"), block.end() + 400):
            if value.start() > block.end() and "}" in view.text[block.end() : value.start()]:
                break
            yield Span(*value.span("v"), "SECRET")


_ELEMENT = build_rule_pattern(
    r"<(?P<tag>[A-Za-z][\w.:-]{0,60})(?P<attributes>[ \t][^<>\n]{1,200})>(?:&quot;)?(?P<v>[^<>\s&]{6,512})(?:&quot;)?</"
)
_NAME_ATTRIBUTE = build_rule_pattern(r"(?i)\b(?:name|key|id)=\"(?P<name>[\w.:-]{3,80})\"")


def find_elements(view: TextView) -> Iterator[Span]:
    """Find values of XML elements with attributes whose tag or `name` is that of a secret."""
    for element in _ELEMENT.finditer(view.text):
        named = _NAME_ATTRIBUTE.search(element["attributes"])
        names = [element["tag"], *([named["name"]] if named else [])]
        if any(
            is_secret_variable_name(split_camel_case(name.rpartition(":")[2])) for name in names
        ) and _is_key(element["v"]):
            yield Span(*element.span("v"), "SECRET")


_NUMBERED_FIELD = build_rule_pattern(
    r"(?<![^\n])[ \t]*(?P<name>[A-Za-z][\w .-]{1,80}?)[ \t]+REG_(?:EXPAND_)?SZ[ \t]+(?P<v>\S{6,512})[ \t]*(?=\r?\n|$)"
)


def find_registry_values(view: TextView) -> Iterator[Span]:
    """Find strings of the registry of Windows under the name of a secret."""
    for found in _NUMBERED_FIELD.finditer(view.text):
        if is_secret_variable_name(split_camel_case(found["name"])) and _is_key(found["v"]):
            yield Span(*found.span("v"), "SECRET")


def _is_key(value: str) -> bool:
    if is_stand_in(value):
        return False
    return is_password(value) or is_random(value) or is_set_password(value) or is_chosen_key(value)


def _is_drawn_line(value: str) -> bool:
    """Tell whether a line of its own is a token; digests and ids, which are hex, are none."""
    return is_token(value) and is_mixed_case(value) and _HEX.fullmatch(value) is None


_KEY64 = r"[A-Za-z0-9+/]{43}="
ROLE_LOGINS = make_probed_detector(find_role_logins, rf"secret_id[\"']?[\s:=]+[\"']?{UUID}")
"""The detector of secret ids, which reads JSON as a whole."""
_LABEL = r"(?i:(?:token|(?:secret|private|recovery|api|access|auth|join|session|setup|enrollment|encryption|master|license) key|secret|passphrase|password)\b[^\n:]{0,48}:)"
DETECTORS: tuple[Detector, ...] = (
    make_anywhere_detector(  # keys of name servers: `nsupdate -y`, `dig -y`, and `named.conf`
        "SECRET",
        r"hmac-(?:md5|sha\d{1,3}):[\w.-]{1,80}:(?P<v>[A-Za-z0-9+/]{16,128}={0,2})"
        r"|(?<![\w-])secret[ \t]+\"(?P<w>[A-Za-z0-9+/]{20,128}={0,2})\"[ \t]*;",
        (
            r"hmac-(?:md5|sha[0-9]+):[\w.-]+:[A-Za-z0-9+/]{16}",
            r"secret[ \t]+\"[A-Za-z0-9+/]{20,128}=*\"[ \t]*;",
        ),
        is_mixed_case,
    ),
    make_probed_detector(
        find_byte_dumps,
        r"(?i)(?:MK|master[ -]key|volume[ -]key|private[ -]?(?:key|exponent)|prime[12]|exponent[12]|coefficient|priv)(?: dump)?:\s*[0-9a-f]{2}[: ][0-9a-f]{2}",
    ),
    ROLE_LOGINS,
    make_probed_detector(find_drawn_resources, r"resource\s+\"random_(?:password|bytes|string)\""),
    make_probed_detector(
        find_elements,
        r"(?i)(?:pass|pwd|secret|token|key|psk|cred|auth)[\w.:-]*[ \t][^<>\n]+>(?:&quot;)?[^<>\s&]{6}[^<>\s&]*(?:&quot;)?</",
        r"(?i)(?:name|key|id)=\"[\w.:-]*(?:pass|pwd|secret|token|key|psk|cred|auth)[\w.:-]*\"[^<>\n]*>(?:&quot;)?[^<>\s&]{6}",
    ),
    make_probed_detector(
        find_registry_values,
        r"(?i)(?:pass|pwd|secret|token|key|psk|cred|auth)[\w .-]*\s+REG_(?:EXPAND_)?SZ\s",
    ),
    make_anywhere_detector(
        "PRIVATE_KEY",
        r"\bcrypt [a-z][\w:()-]{2,60} (?P<v>[0-9a-f]{32,256}) \d",
        r"\bcrypt [a-z][\w:()-]+ [0-9a-f]{32}",
    ),
    make_anywhere_detector(
        "PRIVATE_KEY",
        r"(?:auth-trunc|auth|enc|aead) [\w()-]{2,40} 0x(?P<v>[0-9a-f]{32,256})(?![0-9a-f])",
        r"(?:auth-trunc|auth|enc|aead) [\w()-]+ 0x[0-9a-f]{32}",
    ),
    make_anywhere_detector(
        "PRIVATE_KEY",
        r"(?<![0-9A-Fa-f])salt=[0-9A-F]{16}\s{1,4}key=(?P<v>[0-9A-F]{32,64})(?![0-9A-F])",
        r"salt=[0-9A-F]{16}\s+key=[0-9A-F]{32}",
    ),
    make_anywhere_detector(
        "PRIVATE_KEY",
        rf"(?<![^\n])(?:\w{{1,15}}\t)?(?P<v>{_KEY64})\t{_KEY64}\t\d{{1,5}}\t(?:off|0x[0-9a-f]+)",
        r"=\t[A-Za-z0-9+/]{43}=\t\d+\t(?:off|0x)",
    ),
    make_anywhere_detector(
        "PRIVATE_KEY",
        rf"(?<![^\n])(?:\w{{1,15}}\t)?{_KEY64}\t(?P<v>{_KEY64})\t(?:\(none\)|\S{{4,60}}:\d{{1,5}})\t",
        r"=\t[A-Za-z0-9+/]{43}=\t(?:\(none\)|[^\s]+:\d+)\t",
    ),
    make_anywhere_detector(
        "JOIN_TOKEN",
        r"\bjoin(?:[ \t]+--?\w[\w-]*)*[ \t]+[\w.\[\]:-]{1,253}:\d{2,5}/(?P<v>[0-9a-f]{24,64}(?:/[0-9a-f]{8,64})?)(?![\w/])",
        r"\bjoin\s[^\n]*:\d+/[0-9a-f]{24}",
    ),
    make_anywhere_detector(
        "RECOVERY_KEY",
        r"(?<![\d-])(?P<v>\d{6}(?:-\d{6}){7})(?![\d-])",
        r"\d{6}-\d{6}-\d{6}-\d{6}-\d{6}-\d{6}-\d{6}-\d{6}",
    ),
    make_anywhere_detector(
        "RECOVERY_KEY",
        r"(?<![\w-])(?P<v>[cbdefghijklnrtuv]{8}(?:-[cbdefghijklnrtuv]{8}){7})(?![\w-])",
        r"[b-v]{8}-[b-v]{8}-[b-v]{8}-[b-v]{8}-[b-v]{8}-",
    ),
    make_anywhere_detector(
        "RECOVERY_KEY",
        r"(?i:\b(?:recovery|backup|emergency|rescue|unlock|setup|license|activation)[ _-](?:key|code)\b[^\n]{0,60}?[:=]\s{1,8})[\"'`]?(?P<v>[A-Z0-9]{4,8}(?:-[A-Z0-9]{4,8}){3,11})(?![\w-])",
        r"(?i)(?:recovery|backup|emergency|rescue|unlock|setup|license|activation)[ _-](?:key|code)[^\n]*[:=]\s+[\"'`]?[A-Z0-9]{4,8}-[A-Z0-9]{4,8}-[A-Z0-9]{4}",
        lambda value: not is_stand_in(value) and any(map(str.isdigit, value)),
        behind=120,
    ),
    make_anywhere_detector(
        "SECRET",
        rf"{_LABEL}[ \t]*\r?\n(?:[ \t]*\r?\n)?[ \t]{{0,16}}(?P<v>[A-Za-z0-9+/=_.-]{{24,4096}})[ \t]*(?=\r?\n|$)",
        r"(?i)(?:token|key|secret|passphrase|password)\b[^\n:]*:[ \t]*\r?\n(?:[ \t]*\r?\n)?[ \t]*[A-Za-z0-9+/=_.-]{24}",
        _is_drawn_line,
        behind=4100,
    ),
    make_anywhere_detector(
        "SECRET",
        r"(?:(?:export|set|setx|SET|declare -x)[ \t]{1,4}|\$env:|\$Env:)(?:[A-Z][A-Z0-9_]{0,60}_)?(?:SESSION|COOKIE|SALT|SEED|CREDS?|PEPPER|HMAC|JWT|BEARER|DSN|WEBHOOK)(?:_[A-Za-z0-9]{1,20})?[ \t]*=[ \t]*(?P<quote>[\"']?)(?P<v>[A-Za-z0-9+/=_.-]{20,4096})(?P=quote)(?![\w+/])",
        r"(?:SESSION|COOKIE|SALT|SEED|CREDS?|PEPPER|HMAC|JWT|BEARER|DSN|WEBHOOK)(?:_\w+)?[ \t]*=[ \t]*[\"']?[A-Za-z0-9+/=_.-]{20}",
        lambda value: is_token(value) and is_mixed_case(value),
        behind=4100,
    ),
    make_anywhere_detector(
        "SECRET",
        r"(?i:(?<![A-Za-z])(?:primary|secondary)_?key|(?<![A-Za-z])[\w-]{1,40}_salt)[\"']?[ \t]{0,3}(?::|=>?)[ \t]{1,3}[\"']?(?P<v>[A-Za-z0-9+/_-]{24,128}={0,2})[\"']?[ \t]*,?[ \t]*(?=\r?\n|$|\})",
        r"(?i)(?:(?:primary|secondary)_?key|_salt)[\"']?[ \t]*(?::|=>?)[ \t]+[\"']?[A-Za-z0-9+/_-]{24}",
        lambda value: is_token(value) and is_mixed_case(value),
        behind=4100,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?<![^\n])[\w.@\[\]-]{3,120}\.(?:key|psk|sae_password)='(?P<v>[^'\s]{8,63})'(?=\r?\n|$)",
        r"\.(?:key|psk|sae_password)='[^'\s]{8}",
        _is_key,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"<auth-user-pass>\s{0,4}[^\n<>]{1,80}\r?\n[ \t]*(?P<v>[^\s<>]{4,128})\s{0,4}</auth-user-pass>",
        r"<auth-user-pass>",
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?<![\w-])(?:clear(?:text)?|plain(?:text)?)[ \t]{1,4}\"(?P<v>[^\"\s]{6,128})\"|\buser_\w{1,40}=\"(?P<w>[^\"\s]{6,128})\"",
        r"(?:clear|plain)(?:text)?[ \t]+\"[^\"\s]{6}|user_\w+=\"[^\"\s]{6}",
        _is_key,
    ),
)
