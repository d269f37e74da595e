# ruff: noqa: E501 (patterns)
"""Detect values given to programs that store secrets, and secrets that statements of configurations set.

A statement says what it sets by its keyword (`bindpw`, `rootpw`), its place (`host:user:password`) or the
section that it stands in.
"""

import re
from collections.abc import Iterator

from tracemill.privacy.core.chosen_passwords import is_chosen_password
from tracemill.privacy.core.entropy import is_base64_login, is_given, is_mixed_case, is_password, is_random
from tracemill.privacy.core.rule import (
    Detector,
    Span,
    TextView,
    build_rule_pattern,
    make_anywhere_detector,
    make_probed_detector,
)
from tracemill.privacy.core.set_passwords import is_set_password

_QUOTE = r"\\*[\"']?"
_VALUE = r"(?P<v>(?![-$<{])[^\s\"'\\|;&<>]{6,512})"
_QUOTED = r"\\*[\"'](?P<v>(?![$<{])[^\"'\n\\]{6,512})\\*[\"']"


def _is_secret(value: str) -> bool:
    return is_given(value) and (is_password(value) or is_random(value) or is_set_password(value))


def _is_strong(value: str) -> bool:
    return (
        _is_secret(value)
        and bool(re.search(r"\d", value))
        and not re.search(r"^\d[\d.:/-]*$|^[./~]|://", value)
    )


# Programs that store what is assigned on their command lines.
_STORES = (
    r"(?:kubectl\s(?:[^\n|;&]{0,60}\s)?create\s{1,3}secret|oc\s{1,3}create\s{1,3}secret|vault\s{1,3}(?:kv\s{1,3}(?:put|patch)|write)|(?:fly|flyctl|doppler|supabase|nomad|convex)\s{1,3}(?:secrets?|var|env)\s{1,3}(?:set|put|import)"
    r"|heroku\s{1,3}config:(?:set|add)|dokku\s{1,3}config:set|railway\s{1,3}variables|render\s{1,3}env|eb\s{1,3}setenv|cf\s{1,3}set-env|netlify\s{1,3}env:set|firebase\s{1,3}functions:(?:config|secrets):set"
    r"|docker\s{1,3}secret\s{1,3}create|consul\s{1,3}kv\s{1,3}put|etcdctl\s{1,3}put|pulumi\s{1,3}config\s{1,3}set\s{1,3}--secret|scw\s{1,3}secret|infisical\s{1,3}secrets\s{1,3}set|chamber\s{1,3}write)"
)
_STORE = build_rule_pattern(rf"(?<![\w.-]){_STORES}\b(?P<rest>(?:[^\n\\]|\\[^\n]|\\\n){{1,4000}})")
_STORED = build_rule_pattern(
    rf"(?:(?<=\s)|(?<==)|(?<=[\"']))(?P<name>[A-Za-z_][\w.-]{{0,80}})=(?:{_QUOTED.replace('?P<v>', '?P<q>')}|{_VALUE})"
)


def find_stored(view: TextView) -> Iterator[Span]:
    """Find the values that a command line gives to a store of secrets or of settings."""
    for store in _STORE.finditer(view.text):
        for each in _STORED.finditer(view.text, *store.span("rest")):
            group = "q" if each["q"] else "v"
            if each["name"] != "--from-file" and _is_strong(each[group]):
                yield Span(*each.span(group), "SECRET")


_USERS = build_rule_pattern(
    r"(?<![^\n])(?P<in>[ \t]*)(?:list|users?|passwords?):[ \t]*[|>][+-]?[ \t]*\r?\n(?P<items>(?:(?P=in)[ \t]+[\w.-]{1,32}:[^\s:]{4,128}[ \t]*(?:\r?\n|$)){1,50})"
)
_USER = build_rule_pattern(r"[ \t]+[\w.-]{1,32}:(?P<v>[^\s:]{4,128})")


def find_user_lists(view: TextView) -> Iterator[Span]:
    """Find the passwords of `name:password` lines under `chpasswd` and the like."""
    for listed in _USERS.finditer(view.text):
        if "chpasswd" in view.text[max(0, listed.start() - 80) : listed.end()]:
            for user in _USER.finditer(view.text, *listed.span("items")):
                if user["v"] not in ("RANDOM", "R"):
                    yield Span(*user.span("v"), "PASSWORD")


