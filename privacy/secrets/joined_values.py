# ruff: noqa: E501 (patterns)
"""Detect values joined to a secret's name in other ways than by an assignment.

Those are coloured output, defaults, typed constants, cells of a table and sentences. Secrets of protocols,
clients and manifests are found here too.
"""

import re
from collections.abc import Iterator

from tracemill.privacy.core.chosen_passwords import is_joined_words
from tracemill.privacy.core.entropy import is_base64_login, is_given, is_mixed_case, is_password, is_token
from tracemill.privacy.core.rule import (
    Detector,
    Span,
    TextView,
    build_rule_pattern,
    make_anywhere_detector,
    make_probed_detector,
)
from tracemill.privacy.core.secret_names import secret_name_kind
from tracemill.privacy.core.word_lists import COMMON_WORDS, SPEECH
from tracemill.privacy.secrets.assignments import (
    find_assignment_starts,
    find_continued,
    is_digest_in_table,
    name_around,
)

_COLOUR = r"(?:\x1b\[[\d;]{0,12}m)"
_SOME = r"[^\s\"'`\x1b,;<>(){}]"
_WRAPPERS = (
    r"Some|Just|Optional\.of|(?:pydantic\.)?Secret(?:Str|String|Text|Value|Key|Bytes)?|"
    r"String::from|\[\]byte|Encoding\.\w{2,8}\.GetBytes|Buffer\.from|(?:base64\.)?b64decode|new \w{2,40}"
)
_JOINED = build_rule_pattern(
    r"(?P<tail>[\w\-]{0,40})(?:"
    rf"[\"'`]?(?:{_COLOUR}{{1,4}}[\"'`]?\s{{0,3}}[=:]\s{{0,3}}{_COLOUR}{{0,4}}|\s{{0,3}}[=:]\s{{0,3}}{_COLOUR}{{1,4}})"
    rf"[\"'`]?(?P<coloured>{_SOME}{{6,1024}})(?=\x1b|[\"'`\s]|$)"
    r"|[\"'`]?\)?\]?\s{0,2}(?:\|\||\?\?|\?)=\s{0,2}[\"'`](?P<default>[^\"'`\n\\]{6,1024})[\"'`]"
    r"|\s?:\s?&(?:'\w{1,20}\s)?(?:mut\s)?str\s?=\s?b?\"(?P<typed>[^\"\n\\]{6,1024})\""
    r"|\s(?:lautet|ist|est|es|equals|becomes|auf)\s[\"'`\u201e\u00ab]?(?P<said>[^\s\"'`\u201c\u00bb,;<>(){}]{8,1024})"
    r"|[\"']?[,\t][\"']?(?P<cell>[^\s\"',;<>(){}]{10,1024})(?=[\"']?(?:[,\t\r\n]|$))"
    rf"|\s{{0,3}}\?=\s{{0,3}}(?P<made>{_SOME}{{6,1024}})(?=\s|$)"
    r"|\}\s?=\s?[\"'](?P<hashed>[^\"'\n\\]{6,1024})[\"']"
    rf"|(?:\s?:\s?[\w\[\]<>. ]{{1,40}}?)?\s?[=:]\s?(?:{_WRAPPERS})[ (]{{1,2}}b?[\"'](?P<wrapped>[^\"'\n\\]{{6,1024}})[\"']"
    r"|\s{0,3}[=:]\s{0,3}\(\s{0,40}[bfru]{0,2}[\"'](?P<opened>[^\"'\n\\]{6,1024})[\"']"
    r"|[\"']?[)\]]?\s?(?:\|\||\?\?|or)\s?[\"'`](?P<else>[^\"'`\n\\]{6,1024})[\"'`]"
    rf"|:-(?P<unset>{_SOME}{{6,1024}})(?=\}})"
    rf"|[\"'`]?\s{{1,24}}[\u2502\u2503\u2551]\s{{1,24}}[\"'`]?(?P<box>{_SOME}{{6,1024}})[\"'`]?\s{{0,80}}[\u2502\u2503\u2551]"
    r"|</key>\s{0,40}<(?:string|data)>\s{0,40}(?P<plist>[^<>\s][^<>\n]{5,1024}?)\s{0,40}</(?:string|data)>"
    r"|\"\s?\{[^{}\"]{0,200}(?:\"[^\"\n{}]{0,200}\"[^{}\"]{0,100}){0,3}?default\s{0,20}=\s{0,4}\"(?P<variable>[^\"\n\\]{6,1024})\""
    r"|(?:[\"']\s?[:=]\s?\{|[\"'\]]{1,2}=>|[ \t]*:[ \t]*\r?\n|(?:</\w{1,30})?>)\s{0,40}(?:[\"']?\w{1,20}[\"']?\s?:\s?[\w\"']{1,40},?\s{1,40}){0,3}"
    r"(?:[\"']?(?i:default|default_?value|value)[\"']?\s?:\s{0,3}[\"']?|string\(\d{1,4}\) \"|<(?i:value)\b[^<>\n]{0,60}>)(?P<nested>[^\s\"'<>{},]{6,1024})(?=[\"'<,\s]|$)"
    r"|[\"'],\s{0,3}(?:\w{1,20}=[\w.]{1,40},\s{0,3}){0,4}default\s?=\s?b?[\"'](?P<fallback>[^\"'\n\\]{6,1024})[\"']"
    r"|[ \t]{1,8}@?\"(?P<defined>[^\"\n\\]{6,1024})\""
    r"|\?\s?\r?\n[^\n]{0,40}?\s[\"'`]?(?P<answer>[^\s\"'`,;<>(){}]{12,1024})[\"'`]?\.?(?=\r?\n|$)"
    r"|\s[^\n]{0,60}?\b(?:new one|new value|now|it's|instead|here(?:'s| is)(?: it)?|use)[: ]{1,2}[\"'`](?P<told>[^\s\"'`]{12,1024})[\"'`]"
    r"|[\"']?\r?\n\"(?P<below>[^\"\n\\]{6,1024})\"(?=\r?\n|$)"
    r")"
)
_CLIENT = build_rule_pattern(r"(?i)(?:^|\n)[^\n>]{0,80}> ?(?:h?get|hget \S{1,80}) \S{0,80}$")
_DEFINES = build_rule_pattern(r"(?:\(def(?:once|parameter|var|constant)?|#define|\(setq|%define)\s{1,4}$")
_MARK = build_rule_pattern(r"(?:\d{1,3}(?:;\d{1,3})*)?m(?=[A-Z])")


