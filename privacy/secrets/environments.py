# ruff: noqa: E501 (patterns)
"""Judge printed settings, as names with values: which values can be secrets, whatever their names.

In a dump of an environment, common values stay: search paths, folders, locales, versions, digests.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from tracemill.privacy.core.distinctive_values import Distinctiveness, judge_distinctiveness
from tracemill.privacy.core.entropy import is_mixed_case, is_noise, is_random, is_scrambled, is_sealed
from tracemill.privacy.core.ordinary_values import MIN_SECRET, is_ordinary
from tracemill.privacy.core.secret_variables import is_secret_variable

_EVERYBODYS = re.compile(
    r"PATH|HOME|PWD|OLDPWD|SHELL|SHLVL|USER|LOGNAME|USERNAME|HOSTNAME|HOST|MAIL|LANG|LANGUAGE|LC_\w+|TERM\w*|COLORTERM|\w*COLORS?"
    r"|EDITOR|VISUAL|PAGER|LESS\w*|TZ|TE?MP|TMPDIR|DISPLAY|WAYLAND_DISPLAY|COLUMNS|LINES|IFS|PS[0-4]|OPT(?:ARG|ERR|IND)|E?UID|GID|PPID|GROUPS"
    r"|HIST\w+|BASH\w*|ZSH\w*|FPATH|SHELLOPTS|MACHTYPE|HOSTTYPE|OSTYPE|RANDOM|SECONDS|EPOCH\w*|SRANDOM|DIRSTACK|PIPESTATUS|COMP_\w+|PROMPT\w*"
    r"|XDG_\w+|DBUS_\w+|GNOME_\w+|KDE_\w+|GTK_\w+|QT_\w+|DESKTOP_SESSION|SESSION_MANAGER|SSH_(?:AUTH_SOCK|AGENT_PID|TTY|CLIENT|CONNECTION)"
    r"|GPG_TTY|GPG_KEY|INVOCATION_ID|JOURNAL_STREAM|VIRTUAL_ENV\w*|CONDA_\w+|NVM_\w+|PYENV_\w+|RBENV_\w+|SDKMAN_\w+|HOMEBREW_\w+|JAVA_\w+"
    r"|WSL\w*|WT_SESSION|DEBIAN_FRONTEND|KUBERNETES_\w+|\w+_(?:PORT|SERVICE)_\w+|COMPUTERNAME|ComSpec|OS|PATHEXT|PROCESSOR_\w+|NUMBER_OF_PROCESSORS"
    r"|USERPROFILE|USERDOMAIN\w*|APPDATA|LOCALAPPDATA|Program\w*|ALLUSERSPROFILE|PUBLIC|System\w+|windir|DriverData|PSModulePath|LOGONSERVER|_"
    r"|\w*VERSION|\w+_(?:SHA\d*|CHECKSUM|DIGEST|COMMIT|REVISION|REV|PATH|DIR|HOME|ROOT)",
    re.ASCII,
)
_IDENTITY = re.compile(
    r"(?i)(?:id|image|digest|sha\d*|hash|checksum|version|revision|commit|etag|arn|address|name|path|dir|host|driver|time|at|created|status"
    r"|started|finished|labels?|config-hash|kind|class|type)$"
)
_START = r"\s*(?:[$>#%][ \t]+)?(?:\d{1,6}(?:\u2192|\t|\|)\s*)?(?:(?:export|declare -\w+|typeset -\w+|setenv|ENV|env|-) +)*(?:Environment=|\$env:)?[\"']?"
_WHOLE = re.compile(
    rf"{_START}(?P<name>[A-Za-z_][\w.-]{{0,80}})[\"']?(?:[ \t]*=[ \t]*|[ \t]*:[ \t]+|(?P<wide>[ \t]{{2,}})|[ \t]*\|[ \t]*)(?P<value>\S.*)"
)
_INNER = re.compile(
    r"(?:^|(?<=[\s\[\"'{,;=\x00]))(?P<name>[A-Za-z_]\w{0,80})(?:=|[\"']: (?=[\"']))(?:\\?[\"'](?P<quoted>[^\"'\n]*)\\?[\"']|(?P<value>[^\s\"'\x00]+))"
)
_NEXT_CELL = re.compile(r"[ \t]{2,}")
_CELL = re.compile(r"[ \t]{2,}[\"']?(?P<v>[^\s\"']{8,512})[\"']?(?=[ \t]{2,}|[ \t]*$)")
_AROUND = re.compile(r"\$?[\"'`]?(?P<v>.*?)[\"'`]?[\s,;|\])}]*", re.DOTALL)
_DIGEST = re.compile(r"(?i)sha-?\d{1,3}[:=-]|md5:|v?\d+(?:\.\d+)+")
_PUBLIC_KEY = re.compile(r"(?i)PUB(?:LIC)?_?KEY")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://")
_PLACE = re.compile(r"(?:~|\.{0,2})/|[A-Za-z]:\\|[\w.-]*/[\w./-]*:/")


class Setting(NamedTuple):
    """The value of a setting, and its position in the line."""

    name: str
    value: str
    start: int
    end: int


def find_settings(line: str) -> Iterator[Setting]:
    """Yield the settings of a line: one, or several separated by blanks or NUL."""
    inner = list(_INNER.finditer(line))
    whole = _WHOLE.fullmatch(line.rstrip("\r\n")) if len(inner) < 2 else None
    if whole and not (inner and inner[0].end() < len(line.rstrip()) and " " not in whole["value"]):
        value = _NEXT_CELL.split(whole["value"])[0] if whole["wide"] else whole["value"]
        found = _AROUND.fullmatch(value)
        start = whole.start("value")
        if found and found["v"]:
            yield Setting(whole["name"], found["v"], start + found.start("v"), start + found.end("v"))
        for cell in _CELL.finditer(whole["value"], len(value)) if whole["wide"] else ():
            yield Setting(whole["name"], cell["v"], start + cell.start("v"), start + cell.end("v"))
        return
    for each in inner:
        group = "value" if each["quoted"] is None else "quoted"
        value = each[group].rstrip(",;|])}") if group == "value" else each[group]
        start = each.start(group)
        yield Setting(each["name"], value, start, start + len(value))


def is_everybodys_variable(name: str) -> bool:
    """Tell whether every environment has the variable, or it holds a version, digest or folder."""
    return bool(_EVERYBODYS.fullmatch(name))


def is_identity(name: str) -> bool:
    """Tell whether a key of a document, no variable, holds an id, a digest or a plain fact."""
    return (not name.isupper() or len(name) < 3) and bool(_IDENTITY.search(name))


def is_private_setting(name: str, value: str) -> bool:
    """Tell whether a printed setting can be a secret, by its name or by its value."""
    if is_everybodys_variable(name) or len(value) < MIN_SECRET or _DIGEST.match(value):
        return False
    if is_sealed(value) or _PUBLIC_KEY.search(name):
        return False
    if name.lower() != "key" and is_secret_variable(name, value):
        return True
    if is_ordinary(value) or _ADDRESS.match(value) or any(map(str.isspace, value)):
        return False
    if is_scrambled(value) and "." not in value:
        return True
    if _PLACE.match(value) and not (len(value) >= 20 and is_mixed_case(value) and "." not in value):
        return False
    return is_random(value) or is_noise(value) or judge_distinctiveness(value) is not Distinctiveness.NOT