_SECTION = r"(?i:jwt\w*|crypt\w*|encryption|signing|hmac|auth(?:entication)?|api|github-oauth|gitlab-token|bearer|session)"
_IN_SECTION = build_rule_pattern(
    rf"[\"']{_SECTION}[\"']\s{{0,4}}(?:=>|:)\s{{0,4}}[\[{{](?P<items>[^{{}}\[\]]{{6,1000}})"
)
_KEY = build_rule_pattern(
    r"[\"'](?i:key|signing_?key|value|(?:github|gitlab|bitbucket)\.(?:com|org))[\"']\s{0,4}(?:=>|:)\s{0,4}[\"'](?P<v>[^\"'\n\\]{8,512})[\"']"
)
_SESSION = r"(?:[\w.-]{0,30}(?:sess(?:ion)?(?:[_-]?id)?|sid|csrf\w{0,16}|xsrf\w{0,16}|remember\w{0,16}|auth\w{0,16}|jwt|identity))"
_NAMED_COOKIE = build_rule_pattern(
    rf"[\"']name[\"']\s?:\s?[\"'](?i:{_SESSION})[\"'],\s{{0,40}}[\"']value[\"']\s?:\s?[\"'](?P<v>[^\"'\n\\]{{16,4096}})[\"']"
)
_COOKIES = build_rule_pattern(
    r"[\"']name[\"']\s?:\s?[\"'](?i:(?:set-)?cookie)[\"'],\s{0,40}[\"']value[\"']\s?:\s?[\"'](?P<v>[^\"'\n\\]{8,8192})[\"']"
)
_COOKIE = build_rule_pattern(r"[\w.-]{1,60}=(?P<v>[^;\s,\"'\\]{16,4096})")


def find_in_sections(view: TextView) -> Iterator[Span]:
    """Find keys in objects named for what they sign, and cookies in records of requests (HAR)."""
    text = view.text
    for section in _IN_SECTION.finditer(text):
        for key in _KEY.finditer(text, *section.span("items")):
            if is_random(key["v"]) or is_set_password(key["v"]) or is_chosen_password(key["v"]):
                yield Span(*key.span("v"), "SECRET")
    for cookie in _NAMED_COOKIE.finditer(text):
        if is_random(cookie["v"]) or is_mixed_case(cookie["v"]):
            yield Span(*cookie.span("v"), "COOKIE")
    for header in _COOKIES.finditer(text):
        for cookie in _COOKIE.finditer(text, *header.span("v")):
            if is_random(cookie["v"]):
                yield Span(*cookie.span("v"), "COOKIE")


def _is_login_answer(value: str) -> bool:
    return len(value) >= 6 and is_given(value)


