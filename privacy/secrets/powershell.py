"""Judge whether a line of PowerShell prints a secret: a variable, a member or a property by its name."""

import re
from functools import lru_cache

from tracemill.privacy.secrets.secret_commands import is_name_of_secret

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


@lru_cache(maxsize=256)
def prints_secret_of_powershell(code: str) -> bool:
    """Tell whether a statement of PowerShell prints a secret and nothing else."""
    return any(map(_prints, _STATEMENT.split(code)))


def _prints(statement: str) -> bool:
    if _ASSIGNED.match(statement) or _AWAY.search(statement) or _HARMLESS.search(statement):
        return False
    if _REVEALS.search(statement):
        return True
    names = [found["name"] for found in _VARIABLE.finditer(statement)]
    if member := _MEMBER.search(statement):
        names.append(member["name"])
    if found := _PROPERTY.search(statement):
        names.append(found["name"] or found["value"])
    return any(map(is_name_of_secret, names))
