"""Recognise names of secrets, and judge whether a value under such a name is one."""

from functools import lru_cache

from tracemill.privacy.core.chosen_passwords import (
    is_capital_word,
    is_chosen_password,
    is_joined_words,
    is_numbered_words,
    is_own_word,
    is_scrambled_letters,
    is_short_phrase,
    is_word_chain,
)
from tracemill.privacy.core.entropy import (
    has_all_kinds,
    is_base64_login,
    is_noise,
    is_password,
    is_plain_password,
    is_sealed,
    is_token,
)
from tracemill.privacy.core.rule import build_rule_pattern
from tracemill.privacy.core.set_passwords import (
    is_bare_password,
    is_chosen_key,
    is_made_up_key,
    is_random_path,
    is_set_password,
)

_TRANSLATED = (
    r"senha|has[l\u0142]o|heslo|mot_?de_?passe|contrase[n\xf1]a|wachtwoord"
    r"|parola(?:_chiave)?|salasana|adgangskode|losenord"
)
"""Words for a password in other languages, as names in settings have them."""
_PASSWORD_NAME = build_rule_pattern(
    r"(?i)passw(?:or)?[dt]|passphrase|passcode|passwd|kennwort|(?<![a-z])(?:p(?:ass|wd|w)|psk)(?![a-z])|_pass$|pwd$|^(?:store|key|remote|local|imap|smtp|pop3?|db|mysql|admin|root|bind|login|ftp|proxy|mail|ldap|my|user|trust|sudo|become|export|require)pass$|bindpw$|rootpw$|authtok$|"
    rf"^(?:\w+[_.-])?(?:{_TRANSLATED})$|"
    r"(?-i:[a-z]P(?:ass|wd|w|W)$|^[A-Z]{2,12}P(?:ASS|W)$)"
)
_TRANSLATED_KEY = (
    r"(?<![a-z])(?:chiave|clave|chave|llave|klucz|schl(?:ue|\xfc|u)ssel|sleutel|nyckel|anahtar|kulcs|kljuc)"
    r"(?![a-z])"
)
"""Words for a key in other languages, as names in settings have them."""
KEY_ADJECTIVES = (
    "api|access|private|signing|encryption|decryption|validation|auth|account|master|license|licence|service|"
    "client|storage|admin|root|session|webhook|jwt|hmac|app|application|deploy|consumer|secret|subscription|"
    "shared|machine|product|activation|integration|ingest|ingestion|write|functions?|recaptcha|"
    "recovery|setup|enrollment|join|bootstrap|volume|stored|server|upgrade|derivation|preshared|stream|registration"
)
"""Words that make a following `key` the name of a secret."""
_TOKEN_NAME = build_rule_pattern(
    rf"(?i)secret|token|credential|(?:{KEY_ADJECTIVES})[_\-.]?key|apikey|"
    r"authorization|(?<![a-z])(?:master)?auth$|_key(?:_base|_v?\d+|_[a-z]{2,4})?$|_pat$|connection[_-]?string|"
    rf"{_TRANSLATED_KEY}|(?-i:^KEY$|[a-z]Key$)|[_-]cookie$|(?:c|x)srf$"
)
_OTHER_NAME = build_rule_pattern(
    r"(?i)public|(?:cache|idempotency|partition|sort|sorting|primary|foreign|lookup|dedup\w*|group|object|index|row|"
    r"s3|translation|locale|i18n|host|known|ssh|range|shard|routing)[_-]?keys?$|(?:hash|count|type|name|length|len|size|limit|id|ids|url|uri|path|file|dir|expires?|expiry|ttl|"
    r"field|label|regex|pattern|prefix|suffix|policy|index|idx|usage|kind|format|endpoint|header|version|"
    r"tokens|encryption|algorithm|hasher|method|mode|class|error|message|text|prompt|hint|help|title|budget|rotator|rotation|refresher|service|svc|agent|worker|manager|proxy|issuer|validator|exchange|generator|provider|handler|controller|middleware)$"
)
_PIN_NAME = build_rule_pattern(
    r"(?:(?<![A-Za-z0-9])(?i:pin|puk)|(?<=[a-z])(?:Pin|PIN))[_-]?(?i:code|number)?$"
)
_HASHED_NAME = build_rule_pattern(r"(?i)pass(?:w(?:or)?d|phrase)?[_-]?(?:hash|digest)$")
_PIN = build_rule_pattern(r"\d{4,8}")
_BELOW_VARIABLE = build_rule_pattern(r"\$\{?[A-Z_][A-Z0-9_]*\}?(?:/[\w.+-]+)+")  # a file, not a secret
_NO_NAME = build_rule_pattern(r"[\"\\\n]|::")
# Names under which a word or a number is a secret too.
_SETS = build_rule_pattern(
    r"(?i)passw(?:or)?d$|passwd$|passphrase$|(?<![a-z])(?:p(?:ass|wd|w)|psk)$|passcode$|kennwort$|passwort$|pwd$|(?-i:[a-z]Pass$)|secret$|api_?key$|auth_?token$"
)
_PASSWORD_END = build_rule_pattern(
    r"(?i)(?:passw(?:or)?[dt]|passphrase|passcode|kennwort|(?<![a-z])(?:pass|psk)|pwd|(?-i:[a-z]Pass|[A-Z]PW)|_p(?:ass|w)|(?<![a-z])pw"
    rf"|(?:{_TRANSLATED})"
    r"|^(?:store|key|trust|become|sudo|db|admin|root|bind|login|ftp|mail|ldap|smtp|imap)pass)$"
)
_LEAST_HASH = 24  # characters
_VALUE_NAME = build_rule_pattern(rf"(?i)(?:secret|token|credentials?|key|auth)$|{_TRANSLATED_KEY}")
_CHOSEN_NAME = build_rule_pattern(
    r"(?i)(?:secret|(?:api|auth|access|refresh|bearer|admin|bot|app)[_-]?token|(?:api|secret|encryption|signing|fernet|master|jwt|session"
    r"|validation|machine|private|shared|auth|access)[_-]?key)(?:_base)?$"
)
"""Names of secrets that people also choose."""
KEY_ADJECTIVE = build_rule_pattern(rf"(?i)({KEY_ADJECTIVES})[ _-]$")
"""The same words directly before `key`, separated from it by a blank, `_` or `-`."""
_SEALED_NAME = build_rule_pattern(r"(?i)licen[sc]e|product|serial|activation")
_SHORT_HEX = build_rule_pattern(r"(?=(?:[a-f]*[0-9]){3})(?=(?:[0-9]*[a-f]){2})[0-9a-f]{12,31}")
_SERIAL = build_rule_pattern(r"(?=.*[0-9].*[0-9])(?=.*[A-Z].*[A-Z])[A-Z0-9]{4,8}(?:-[A-Z0-9]{4,8}){2,7}")


