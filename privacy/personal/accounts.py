"""Detect names of users and machines in system output: prompts, `id`, `~name`, variables, key comments."""

from collections.abc import Iterator

from tracemill.privacy.core.rule import (
    Span,
    TextView,
    build_rule_pattern,
    make_probed_detector,
    skip_rule_escape,
)
from tracemill.privacy.core.word_lists import COMMON_WORDS, DOMAINS, MACHINE_WORDS, ROLES, SHARED_NAMES

_PAGE = build_rule_pattern(r"\.(?:html?|php|[jt]sx?|css|json|py|md|txt|svg|png)$")
_ROOT_ENCODED = build_rule_pattern(
    r"(?i)%2f(?:home|users)%2f(?P<v>[A-Za-z0-9_][A-Za-z0-9_.-]{0,31})(?=%|$|[^\w.-])"
)
_TILDE = build_rule_pattern(r"(?<![\w~)\]}./])~(?P<v>[a-z][a-z0-9_-]{3,31})(?=/)")
_ACCOUNT = build_rule_pattern(
    r"(?:(?:[ug]id|groups)=\d{1,7}\(|(?<![A-Z_])(?:USER|LOGNAME|USERNAME)=[\"']?)(?P<v>[A-Za-z_][A-Za-z0-9_.-]{2,31})"
    r"(?=\)|[\"'`\s\\;]|$)"
)
_WHOAMI = build_rule_pattern(
    r"(?:(?<=[$#%>&;|] )|(?<![\s\S]))whoami\n(?P<v>[A-Za-z_][A-Za-z0-9_.-]{2,31})(?=[\n\"'`\\]|$)"
)
_PROMPT = build_rule_pattern(
    r"@(?P<host>[A-Za-z0-9][\w.-]{1,62}?)(?::\s?(?=[~/])|[ ](?=[~/][^\n]{0,80}[$#%>])"
    r"|(?=[ ][\w.~/-]{1,40}[\]]?[ ]?[$#%] ))"
)
_REMOTE = build_rule_pattern(r"(?:ssh|scp|sftp|rsync|ssh-copy-id|mosh)\b[^\n|;&@]{0,80}[ '\"]$")
_KEY_COMMENT = build_rule_pattern(r"(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-[\w-]+) [A-Za-z0-9+/=]{40,} $")
_TOOLS = ("ssh", "scp", "sftp", "rsync", "mosh")
_SSH_HOST = build_rule_pattern(r"@(?P<host>[A-Za-z0-9][\w.-]{1,62})(?![\w.@])")
_TO_ADDRESS = build_rule_pattern(r"@(?:\d{1,3}(?:\.\d{1,3}){3}(?![\w.])|\[[0-9a-fA-F:]{3,40}\])")
_CONTAINER = build_rule_pattern(r"[0-9a-f]{12}")
_NAME = build_rule_pattern(r"[A-Za-z_][\w.-]{0,31}")
_NO_HOSTS, _NOBODY = COMMON_WORDS | MACHINE_WORDS, SHARED_NAMES | ROLES
_ACCOUNT_NAME = build_rule_pattern(r"(?<![\w.-])[\w.-]{1,40}$")


def find_accounts(view: TextView) -> Iterator[Span]:
    """Find account names in command output and variables, in `~name/` and in encoded home folders."""
    for literal, pattern in _ACCOUNTS:
        for at in view.positions(literal):
            match = pattern.match(view.text, at)
            if match and match["v"].lower() not in COMMON_WORDS and not _PAGE.search(match["v"]):
                yield Span(*match.span("v"), "USER")


def find_hosts(view: TextView) -> Iterator[Span]:
    """Find the machine's name in the output of `uname` and in variables."""
    for literal, pattern in _HOSTS:
        for at in view.positions(literal):
            match = pattern.match(view.text, at)
            if match and match["v"].lower() not in _NO_HOSTS and not _CONTAINER.fullmatch(match["v"]):
                yield Span(*match.span("v"), "HOST")


def find_password_lines(view: TextView) -> Iterator[Span]:
    """Find personal account names in lines of `/etc/passwd`."""
    for at in view.positions(b":x:0000:"):
        match = _ACCOUNT_NAME.search(view.text, max(0, at - 40), at)
        if match and match[0].lower() not in SHARED_NAMES and view.text[at + 3] != "0":
            yield Span(at - len(match[0]), at, "USER")


def find_machines(view: TextView) -> Iterator[Span]:
    """Find `user@machine` in prompts, remote commands and key comments, as `USER` and `HOST`."""
    text = view.text
    for at in view.positions(b"@"):
        local = _ACCOUNT_NAME.search(text, max(0, at - 40), at)
        if local is None:
            continue
        start = min(at, skip_rule_escape(text, at - len(local[0])))
        host = _machine(text, start, at)
        name = text[start:at]
        if not _NAME.fullmatch(name) or name in ("", "git", "hg", "svn"):
            continue
        if host is not None:
            yield host
        elif not (_TO_ADDRESS.match(text, at) and _is_remote(text, start)):
            continue
        if name.lower() not in _NOBODY:
            yield Span(start, at, "USER")


