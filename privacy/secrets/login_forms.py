# ruff: noqa: E501 (patterns)
"""Detect secrets in forms that a login takes: options of programs, pairs on a line, headers, codes, licence keys."""

import re

from tracemill.privacy.core.chosen_passwords import (
    is_capital_word,
    is_chosen_password,
    is_joined_words,
    is_mingled,
    is_scrambled_letters,
)
from tracemill.privacy.core.entropy import is_given, is_mixed_case, is_password, is_random, shape_wordiness
from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.core.rule import Detector, make_anywhere_detector
from tracemill.privacy.core.set_passwords import is_odd_password
from tracemill.privacy.core.word_lists import COMMON_WORDS, LABELS, SETTING_WORDS
from tracemill.privacy.secrets.spoken_passwords import is_login_value

# Words for a code that is typed once or opens something.
_CODE_WORDS = (
    r"\botp\b|\bpin\b (?:de|del|der|des|du|do|da|of|for|f\xfcr|z|do)\b|one[- ]time|einmal(?:code|passwort|pin)|code (?:de v|unique|sms)|c[o\xf3]digo|codice|(?:2fa|mfa|sms|tan|login|security|verification|door|gate|alarm"
    r"|safe|garage|access|entry|lock|building|voicemail)[ -]?(?:code|combination|pin)\b|combination is|passcode|\bpin[ -]?(?:code)?\b"
)


_OTHER_CODE_WORDS = (
    r"\u043f\u0438\u043d-?\u043a\u043e\u0434\w{0,3}|\u6697\u8a3c\u756a\u53f7|\u9a8c\u8bc1\u7801"
)


def _is_in_fours(value: str) -> bool:
    """Tell whether groups of four are an application password of WordPress, which mixes capitals and small letters."""
    cases = sum(map(str.isupper, value)), sum(map(str.islower, value)), sum(map(str.isdigit, value))
    return cases[0] >= 3 and cases[1] >= 3 and cases[2] >= 1 and shape_wordiness(value) < 0.4


_USER = r"(?:-[uUl]|--?user(?:name)?)"
_LOGIN_OPTIONS = (
    r"(?<![\w.-])(?:lftp|ncftp)[^\n|;&]{0,40}?\s-u[ ]?[\w.@-]{1,40},(?P<w>[^\s\"'\\|;&<>]{6,64})|"
    rf"(?<!\S){_USER}[ =]?\\*[\"']?[\w.@+-]{{2,40}}(?:\\+[\w.@+-]{{1,40}})?\\*[\"']?\s(?:[^\n|;&]{{0,60}}\s)?"
    r"(?:-pw?|-P|-w|--?pass(?:word|wd)?)[ =]?\\*[\"']?(?P<v>(?![-/.~$<{])[^\s\"'\\|;&<>]{6,64})"
)


def _is_option_value(value: str) -> bool:
    """Tell whether the value of `-p` is a password, and no port, path, package or file."""
    return (
        is_password(value)
        and (any(map(str.isdigit, value)) or is_scrambled_letters(value))
        and not re.search(r"^[\d.:/,-]+$|/|:\d|^\d+:|=|\.[a-z]{1,4}$|@[\d^~]|[*?]{2}", value)
    )


def _is_of_pair(value: str) -> bool:
    """Tell whether what follows a user's name on a line of its own is a password."""
    return is_odd_password(value) or is_login_value(value) or (is_mingled(value) and is_mixed_case(value))


def _is_written(value: str) -> bool:
    """Tell whether what is written to a file named after a secret can be one."""
    return is_given(value) and (is_password(value) or is_chosen_password(value) or is_mingled(value))


def _is_credential(value: str) -> bool:
    return is_random(value) or is_mixed_case(value)