def is_secret_name(name: str) -> bool:
    """Tell whether the name of a variable, key or flag says that its value is secret."""
    return bool(_kind_of(name))


def names_password(name: str) -> bool:
    """Tell whether a name ends with a word for a password."""
    return _kind_of(name) == "PASSWORD" and _PASSWORD_END.search(name) is not None


def may_be_secret(name: str) -> bool:
    """Tell whether some value is secret under this name."""
    return (
        bool(_kind_of(name.lstrip("-"))) or name.lower().endswith("auth") or bool(_HASHED_NAME.search(name))
    )


@lru_cache(maxsize=4096)
def secret_name_kind(name: str, value: str, plain: bool = False) -> str | None:
    """Return PASSWORD, PIN, SECRET or BASIC_AUTH where a value under this name is one, else None.

    `plain`: the whole value is set here, so it may also be a word, a number or a phrase.
    """
    if _PIN_NAME.search(name) and _PIN.fullmatch(value):
        return "PIN"
    if _BELOW_VARIABLE.fullmatch(value) or is_sealed(value):
        return None
    if _HASHED_NAME.search(name) and len(value) >= _LEAST_HASH and is_token(value):
        return "SECRET"
    kind = _kind_of(name)
    whole = plain and (kind == "PASSWORD" or value.isdigit()) and bool(_SETS.search(name))
    if kind and whole and is_plain_password(value) and not _same_word(name, value):
        return kind
    if kind == "PASSWORD" and (is_password(value) or is_scrambled_letters(value)):
        return kind
    if (
        kind == "PASSWORD"
        and _PASSWORD_END.search(name)
        and is_word_chain(value)
        and not _same_word(name, value)
    ):
        return kind
    if kind == "PASSWORD" and plain and (is_chosen_password(value) or is_short_phrase(value)):
        return kind
    if kind == "PASSWORD" and plain and _PASSWORD_END.search(name) and is_joined_words(value):
        return kind if not _same_word(name, value) else None
    if kind == "PASSWORD" and plain and _names_own(name) and is_capital_word(value):
        return kind if not _same_word(name, value) else None
    if kind and plain and _CHOSEN_NAME.search(name) and is_word_chain(value) and not _same_word(name, value):
        return kind
    if (
        kind == "SECRET"
        and plain
        and " " in value
        and name.lower().endswith("secret")
        and is_plain_password(value)
    ):
        return kind
    if kind and plain and (_is_set_whole(name, value) or _is_set_any(kind, name, value)):
        return kind
    if kind and _SEALED_NAME.search(name) and _SERIAL.fullmatch(value):
        return kind
    if kind and (is_token(value) or is_random_path(value)):
        return kind
    if name.lower().endswith("auth") and len(value) >= 12 and not value.islower() and is_base64_login(value):
        return "BASIC_AUTH"
    return None


