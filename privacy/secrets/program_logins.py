# ruff: noqa: E501 (patterns)
"""Detect passwords on command lines of many programs, in connection strings and in sentences."""

import re

from tracemill.privacy.core.chosen_passwords import is_word_chain
from tracemill.privacy.core.entropy import is_given, is_password, is_plain_password, is_random
from tracemill.privacy.core.rule import Detector, make_anywhere_detector
from tracemill.privacy.core.set_passwords import is_set_password

_QUOTE = r"\\*[\"']?"
_VALUE = r"(?P<v>(?!-)[^\s\"'\\|;&<>]{5,128})"


def _is_set(value: str) -> bool:
    return (
        is_password(value)
        or is_random(value)
        or is_plain_password(value)
        or is_word_chain(value)
        or is_set_password(value)
    )


def _is_strong(value: str) -> bool:
    """Tell whether a value has letters and digits, and nothing of a path, a call or a version."""
    value = value.rstrip(".,;:!?)")
    return (
        is_password(value)
        and bool(re.search(r"[A-Za-z]", value))
        and bool(re.search(r"\d", value))
        and not re.search(r"[/(){}\[\]<>=]|^v?\d+(?:\.\d+)+|^\d+[a-zA-Z]{1,3}$", value)
    )


_UNBOUND = re.compile(r"\{\d+,\d*\}\??")
# A program, and how it gets a password.
_COMMANDS = (
    (r"echo|printf", r"\s(?:-[en]+\s|[\"']?(?:\w{1,32}:)?%s(?:\\n)?[\"']?\s)?", r"(?:\\n[^\n|]{0,64})?[^\n|]{0,4}\|[^\n|]{0,160}(?:--?\w*-?(?:password|token|pass|passphrase|secret|key)[\w-]*-?stdin|--with-token|passwd\b|passphrase-fd 0|login[^\n|]{0,60}--?stdin|sudo -\w{0,2}S|cryptsetup|kinit|ecryptfs|secret set)"),
    (r"(?:sudo -\w{0,2}S|passwd|chpasswd|kinit|cryptsetup|gh secret set)\b", r"[^\n|;&<]{0,120}<<< ?", ""),
    (r"keytool|jarsigner|apksigner|openssl|signtool|x11vnc|vncpasswd|certutil|cosign|pkcs12|osslsigncode", r"[^\n|;&]{0,160}?\s--?(?:\w{0,4}(?:store|key)pass|passwd|pass(?:word|in|out|phrase)?|rfbauth|p|k)[ :=](?:(?:pass|password):)?", ""),
    (r"useradd|usermod|adduser|ipmitool|sqlcmd|bcp|mosquitto_(?:pub|sub|rr)|xfreerdp|rdesktop|smbmount|isql|osql|impacket-\w+|crackmapexec|evil-winrm|nxc|cntlm|influx|lftp|ncftp\w*|mount\.cifs", r"[^\n|;&]{0,160}?\s(?:-[pPw]\s?|/p:|--password[ =])", ""),
    (r"nmcli|netsh|wpa_cli|iwctl", r"[^\n|;&]{0,120}?\s(?:password|psk|keyMaterial=|wifi-sec\.psk|--passphrase)[ =]?", ""),
    (r"NickServ", r"\s(?:IDENTIFY|identify|REGISTER|register)\s", ""),
    (r"rabbitmqctl|rabbitmqadmin", r"\s{1,3}(?:add_user|change_password)\s{1,3}\S{1,64}\s{1,3}", ""),
    (r"mc (?:alias set|config host add|admin user add)", r"\s\S{1,64}\s(?:\S{1,200}\s)?\S{3,128}\s{1,3}", ""),
    (r"sqlplus|expdp|impdp|exp|imp|rman|tnsping", r"\s(?:-\w+\s)*\w{2,40}/", r"(?:@|\s\w{2,20}=|$)"),
    (r"(?:impacket-)?(?:secretsdump|psexec|wmiexec|smbexec|smbclient|GetUserSPNs|GetNPUsers|mssqlclient)(?:\.py)?", r"[^\n|;&]{0,80}?\s[\"']?(?:[\w.-]{1,40}/)?[\w.-]{1,40}:(?=[^\s@]{4,128}@)", ""),
    (r"gpg2?|age|borg|restic|duplicity|cryptsetup|veracrypt", r"[^\n|;&]{0,160}?\s--pass(?:phrase|word)[ =]", ""),
    (r"aws configure set", r"\s(?:aws_)?\w{0,20}(?:secret|token|key)\w{0,20}\s", ""),
    (r"(?:npm|pip|poetry|yarn|composer|cargo|git) config", r"[^\n|;&]{0,120}?(?:_authToken|_password|token|http-basic\.\S{1,60}\s\S{1,60}|pypi-token\.\S{1,40})[ =]", ""),
    (r"vault login|cargo login|npm login|doctl auth init -t|flyctl auth token|snyk auth|huggingface-cli login --token|hf auth login --token", r"\s", ""),
)  # fmt: skip
_PASS_WORDS = (
    r"(?:passwor[dt]|passwort|kennwort|passphrase|passcode|mot de passe|contrase[n\xf1]a|senha|wachtwoord|"
    r"l[\xf6o]senord|adgangskode|salasana|has[\u0142l]o|heslo|parola|[\u015f\u015e]ifre|[\u043f\u041f]\u0430\u0440\u043e\u043b\u044c)"
)
_PASS_PROBE = (
    r"(?:passwor[dt]|kennwort|passphrase|passcode|mot de passe|contrase[n\xf1]a|senha|wachtwoord|"
    r"l[\xf6o]senord|adgangskode|salasana|has[?l]o|heslo|parola|\?ifre|\?{6})"
)
_COPULA = r"(?:[ \t]{1,2}(?:is|was|are|lautet|lautete|ist|war|est|es|era|\xe9|\xe8|er|on|to|set to|changed to|auf):?|[ \t]{0,2}(?::|=|->|\u2192))"
DETECTORS: tuple[Detector, ...] = (
    *(  # a program may stand behind a colour, whose last letter joins it: `\x1b[0mecho`
        make_anywhere_detector(
            "PASSWORD",
            rf"(?<![\w.-])(?:{program}){how}{_QUOTE}{_VALUE}{_QUOTE}"
            + (rf"\s{{0,3}}(?={after})" if after else ""),
            rf"(?:\b|[mK])(?:{program})\b{_UNBOUND.sub('*', how)}{_QUOTE}[^\s\"'\\|;&<>]{{5}}[^\s\"'\\|;&<>]*"
            + (
                r"[^\n|]*\|[^\n|]*(?:stdin|with-token|fd 0|passwd|sudo -|cryptsetup|kinit|ecryptfs|secret set)"
                if "stdin" in after
                else after
            ),
            _is_set,
        )
        for program, how, after in _COMMANDS
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?i)(?:^|[;\"'`= ])(?:password|pwd)\s?=\s?(?P<v>[^;\"'`\n\\{<$]{4,128});(?=[^\n]{0,200}=)",
        r"(?i)(?:password|pwd)\s?=[^;\"'`\n\\]{4,128};",
        is_given,
    ),
    make_anywhere_detector(
        "PASSWORD",
        rf"(?i)(?<!\w){_PASS_WORDS}(?:[ \t][^\s:=\"'`,]{{1,24}}){{0,6}}?{_COPULA}(?:[ \t]{{1,3}}|\s{{0,3}}\n(?=[\w!#$%^&*@+.~-]+[ \t]*(?:\n|$)))[\"'`*\u201e\u201c\xab]{{0,3}}(?P<v>(?=[^\s\d]*\d)[^\s\"'`<>\u201c\u201d\xbb]{{6,64}}?)(?=[\"'`*\u201c\u201d\xbb]|[.,;:!?)]*(?:\s|$))",
        rf"(?i){_PASS_PROBE}(?:[ \t][^\s:]+)*[ \t]*(?:is|was|are|lautete?|ist|war|est|es|era|er|on|to|auf|[:=>?\xe9\xe8]):?\s+[^\n]{{0,3}}\S*[0-9]",
        _is_strong,
        behind=80,
    ),
    make_anywhere_detector(
        "PASSWORD",
        rf"(?i)(?<!\w){_PASS_WORDS}[^\n]{{0,80}}\n(?:new |neuer )?(?:value|wert): (?P<v>[^\s\"'`]{{6,64}})",
        r"(?i)\n(?:new |neuer )?(?:value|wert): [^\s]*[0-9]",
        lambda value: _is_strong(value) or is_set_password(value),
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?i)\b(?:log ?-?in|logon|sign ?-?in|credentials?|creds|anmeld\w*|zugang\w*|account|identifiants?|default user|admin|user|access|vpn|wiki)\b[^\n]{0,48}?[\s\"'`(][\w.@+-]{2,40}[\"'`]? ?/ [\"'`]?(?P<v>[^\s\"'`<>/]{6,64})",
        r"(?i)(?:log ?-?in|logon|sign ?-?in|credential|creds|anmeld|zugang|account|identifiant|default user|admin|user|access|vpn|wiki)[^\n]*[\w\"'`] ?/ [\"'`]?[^\s/]*[0-9]",
        _is_strong,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?i)\b(?:log|sign)[ -]?in (?:as|with|using) [`'\"*]{1,2}[\w.@+-]{2,40}[`'\"*]{1,2},? (?:with|and|using) (?:the )?(?:password |pw )?[`'\"*]{1,2}(?P<v>[^`'\"*\s]{6,64})[`'\"*]",
        r"(?i)(?:log|sign)[ -]?in (?:as|with|using) [`'\"*][^\s]+ (?:with|and|using) [^\n]*[`'\"*][^`'\"*\s]{6}",
        _is_set,
    ),
    make_anywhere_detector(
        "PASSWORD",
        r"(?<![\w.])send(?:line|_line)?(?:\s{1,3}--)?[ (]{1,3}[\"'](?P<v>[^\"'\\\n$\[{ ]{6,64})\\[rn]|(?i:assword)[^\n]{0,40}\n[^\n]{0,40}send(?:line)?[ (]{1,3}[\"'](?P<w>[^\"'\\\n$\[{ ]{6,64})[\"']",
        r"send(?:line|_line)?(?:\s+--)?[ (]{1,3}[\"'][^\"'\\\n ]{6}",
        _is_strong,
    ),
    make_anywhere_detector(
        "PIN",
        r"(?i:\b(?:one[- ]time|sms|verification|pairing|login|confirmation|2fa) (?:pass)?code(?: is|:)[ \t]{1,4}\\*[\"'`]?)(?P<v>(?=[A-Z-]*\d)[A-Z\d]{3,8}(?:-[A-Z\d]{3,8})?)(?![\w.-]|:\d)",
        r"(?i)(?:one[- ]time|sms|verification|pairing|login|confirmation|2fa) (?:pass)?code(?: is|:)",
    ),
    make_anywhere_detector(
        "PIN",
        r"(?:(?<![A-Za-z0-9])(?i:pin|puk)|(?<=[a-z])(?:Pin|PIN))(?:[ _-]?(?i:code|number|no\.?))?\\*[\"'`]?(?:[ \t]{0,24}[:=][ \t]{0,8}|\s(?:is|was)[: ]\s?)\\*[\"'`]?(?P<v>\d{4,8})(?!\w|[.:-]\d)",
        r"(?i)(?:pin|puk)(?:[ _-]?(?:code|number|no\.?))?\\*[\"'`]?\s*(?:is|was|[:=])[: ]?\s*\\*[\"'`]?\d{4}",
    ),
)