def find_joined(view: TextView) -> Iterator[Span]:
    """Find values after a secret's name and a separator that no assignment has."""
    text = view.text
    for at, end in find_assignment_starts(view):
        match = _JOINED.match(text, end)
        if match is None:
            continue
        start, name = name_around(text, at, match.end("tail"))
        how = match.lastgroup or ""
        value = match[how].rstrip(".") if how == "said" else match[how]
        if name and (kind := _kind(text, start, name, how, value)):
            span = Span(match.start(how), match.start(how) + len(value), kind)
            yield span
            yield from find_continued(text, span)


def _kind(text: str, start: int, name: str, how: str, value: str) -> str | None:
    if how == "below" and not _CLIENT.search(text, max(0, start - 120), start):
        return None
    if how == "coloured" and text[max(0, start - 2) : start] == "\x1b[":
        name = name[mark.end() :] if (mark := _MARK.match(name)) else name
    if how == "defined" and not _DEFINES.search(text, max(0, start - 24), start):
        return None
    plain = how in (
        "default",
        "typed",
        "below",
        "made",
        "hashed",
        "else",
        "plist",
        "variable",
        "box",
        "nested",
        "fallback",
    ) or (how == "coloured" and name.isupper())
    kind = secret_name_kind(name, value, plain)
    if how not in ("cell", "said", "wrapped", "opened", "answer", "told", "unset", "defined") or kind is None:
        return kind
    if how == "cell" and is_digest_in_table(text, start, value):
        return None
    if how == "cell" and text[start - 1 : start] not in ("", "\n", ",", "\t", '"', "'"):
        return None
    sure = is_token(value) and (how != "cell" or is_mixed_case(value) or len(value) >= 32)
    spoken = how in ("answer", "told")
    return kind if sure or (kind == "PASSWORD" and not spoken and _is_made_up(value)) else None


