"""Recognise environment variables that hold a secret, by their names."""

import re
from urllib.parse import unquote, urlsplit

from tracemill.privacy.core.ordinary_values import MIN_SECRET, is_ordinary
from tracemill.privacy.core.rule import build_rule_pattern
from tracemill.privacy.core.secret_names import is_secret_name

_SECRET = build_rule_pattern(
    r"(?i)KEY|TOKEN|SECRET|PASSW|PASSPHRASE|PWD|CREDENTIAL|AUTH(?!OR)|_PAT$|_DSN$|KENNWORT|PAROLE?(?![A-Z])|"
    r"GEHEIM|MOT_?DE_?PASSE|MDP$|CONTRASE|SENHA|SEGREDO|WEBHOOK|MNEMONIC|PEPPER|HMAC|JWT|BEARER|COOKIE|"
    r"KUBECONFIG|(?:^|_)(?:HOOK|SEED|SALT|CREDS?|PW|SK|SESSION|PIN|CLAVE)(?:_|\d|$)"
)
_ORDINARY = build_rule_pattern(
    r"(?i)_(?:FILE|PATH|DIR|SOCK|HOST|PORT|ID|NAME|TYPE|TTL|TIMEOUT)$|^PWD$|^OLDPWD$|KEYBOARD|"
    r"^(?:XDG|DBUS|GNOME|KDE|TERM)_|^(?:DESKTOP_SESSION|SESSION_MANAGER|SESSIONNAME)|(?<!HOOK)_URL$|PUB(?:LIC)?_?KEY"
)
_PLACE = re.compile(r"(?:~?/|[A-Za-z]:\\|\./)[\w./\\ -]*$")
_NUMBERED = build_rule_pattern(
    r"(?i)PASSW|PWD|(?:^|_)(?:PIN|PW)(?:_|\d|$)|SECRET|KENNWORT|SENHA|CLAVE|CONTRASE"
)


def is_secret_variable(name: str, value: str) -> bool:
    """Tell whether a variable's name says secret and its value can be one.

    Names count in English, German, French, Spanish, Portuguese and Italian. A value has 8 characters or more
    and is no path or word of configuration; a number counts only under a PIN's or password's name.
    """
    name = name.replace("-", "_")
    if not is_secret_variable_name(name):
        return False
    if len(value) < MIN_SECRET or _PLACE.match(value):
        return False
    return not is_ordinary(value) or (value.isdigit() and bool(_NUMBERED.search(name)))


def is_secret_variable_name(name: str) -> bool:
    """Tell whether a variable's name says that its value is a secret."""
    name = name.replace("-", "_")
    return bool(_SECRET.search(name) or is_secret_name(name)) and not _ORDINARY.search(name)


def variable_url_password(value: str) -> str:
    """Return the password inside a URL, "" where there is none."""
    try:
        return unquote(urlsplit(value).password or "")
    except ValueError:
        return ""
