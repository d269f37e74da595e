# ruff: noqa: E501 (patterns)
"""Detect secrets by their shape and a word or two nearby: password hashes, wallets, calls, URLs."""

import re

from tracemill.privacy.core.chosen_passwords import is_joined_words, is_short_phrase, is_word_chain
from tracemill.privacy.core.entropy import (
    is_mixed_case,
    is_password,
    is_random,
    is_scrambled,
    is_stand_in,
    is_token,
)
from tracemill.privacy.core.rule import Detector, make_anywhere_detector
from tracemill.privacy.core.word_lists import SPEECH

_PHRASE_SIZES = (12, 15, 18, 21, 24)  # words of a wallet's phrase (BIP 39)
_MOST_SPEECH = 2  # words of sentences that a phrase holds by chance


def _is_machine_made(value: str) -> bool:
    return is_token(value) and (is_mixed_case(value) or len(value) >= 32)


def _is_link_code(value: str) -> bool:
    digits = sum(map(str.isdigit, value))
    return is_scrambled(value) or (is_random(value) and not is_stand_in(value) and digits >= 3)


def _is_phrase(value: str) -> bool:
    words = re.findall(r"[a-z]+", value)
    return len(words) in _PHRASE_SIZES and len(SPEECH.intersection(words)) <= _MOST_SPEECH


def _is_login(value: str) -> bool:
    return is_password(value) or is_word_chain(value) or is_short_phrase(value) or is_joined_words(value)


def _is_key_pair(value: str) -> bool:
    numbers = [int(number) for number in re.findall(r"\d+", value)]
    return len(set(numbers)) >= 32 and max(numbers) < 256


def _is_varied(value: str) -> bool:
    return len(set(value)) >= 5


def _is_element(value: str) -> bool:
    if value[0] == "{" or is_word_chain(value) or is_short_phrase(value):
        return True
    return not is_stand_in(value) and any(map(str.isdigit, value)) and len(set(value)) > 3


def _is_made_up(value: str) -> bool:
    return not is_stand_in(value.split("\n")[0]) and not value.startswith("-----")


