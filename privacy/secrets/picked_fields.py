# ruff: noqa: E501 (patterns)
"""Judge whether a filter or a one-liner prints what stands under the name of a secret in its input.

`awk '/password/ {print $2}'`, `perl -ne 'print $1 if /api_key = (.*)/'`, `grep -oP 'token: \\K.*'`, a template
that reads a password manager.
"""

import base64
import binascii
import re
from functools import lru_cache
from itertools import pairwise

from tracemill.privacy.secrets.secret_commands import find_selected_fields, is_name_of_secret

_SETTINGS_FILE = re.compile(
    r"(?i)\.(?:ya?ml|conf|cfg|ini|toml|properties|json5?|cnf|env|config|rc|xml|settings|local|plist|tfvars)$|(?:^|/)(?:etc/|\.?\w*rc$|\.env|config$)"
)
_SAMPLE = re.compile(r"(?i)example|sample|template|\.(?:dist|tmpl|tpl|schema|default)\b")
_CONDITION = re.compile(r"/(?P<regex>(?:\\.|[^/\\\n])+)/|==\s*\\?[\"'](?P<word>[^\"']+)\\?[\"']")
_PRINTS_FIELD = re.compile(
    r"\bprint(?:f\s*\(?\s*\\?\"[^\"]*\\?\",)?\s*\(?\s*(?:\$(?:[2-9]|NF\b|\(NF)|substr\(|a\[[2-9]\])"
)
_PRINTS_GROUP = re.compile(
    r"\$1\b|\$\+\{\w|\$~\[|\$F\[[1-9-]|group\(\s*(?:1|[\"']\w)|groups\(\)|\[1\]|\.captures|findall\(|\.scan\("
)
_GAP = r"(?:\\[sbtWS\"'][*+?]*|[\s\"'?*+.>\[\]|,^-])*"
_CAPTURED = re.compile(rf"(?P<name>[A-Za-z_][\w-]*){_GAP}[=:]{_GAP}>?{_GAP}\((?!\?[:=!<])")
_AFTER = re.compile(rf"(?P<name>[A-Za-z_][\w-]*){_GAP}[=:]{_GAP}(?:\\K|\)(?!\?))")
_WORDS = re.compile(r"[A-Za-z_][\w-]*")
_FIRST_FIELD = re.compile(r"^-f ?1$|\bprint\s*\(?\s*\$1\s*\)?\s*;?\s*\}?[\"']?$")
_EXPRESSION = re.compile(r"\{\{-?\s*(?P<body>[^{}]+?)\s*-?\}\}")
_MANAGER = re.compile(
    r"\b(?:pass(?:Fields|Raw)?|gopass(?:Raw)?|onepassword\w*|bitwarden\w*|rbw\w*|lastpass\w*|keepassxc\w*|keyring|vault|dashlane\w*"
    r"|secret(?:JSON)?|awsSecretsManager\w*|azureKeyVault|doppler\w*|passhole|protonPass\w*|ejsonDecrypt\w*|decrypt)[\s(]+[\"'(]"
)
_ENCODED = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{8,512}={0,2}(?![A-Za-z0-9+/=])")
TEMPLATE_ENGINES = frozenset(("chezmoi", "gomplate", "consul-template", "esc", "jinja2", "j2"))
"""Programs that print a template that they filled in."""


def is_settings_file(path: str) -> bool:
    """Tell whether a path is that of a file of settings, and no code or log."""
    path = path.strip("'\"")
    return bool(_SETTINGS_FILE.search(path)) and not _SAMPLE.search(path)


@lru_cache(maxsize=1024)
def picks_named_field(program: str) -> bool:
    """Tell whether a program of `awk` or `perl -a` prints another field of lines that name a secret."""
    if not _PRINTS_FIELD.search(program) and not re.search(r"\$F\[[1-9-]", program):
        return False
    return any(_names(found["regex"] or found["word"]) for found in _CONDITION.finditer(program))


@lru_cache(maxsize=1024)
def picks_captured(code: str) -> bool:
    """Tell whether code prints a group of a pattern that stands after the name of a secret."""
    if not _PRINTS_GROUP.search(code):
        return False
    return any(is_name_of_secret(found["name"]) for found in _CAPTURED.finditer(code))


def picks_rest(pattern: str) -> bool:
    """Tell whether a pattern of `grep -o` matches what follows the name of a secret: `token=\\K.*`."""
    if "\\K" not in pattern and "(?<=" not in pattern:
        return False
    return any(is_name_of_secret(found["name"]) for found in _AFTER.finditer(pattern))


def picks_first(words: tuple[str, ...]) -> bool:
    """Tell whether `cut` or `awk` prints only the first field of each line: a name."""
    line = [*words, *(f"-f {after}" for word, after in pairwise(words) if word == "-f")]
    return any(map(_FIRST_FIELD.search, line))


def fills_secret(word: str) -> bool | None:
    """Tell whether an expression in a template is a secret: True where it is all of the template.

    False where other text stands beside it, None where there is none.
    """
    if "{{" not in word:
        return None
    bodies = [found["body"] for found in _EXPRESSION.finditer(word)]
    if not any(map(_is_secret_expression, bodies)):
        return None
    return len(bodies) == 1 and not _EXPRESSION.sub("", word.strip("'\"")).strip()


def names_secret_encoded(word: str) -> bool:
    """Tell whether a word holds the name of a secret in Base64, as requests to etcd do."""
    return any(map(_is_encoded_name, _ENCODED.findall(word)))


def _is_encoded_name(text: str) -> bool:
    try:
        plain = base64.b64decode(text, validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return False
    return plain.isprintable() and is_name_of_secret(re.split(r"[/.:]", plain.rstrip("/\0"))[-1])


def _is_secret_expression(body: str) -> bool:
    if _MANAGER.search(f"{body} "):
        return True
    head, *filters = body.split("|")
    if any(re.search(r"length|hash|sha\d|md5|type|default\(omit", each) for each in filters):
        return False
    fields = find_selected_fields(re.sub(r"[\"'][^\"']*[\"']", "", head))
    return bool(fields) and is_name_of_secret(fields[-1])


def _names(pattern: str) -> bool:
    return any(map(is_name_of_secret, _WORDS.findall(re.sub(r"\\[bsStWw]", " ", pattern))))