def _is_made_up(value: str) -> bool:
    """Tell whether a value has letters, digits, and symbols or capitals: no column's name."""
    return (
        is_password(value)
        and bool(re.search(r"\d", value))
        and bool(re.search(r"[A-Za-z]", value))
        and bool(re.search(r"[A-Z!@#$%^&*+=?~]", value))
        and not re.search(r"[/\[\]<>|]", value)
    )


def _is_set(value: str) -> bool:
    return is_password(value) or is_token(value)


def _is_typed(value: str) -> bool:
    return _is_set(value) or is_joined_words(value)


def _is_no_sentence(value: str) -> bool:
    words = value.split(" ")
    return len(set(words)) == 4 and not (COMMON_WORDS | SPEECH).intersection(words)


_NAME = (
    r"(?:(?:pass|pwd|psk|kennwort|secret|token|credential|authorization|connection[_-]?string|[a-z_. -]key)[\w-]*"
    r"|auth|_pat)"
)
_JOINTS = (
    r"[\"'`]?:[ \t]*(?:[|>][+-]?[ \t]*)?\r?\n[ \t]*(?:-[ \t]+)?[\"']?[^\s\"'#,]{6}",  # a block
    r"\\*[\"'`]?\s*(?::|=>?)\s*\[[^\[\]]{8}",  # a list
    r"\"\s?\{[^{}]*default\s*=\s*\"",
    r"[\"'`]?(?:\x1b\[|\s*[=:]\s*\x1b\[)",
    r"[\"'`]?[)\]]?\s*(?:(?:\|\||\?\?|\?)=|\|\||\?\?|or)\s*[\"'`]",
    r"\s*\?=\s*\S",
    r"\s?:\s?&(?:'\w+\s)?(?:mut\s)?str\s?=",
    r"\s(?:lautet|ist|est|es|equals|becomes|auf)\s[^\s]{8}",
    r"[\"']?[,\t][\"']?[^\s\"',;<>(){}]{10}",
    r"\}\s?=\s?[\"']",
    r":-[^\s}]{6}",
    r"[\"'`]?\s+\?\s+[\"'`]?[^\s]{6}",
    r"</key>\s*<(?:string|data)>",
    r"\?\s?\r?\n",
    r"[\"']?\r?\n\"[^\"\n]{6}",
    r"\s*[=:]\s*\(\s*[bfru]{0,2}[\"'][^\"'\n]{6}",
    r"(?:[\"']\s?[:=]\s?\{|[\"'\]]+=>|[ \t]*:[ \t]*\r?\n|(?:</\w*)?>)\s*(?:[\w\"']+\s?:\s?[^\n]*\n\s*)*[\"']?(?:default|value|string\(\d|<value)",
    r"[\"'],\s*[^\n()]*default\s?=\s?b?[\"']",
)
JOINED_PROBE = rf"(?i){_NAME}(?:{'|'.join(_JOINTS)})"
"""A probe that matches wherever a value follows a secret's name in another way than by an assignment."""
DETECTORS: tuple[Detector, ...] = (
    make_anywhere_detector(
        "SECRET",
        r"(?i:\bset\s+[\w\"`]{1,40}\s?=\s?'(?P<v>[^'\n]{8,1024})'[^\n]{0,80}\bwhere\s[^\n]{0,60}'[^'\n]*(?:passw|secret|token|_key|credential)[^'\n]*')",
        r"(?i)set\s[^\n]*=\s?'[^'\n]{8}[^\n]*where\s[^\n]*(?:passw|secret|token|_key|credential)",
        _is_set,
    ),
    make_probed_detector(
        find_joined,
        JOINED_PROBE,
        rf"[=:]\s?(?:{_WRAPPERS})[ (]{{1,2}}b?[\"'][^\"'\n\\]{{6}}",
        r"(?:new one|new value|now|it's|instead|here(?:'s| is)(?: it)?|use)[: ]{1,2}[\"'`][^\s\"'`]{12}",
        rf"(?i)(?:def|defonce|defparameter|defvar|defconstant|define|setq)\s+[\w.-]*{_NAME}[ \t]+@?\"",
        located=True,
    ),
    make_anywhere_detector("PASSWORD", r"(?i:ConvertTo-SecureString)(?:\s{1,3}-(?i:AsPlainText|Force))*\s{1,3}(?:-(?i:String)\s{1,3})?(?:\\*(?P<quote>[\"'])(?P<w>[^\"'\n$]{4,256})\\*(?P=quote)|(?P<v>(?![-$(\"'])[^\s\"'|;()]{4,256}))", r"(?i)ConvertTo-SecureString\s", is_given),
    make_anywhere_detector("PASSWORD", r"(?:(?<=> )|(?<=[\"'])|(?<![^\n])[ \t]*)(?:AUTH\"? \"?(?:[\w.-]{1,40}\"? \"?)?|PASS )(?P<v>(?!PLAIN|LOGIN|XOAUTH2|CRAM)[^\s\"'\\]{6,128})(?=\\[rn]|[\"']|\s*?(?:\n|$))", r"(?:AUTH\"? \"?(?:[\w.-]+\"? \"?)?|PASS )[^\s\"'\\]{6}", _is_set),
    make_anywhere_detector("PASSWORD", r"curl\b[^\n|;&]{0,300}?\s-[a-zA-Z]{0,6}u\\*[\"']?[^\s:\"'\\-][^\s:\"'\\]{0,64}:(?P<v>[^\s\"'\\]{4,128})", r"curl\b[^\n|;&]*\s-[a-zA-Z]*u\\*[\"']?[^\s:\"'\\]+:[^\s\"'\\]{4}", is_given),
    make_anywhere_detector("PASSWORD", r"(?i:jdbc:oracle:(?:thin|oci8?):)[\w$#.-]{1,64}/(?P<v>[^\s\"'@/]{4,128})@", r"(?i)jdbc:oracle:(?:thin|oci8?):[\w$#.-]+/", is_given),
    make_anywhere_detector("PASSWORD", r"(?<![^\n])[ \t]*(?:requirepass|masterauth|sentinel auth-pass \S{1,64})[ \t]+[\"']?(?P<v>[^\s\"'#]{5,256})", r"(?:requirepass|masterauth|auth-pass)[ \t]", is_given),
    make_anywhere_detector("PASSWORD", r"(?<![A-Za-z])USER \S{1,80}\r?\n(?:[^\n]{0,200}\n){0,3}?[^\n]{0,40}?(?<![A-Za-z])PASS (?P<v>[^\s\"'*]{4,128})(?=\s|$)", r"USER \S+\r?\n", is_given),
    make_anywhere_detector("PASSWORD", r"(?<![A-Za-z])(?:machine[ \t]+\S{1,200}|(?<![^\n])default)\s+(?:(?:login|account)\s+\S{1,100}\s+){0,3}password\s+(?P<v>[^\s\"'<>$]{4,256})", r"(?:machine[ \t]+\S+|default)\s+(?:(?:login|account)\s+\S+\s+)*password\s+\S", is_given),
    make_anywhere_detector("PASSWORD", r"(?:host(?:addr)?|user|dbname|port|sslmode)=[^\s\"'=]{1,200} password=(?P<v>[^\s\"'{}%<>]{4,256})", r"(?:host|hostaddr|user|dbname|port|sslmode)=[^\s=]+ password=", is_given),
    make_anywhere_detector("SECRET", r"(?<![A-Za-z])AUTH (?:PLAIN|LOGIN|XOAUTH2|CRAM-MD5) (?P<v>[A-Za-z0-9+/]{12,4096}={0,2})(?![A-Za-z0-9])", r"AUTH (?:PLAIN|LOGIN|XOAUTH2|CRAM-MD5) [A-Za-z0-9+/]{12}", lambda value: is_mixed_case(value) or is_base64_login(value)),
    make_anywhere_detector("PASSWORD", r"(?<![\w:/.-])[\w.-]{1,64}:(?P<v>[^\s\"'`@:/$%{}]{4,128})@(?:tcp6?|unix|cloudsql)\(", r"[^\s\"'@]@(?:tcp6?|unix|cloudsql)\(", is_given),
    make_anywhere_detector("PASSWORD", r"(?i)enter (?:the |your |new |same )?(?:pass(?:word|phrase|code)|api key|(?:\w{1,20} )?token)(?: (?:for|again|to|\(empty)[^\n:]{0,120})?: (?P<v>[^\s\"'`<>()](?:[^\s\"'`<>()]{7,255}|[^\"'`<>()\n]{7,80}))(?=\r?\n|$)", r"(?i)enter [\w ]*(?:pass(?:word|phrase|code)|api key|token)[^\n:]*: [^\s][^\n]{7}", _is_typed),
    make_anywhere_detector("PASSWORD", r"(?:\u5bc6\u7801|\u5bc6\u78bc|\u53e3\u4ee4|\u30d1\u30b9\u30ef\u30fc\u30c9|\ube44\ubc00\ubc88\ud638)\s?(?:[:\uff1a=]|\u662f|\u4e3a|\u70ba|\u306f|\ub294)\s?[\"'`\u201c\u300c]?(?P<v>[!-&(->@-_a-~]{6,64})", r"\?\?\s?[:?=]\s?[\"'`?]?[!->@-~]{6}", _is_set),
    make_anywhere_detector("SECRET", r"(?i:\bhmac(?:\.new|_sha\d{1,3}|\.HMAC)?|createHmac|\b(?:Fernet|AES\.new|AESGCM|ChaCha20Poly1305|createCipheriv|SecretKeySpec))\(\s{0,4}(?:\\*[\"'][\w-]{2,16}\\*[\"'],\s{0,4})?b?\\*[\"'](?P<v>[^\"'\n\\]{16,512})\\*[\"']", r"(?i)(?:hmac(?:\.new|_sha\d{1,3}|\.hmac)?|fernet|aes\.new|aesgcm|poly1305|cipheriv|keyspec)\(\s*(?:\\*[\"'][\w-]+\\*[\"'],\s*)?b?\\*[\"'][^\"'\n\\]{16}", is_token),
    make_anywhere_detector("URL_TOKEN", r"[?&;](?:appid|app_id|apikey|subscription-key|auth_?key|client_?key|user_?key|hash|x-api-key)=(?P<v>[A-Za-z0-9_-]{24,128})(?![\w$({%-])", r"[?&;](?:appid|app_id|apikey|subscription-key|auth_?key|client_?key|user_?key|hash|x-api-key)=[A-Za-z0-9_-]{24}", is_token),
    make_anywhere_detector("TOTP_SECRET", r"otpauth://[^\s\"'<>]{1,200}?[?&;]secret=(?P<v>[A-Za-z2-7]{12,128})", r"otpauth://"),
    make_anywhere_detector("BITWARDEN_TOKEN", r"(?<![\w.])0\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.(?P<v>[A-Za-z0-9]{24,40}:[A-Za-z0-9+/]{20,48}={0,2})", r"0\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\."),
    make_anywhere_detector("MAILGUN_KEY", r"(?<![\w-])(?P<v>[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8})(?![\w-])", r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}"),
    make_anywhere_detector("NEON_KEY", r"(?<![A-Za-z0-9])(?P<v>npg_[A-Za-z0-9]{12})(?!\w)", r"npg_[A-Za-z0-9]{12}", is_mixed_case),
    make_anywhere_detector("DJANGO_KEY", r"django-insecure-(?P<v>[a-z0-9!@#$%^&*(\-_=+)]{40,60})", r"django-insecure-"),
    make_anywhere_detector("API_KEY", r"(?<![A-Za-z0-9])(?P<v>jina_[A-Za-z0-9]{50,64}|rpa_[A-Z0-9]{30}[A-Za-z0-9]{8,20}|rpa_[A-Za-z0-9]{40,50})(?![A-Za-z0-9])", r"(?:jina|rpa)_[A-Za-z0-9]{38}", is_mixed_case),
    make_anywhere_detector("PASSWORD", r"(?i:pass(?:word|wd)?|smtp|gmail|app[ _-]?pw)[^\n=:]{0,24}[=:][ \t]{0,3}\\*[\"']?(?P<v>(?-i:[a-z]{4}(?: [a-z]{4}){3}))(?![ \t]?[a-z])", r"(?i:pass|smtp|gmail|app)[^\n=:]*[=:][ \t]*\\*[\"']?[a-z]{4} [a-z]{4} [a-z]{4} [a-z]{4}", _is_no_sentence),
)  # fmt: skip