IN_SECTIONS = make_probed_detector(
    find_in_sections,
    rf"[\"']{_SECTION}[\"']\s*(?:=>|:)\s*[\[{{][^{{}}\[\]]*[\"'](?i:key|signing_?key|value|(?:github|gitlab|bitbucket)\.(?:com|org))[\"']",
    rf"[\"']name[\"']\s?:\s?[\"'](?i:{_SESSION}|(?:set-)?cookie)[\"']",
)
"""The detector of keys in sections, which reads JSON as a whole."""
DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(find_stored, _STORES),
    make_probed_detector(find_user_lists, r"(?:list|users?|passwords?):[ \t]*[|>]"),
    IN_SECTIONS,
    make_anywhere_detector(
        "SECRET",
        rf"(?:aws\s{{1,3}}(?:ssm\s{{1,3}}put-parameter|secretsmanager\s{{1,3}}(?:create-secret|put-secret-value|update-secret))|az\s{{1,3}}keyvault\s{{1,3}}secret\s{{1,3}}set|gh\s{{1,3}}(?:secret|variable)\s{{1,3}}set|az\s{{1,3}}webapp\s{{1,3}}config"
        rf"|gcloud\s{{1,3}}secrets|op\s{{1,3}}item\s{{1,3}}create|keyring\s{{1,3}}set|wrangler\s{{1,3}}secret)\b[^\n|;&]{{0,300}}?\s(?:--(?:value|secret-string|body|secret)|-b)[ =]{{1,3}}(?:{_QUOTED.replace('?P<v>', '?P<w>')}|{_VALUE})",
        r"(?:put-parameter|secretsmanager|keyvault\s+secret\s+set|(?:secret|variable)\s+set|gcloud\s+secrets|wrangler\s+secret)[^\n|;&]*(?:--(?:value|secret-string|body|secret)|-b)[ =]",
        _is_secret,
    ),
    make_anywhere_detector(
        "SECRET",
        rf"(?<![\w.-])(?:echo|printf)\s(?:-[en]+\s|[\"']?%s(?:\\n)?[\"']?\s)?(?:{_QUOTED.replace('?P<v>', '?P<w>')}|{_VALUE})\s{{0,3}}\|\s{{0,3}}(?:\w+\s{{1,3}}){{0,4}}?(?:secrets?|env|variable|vars?|key)\s{{1,3}}(?:put|set|add|create|versions\s{{1,3}}add|update)\b",
        r"\|\s*(?:\w+\s+){0,4}(?:secrets?|env|variable|vars?|key)\s+(?:put|set|add|create|versions|update)",
        _is_secret,
    ),
    make_anywhere_detector(
        "PASSWORD",
        rf"(?<![\w.-])(?:security\s{{1,3}}(?:add|find)-(?:generic|internet)-password[^\n|;&]{{0,200}}?\s-w|security\s{{1,3}}(?:unlock|create)-keychain[^\n|;&]{{0,60}}?\s-p|(?:un)?rar\s{{1,3}}[xael]\b[^\n|;&]{{0,120}}?\s-h?p|https?\s{{1,3}}(?:[^\n|;&]{{0,120}}?\s)?(?:-a|--auth)[ =]?{_QUOTE}[^\s:\"']{{1,64}}:"
        rf"|bundle\s{{1,3}}config\s[^\n|;&]{{0,100}}?\s{_QUOTE}[\w.-]{{1,40}}:|qpdf\b[^\n|;&]{{0,60}}?--password=|mysqladmin\b[^\n|;&]{{0,120}}?\spassword\s{{1,3}}|openssl\s{{1,3}}enc\b[^\n|;&]{{0,120}}?\s-(?:k|pass)\s{{1,3}}(?:pass:)?)"
        rf"(?!--){_QUOTE}{_VALUE}",
        r"(?:security\s+(?:add|find|unlock|create)-[a-z-]+[^\n|;&]*\s-[wp]|rar\s+[xael]\b[^\n|;&]*\s-h?p|https?\s+(?:[^\n|;&]*\s)?(?:-a|--auth)[ =]?|bundle\s+config\s|qpdf\b|mysqladmin\b|openssl\s+enc\b)",
        _is_secret,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?<![^\n])[ \t]{0,12}(?:set[ \t]{1,4})?(?i:bindpw|rootpw|rootpwmoddn|ldap_default_authtok|bind_?pass(?:word)?|bindpasswd|remotepass|localpass|imap_?pass|smtp_?pass|pop3?_?pass|pass(?:word)?cmd_?value|wpa_passphrase|sasl_passwd|tls_?key_?pass|authtok|secret)"
        r"(?:[ \t]{0,8}[=:][ \t]{0,8}|[ \t]{1,12})[\"']?(?!\{|/)(?P<v>[^\s\"'#;{}<>$()]{6,128})[\"']?;?[ \t]*(?=\r?\n|$)",
        r"(?i)(?:bindpw|rootpw|authtok|bind_?pass|remotepass|localpass|imap_?pass|smtp_?pass|pop3?_?pass|wpa_passphrase|sasl_passwd|key_?pass|secret)[a-z_]*(?:[ \t]*[=:][ \t]*|[ \t]+)[\"']?[^\s]{6}",
        _is_secret,
        behind=140,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?<![^\n])[ \t]{0,8}Pass[ \t]{1,8}\"(?P<v>[^\"\n]{4,128})\"[ \t]*(?=\r?\n|$)|:[ \t]{1,4}(?:PSK|EAP|XAUTH|NTLM|PIN)[ \t]{1,4}\"(?P<w>[^\"\n]{4,128})\"",
        r"Pass[ \t]+\"[^\"\n]{4}|:[ \t]+(?:PSK|EAP|XAUTH|NTLM|PIN)[ \t]+\"",
        is_given,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?<![^\n])(?:\"?[\w.@*-]{1,64}\"?[ \t]{1,8}(?:\*|\"?[\w.-]{1,64}\"?)[ \t]{1,8}\"(?P<v>[^\"\s]{6,128})\"[ \t]{1,8}\*|\"[\w.@*-]{1,64}\"[ \t]{1,8}\*[ \t]{1,8}\"(?P<w>[^\"\s]{6,128})\"[ \t]*(?=\r?\n|$))",
        (r"[ \t]\"[^\"\s]{6,}\"[ \t]+\*", r"\"[ \t]+\*[ \t]+\"[^\"\s]{6,}\""),
        _is_secret,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?<![\w-])(?:stats[ \t]{1,4}auth[ \t]{1,4}[\w.-]{1,40}:|cache_peer[ \t][^\n]{0,160}?[ \t]login=[\w.@\\-]{1,64}:|insecure-password[ \t]{1,4}|user[ \t]{1,4}[\w-]{1,40}[ \t]{1,4}(?:on[ \t]{1,4})?>)(?P<v>[^\s\"'$:]{4,128})",
        r"stats[ \t]+auth[ \t]|cache_peer[ \t]|insecure-password[ \t]|user[ \t]+[\w-]+[ \t]+(?:on[ \t]+)?>",
        is_given,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?i:nickserv[ \t]{1,3}(?:identify|register|ghost[ \t]\S{1,32})|/oper[ \t]\S{1,32})[ \t]{1,3}(?P<v>[^\s\"';]{5,128})",
        r"(?i)nickserv[ \t]+(?:identify|register|ghost)|/oper[ \t]",
        is_given,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?<![^\n])[ \t]{0,8}(?!https?:)(?:\[?[\w-]{1,40}(?:\.[\w-]{1,40}){1,5}\]?(?::\d{2,5})?[ \t]{1,8}[\w.@+-]{1,64}|[\w-]{1,40}(?:\.[\w-]{1,40}){1,5}:[\w.@+-]{1,64}):(?P<v>[^\s:\"'\\/]{6,128})[ \t]*(?=\r?\n|$)",
        r"(?:^|\n)[ \t]*\[?[\w.-]+\.[\w-]+\]?[: \t][^\n:]*:[^\s:\"'\\/]{6,}[ \t\r]*(?:\n|$)",
        lambda value: _is_strong(value) and not re.search(r"[(){}\[\],]", value) and is_strongly_mixed(value),
    ),
    make_anywhere_detector(
        "SECRET",
        r"(?i:UGFzc3dvcmQ6|VXNlcm5hbWU6)\s{0,4}\n[^\n]{0,16}?(?<![\w+/=])(?P<v>[A-Za-z0-9+/]{6,512}={0,2})\s*(?=\n|$)",
        r"UGFzc3dvcmQ6|VXNlcm5hbWU6",
        _is_login_answer,
    ),
    make_anywhere_detector(
        "SECRET",
        r"(?i:hash_salt|signing_salt|encryption_salt|password_salt|secret_salt|live_view_salt)[\"']?\]?\s{0,3}(?:=>|[:=])\s{0,3}[\"'](?P<v>[^\"'\n\\]{8,256})[\"']",
        r"(?i)(?:hash|signing|encryption|password|secret|live_view)_salt",
        lambda value: _is_secret(value) or is_mixed_case(value),
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?i:(?<!\w)(?:password|passwort|mot de passe|contrase\xf1a|senha)) [\"'`]?(?P<v>(?=[^\s\d]*\d)[^\s\"'`<>()\[\]{}=,;]{8,64})[\"'`]?(?=[\s.,;:!?)]|$)",
        r"(?i)(?:password|passwort|mot de passe|contrase\xf1a|senha) [\"'`]?[^\s]*[0-9]",
        lambda value: _is_strong(value) and is_strongly_mixed(value),
        behind=80,
    ),
    make_anywhere_detector(
        "BASIC_AUTH",
        r"(?i:authorization:[ \t]{0,3}basic)[ \t]{1,3}\S{1,64}[ \t]{1,3}(?P<v>[^\s\"'\\]{6,128})[ \t]*(?=\r?\n|$)",
        r"(?i)authorization:[ \t]*basic[ \t]+\S+[ \t]+\S{6}",
        lambda value: _is_secret(value) or is_base64_login(value),
    ),
    make_anywhere_detector(
        "URL_TOKEN",
        r"(?:anaconda|conda)[\w.-]{0,60}/t/(?P<v>[\w-]{16,80})(?=/)",
        r"conda[\w.-]*/t/[\w-]{16}",
    ),
)  # fmt: skip


def is_strongly_mixed(value: str) -> bool:
    """Tell whether a value has letters, digits, and a capital or a mark that no path or name has."""
    value = value.rstrip(".,;:!?")
    return bool(
        re.search(r"[A-Z]", value)
        and re.search(r"[a-z]", value)
        and re.search(r"\d", value)
        and not re.search(r"^v?\d+(?:\.\d+)+|\.[a-z]{1,5}$|/", value)
    )