@lru_cache(maxsize=4096)
def bare_value_kind(name: str, value: str, among_settings: bool) -> str | None:
    """Return the kind of a value without quotes that takes the rest of its line, else None.

    `among_settings`: the lines around are settings, not code.
    """
    kind = None if is_sealed(value) else _kind_of(name)
    if kind == "PASSWORD":
        words = is_joined_words(value) or (
            _names_own(name) and (is_capital_word(value) or is_own_word(value))
        )
        if among_settings and _PASSWORD_END.search(name) and words:
            return kind if not _same_word(name, value) else None
        return kind if is_bare_password(value, among_settings) else None
    return kind if kind and _VALUE_NAME.search(name) and is_made_up_key(value) else None


# Labels of fields and buttons, whose values are texts.
_OF_PAGE = build_rule_pattern(
    r"(?i)^(?:confirm|repeat|retype|reset|forgot|show|hide|change|enter|update|wrong|no|has|is|with|without|set"
    r"|get|lost|create|save|generate|toggle)(?:ed|ten|ing)?[ _-]?(?:new|old|your|current|the|a)?[ _-]?p|label"
    r"|title|placeholder"
)


def _names_own(name: str) -> bool:
    """Tell whether a name ends with a word for a password, and is no label of a page."""
    return _PASSWORD_END.search(name) is not None and not _OF_PAGE.search(name)


def is_chosen_under(name: str, value: str) -> bool:
    """Tell whether a value under the name of a token, key or secret is one that somebody chose."""
    if _kind_of(name) != "SECRET":
        return False
    if _CHOSEN_NAME.search(name) and is_chosen_password(value) and is_numbered_words(value):
        return not _same_word(name, value)
    return bool(_VALUE_NAME.search(name)) and (
        is_chosen_key(value) or _SHORT_HEX.fullmatch(value) is not None
    )


def _is_set_whole(name: str, value: str) -> bool:
    """Tell whether a whole value under a secret's name is a made-up key or random characters."""
    if _SETS.search(name) and len(value) >= 10 and is_password(value) and has_all_kinds(value):
        return True
    if name.isupper() and _SETS.search(name) and is_word_chain(value):
        return not _same_word(name, value)
    return is_noise(value)


def _is_set_any(kind: str, name: str, value: str) -> bool:
    """Tell whether a whole value is a secret, whatever characters it holds.

    Under another name than a password's it must look made up like a password.
    """
    if kind == "PASSWORD":
        return is_set_password(value)
    if is_chosen_under(name, value) or (_CHOSEN_NAME.search(name) and is_scrambled_letters(value)):
        return True
    return bool(_VALUE_NAME.search(name)) and is_made_up_key(value)


@lru_cache(maxsize=8192)
def _kind_of(name: str) -> str | None:
    if _OTHER_NAME.search(name) or _NO_NAME.search(name):
        return None
    if _PASSWORD_NAME.search(name):
        return "PASSWORD"
    return "SECRET" if _TOKEN_NAME.search(name) else None


def _same_word(name: str, value: str) -> bool:
    return _letters(value) in _letters(name) or _letters(name) in _letters(value)


def _letters(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


# A secret's name in JSON up to its end. It names the value of its key, the value that follows
# (`"name": "password", "value": ...`), or the one after a flag.
_REST = r"[^\"\\\n]"
_SECRET_KEY = (
    rf"(?:(?:pass|pwd|psk|kennwort|secret|credential|authorization|connection[_-]?string|[a-z_.-]key){_REST}*|"
    rf"token(?:{_REST}{{2,}}|[^s\"\\\n])?|auth|_pat|p(?:in|uk)(?:[_-]?(?:code|number))?)\""
)
KEY_PROBES = (
    rf"(?i){_SECRET_KEY}\s*:\s*[\"\[{{0-9]",
    rf"\"(?:[nN]ame|[kK]ey)\"\s*:\s*\"{_REST}*(?i:{_SECRET_KEY})",
    rf"(?i)\"--{_REST}*{_SECRET_KEY}",
)
"""Probes that match JSON in which a string may be a secret by its surroundings."""
