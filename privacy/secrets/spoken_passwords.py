# ruff: noqa: E501 (patterns)
"""Detect chosen passwords a few words after a label: in commands, configurations, calls and sentences.

The value has no format. It is told by its shape (`chosen_passwords`) and by a word about logins before it on the
line, in whatever grammar: `-u root -p pumpkin3933`, `login('kim', 'Clara_walnut054')`, `la clave es granite_Nina217`.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from tracemill.privacy.core.chosen_passwords import (
    is_chosen_password,
    is_joined_words,
    is_mingled,
    is_numbered_words,
    is_own_word,
    is_short_phrase,
    is_word_chain,
)
from tracemill.privacy.core.entropy import has_all_kinds, is_password, is_token
from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.core.letter_pairs import is_drawn_letters
from tracemill.privacy.core.rule import (
    Detector,
    Span,
    TextView,
    build_rule_pattern,
    build_words_pattern,
    make_probed_detector,
)
from tracemill.privacy.core.set_passwords import is_odd_password

# Words for a password in languages of developers; stems where the word is declined.
_PASSWORDS = (
    r"passw(?:or)?[dt]|passphrase|passcode|passwd|pgpass|(?<![A-Za-z0-9])pass\b|\bpw\b|\bpwd\b|kennwort|\bmdp\b|mot de passe|contrase[n\xf1]a|\bclave\b"
    r"|\bsenha\b|palavra-passe|\bparola\b|heslo|has[\u0142l]o|jelsz|wachtwoord|passord|adgangskode|l[o\xf6]senord|salasana|[\u015f\u015es]ifre"
    r"|[\u043f\u041f]\u0430\u0440\u043e\u043b|\u5bc6\u7801|\u5bc6\u78bc|\u53e3\u4ee4|\u6697\u8bc1\u756a\u53f7|\u6697\u8a3c\u756a\u53f7|\u0643\u0644\u0645\u0629 (?:\u0627\u0644\u0645\u0631\u0648\u0631|\u0627\u0644\u0633\u0631|\u0633\u0631)|\u05e1\u05d9\u05e1\u05de|\u0631\u0645\u0632 (?:\u0639\u0628\u0648\u0631|\u0648\u0631\u0648\u062f)|\u06af\u0630\u0631\u0648\u0627\u0698\u0647|\u092a\u093e\u0938\u0935\u0930\u094d\u0921|\u0e23\u0e2b\u0e31\u0e2a\u0e1c\u0e48\u0e32\u0e19|m\u1eadt kh\u1ea9u|kata sandi|\u03ba\u03c9\u03b4\u03b9\u03ba|\u039a\u03c9\u03b4\u03b9\u03ba|\u10de\u10d0\u10e0\u10dd\u10da|\u057a\u0561\u0580\u0578\u056c|\bpass\b|code d'acc\xe8s|zugangscode|zugangsdaten|codice di accesso|c[\xf3o]digo de acceso|lozink|geslo\b|slapta\u017eod|parool\b|lykilor|security_?answer|\u30d1\u30b9\u30ef\u30fc\u30c9|\ube44\ubc00\ubc88\ud638"
)
_PASSWORDS_RAW = (
    r"passw(?:or)?[dt]|passphrase|passcode|passwd|pgpass|_pass|pass\b|pw\b|pwd\b|kennwort|mdp|mot de passe|contrase|clave|senha|palavra-passe|parola"
    r"|heslo|has[?l]o|jelsz|wachtwoord|passord|adgangskode|l[o\xf6]senord|salasana|[?s]ifre|\?{2}|m\?t kh\?u|kata sandi|code d'acc|zugangs(?:code|daten)|codice di accesso|digo de acceso|lozink|geslo|slapta|parool|lykilor|security_?answer"
)
# Words about logins and keys, and options of command lines, after which other things stand too.
_LOGINS = (
    r"log[ _-]?in\b|logon|sign[ _-]?in\b|authenticat\w*|\bauth\b|identify|credentials?|creds?\b|\bunlock|\bnet user\b|\bconnect\b|createuser|\bisakmp key|shared[ -]?secret|keychain"
    r"|(?<=\s)-(?:p|P|w)(?=[ \"'])|\bkey-string\b|\bsecret\b"
)
_LOGINS_RAW = (
    r"log[ _-]?in\b|logon|sign[ _-]?in\b|authenticat|auth\b|identify|credential|creds?\b|unlock|net user|connect\b|createuser|isakmp key|shared[ -]?secret|keychain"
    r"|\s-(?:p|pw|w)[ \"']|key-string|secret\b"
)
# Commands, statements and calls whose arguments hold a password and little else of its shape.
_COMMANDS = (
    r"htpasswd|net user|cmdkey|vncpasswd|kadmin|addprinc|\buci set\b|mc alias set|rclone obscure|pdftk|pdftotext|qpdf|smbclient|wpa_passphrase|networkcredential|sendline|send_keys|username_pw_set"
    r"|plaintext|nickserv|unlock-keychain|pre-shared-secret|ascii-text|irreversible-cipher|level \d{1,2} (?:simple|cipher|hash)|setbasicauth|basic_auth|db\.auth|passwd enc|pass(?:word|wd)? enc|\bcreds?\b|credentials|\bschtasks\b|\bwmic\b|\bipmitool\b|\bracadm\b|\bsnmpget\b|\bsnmpwalk\b"
    r"|writetext|getpass|\bkinit\b|\bldapsearch\b|\bldapadd\b|\bsqlplus\b|\brunas\b|\bpsexec\b|\bevil-winrm\b|\bcrackmapexec\b|\bnxc\b|\bxfreerdp\b|\bmount\.cifs\b"
)
_COMMANDS_RAW = _COMMANDS.replace(r"\b", "").replace(r"\d", "[0-9]")
_COMMANDED = build_rule_pattern(rf"(?i:{_COMMANDS})")
_TOKEN = build_rule_pattern(
    r"(?<![\w$@.+-])[^\W_][^\s\"'`<>(){}\[\]|\\;,/=:]{6,47}(?=[\s\"'`<>(){}\[\]|\\;,@]|$)"
)
_LINE_END = build_rule_pattern(r"\n|\\+[nr]")
_REACH_BEHIND = 80  # characters behind a label
_LABELED = build_rule_pattern(rf"(?i:(?P<password>{_PASSWORDS})|{_LOGINS})")
# Beginnings of labels in the folded plane; letters that are not Latin are a `?` there.
_STARTS_TEXT = """pass|pgpass|pw|kennwort|mdp|mot de passe|contrase|clave|senha|palavra|parola|heslo|haslo|has?o|jelsz
wachtwoord|adgangskode|losenord|l\xf6senord|l\xd6senord|salasana|sifre|?ifre|??|code d'acc|zugangs|codice di|codigo de
c\xf3digo de|c\xd3digo de|lozink|geslo|slapta|parool|lykilor|security|m?t kh?u|kata sandi|login|log in|log_in|log-in
logon|signin|sign in|sign_in|sign-in|auth|identify|credential|cred|unlock|net user|connect|createuser|isakmp key
sharedsecret|shared secret|shared-secret|keychain|key-string|secret"""
_OPTION_STARTS = (f"-{letter}{mark}" for letter in "pw" for mark in " \"'")
_LABEL_STARTS = re.compile(
    build_words_pattern(
        word.encode("latin-1") for word in (*re.split(r"[|\n]", _STARTS_TEXT), *_OPTION_STARTS)
    )
)


# What a line with a password has behind its label, and one with a login: with a flag each.
_PASSWORD_SHAPES = (
    ("(?i)", r"[a-z!#$%&*+@][_.@+-]?[0-9]{2}"),
    ("(?i)", r"[0-9!#$%&*+@][a-z0-9]*[!#$%&*+@?~^]"),
    ("(?i)", r"[a-z][0-9]+[a-z]"),
    ("", r"[A-Z]{2}[a-z][^\n]*[A-Z]"),
    ("(?i)", r"(?:[a-z]{3,}[-_.]){3}[a-z]{3}"),
    ("", r"[^a-z-][a-z]{3,12}-[a-z]{3,12}-[a-z]{3,12}(?:[^a-z-]|$)"),
    ("", r"[A-Z][a-z]{2,15}[-_.+=&~/][A-Za-z]|[a-z]{3}[-_.+=&~/][A-Z]"),
)
_DIGIT_SHAPES = (("(?i)", r"[a-z!#$%&*+@_.?~^-][0-9]"), ("(?i)", r"[0-9][a-z!#$%&*+@_.?~^-]"))
_LOGIN_SHAPES = (("(?i)", r"[a-z][_.@+-]?[0-9]{2}"), ("(?i)", r"[a-z][0-9][a-z0-9]*[a-z][0-9]"))


def _cased(flag: str, shape: str) -> str:
    """Return a shape in a group with its flag: words before it are found in any case."""
    return f"(?i:{shape})" if flag else f"(?:{shape})"


def _any_shape(shapes: Iterable[tuple[str, str]]) -> LazyPattern:
    return LazyPattern("|".join(_cased(flag, shape) for flag, shape in shapes))


_PASSWORD_SHAPE, _LOGIN_SHAPE = _any_shape(_PASSWORD_SHAPES), _any_shape(_LOGIN_SHAPES)
_DIGIT_BESIDE = _any_shape(_DIGIT_SHAPES)  # of values below a label and behind a command


def find_spoken_passwords(view: TextView) -> Iterator[Span]:
    """Find the first value on the rest of a line after a word about logins that is a chosen password."""
    text, done, read = view.text, -1, 0
    for low, high in view.windows():
        for start in _LABEL_STARTS.finditer(view.plane("fold"), low, high):
            label = _LABELED.match(text, start.start(), high) if start.start() >= read else None
            if label is None:
                continue
            read = label.end()
            if read < done:
                continue
            shape = _PASSWORD_SHAPE if label["password"] else _LOGIN_SHAPE
            found = None
            if shape.search(text, read, _line_end(text, read)):
                found = _value_behind(text, read, _is_said if label["password"] else is_login_value)
            if found is None and label["password"]:
                found = (
                    _phrase_behind(text, label.end())
                    or _letters_behind(text, label.end())
                    or _phrase_folded(text, label.end())
                    or _value_below(text, label.end())
                )
            if found:
                done = found.end
                yield found


def find_commanded_passwords(view: TextView) -> Iterator[Span]:
    """Find the first value with the shape of a password on the rest of a line after a command that takes one."""
    text = view.text
    for low, high in view.windows():
        for command in _COMMANDED.finditer(text, low, high):
            if found := _value_behind(text, command.end(), _is_commanded):
                yield found


_TELLS = r"(?: (?:is|was|ist|war|lautet|est|es|jest|\xe9|\xe8)(?: (?:now|just|still|actually|\xfcbrigens|jetzt|ahora))?|'est) "
_TOLD = build_rule_pattern(
    rf"(?i:(?!pass\b)(?:{_PASSWORDS})[^\n:=.;\"'`<>(){{}}]{{0,40}}?{_TELLS}|(?:old|new|other) one (?:is|was) )"
    r"(?:(?P<q>[\"'`])(?P<w>[^\"'`\n]{5,40})(?P=q)|(?P<v>[^\s\"'`,;()<>{}\[\]$]{5,40}?)(?=[,;.!?]?(?:\s|$)))"
)
_SAYS = LazyPattern(rf"(?i:{_PASSWORDS})")
# Words beside a password where somebody shares a login.
_SHARES = LazyPattern(
    r"(?i)(?<!\w)(?:user(?:name)?|login|benutzer(?:name)?|usuario|utilisateur|utente|u[\u017cz]ytkownik|gebruiker|\u043f\u043e\u043b\u044c\u0437\u043e\u0432\u0430\u0442\u0435\u043b\u044c|\u043b\u043e\u0433\u0438\u043d|port|puerto|porta|host|log (?:on|in)|ssh|root|admin|(?:\d{1,3}\.){3}\d{1,3})(?!\w)"
)
_OF_STATE = LazyPattern(
    r"(?i).*(?:ed|ing|able|ible|less|ent|ant|ous|ful|al|ic|ive|ary|ory|ado|ada|ido|ida|iert|isch|bar|lich|ig|ante|ente|\xe9|\xe9e|ique|ato|ata|ito|ita|uto|uta|owy|owe|owa|ny|ne|na|niony|nione)|wrong|falsch|richtig|(?:in)?correct\w*|incorrect\w*|weak|strong|short|long|empty|leer|vac\xeda|vide|vuota|the|same|different|always|never|already|still|there|here|fine|okay|good|secure|safe|known|shown|given|below|above|inside|only|too|not|also"
)


def _is_own(value: str) -> bool:
    """Tell whether a value is a word that tells no state of a password."""
    value = value.rstrip("!")
    return is_own_word(value.lower()) and _OF_STATE.fullmatch(value) is None


_ADJECTIVE = LazyPattern(
    r"[a-z0-9]+-(?:[a-z]+(?:ed|ing|ive|able|less|ent)|only|like|free|safe|text|code|specific)"
)
_JOINED = LazyPattern(r"[^\W_][-_.&=/~+][^\W_]|[a-z][A-Z]")


def find_told_passwords(view: TextView) -> Iterator[Span]:
    """Find the value that a sentence says a password is: `the password of the db is raccoon-party, host ...`."""
    text = view.text
    for low, high in view.windows():
        for found in _TOLD.finditer(text, low, min(len(text), high + _REACH_BEHIND)):
            group = "w" if found["w"] else "v"
            line = text.rfind("\n", 0, found.start()) + 1
            value = found[group]
            if not _is_told(value, quoted=group == "w") and not (
                _is_own(value) and _SHARES.search(text, max(line, found.start() - 120), found.end() + 80)
            ):
                continue
            if _SAYS.search(text, line, found.start(group)):
                yield Span(*found.span(group), "PASSWORD")


# Words for a key or a token in languages of developers.
_KEYS = (
    r"api[- _]?keys?|api[- _]?token|(?:access|auth|bot|bearer|deploy|webhook|signing)[- _]?(?:key|token|secret)|api[- ]?schl[\xfcu]ssel|schl[\xfcu]ssel|cl[\xe9e] (?:api|d'api|secr[\xe8e]te|wi-?fi|r[\xe9e]seau)|cl[\xe9e] du wi-?fi|chiave(?: \w{2,10})?|clave(?: \w{2,10})?|chave(?: \w{2,10})?"
    r"|klucz\w{0,3}|nyckeln?|sleutel|anahtar\w{0,4}|jeton|token(?:en|u|a)?|secrets?|segreto|secreto|segredo|sekret|wlan-?(?:schl\xfcssel|key)|wi-?fi[- ]?key|netzwerkschl\xfcssel"
    r"|\u0441\u0435\u043a\u0440\u0435\u0442\w{0,3}|\u043a\u043b\u044e\u0447\w{0,3}|\u0442\u043e\u043a\u0435\u043d\w{0,3}|api\u30ad\u30fc|api\u30c8\u30fc\u30af\u30f3|\u30ad\u30fc|\u30b7\u30fc\u30af\u30ec\u30c3\u30c8|\u30c8\u30fc\u30af\u30f3|\u5bc6\u94a5|\u5bc6\u9470|\u79d8\u5bc6\u9375|\u79d8\u5bc6\u30ad\u30fc|llave(?: \w{2,10})?|\u4ee4\u724c|\uc2dc\ud06c\ub9bf|\ud1a0\ud070"
)
_KEYS_RAW = r"key|token|secret|llave|schl[\xfcu]ssel|cl[\xe9e] |chiave|clave|chave|klucz|nyckel|sleutel|anahtar|jeton|segreto|segredo|sekret|\?{2}"
_TOLD_KEY = build_rule_pattern(
    rf"(?i:(?<![^\W_])(?:{_KEYS}))(?:[ ][^\s:=.;\"'`<>(){{}}]{{1,24}}){{0,5}}?"
    rf"(?:{_TELLS}| ?[:=\uff1a] ?| ?[\u306f\u662f] ?|\uc740 |\ub294 |\u300c| (?=[A-Za-z0-9_-]{{24}}))[\"'`]?(?P<v>[A-Za-z0-9][\w+/.!-]{{7,127}}={{0,2}})(?=[\"'`]?[,;.!?\u3002\u3001\uff0c]?(?:\s|$|[^\x00-\x7f]))"
)


def find_told_keys(view: TextView) -> Iterator[Span]:
    """Find what a sentence says a key or a token is: `la chiave segreta per i webhook \xe8 gjH5cz7a...`."""
    text = view.text
    for low, high in view.windows():
        for found in _TOLD_KEY.finditer(text, low, min(len(text), high + _REACH_BEHIND)):
            value = found["v"].rstrip(".!")
            if _is_told_key(value):
                yield Span(found.start("v"), found.start("v") + len(value), "SECRET")


_HEX = LazyPattern(r"(?=.*[0-9])(?=.*[a-f])[0-9a-f]{12,128}")


def _is_told_key(value: str) -> bool:
    """Tell whether a value is random, or chosen as a password is."""
    if is_token(value) or is_short_phrase(value) or is_chosen_password(value) or _HEX.fullmatch(value):
        return True
    return is_mingled(value) and (len(value) >= 12 or has_all_kinds(value))


def _is_told(value: str, *, quoted: bool) -> bool:
    if _ADJECTIVE.fullmatch(value):
        return False  # `base64-encoded`
    if is_joined_words(value):
        return quoted or _JOINED.search(value) is not None
    return is_password(value) and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _is_commanded(value: str) -> bool:
    return is_short_phrase(value) or (_has_digit_beside(value) and (_is_said(value) or is_mingled(value)))


def _has_digit_beside(value: str) -> bool:
    return _DIGIT_BESIDE.search(value) is not None


_SET = build_rule_pattern(
    r"(?:[ \t]{0,3}:?(?:\s{0,3}</?\w{1,10}(?: [^<>\n]{0,60})?>){1,4}\s{0,3}|[ \t]{0,3}[:=]?[ \t]{0,3}&[ \t]{0,3})|"
    r"[\w-]{0,24}\\*[\"'`\])]{0,2}(?:[^\n:=]{0,32}(?:[ \t]{0,4}(?:[:=\uff1a\u2014\u2013]|->|=>|\u2192)|[ \t](?:is|was|ist|lautet|est|es|er|on|to|este|e|\xe4r|jest|je|\xe9|\xe8))"
    r"[ \t]{0,4}|[ \t]{1,4}(?=\\*[\"'`]))\\*[\"'`(*]{0,3}"
)


_MEMBER = build_rule_pattern(r"[a-z_]+\.[A-Z]\w+")  # of a module
_JOINT = build_rule_pattern(r"[A-Z]\w*[-._+=&~/]|[-._+=&~/][A-Z]")


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start, start + 2 * _REACH_BEHIND)
    return end if end >= 0 else start + 2 * _REACH_BEHIND


def _value_behind(text: str, start: int, is_value: Callable[[str], bool]) -> Span | None:
    end = min(len(text), start + _REACH_BEHIND)
    if line := _LINE_END.search(text, start, end):
        end = line.start()
    for token in _TOKEN.finditer(text, start, min(len(text), end + 48)):
        if token.start() >= end:
            return None
        value = token[0].rstrip(".,!?")
        set_here = is_value is _is_said and (
            is_mingled(value)
            or is_token(value)
            or is_short_phrase(value)
            or is_word_chain(value)
            or (
                _JOINT.search(value) is not None
                and not _MEMBER.fullmatch(value)
                and text[token.end() : token.end() + 1] not in ("(", "`")
                and is_joined_words(value)
            )
        )
        if is_value(value) or (set_here and _is_set(text, start, token.start(), value)):
            return Span(token.start(), token.start() + len(value), "PASSWORD")
    return None


# The rest of a declined word in another script, and blanks.
_STEM_END = LazyPattern(r"[^\W\da-zA-Z_]{0,4}\s+")


def _is_set(text: str, start: int, at: int, value: str) -> bool:
    """Tell whether only a sign or a verb stands between a label and a value, or a blank before one with marks."""
    if _SET.fullmatch(text, start, at):
        return True
    if not _STEM_END.fullmatch(text, start, at):
        return False
    if any(each in "!#$%&*+@?~^" for each in value) or (len(value) >= 10 and has_all_kinds(value)):
        return True
    return len(value) >= 8 and is_mingled(value) and any(map(str.isdigit, value))


_WORDS_SAID = build_rule_pattern(
    r"[\w-]{0,12}\\*[\"'`\])]{0,2}(?:[ \t][^\s:=\"'`]{1,16}){0,4}?(?:[ \t]{0,2}[:=]|[ \t](?:is|was|ist|lautet|est|es|er))[ \t]{1,3}\\*[\"'`]?"
    r"(?P<v>[a-z]{3,12}(?:[ ][a-z]{3,12}){3,7})(?=\\*[\"'`.]?[ \t]*(?:\r?\n|\\[nr]|$|\\*[\"'`]))"
)


def _phrase_behind(text: str, start: int) -> Span | None:
    """Return a phrase of four words or more that is all that a label is followed by."""
    found = _WORDS_SAID.match(text, start)
    return Span(*found.span("v"), "PASSWORD") if found and is_chosen_password(found["v"]) else None


_LETTERS_SAID = build_rule_pattern(
    r"(?:[\w-]|[^\x00-\x7f]){0,12}(?:[ \t][^\s:=]{1,16})?\\*[\"'`*\])]{0,3}[ \t]{0,2}[:=\uff1a][ \t]{0,3}\\*[\"'`]?(?P<v>[a-z]{8,64})\\*[\"'`]?[ \t]*(?=\r?\n|\\[nr]|$)"
)


def _letters_behind(text: str, start: int) -> Span | None:
    """Return random small letters that take the rest of the line behind a label."""
    found = _LETTERS_SAID.match(text, start)
    return Span(*found.span("v"), "PASSWORD") if found and is_drawn_letters(found["v"]) else None


_FOLDED = build_rule_pattern(
    r"\\*[\"']?:[ \t]{0,3}[|>][+-]?[ \t]*(?P<lines>(?:\n[ \t]{1,16}[a-z]{3,12}(?: [a-z]{3,12}){2,7}[ \t\r]*(?=\n|$)){1,6})"
)


def _phrase_folded(text: str, start: int) -> Span | None:
    """Return the lines of a phrase that YAML folds below a label."""
    found = _FOLDED.match(text, start)
    if found is None or not is_chosen_password(" ".join(found["lines"].split())[:60].rpartition(" ")[0]):
        return None
    low = found.start("lines") + len(found["lines"]) - len(found["lines"].lstrip())
    return Span(low, found.start("lines") + len(found["lines"].rstrip()), "PASSWORD")


_BELOW = build_rule_pattern(
    r"(?![\w-])[^\n]{0,48}\n(?:[ \t>]{0,16}\r?\n)?(?P<line>[ \t>#]{0,16}[^\n]{6,96})(?:\n(?P<second>[ \t>#]{0,16}[^\n]{6,96}))?"
)
_ALONE = build_rule_pattern(
    r"[ \t>#]{0,16}(?:[\w.-]{1,24}:[ ]|<\w{1,20}>)?(?P<v>[^\s\"'`<>(){}\[\]|\\;,=]{6,64})(?:</\w{1,20}>)?[ \t\r]*"
)


def _value_below(text: str, start: int) -> Span | None:
    """Return a value that has a line below a label for itself: an answer, a form field, a file of two lines."""
    below = _BELOW.match(text, start)
    if below is None:
        return None
    for name in ("line", "second"):
        low, high = below.span(name)
        found = _ALONE.fullmatch(text, low, high) if low >= 0 else None
        if found is None:
            return None
        value = found["v"].rstrip(".,!?")
        is_value = _is_said(value) or (is_mingled(value) and is_password(value))
        if is_value and _has_digit_beside(value):
            return Span(found.start("v"), found.start("v") + len(value), "PASSWORD")
    return None


def _is_said(value: str) -> bool:
    """Tell whether a value after a word for a password is chosen words, or letters, digits and marks at random."""
    return is_chosen_password(value) or is_odd_password(value)


def is_login_value(value: str) -> bool:
    """Tell whether a value after a word about logins is words with a number, or a long random token."""
    if is_chosen_password(value):
        return is_numbered_words(value)
    return is_odd_password(value) or (len(value) >= 16 and has_all_kinds(value) and is_token(value))


DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(
        find_spoken_passwords,
        *(rf"(?i:{_PASSWORDS_RAW})[^\n]*{_cased(flag, shape)}" for flag, shape in _PASSWORD_SHAPES),
        *(rf"{flag}(?:{_LOGINS_RAW})[^\n]*{shape}" for flag, shape in _LOGIN_SHAPES),
        rf"(?i)(?:{_PASSWORDS_RAW})[^\n]*[a-z]{{3,}} [a-z]{{3,}} [a-z]{{3,}} [a-z]{{3}}",
        rf"(?:{_PASSWORDS_RAW})[\w?\"'`*\])-]*(?:[ \t][^\s:=]{{1,16}})?[ \t]*[:=?][ \t]*\\*[\"'`]?[a-z]{{8,64}}\\*[\"'`]?[ \t]*(?:\r?\n|\\[nr]|$)",
        rf"(?i)(?:{_PASSWORDS_RAW})[^\n]*[|>][+-]?\s*\n[ \t]+[a-z]{{3,}} [a-z]{{3,}} [a-z]{{3}}",
        *(
            rf"{flag}(?:{_PASSWORDS_RAW})[^\n]*\n(?:[^\n]*\n){{0,2}}[^\n]*{shape}"
            for flag, shape in _DIGIT_SHAPES
        ),
        located=True,
    ),
    make_probed_detector(
        find_told_passwords,
        rf"(?i:(?:{_PASSWORDS_RAW})[^\n:=.;\"'`<>(){{}}]*(?: (?:is|was|ist|war|lautet|est|es|jest|[\xe9\xe8]) |'est ))[^\n]*(?:[a-zA-Z0-9?][-_.&=/~+][a-zA-Z0-9?]|[a-z][A-Z0-9]|[0-9][a-zA-Z]| [a-z]+ [a-zA-Z]|[a-z]{{8}})",
        located=True,
    ),
    make_probed_detector(
        find_told_keys,
        rf"(?i)(?:{_KEYS_RAW})[^\n.;\"'`<>(){{}}]{{0,120}}?(?: (?:is|was|ist|war|lautet|est|es|jest|[\xe9\xe8]) | ?[:=?] ?|'est | )[\"'`]?[A-Za-z]*(?:[0-9][\w+/.!-]{{6}}|[a-z]+-[a-z]+-[a-z0-9]|(?-i:[A-Z]{{2}}[a-z]))",
        located=True,
    ),
    make_probed_detector(
        find_commanded_passwords,
        *(rf"{flag}(?:{_COMMANDS_RAW})[^\n]*{shape}" for flag, shape in _DIGIT_SHAPES),
        rf"(?i)(?:{_COMMANDS_RAW})[^\n]*(?:[a-z]{{3,}}-){{2}}[a-z]{{3}}",
        located=True,
    ),
)