_ANNOUNCING = (
    r"(?:karten|sim|bank|handy|ger\xe4te|telefon|girocard|card|debit|sim card )[- ]?pin|(?:t\xfcr|tor|haus|safe|alarm|schlie\xdffach|gate|door|entry|garage|locker|building|keypad|lockbox|entrance|vault)[- ]?(?:code|kombination|combination|pin)"
    r"|\btan\b|(?:best\xe4tigungs|verifizierungs|sicherheits|freischalt|einmal|aktivierungs|zugangs|abhol)code|code de (?:v\xe9rification|s\xe9curit\xe9|confirmation|validation)|c\xf3digo de (?:verificaci\xf3n|seguridad|confirmaci\xf3n|verifica\xe7\xe3o|acceso)|codice di (?:verifica|sicurezza|conferma)"
    r"|verificatiecode|engangskode|verifieringskod|kod (?:weryfikacyjny|dost\u0119pu)|ov\u011b\u0159ovac\xed k\xf3d|do\u011frulama kodu|\u043a\u043e\u0434 (?:\u043f\u043e\u0434\u0442\u0432\u0435\u0440\u0436\u0434\u0435\u043d\u0438\u044f|\u043f\u0456\u0434\u0442\u0432\u0435\u0440\u0434\u0436\u0435\u043d\u043d\u044f|\u0434\u043e\u0441\u0442\u0443\u043f\u0430)|\u9a8c\u8bc1\u7801|\u8a8d\u8a3c\u30b3\u30fc\u30c9|\uc778\uc99d\ubc88\ud638"
    r"|(?:gift ?card|voucher|gutschein|redemption|redeem|prepaid)(?:[- ]?(?:code|number|nummer|pin))?|gutscheincode|code cadeau|c\xf3digo de regalo"
)
_ANNOUNCING_RAW = (
    r"[- ]?pin|[- ]?(?:code|kombination|combination)|tan|code de (?:v\xe9rification|s\xe9curit\xe9|confirmation|validation)|c\xf3digo de|codice di|engangskode|verifieringskod|kod (?:wery|dost)|\?\?ovac|rulama kodu|\?\?\? \?{5}|\?\?"
    r"|gift ?card|voucher|gutschein|redemption|redeem|prepaid"
)
_LABELLED_CODE = LazyPattern(
    rf"(?i:(?<![^\W_])(?:{_ANNOUNCING}))[\"'`*_]{{0,3}}(?:[ \t]{{0,3}}[:=\uff1a][ \t]{{0,3}}|[ \t](?:is|ist|lautet|est|es|\xe8|\xe9|jest|er|\xe4r)[ \t]:?)[\"'`*_]{{0,3}}"
    r"(?P<v>(?=[A-Z0-9-]*\d)(?:\d{4,8}|\d\d(?:[- ]\d\d){2}|[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){2,5}))(?![\w-]|\.\d)"
    r"|(?<![\w-])(?:G-)?(?P<w>\d{4,8})(?= is your (?:[\w-]{1,20} ){0,3}(?i:code|otp|pin|password)\b)"
)
_LOGIN_WORDS = r"creds?|credentials?|log[ -]?in|logon|sign[ -]?in|zugang(?:sdaten)?|anmeldedaten|identifiants?|credencial(?:es)?|credenziali|credenciais|acceso|accesso|acesso|acc\xe8s|inloggegevens|inloggning"


_KNOWN = COMMON_WORDS | SETTING_WORDS | LABELS


def _is_no_word(value: str) -> bool:
    """Tell whether what stands behind a user's name and a slash is no word of a sentence or of a path."""
    return is_given(value) and not value.isdigit() and value.lower() not in _KNOWN


_USER_FIELDS = r"(?:user(?:[ _-]?name)?|usr|uid|login|account|e-?mail|benutzer(?:name)?|usuario|utilisateur|utente|gebruiker|uzytkownik)"
_PASSWORD_FIELDS = r"(?:pass(?:w(?:or)?[dt])?|pw|pwd|kennwort|contrase[n\xf1]a|senha|mdp|haslo|wachtwoord)"
_FIELD_SIGN = r"\\*[\"']?[ ]?(?:=>|[:=])[ ]?\\*[\"']?"
_RECORD = (
    rf"(?<![\w.])(?i:{_USER_FIELDS}){_FIELD_SIGN}[\w.@+-]{{1,40}}\\*[\"']?(?:,|;|&|\s)[ ]?(?:[^\n(){{}};]{{1,60}}?[,;&\s])?\\*[\"']?(?<![\w.])(?i:{_PASSWORD_FIELDS}){_FIELD_SIGN}"
    r"(?P<v>[^\s\"'`,;&()<>\[\]{}\\|]{6,64})(?=[\"'`,;&)\]}\\\s]|$)"
)
_MEMBER = re.compile(
    r"[a-z_]\w*(?:\.\w+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[a-z]+(?:[A-Z][a-z]+)+|[A-Z][a-z]+(?:[A-Z][a-z]+)+|[\W_]\w*|\w+=\w+"
)


