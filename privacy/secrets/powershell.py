"""Judge whether a line of PowerShell prints a secret: a variable, a member, a property, a cmdlet's result."""

import re
from functools import lru_cache

from tracemill.privacy.secrets.secret_commands import is_name_of_secret, split_camel_case

SHELLS = frozenset(("pwsh", "powershell", "pwsh.exe", "powershell.exe"))
"""Programs that run PowerShell."""
_STATEMENT = re.compile(r"[;\n]")
_ASSIGNED = re.compile(r"\s*(?:\[[\w.]+\]\s*)?\$[\w:]+\s*[+]?=[^=]")
_AWAY = re.compile(
    r"(?i)>\s*(?!&)\S|\|\s*(?:Out-(?:File|Null)|Set-(?:Content|Clipboard)|clip|Measure-Object|Export-\w+)\b"
)
_HARMLESS = re.compile(
    r"(?i)\.(?:Length|Count)\b|-(?:not)?(?:match|like|eq|ne|contains)\b|Test-Path|-is\b|Get-FileHash|^\s*if\b"
)
_VARIABLE = re.compile(r"(?i)(?:\$env:|\benv:[\\/]?|\$\{env:|GetEnvironmentVariable\(\s*[\"'])(?P<name>\w+)")
_MEMBER = re.compile(r"(?:\)|\$\w+|\])(?:\.\w+(?:\([^()]*\))?)*\.(?P<name>\w+)(?:\(\))?[\s)\"']*$")
_PROPERTY = re.compile(
    r"(?i)(?:-ExpandProperty|ForEach-Object(?:\s+-MemberName)?|%)\s+[\"']?(?P<name>\w+)[\"']?[\s)]*$"
    r"|\bGet-ItemPropertyValue\b[^|;\n]*?\s(?:-Name\s+)?[\"']?(?P<value>\w+)[\"']?[\s)]*$"
)
_REVEALS = re.compile(
    r"(?i)\bConvertFrom-SecureString\b[^|;\n]*-AsPlainText|\bGet-(?:Az\w*)?Secret\b[^|;\n]*-AsPlainText|PtrToString(?:Auto|BSTR|Uni)"
)


_SELECTED = re.compile(
    r"(?i)(?:\bSelect(?:-Object)?|\bFormat-(?:Table|List|Wide)|\|\s*f[tl]|-Properties)\s+(?:-Property\s+)?(?P<names>[\w*\"'.-]+(?:\s*,\s*[\w*\"'.-]+)*)"
)
_CMDLET = re.compile(
    r"(?i)\b(?:Get|New|Reset|Show|Read|Export|Request|Update|Invoke)-(?!(?<=Get-)AzAD|\w*KeyVault|\w*Public|PSReadLine|\w*Host|Credential\b)\w*(?:Keys?|Passwords?|Secrets?|Tokens?|Credentials?|PublishingProfile|ConnectionStrings?)\b"
)
_HOLDS = re.compile(r"(?i)(?:\*|.*(?:value|key\d?|secrettext|text|string))$")


@lru_cache(maxsize=256)
def judge_powershell(code: str) -> bool | None:
    """Return True where a statement prints only a secret, False where it prints some, else None."""
    judged = [_judge(statement) for statement in _STATEMENT.split(code)]
    if any(judged):
        return True
    return False if False in judged else None


def _judge(statement: str) -> bool | None:
    if _ASSIGNED.match(statement) or _AWAY.search(statement) or _HARMLESS.search(statement):
        return None
    if _REVEALS.search(statement):
        return True
    names = [found["name"] for found in _VARIABLE.finditer(statement)]
    if member := _MEMBER.search(statement):
        names.append(member["name"])
    if found := _PROPERTY.search(statement):
        names.append(found["name"] or found["value"])
    if any(map(is_name_of_secret, names)):
        return True
    selected = [
        name.strip(" \"'") for found in _SELECTED.finditer(statement) for name in found["names"].split(",")
    ]
    if any(is_name_of_secret(split_camel_case(name.replace("-", "_"))) for name in selected):
        return False
    made = _CMDLET.search(statement) and (not selected or any(map(_HOLDS.match, selected)))
    return False if made else None