_BASE58_SET = r"[1-9A-HJ-NP-Za-km-z]"
# Password hashes: crypt(3), bcrypt, Argon2, scrypt, PBKDF2, LDAP, databases, Windows.
_HASHES = (
    (r"\$(?:[1567]|apr1|2[abxy]|y|gy|sha1|md5)\$[\w./$=,-]{20,200}", r"\$(?:[1567]|apr1|2[abxy]|y|gy|sha1|md5)\$"),
    (r"\$\$(?:apr1|2[aby]|[156])\$\$[\w./$=,-]{20,200}", r"\$\$(?:apr1|2[aby]|[156])\$\$"),  # a `$` of Compose is two
    (r"\$(?:argon2(?:id|i|d)|scrypt|pbkdf2[\w-]{0,10})\$[\w./$=,+-]{20,300}", r"\$(?:argon2|scrypt|pbkdf2)"),
    (r"pbkdf2[_:]sha\d{1,3}[$:]\d{3,8}\$[^\s$\"']{4,64}\$[A-Za-z0-9+/=]{20,}", r"pbkdf2[_:]sha\d"),
    (r"scrypt:\d{3,7}:\d:\d\$[^\s$\"']{4,64}\$[0-9a-f]{64,}", r"scrypt:\d"),
    (r"(?:bcrypt_sha256|argon2|bcrypt)\$\$[\w./$=,+-]{30,}", r"(?:argon2|bcrypt)\$\$|bcrypt_sha256\$"),
    (r"\{(?:SSHA|SSHA256|SSHA512|SHA|SMD5|MD5|CRYPT)(?:\d{3})?\}(?=[A-Za-z0-9+/$.]*[0-9])[A-Za-z0-9+/=$.]{20,}", r"\{(?:S?SHA|S?MD5|CRYPT)"),
    (r"SCRAM-SHA-\d{1,3}\$\d{3,7}:[A-Za-z0-9+/=]{8,}\$[A-Za-z0-9+/=]{20,}:[A-Za-z0-9+/=]{20,}", r"SCRAM-SHA-\d"),
    (r"(?i:password|identified by|hashed|md5hash)[^\n]{0,24}[\"'](?:md5[0-9a-f]{32}|\*[0-9A-F]{40})(?=[\"'])", r"[\"'](?:md5[0-9a-f]{32}|\*[0-9A-F]{40})[\"']"),
    (r"(?:[0-9a-f]{32}|aad3b435b51404eeaad3b435b51404ee):[0-9a-f]{32}:::", r"[0-9a-f]{32}:[0-9a-f]{32}:::"),
)  # fmt: skip
_LOGIN_CALL = r"(?:\.(?:login|authenticate|auth|sign_?in|log_?in)|HTTP(?:Basic|Digest)Auth|BasicAuth|basic_?auth|auth=|Credentials?(?:\.basic)?|setBasicAuth|UsernamePassword\w*)"
_ARGUMENT = r"(?:[\w.\[\]]{1,60}|\\*[\"'][^\"'\n\\]{0,80}\\*[\"'])"
_WORD_IN_PATH = r"(?:reset|verify|confirm|invite|invitation|magic|activat\w{1,4}|unsubscribe|recover|password|passwd|sso|onboard\w{0,3}|accept|join|unlock|share[d_]?|login|auth|signup|set)"
_SEED = r"(?:mnemonic|seed|recovery|secret|backup|wallet)"
DETECTORS: tuple[Detector, ...] = (
    *(
        make_anywhere_detector("PASSWORD_HASH", rf"(?<![\w$])(?P<v>{pattern})", probe, _is_varied)
        for pattern, probe in _HASHES
    ),
    make_anywhere_detector(
        "WALLET_KEY",
        rf"(?i:\b(?:wif|wallet|private|key|btc|bitcoin|import|dump)\w*\b[^\n]{{0,24}}?)(?<![A-Za-z0-9])(?P<v>[5KL9c]{_BASE58_SET}{{50,51}})(?![A-Za-z0-9])",
        rf"(?i:wif|wallet|private|key|btc|bitcoin|import|dump)\w*\b[^\n]{{0,25}}[5KL9c]{_BASE58_SET}{{50}}",
        is_mixed_case,
    ),
    make_anywhere_detector(
        "WALLET_KEY",
        r"(?i)\b(?:wallet|private|deployer|signer|priv|accounts)\b(?![^\n]{0,40}(?:hash|tx|block|root|public|address))"
        r"[^\n]{0,40}?(?P<v>(?<![0-9a-z])(?:0x)?[0-9a-f]{64})(?![0-9a-f])",
        r"(?i)(?:wallet|private|deployer|signer|priv|accounts)\b[^\n]{0,41}[0-9a-f]{64}",
        is_random,
    ),
    make_anywhere_detector(  # a key pair of Solana: a line of 64 bytes as numbers
        "WALLET_KEY",
        r"(?<![^\n])[ \t]*(?P<v>\[(?:[ ]?\d{1,3},){63}[ ]?\d{1,3}\])(?=[ \t]*(?:\r?\n|$))",
        r"\[(?:[ ]?\d{1,3},){63}[ ]?\d{1,3}\]",
        _is_key_pair,
    ),
    make_anywhere_detector(
        "TLS_SECRET",
        r"(?<!\w)(?:CLIENT_RANDOM|[A-Z_]{4,40}_SECRET(?:_\d)?) (?P<v>[0-9a-f]{64} [0-9a-f]{64,128})(?![0-9a-f])",
        r"(?:CLIENT_RANDOM|_SECRET(?:_\d)?) [0-9a-f]{64} [0-9a-f]{64}",
    ),
    make_anywhere_detector(
        "WALLET_PHRASE",
        rf"(?i:{_SEED})[^\n]{{0,30}}?[\s\"'=:`]{{1,4}}(?P<v>(?:[a-z]{{3,8}}[ ,]{{1,2}}){{11,23}}[a-z]{{3,8}})(?![a-z]|[ ,]{{1,2}}[a-z])",
        rf"(?i:{_SEED})[^\n]{{0,34}}(?:[a-z]{{3,8}}[ ,]+){{11}}[a-z]{{3}}",
        _is_phrase,
    ),
    make_anywhere_detector(
        "PASSWORD",
        rf"{_LOGIN_CALL}\(\s{{0,8}}(?:(?:username|user|email)\s?=\s?)?{_ARGUMENT},\s{{0,8}}\\*[\"'](?P<v>[^\"'\n\\]{{6,128}})\\*[\"']\s{{0,8}}[,)]",
        rf"{_LOGIN_CALL}\([^)\n]+,\s*\\*[\"']",
        _is_login,
    ),
    make_anywhere_detector(
        "PASSWORD",
        rf"(?i)(?:mysql|mariadb|maria|pymssql|odbc|oracle|pg_?|sql)\w{{0,10}}[._:>-]{{0,2}}(?:real_)?connect\(\s{{0,8}}{_ARGUMENT},\s{{0,4}}{_ARGUMENT},\s{{0,8}}\\*[\"'](?P<v>[^\"'\n\\]{{6,128}})\\*[\"']\s{{0,8}}[,)]",
        r"(?i)sql[\w.:>-]*connect\(|(?:maria|odbc|oracle|pg_?)[\w.:>-]*connect\(",
        _is_login,
    ),
    make_anywhere_detector(
        "PASSWORD",
        rf"new \w{{0,12}}(?:Sftp|Ftps?|Ssh|Scp|Smtp|Imap|Pop3|Ldap|Mqtt|Rabbit)\w{{0,12}}\((?:\s{{0,8}}(?:{_ARGUMENT}|\d{{1,5}}),){{1,3}}\s{{0,8}}\\*[\"'](?P<v>[^\"'\n\\]{{6,128}})\\*[\"']\s{{0,8}}[,)]",
        r"new \w*(?:Sftp|Ftps?|Ssh|Scp|Smtp|Imap|Pop3|Ldap|Mqtt|Rabbit)\w*\([^)\n]+,\s*\\*[\"']",
        _is_login,
    ),
    make_anywhere_detector(
        "PASSWORD",
        rf"new (?:PDO|mysqli|MySQLi)\(\s{{0,8}}{_ARGUMENT},\s{{0,4}}{_ARGUMENT},\s{{0,8}}\\*[\"'](?P<v>[^\"'\n\\]{{6,128}})\\*[\"']\s{{0,8}}[,)]",
        r"new (?:PDO|mysqli|MySQLi)\(",
        _is_login,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?i)<(?:\w{1,20}:)?\w{0,24}(?:password|passwd|passphrase|pwd)(?: [^<>\n]{0,200})?>(?P<v>\{[A-Za-z0-9+/]{8,}={0,2}\}|[^<>\n{}$]{4,128})</",
        r"(?i)<[\w:]*(?:password|passwd|passphrase|pwd)(?: [^<>\n]*)?>[^<>\n]{4,}</",
        _is_element,
    ),
    make_anywhere_detector(
        "SECRET",
        r"(?<!\w)(?:export\s)?[A-Z][A-Z0-9_]{0,40}(?:SECRET|PASSWORD|PASSPHRASE|TOKEN|KEY)=\"(?P<v>[^\"\n$`]{3,200}"
        r"(?:\n[^\"\n=$`]{1,200}){1,10})\"(?=[ \t]*(?:\n|$))",
        r"(?:SECRET|PASSWORD|PASSPHRASE|TOKEN|KEY)=\"[^\"\n]{3,}\n[^\"]+\"",
        _is_made_up,
    ),
    make_anywhere_detector(
        "TWILIO_KEY",
        r"AC[0-9a-f]{32}[^0-9A-Za-z\n]{1,8}(?:auth_?token\W{1,4})?(?P<v>[0-9a-f]{32})(?![0-9A-Za-z])",
        r"AC[0-9a-f]{32}[^0-9A-Za-z\n]",
    ),
    make_anywhere_detector(
        "TWILIO_KEY",
        r"AC<[^\n]{0,4}(?P<v>[0-9a-f]{32})(?![0-9A-Za-z])",
        r"AC<[^\n]{0,4}[0-9a-f]{32}",
    ),
    make_anywhere_detector(
        "ASANA_TOKEN",
        r"(?<![\w/])(?P<v>[012]/\d{13,17}(?:/\d{13,17})?:[0-9a-f]{32})(?![A-Za-z0-9])",
        r"[012]/\d{13,17}(?:/\d{13,17})?:[0-9a-f]{32}",
    ),
    make_anywhere_detector(
        "WEBHOOK",
        r"hooks\.zapier\.com\\?/(?P<v>hooks\\?/(?:catch|standard)\\?/[\w\\/-]{8,})",
        r"hooks\.zapier\.com",
    ),
    make_anywhere_detector(
        "WEBHOOK",
        r"(?i)https?:\\?/\\?/[\w.-]{3,80}(?::\d{2,5})?/(?:[\w.-]{1,40}/){0,4}(?:web-?)?hooks?/(?:[\w.-]{1,40}/){0,3}(?P<v>[\w-]{20,200})",
        r"(?i)https?:\\?/\\?/[^\s\"'<>]{3,200}hooks?/",
        _is_link_code,
    ),
    make_anywhere_detector(
        "AZURE_KEY",
        r"(?i)(?:azure|devops|azdo|\bado\b|personal access token|\bpat\b|visualstudio)[^\n]{0,60}?(?<![a-z0-9])(?P<v>(?-i:[a-z2-7]{52}|[A-Za-z0-9]{84}))(?![a-z0-9])",
        r"(?i)(?:azure|devops|azdo|ado\b|token|pat\b|visualstudio)[^\n]{0,61}[a-z0-9]{52}",
        is_random,
    ),
    make_anywhere_detector(
        "NGROK_TOKEN",
        r"(?<![A-Za-z0-9])(?P<v>[123][A-Za-z0-9]{26}_[A-Za-z0-9]{20,22})(?![A-Za-z0-9_])",
        r"[123][A-Za-z0-9]{26}_[A-Za-z0-9]{20}",
        is_mixed_case,
    ),
    make_anywhere_detector(
        "DISCORD_TOKEN",
        r"(?<![\w.-])(?P<v>[MNO][A-Za-z0-9_-]{23,27}\.[\w-]{6}\.[\w-]{27,45})(?![\w.-])",
        r"[MNO][A-Za-z0-9_-]{23,27}\.[\w-]{6}\.[\w-]{27}",
        is_mixed_case,
    ),
    make_anywhere_detector(
        "URL_TOKEN",
        r"[?&;](?:api_?|access_?|app_?)?key=(?P<v>[\w.~%+/-]{16,400}={0,2})(?![\w$({])",
        r"[?&;](?:api_?|access_?|app_?)?key=[\w.~%+/-]{16}",
        _is_machine_made,
    ),
    make_anywhere_detector(
        "URL_TOKEN",
        r"[?&;](?i:signature|sig|hmac|x-goog-signature|policy)=(?P<v>[\w.~%+/-]{32,2048}={0,2})",
        r"(?i)[?&;](?:signature|sig|hmac|x-goog-signature|policy)=[\w.~%+/-]{32}",
        is_random,
    ),
    make_anywhere_detector(
        "URL_TOKEN",
        r"[?&;](?:code|ticket|invite|otp|nonce|sid|jsessionid|PHPSESSID|session|sess|st|magic|hash_key|confirmation|reset)=(?P<v>[\w.~%+/-]{16,2048}={0,2})",
        r"[?&;](?:code|ticket|invite|otp|nonce|sid|jsessionid|PHPSESSID|session|sess|st|magic|hash_key|confirmation|reset)=[\w.~%+/-]{16}",
        is_mixed_case,
    ),
    make_anywhere_detector(
        "URL_TOKEN",
        rf"(?i)://[^\s\"'<>?#]{{3,200}}/(?:[\w]{{1,20}}[_-])?{_WORD_IN_PATH}(?:[_-]\w{{1,20}}){{0,2}}/(?P<v>[\w.~-]{{20,512}})(?![\w/])",
        rf"(?i)://[^\s\"'<>?#]+[/_-]{_WORD_IN_PATH}[\w-]*/[\w.~-]{{20}}",
        _is_link_code,
    ),
    make_anywhere_detector(
        "TOTP_SECRET",
        r"(?i:\b(?:[th]?otp|2fa|mfa|authenticator|two-factor)\b[^\n]{0,40}?)(?<![A-Za-z0-9])(?P<v>[A-Z2-7]{16,64}|(?:[A-Za-z2-7]{4} ){3,15}[A-Za-z2-7]{4})(?![A-Za-z0-9])",
        r"(?i:otp|[2m]fa|authenticator|factor)\b[^\n]{0,41}(?:[A-Z2-7]{16}|(?:[A-Za-z2-7]{4} ){3}[A-Za-z2-7]{4})",
        lambda value: any(c.isdigit() for c in value) and (" " in value or is_random(value.lower())),
    ),
    make_anywhere_detector(
        "RECOVERY_CODE",
        r"(?i:(?:recovery|backup|scratch|rescue)[ _-]codes?)[^\n]{0,60}[\s:\"'\[]{1,6}(?P<v>(?:(?=[a-z-]*\d)[a-z0-9]{4,10}(?:-[a-z0-9]{4,10}){0,3}[\s,\"']{0,6}){1,20})",
        r"(?i)(?:recovery|backup|scratch|rescue)[ _-]codes?[^\n]{0,60}\s",
        lambda value: any(c.isdigit() for c in value) and len(value) > 8,
    ),
)