def _is_of_record(value: str) -> bool:
    """Tell whether the password beside a user's name in a record is a value, and no type or variable."""
    value = value.rstrip(".")
    if _MEMBER.fullmatch(value) or not is_given(value):
        return False
    return (
        is_password(value)
        or is_chosen_password(value)
        or is_capital_word(value)
        or is_joined_words(value)
        or (
            len(value) >= 8
            and value.isalpha()
            and sum(map(str.isupper, value)) >= 3
            and shape_wordiness(value) < 0.6
        )
    )


_ACCOUNTS = r"admin|administrator|root|pi|ubuntu|debian|centos|ec2-user|postgres|oracle|sysdba|sa|user|guest|operator|viewer|editor|support|deploy|service|manager|test|tester|demo|kiosk|backup"


_NAME_IN_CODE = re.compile(r"[A-Z]+|[A-Za-z]+(?:_[A-Za-z]+)+")
_ACCOUNT_OR_RIGHT = re.compile(
    rf"(?i)(?:{_ACCOUNTS}|owner|member|reader|writer|author|anonym\w*|public|private|moderator|developer|maintainer|contributor|superuser|staff)s?"
)


def _is_no_account(value: str) -> bool:
    """Tell whether what stands behind the name of an account is neither another one nor a word for a right."""
    if _NAME_IN_CODE.fullmatch(value) or _ACCOUNT_OR_RIGHT.fullmatch(value):
        return False
    return _is_no_word(value)


