"""Detect passwords and keys on command lines: `curl -u`, `mysql -p`, `net use`, `chpasswd`, SQL."""

from collections.abc import Iterator

from tracemill.privacy.core.chosen_passwords import is_joined_words, is_short_phrase, is_word_chain
from tracemill.privacy.core.entropy import is_given, is_password, is_plain_password, is_random
from tracemill.privacy.core.rule import (
    Detector,
    Span,
    TextView,
    build_rule_pattern,
    make_near_detector,
    make_probed_detector,
)
from tracemill.privacy.core.word_lists import COMMON_WORDS, LABELS

_REDIS = build_rule_pattern(r"redis-cli\b[^\n|;&]{0,80}?\s-a\s{1,2}[\"']?(?P<v>[^\s\"'\\]{6,128})")
_CLI_LOGIN = build_rule_pattern(r"-u(?:ser)?[ =]\s{0,2}\\*[\"']?[^\s:\"'\\]{1,64}:(?P<v>[^\s\"'\\]{4,128})")
_CLI_PASSWORD = build_rule_pattern(
    r"(?:sshpass|mysql\w*|mariadb\w*|docker|podman|helm|htpasswd|twine|az|mongo(?:sh|dump)?|zip|unzip|7z|ldap\w+)\b"
    r"(?:[^\n|;&]|\\\n){0,160}?\s-[pPw]\s?\\*[\"']?(?P<v>[^\s\"'\\]{6,128})"
)
_CLI_PHRASE = build_rule_pattern(
    r"(?:sshpass|mysql\w*|mariadb\w*|zip|unzip|7z|openssl passwd|ldap\w+)\b"
    r"(?:[^\n|;&]|\\\n){0,160}?\s-(?:[pPw]|[156])\s?\\*(?P<quote>[\"'])(?P<v>[^\"'\\\n]{6,128})(?P=quote)"
)
_REGISTRY_LOGIN = build_rule_pattern(
    r"(?:docker|podman|helm|oras|skopeo|buildah|nerdctl|crane)\b[^\n|;&]{0,40}?\slogin\b[^\n|;&]{0,120}?"
    r"\s(?:-p|--password)[ =]\s?\\*[\"']?(?P<v>(?![-$])[^\s\"'\\]{6,128})"
)
_NETRC = build_rule_pattern(r"login\s{1,4}\S{1,80}\s{1,8}password\s{1,4}(?P<v>[^\s\"\'\\]{4,128})")
_NET_USE = build_rule_pattern(
    r"(?i)net use [^\n]{0,80}?\\\\\S+ (?:(?P<v>[^\s/\"'*][^\s\"']{3,64}) /user|"
    r"/user:\S+ [\"']?(?P<w>[^\s/\"'*][^\s\"']{3,64}))"
)
_PGPASS = build_rule_pattern(
    r"(?<![\w.])(?:[\w.-]{1,80}|\*):(?:\d{4,5}|\*):[\w*-]{1,64}:[\w*-]{1,64}:(?P<v>[^\s:\"'\\]{6,128})(?=\\n|\s|$)"
)
_PASS_ARGUMENT = build_rule_pattern(r"pass:(?P<v>[^\s\"'\\,(){}\[\];]{4,128})(?![,(){}\[\];])")
_IDENTIFIED = build_rule_pattern(
    r"(?i)identified (?:with \S{1,40} )?by (?:password )?(?:\\*[\"']|(?=[^\s;]*\d))(?P<v>[^\s\"'\\;]{4,128})"
)
_CHPASSWD = build_rule_pattern(
    r"[\w-]{1,32}:(?P<v>[^\s\"'|:\\]{4,128})[\"']?\s{0,3}\|?\s{0,3}(?:sudo )?chpasswd"
)
_SUDO = build_rule_pattern(r"echo (?:-[en]+ )?[\"']?(?P<v>[^\s\"'|$\\]{4,128})[\"']?\s{0,3}\|\s{0,3}sudo -S")
_SMB_LINE = build_rule_pattern(r"smb\w*[^\n|;&]{0,120}?-U[ =]?[\"']?[\w\\.-]{1,64}%(?P<v>[^\s\"']{4,128})")
_LOGIN_KEY = build_rule_pattern(r"(?i:login)\b[^\n]{0,40}?(?P<v>(?<=[\s\"'=])[0-9a-f]{40}(?![0-9a-f]))")


_HTPASSWD = build_rule_pattern(
    r"htpasswd\s{1,4}-\w{0,4}b\w{0,4}\s{1,4}\S{1,80}\s{1,4}\S{1,80}\s{1,4}[\"']?(?P<v>[^\s\"'\\]{6,128})"
)


def _is_set(value: str) -> bool:
    return (
        is_password(value)
        or is_random(value)
        or is_plain_password(value)
        or is_word_chain(value)
        or is_short_phrase(value)
    )


def _is_login(value: str) -> bool:
    return is_password(value) or is_random(value) or is_joined_words(value)