def _machine(text: str, start: int, at: int) -> Span | None:
    match = _PROMPT.match(text, at)
    if match is None and (_is_remote(text, start) or _is_key_comment(text, start)):
        match = _SSH_HOST.match(text, at)
    if match is None or _CONTAINER.fullmatch(match["host"]):
        return None
    host = match["host"].rstrip(".")
    if host.lower() in _NO_HOSTS or host.replace(".", "").isdigit():
        return None
    if host.rpartition(".")[2].lower() in DOMAINS and "." in host:
        return None  # an e-mail address, which the rule for e-mail judges
    return Span(match.start("host"), match.start("host") + len(host), "HOST")


def _is_remote(text: str, start: int) -> bool:
    if not start or text[start - 1] not in " '\"":
        return False
    line = text[max(0, start - 90) : start]
    return any(tool in line for tool in _TOOLS) and bool(_REMOTE.search(line))


def _is_key_comment(text: str, start: int) -> bool:
    low = max(0, start - 800)
    known = any(text.find(kind, low, start) >= 0 for kind in ("ssh-", "ecdsa-sha2-"))
    return known and bool(_KEY_COMMENT.search(text, low, start))


_OWNER = build_rule_pattern(
    r"[d-][rwxsStT-]{9}[@+.]?[ \t]{1,4}\d{1,5}[ \t]{1,4}(?P<v>[A-Za-z_][\w.-]{2,31})[ \t]",
)
_ORDER = build_rule_pattern(
    r"(?i)(?<!\w)(?:sudo[ ]-u[ ]|su[ ]-[ ]|ssh[ ]-l[ ]|logged in as:?[ ][\"'@]?)"
    r"(?P<v>[A-Za-z_][\w.-]{3,31})(?=[:\s\"')]|\.?$)"
)
_OWNED = build_rule_pattern(
    r"(?i)(?<!\w)chown[ ](?:-\w+[ ])*(?P<v>[A-Za-z_][\w.-]{3,31})(?=:[\w.-]*[ ]|[ ][\w\"'-]*[/.~$*])"
)
_SYSTEM = build_rule_pattern(r"(?:Linux|Darwin) (?P<v>[A-Za-z][\w-]{2,62}(?:\.\w+)*) \d+\.\d+")
_MACHINE = build_rule_pattern(
    r"(?:HOSTNAME|COMPUTERNAME|HOST)=[\"']?(?P<v>[A-Za-z][\w-]{3,62}(?:\.(?:local|lan|home))?)"
    r"(?=[\"'`\s\\;]|$)"
)
_ACCOUNTS = (
    (b"%0fhome%0f", _ROOT_ENCODED),
    (b"%0fusers%0f", _ROOT_ENCODED),
    (b"~", _TILDE),
    (b"uid=", _ACCOUNT),
    (b"gid=", _ACCOUNT),
    (b"groups=", _ACCOUNT),
    (b"user=", _ACCOUNT),
    (b"logname=", _ACCOUNT),
    (b"username=", _ACCOUNT),
    (b"whoami", _WHOAMI),
    (b"-rw", _OWNER),
    (b"drwx", _OWNER),
    (b"chown ", _OWNED),
    (b"sudo -u", _ORDER),
    (b"su - ", _ORDER),
    (b"ssh -l", _ORDER),
    (b"logged in as", _ORDER),
)
_HOSTS = ((b"linux ", _SYSTEM), (b"darwin ", _SYSTEM), (b"hostname=", _MACHINE), (b"computername=", _MACHINE))
DETECTORS = (
    make_probed_detector(
        find_accounts,
        r"(?i)%2f(?:home|users)%2f[a-z0-9_]",
        r"~[a-z][a-z0-9_-]{3,}/",
        r"(?:[ug]id|groups)=\d{1,7}\([A-Za-z_]|(?:USER|LOGNAME|USERNAME)=[\"']?[A-Za-z_]|whoami\n[A-Za-z_]",
        r"(?:-rw|drwx)[rwxsStT-]{6,7}[@+.]?[ \t]+\d+[ \t]+(?:[A-Za-qs-z_]|r[^o]|ro[^o]|roo[^t]|root\S)",
        r"(?i)(?:chown (?:-\w+ )*|sudo -u |su - |ssh -l |logged in as:? [\"'@]?)[a-z_][\w.-]{3}",
    ),
    make_probed_detector(
        find_machines,
        r"@[A-Za-z0-9][\w.-]+:\s?[~/]",
        r"@[A-Za-z0-9][\w.-]+ [~/]",
        r"@[A-Za-z0-9][\w.-]+ [\w.~/-]{1,40}\]? ?[$#%] ",
        r"(?:ssh|scp|sftp|rsync|mosh)\b[^\n|;&@]*[ '\"][\w.-]+@[A-Za-z0-9]",
        r"(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-[\w-]+) [A-Za-z0-9+/=]{40,} [\w.-]+@[A-Za-z0-9]",
    ),
    make_probed_detector(
        find_hosts,
        r"(?:Linux|Darwin) [A-Za-z][\w-]+(?:\.\w+)* \d+\.\d+",
        r"(?:HOSTNAME|COMPUTERNAME|HOST)=[\"']?[A-Za-z][\w-]{3}",
    ),
    make_probed_detector(find_password_lines, r"(?i)[\w.-]:x:\d{4}:"),
)
ACCOUNTS = DETECTORS[0]
"""The detector of `find_accounts`."""