DETECTORS: tuple[Detector, ...] = (
    make_anywhere_detector(  # fields of a record: `{Addr:10.0.0.3 User:mq Pass:...}`, `[Username: kim, Password: ...]`
        "PASSWORD",
        _RECORD,
        rf"(?i){_USER_FIELDS}{_FIELD_SIGN}[\w.@+-]+[^\n]{{1,64}}{_PASSWORD_FIELDS}{_FIELD_SIGN}[^\s\"'`,;&()<>\[\]{{}}\\|]{{6}}",
        _is_of_record,
    ),
    make_anywhere_detector(  # an account that every system has, and its password: `ubuntu / Nachtigall`
        "PASSWORD",
        rf"(?<![\w./-])[\"'`]?(?i:{_ACCOUNTS})[\"'`]? / [\"'`]?(?P<v>[^\s\"'`,;:<>(){{}}\[\]|\\/=]{{6,48}}?)(?=[.!?]?(?:[\s,;\"'`)]|$))(?! /)",
        rf"(?i)(?:{_ACCOUNTS})[\"'`]? / [\"'`]?[^\s/]{{6}}",
        _is_no_account,
    ),
    make_anywhere_detector(  # a header that a server adds, an address of a private calendar
        "SECRET",
        r"(?i:authorization) [\"']?Basic (?P<v>[A-Za-z0-9+/]{16,512}={0,2})(?=[\"';\s]|$)|/private-(?P<w>[0-9a-f]{32})(?=/|$)",
        (r"(?i)authorization [\"']?Basic [A-Za-z0-9+/]{16}", r"/private-[0-9a-f]{32}"),
        is_given,
    ),
    make_anywhere_detector(  # keys that open an encrypted disk again
        "SECRET",
        r"(?i:recovery|wiederherstellungs|r\xe9cup\xe9ration|recuperaci\xf3n|recupero)[^\n\d]{0,40}(?P<v>\d{6}(?:-\d{6}){3,7})(?![\d-])",
        r"(?i)(?:recovery|wiederherstellungs|r\xe9cup\xe9ration|recuperaci\xf3n|recupero)[^\n]*\d{6}-\d{6}-\d{6}-\d{6}",
    ),
    make_anywhere_detector(  # an answer to a prompt
        "PASSWORD",
        r"(?<![^\n])[ \t>]{0,8}(?i:enter|repeat|retype|re-enter|confirm|verify|new|old|current|choose)\b[^\n:]{0,40}(?i:password|passphrase)[^\n:]{0,20}: {1,3}(?P<v>[^\s\"'<>(){}\[\]]{6,64})[ \t]*(?=\r?\n|$)",
        r"(?i)(?:enter|repeat|retype|re-enter|confirm|verify|new|old|current|choose)[^\n:]*(?:password|passphrase)[^\n:]*: +[^\s]{6}",
        _is_no_word,
    ),
    make_anywhere_detector(  # `creds for the box: pi / raspberry-tart`
        "PASSWORD",
        rf"(?i:(?<![^\W_])(?:{_LOGIN_WORDS})(?![^\W_]))[^\n:/=]{{0,40}}(?::|=| is| sind| son| sono)[ \t]{{1,3}}[\"'`]?[\w.@+-]{{2,40}}[\"'`]? / [\"'`]?(?P<v>[^\s\"'`,;:<>(){{}}\[\]|\\/=]{{6,48}}?)(?=[.!?]?(?:[\s,;\"'`)]|$))",
        rf"(?i)(?:{_LOGIN_WORDS})[^\n/]*[\w\"'`] / [\"'`]?[^\s/]{{6}}",
        _is_no_word,
    ),
    make_anywhere_detector(  # the log of a new MySQL server
        "PASSWORD",
        r"temporary password is generated for [^\s:]{1,80}: (?P<v>\S{6,64})(?=\s|$)",
        r"temporary password is generated for [^\s:]+: ",
    ),
    make_anywhere_detector(  # the product key of Windows or Office
        "LICENSE_KEY",
        r"(?<![\w-])(?P<v>(?=(?:[A-Z-]*\d){3})(?=(?:[\d-]*[A-Z]){5})[A-Z0-9]{5}(?:-[A-Z0-9]{5}){4})(?![\w-])",
        r"[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}",
    ),
    make_anywhere_detector(  # seeds of one-time codes
        "SECRET",
        r"(?i:(?<![a-z])(?:totp|otp|mfa|2fa)(?:[_ -]?(?:seed|secret|key))?)\\*[\"']?\s{0,2}(?:[:=,(]|=>)\s{0,2}\\*[\"'](?P<v>[A-Z2-7]{16,64})={0,6}\\*[\"']",
        r"(?i)(?:totp|otp|mfa|2fa)(?:[_ -]?(?:seed|secret|key))?\\*[\"']?\s*(?:[:=,(]|=>)\s*\\*[\"'][A-Z2-7]{16}",
    ),
    make_anywhere_detector(
        "PIN",
        rf"(?i:{_CODE_WORDS}|{_OTHER_CODE_WORDS})[^\n\d]{{0,32}}?[\s:\"'`=\uff1a\u306f\u662f](?P<v>\d{{4,8}})(?![A-Za-z0-9_.:/-]?\d|[A-Za-z0-9_])",
        (rf"(?i)(?:{_CODE_WORDS})[^\n]*[0-9]{{4}}", r"\?{3,4}-?\?{0,4}[^\n]{0,32}[0-9]{4}"),
        behind=24,
    ),
    make_anywhere_detector(
        "SECRET",
        r"(?i:authorization)\\*[\"']?\s{0,2}[:=,]\s{0,2}\\*[\"']?(?:Negotiate|NTLM|SharedKey(?:Lite)?|Hawk|Digest|HMAC[\w-]*|[A-Z][\w-]{2,20})[ ]{1,2}(?:[\w.-]{1,64}:)?(?P<v>[A-Za-z0-9+/]{16,8192}={0,2})(?=[\s\"'\\,]|$)"
        r"|\b(?i:signature|response|mac)=\\*[\"']?(?P<w>[0-9a-f]{32,128})(?=[\s\"'\\,]|$)(?<=[0-9a-f]{32})",
        (
            r"(?i)authorization\\*[\"']?\s*[:=,]\s*\\*[\"']?[a-z][\w-]+ +[^\s]{16}",
            r"(?i)authorization[^\n]*(?:signature|response|mac)=\\*[\"']?[0-9a-f]{32}",
        ),
        _is_credential,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?<![^\n])[ \t>]{0,12}(?:[-*\u2022][ \t])?[A-Za-z][\w.@+-]{1,40}(?:[ ]/[ ]|:)(?P<v>[^\s\"'`<>(){}\[\]|\\;,/:]{7,48})(?=[ \t]*(?:\([\w ]{1,20}\)[ \t]*)?(?:\r?\n|$))",
        (
            r"[\w] / [^\s]*[0-9]",
            r"(?i)(?:admin|root|user|guest|operator|support|postgres|oracle|pi|kim|ops):[^\s]*[0-9]",
        ),
        _is_of_pair,
    ),
    make_anywhere_detector(
        "SECRET",
        r"(?i:(?:secret|access|api|account)[^\n:]{0,24}key|token|password|passphrase|secret) \[[^\[\]\n]{0,40}\]:[ \t]{1,3}(?P<v>[^\s\"'*]{6,512})",
        r"(?i)(?:key|token|password|passphrase|secret) \[[^\[\]\n]*\]:[ \t]",
        is_given,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"\"(?:u|usr|user(?:name)?|login|email)\\*\"\s{0,2}:\s{0,2}\\*\"[^\"\n]{1,64}\"\s{0,2},\s{0,4}\\*\"(?:p|pw|pwd|pass)\\*\"\s{0,2}:\s{0,2}\\*\"(?P<v>[^\"\s\\]{6,128})",
        r"\"(?:p|pw|pwd|pass)\\*\"\s*:\s*\\*\"[^\"]{6}",
        is_given,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?<![\w.-])(?:echo|printf)\s{1,3}(?:-[en]+\s{1,3})?[\"']?(?P<v>[^\s\"'$`|;&<>\\]{6,128})(?:\\n)?[\"']?\s{0,3}>{1,2}\s{0,3}[\w./~$-]{0,120}(?i:pass|secret|token|cred|_key\b|\.key\b)",
        r"(?i)(?:echo|printf)\s[^\n>]*>[^\n]*(?:pass|secret|token|cred|key)",
        _is_written,
    ),
    make_anywhere_detector(
        "LICENSE_KEY",
        r"(?i:serien-?nummer|seriennr\.?|lizenz\w{0,12}|serial(?:[ _-]?(?:no\.?|number|key))?|licen[cs]e(?:[ _-]?(?:key|no\.?))?|activation(?:[ _-]?(?:code|key))?|product[ _-]?key|n[u\xfa]mero de serie)\W{1,4}(?P<v>(?=[A-Z-]*\d)[A-Z0-9]{4,8}(?:-[A-Z0-9]{4,8}){2,7})(?![\w-])",
        r"(?i)(?:serien|lizenz|serial|licen[cs]e|activation|product[ _-]?key|de serie)[^\n]*[A-Z0-9]{4}-[A-Z0-9]{4,8}-[A-Z0-9]{4}",
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?<![\w])(?P<v>(?:[A-Za-z0-9]{4} ){5}[A-Za-z0-9]{4})(?![\w])",
        r"(?:[A-Za-z0-9]{4} ){5}[A-Za-z0-9]{4}",
        _is_in_fours,
    ),
    make_anywhere_detector(
        "SECRET",
        r"(?<![^\n])(?P<in>[ \t]*)[\w.-]{0,40}(?i:key|keytab|keystore|secret|token|p12|pfx|jks|credentials?)[\w.-]{0,20}:[ \t]{1,3}[|>][+-]?[ \t]*\r?\n(?P<v>(?:(?P=in)[ \t]{1,8}[A-Za-z0-9+/]{40,128}={0,2}[ \t]*(?:\r?\n|$)){1,400})",
        r"(?i)(?:key|keytab|keystore|secret|token|p12|pfx|jks|credential)[\w.-]*:[ \t]+[|>][+-]?[ \t]*\r?\n[ \t]+[A-Za-z0-9+/]{40}",
        is_mixed_case,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"AUTH\r?\n[^\n]{0,12}\$\d{1,3}\r?\n[^\n]{0,12}?(?P<v>[^\s\"']{4,128})(?=\r?\n|$)|WIFI:[^\n]{0,80}?P:(?P<w>[^\s;]{6,64});",
        (r"AUTH\r?\n[^\n]*\$\d", r"WIFI:[^\n]*P:"),
    ),
    make_anywhere_detector(
        "PASSWORD",
        _LOGIN_OPTIONS,
        rf"ftp[^\n|;&]*\s-u[ ]?[^\s]*,[^\s]{{6}}|\s{_USER}[ =]?[^\s]+\s[^\n|;&]*-(?:pw?|P|w|-?pass\w*)[ =]?[^\s]*[0-9]",
        _is_option_value,
    ),
    make_anywhere_detector(  # a field of a page that a test fills in: `getByLabel('Password').fill('...')`
        "PASSWORD",
        r"(?i:pass(?:word|wd|code|phrase)|pwd)[\w \]\"'=-]{0,24}\\*[\"'`]\s{0,2}(?:,\s{0,2}\{[^{}\n]{0,60}\}\s{0,2})?\)(?:\.\w{1,20}\(\)){0,2}\.(?:fill|type|send_keys|sendKeys|set_?[vV]alue|pressSequentially|press_sequentially|enterText|typeText|clearAndType|input)\(\s{0,2}\\*[\"'`](?P<v>[^\"'`\n\\]{6,128})",
        r"(?i)(?:pass(?:word|wd|code|phrase)|pwd)[^\n]*\)\.[a-z_]+\(\s*\\*[\"'`][^\"'`\n\\]{6}",
        is_given,
    ),
    make_anywhere_detector(  # a field of a form that is sent, a value in a plan of Terraform
        "PASSWORD",
        r"(?<![\w-])(?:client_secret|password|passwd|pwd|client_assertion|refresh_token|code_verifier)=(?P<v>[^&\s\"'<>${}]{6,512})(?=&[a-z])"
        r"|(?i:password|passwd|secret|token)\"?[ \t]{1,24}= \"[^\"\n]{0,256}\" -> \"(?P<w>[^\"\n]{4,256})\"",
        (
            r"(?:client_secret|password|passwd|pwd|client_assertion|refresh_token|code_verifier)=[^&\s\"'<>${}]{6}[^&\s\"'<>${}]*&[a-z]",
            r"(?i:password|passwd|secret|token)\"?[ \t]+= \"[^\"\n]*\" -> \"",
        ),
        is_given,
    ),
    make_anywhere_detector(  # a value with its type: DynamoDB, Firestore; SecureString; Kickstart
        "PASSWORD",
        r"\"[\w-]{0,40}(?i:secret|password|passphrase|api_?key)\"\s{0,4}:\s{0,4}\{\s{0,8}\"(?:S|B|stringValue)\"\s{0,4}:\s{0,4}\"(?P<v>[^\"\n]{6,512})\""
        r"|ConvertTo-SecureString\s{1,4}(?:-String\s{1,4})?\\*[\"'](?P<w>[^\"'\n$]{6,128})\\*[\"']",
        (
            r"(?i:secret|password|passphrase|api_?key)\"\s*:\s*\{\s*\"(?:S|B|stringValue)\"",
            r"ConvertTo-SecureString\s+(?:-String\s+)?\\*[\"'][^\"'\n]{6}",
        ),
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?<![^\n])[ \t]*rootpw(?:[ \t]+--\w{1,16}){0,2}[ \t]+(?P<v>[^\s-]\S{5,127})",
        r"rootpw(?:[ \t]+--\w+)*[ \t]+[^\s-][^\s]{5}",
        is_given,
    ),
    make_anywhere_detector(  # pairs that redis-cli prints, attributes of SAML
        "PASSWORD",
        r"\d{1,3}\) \"(?:requirepass|masterauth|[\w.:-]{0,40}(?:password|secret|token))\"\n[ \t]*\d{1,3}\) \"(?P<v>[^\"\n]{4,256})\""
        r"|(?i:name)=\"[\w.:/-]{0,80}(?i:password|secret|token)\"[^<>\n]{0,120}>\s{0,16}<(?:\w{1,20}:)?(?:Attribute)?Value[^<>\n]{0,80}>(?P<w>[^<>\s]{6,512})",
        (
            r"(?:requirepass|masterauth|password|secret|token)\"\n[ \t]*\d+\) \"[^\"\n]{4}",
            r"(?i:password|secret|token)\"[^<>\n]*>\s*<[\w:]*Value[^<>\n]*>",
        ),
        is_given,
    ),
    make_anywhere_detector(  # entries of Subversion's stored logins, cookies of Erlang
        "PASSWORD",
        r"(?<![^\n])pass(?:word|phrase)\r?\nV \d{1,3}\r?\n(?P<v>[^\n]{4,128})(?=\r?\n)|(?<!\S)--?(?:set)?cookie[ \t]{1,4}[\"']?(?P<w>[A-Za-z0-9_-]{8,64})(?=[\s\"']|$)",
        (r"pass(?:word|phrase)\r?\nV \d", r"-(?:set)?cookie[ \t]+[\"']?[A-Za-z0-9_-]{8}"),
        is_password,
    ),
    make_anywhere_detector(  # variables of Robot Framework, logins of IMAP
        "PASSWORD",
        r"(?<![^\n])\$\{[\w ]{0,24}(?i:password|passwd|secret)\}[ \t]{2,}(?P<v>[^\s$]{6,128})"
        r"|(?<![^\n])[\w.]{1,12} LOGIN \"?[^\s\"]{1,80}\"? \"?(?P<w>[^\s\"]{4,64})",
        (r"\$\{[\w ]*(?i:password|passwd|secret)\}[ \t]{2,}[^\s$]{6}", r"[\w.] LOGIN [^\s]+ [^\s]{4}"),
        is_given,
    ),
    make_anywhere_detector(
        "PIN",
        r"(?i:(?:name|key)=\"(?:[\w.-]{0,24}[._-])?(?:pin|puk|otp)(?:[_-]?(?:code|number))?\"[^<>\n]{0,40}>|<(?:\w{1,20}:)?(?:pin|puk|otp)(?:[_-]?(?:code|number))?>)(?P<v>\d{4,8})<",
        r"(?i)(?:pin|puk|otp)(?:[_-]?(?:code|number))?\"?[^<>\n]*>\d{4,8}<",
    ),
    make_anywhere_detector(
        "WALLET_SEED",
        r"(?i:seed|secret)\W{1,6}(?P<v>s[1-9A-HJ-NP-Za-km-z]{28})(?![A-Za-z0-9])",
        r"(?i:seed|secret)[^A-Za-z0-9\n]{1,6}s[1-9A-HJ-NP-Za-km-z]{28}",
        is_mixed_case,
    ),
    make_anywhere_detector(
        "SECRET",
        r"(?i:sumo\w{0,12}id)\W{1,6}(?P<v>su[A-Za-z0-9]{12})(?![A-Za-z0-9])",
        r"(?i)sumo[a-z_]*id[^A-Za-z0-9\n]{1,6}su",
        is_password,
    ),
    make_anywhere_detector(
        "PIN",
        _LABELLED_CODE,
        (
            rf"(?i)(?:{_ANNOUNCING_RAW})[\"'`*_]*(?:[ \t]*[:?][ \t]*|[ \t](?:is|ist|lautet|est|es|.|jest|er|.r)[ \t]:?)[\"'`*_]*[0-9A-Z]{{2}}",
            r"[0-9]{4} is your ",
        ),
        behind=48,
    ),
)