_OF_DOCUMENTS = COMMON_WORDS | LABELS


def _is_no_label(value: str) -> bool:
    """Tell whether a value is none of the words that documents put for a password."""
    return is_given(value) and value.lower() not in _OF_DOCUMENTS and not value.isdigit()


def _is_phrase(value: str) -> bool:
    return is_joined_words(value) or (" " in value and is_given(value))


def find_shares(view: TextView) -> Iterator[Span]:
    """Find the password of `net use`, before or after the user."""
    for at in view.positions(b"net use"):
        match = _NET_USE.match(view.text, at)
        if match and (group := "v" if match["v"] else "w"):
            yield Span(*match.span(group), "PASSWORD")


_PHRASE_TOOLS = r"(?:sshpass|mysql|mariadb|zip|7z|openssl passwd|ldap)"
_TOOLS = r"(?:sshpass|mysql|mariadb|docker|podman|helm|htpasswd|twine|az|mongo|zip|7z|ldap)"
_CLI_PROBE = rf"{_TOOLS}(?:[^\n|;&]|\\\n)*\s-[pPw]\s?\\*[\"']?[^\s\"'\\]{{6}}"
DETECTORS: tuple[Detector, ...] = (
    make_near_detector(
        b"htpasswd",
        _HTPASSWD,
        "PASSWORD",
        is_given,
        probe=r"htpasswd\s+-\w*b\w*\s+\S+\s+\S+\s+[\"']?[^\s\"'\\]{6}",
    ),
    make_near_detector(b"redis-cli", _REDIS, "PASSWORD", is_given, probe=r"redis-cli\b[^\n|;&]*\s-a\s"),
    make_near_detector(
        b"-u",
        _CLI_LOGIN,
        "PASSWORD",
        _is_no_label,
        probe=r"-u(?:ser)?[ =]\s{0,2}\\*[\"']?[^\s:\"'\\]+:[^\s\"'\\]{4}",
    ),
    *(
        make_near_detector(
            option,
            _CLI_PHRASE,
            "PASSWORD",
            _is_phrase,
            back=160,
            probe=rf"{_PHRASE_TOOLS}(?:[^\n|;&]|\\\n)*\s-[pPw156]\s?\\*[\"'][^\n]{{6}}",
        )
        for option in (b" -p", b" -w", b" -6", b" -5", b" -1")
    ),
    make_near_detector(b" -p", _CLI_PASSWORD, "PASSWORD", _is_login, back=160, probe=_CLI_PROBE),
    make_near_detector(
        b"login",
        _REGISTRY_LOGIN,
        "PASSWORD",
        is_given,
        back=48,
        probe=r"\slogin\b[^\n|;&]*\s(?:-p|--password)[ =]",
    ),
    make_near_detector(b" -w", _CLI_PASSWORD, "PASSWORD", _is_login, back=160, probe=_CLI_PROBE),
    make_near_detector(
        b"login", _NETRC, "PASSWORD", _is_set, probe=r"login\s+\S+\s+password\s+[^\s\"'\\]{4}"
    ),
    make_probed_detector(find_shares, r"(?i)net use [^\n]*/user"),
    make_near_detector(
        b":0000:",
        _PGPASS,
        "PASSWORD",
        _is_login,
        back=80,
        probe=r"[\w.*-]:(?:\d{4,5}|\*):[\w*-]+:[\w*-]+:[^\s:\"'\\]{6}",
    ),
    make_near_detector(
        b":*:*:", _PGPASS, "PASSWORD", _is_login, back=80, probe=r"[\w.*-]:\*:\*:[\w*-]+:[^\s:\"'\\]{6}"
    ),
    make_near_detector(
        b"pass:", _PASS_ARGUMENT, "PASSWORD", _is_login, probe=r"pass:[^\s\"'\\,(){}\[\];]{4}"
    ),
    make_near_detector(
        b"identified",
        _IDENTIFIED,
        "PASSWORD",
        is_given,
        probe=r"(?i)identified (?:with \S+ )?by (?:password )?\\*[\"']?[^\s\"'\\;]{4}",
    ),
    make_near_detector(
        b"chpasswd",
        _CHPASSWD,
        "PASSWORD",
        is_given,
        back=170,
        probe=r":[^\s\"'|:\\]{4,}[\"']?\s*\|?\s*(?:sudo )?chpasswd",
    ),
    make_near_detector(
        b"sudo -s", _SUDO, "PASSWORD", is_given, back=150, probe=r"[^\s\"'|$\\]{4}[\"']?\s*\|\s*sudo -S"
    ),
    make_near_detector(
        b"smbclient",
        _SMB_LINE,
        "PASSWORD",
        is_given,
        probe=r"smbclient[^\n|;&]*-U[ =]?[\"']?[\w\\.-]+%[^\s\"']{4}",
    ),
    make_near_detector(
        b"login", _LOGIN_KEY, "LOGIN_KEY", is_random, probe=r"(?i:login)\b[^\n]{0,40}[0-9a-f]{40}"
    ),
)
