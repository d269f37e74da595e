"""Secrets of network devices, directories, PINs and key documents are found; what looks alike stays."""

import json

import pytest
from secret_sessions import output_trace

from tracemill.privacy.redaction.redactor import Redactor

WORD = "Kelp4" + "Harbor"
HEX = "0822455" + "D0A16"
KEY = "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"
STATEMENTS = (
    (f"enable password 7 {HEX}", HEX),
    (f"enable secret {WORD}", WORD),
    (f"r1(config)# enable secret 0 {WORD}", WORD),
    (f"username admin privilege 15 password 7 {HEX}", HEX),
    (f"username kim password 2KFQ{WORD} encrypted", f"2KFQ{WORD}"),
    (
        f"username admin secret 9 $9$2MJBozw{WORD}$2lFhcKvpghcyw8deP25GOfyZaagy",
        "2lFhcKvpghcyw8deP25GOfyZaagy",
    ),
    (f"tacacs-server key 7 {HEX}", HEX),
    (f"tacacs-server host switch9 key {WORD}", WORD),
    (f"crypto isakmp key {WORD} address 0.0.0.0", WORD),
    (f" neighbor peer1 password 7 {HEX}", HEX),
    (f" ip ospf message-digest-key 1 md5 {WORD}", WORD),
    (f" key-string 7 {HEX}", HEX),
    (f" wpa-psk ascii 0 {WORD}", WORD),
    (f"line vty 0 4\n transport input ssh\n password {WORD}\n login", WORD),
    (f'secret "{WORD}"; ## SECRET-DATA', WORD),
    (f'set system root-authentication encrypted-password "$9${WORD}x"', WORD),
    (f"    set psksecret ENC SH2nq8C0r{WORD}", WORD),
    (f"/ppp secret add name=kim password={WORD}", WORD),
    (f"snmp-server community {WORD} RO", WORD),
    ("snmp-server community netkelp RW 10", "netkelp"),
    ("set snmp community netkelp authorization read-only", "netkelp"),
    ("rocommunity netkelp9 10.0.0.0/8", "netkelp9"),
    ("com2sec notConfigUser default netkelp9", "netkelp9"),
    (f"createUser kim SHA {WORD} AES Tundra941Q", WORD),
    (f"createUser kim SHA {WORD} AES Tundra941Q", "Tundra941Q"),
    ("snmpwalk -v2c -c netkelp9 switch", "netkelp9"),
    (f"snmpget -v 3 -u kim -l authPriv -a SHA -A {WORD} -X Tundra941Q switch", "Tundra941Q"),
    (f"snmpget -v 3 -u kim -l authPriv -a SHA -A {WORD} -X Tundra941Q switch", WORD),
    ("snmp:\n  version: 2\n  community: netkelp9", "netkelp9"),
    ("SNMP_COMMUNITY=netkelp9", "netkelp9"),
)
DOCUMENTS = (
    ("dn: uid=kim\nuserPassword:: VHVuZHJhOTQxMg==", "VHVuZHJhOTQxMg"),
    ("userPassword:: e1NTSEF9YWJjZGVm\n Z2hpamtsbW5vcA==\ncn: kim", "Z2hpamtsbW5vcA"),
    (f"key = {{'kty': 'EC', 'crv': 'P-256', 'd': '{KEY}'}}", KEY),
    ("2NqL3xYb7VwTz5KcRmP9dHsUeFa" + "_4GjXk8QoWvZy2TnBu6Sr", "4GjXk8QoWvZy2TnBu6Sr"),
    ("PIN: 4821", "4821"),
    ("PIN code: 48219377", "48219377"),
    ("SIM PIN is 4821\nPUK: 12345678", "12345678"),
    ("BLUETOOTH_PIN=482193", "482193"),
    ("userPin: 9031", "9031"),
)
OBJECTS = (
    ('{"device": "lock", "pin": "4821"}', "4821"),
    ('{"sensitive": true, "value": "it' + "'s" + f' {WORD}"}}', WORD),
    (f"{{'kind': 'Secret', 'data': {{'login': '{WORD}'}}}}", WORD),
)
PLAIN = (
    "enable password authentication for everyone",
    "enable secret scanning",
    "password 8 characters long",
    "crypto key generate rsa modulus 2048",
    "snmp-server community public RO",
    "SNMP_COMMUNITY=public",
    "community: netkelp9",
    "radius-server key ${KEY}",
    "ntp server time.cloudflare.com",
    "ip access-list standard 10",
    "sshPublicKey:: c3NoLWVkMjU1MTkgQUFBQQ==",
    "std:: vector9 abcd1234",
    "secretKey:: Password",
    "tokenType:: Text123",
    "{'kty': 'EC', 'crv': 'P-256', 'x': 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU'}",
    '{"sensitive": false, "value": "abcdef12"}',
    "PIN: 2024-11-03",
    "pin: 13",
    "pinned = 4821",
    "spin: 48213",
    "opinion: 12345",
)


@pytest.mark.parametrize(("text", "private"), [*STATEMENTS, *DOCUMENTS])
def test_a_secret_is_found_alone_among_lines_and_in_a_diff(text: str, private: str) -> None:
    added = "".join(f"+{line}\n" for line in text.split("\n"))
    for shown in (f"{text}\n", f"!\nhostname r1\n{text}\nend\n", added, f'run("""{text}""")\n'):
        assert private not in Redactor(key=b"k").redact_text(shown)[0]


@pytest.mark.parametrize(("text", "private"), OBJECTS)
def test_a_secret_is_found_in_an_object(text: str, private: str) -> None:
    assert private not in Redactor(key=b"k").redact_text(text)[0]


@pytest.mark.parametrize("text", PLAIN)
def test_what_looks_like_a_statement_stays(text: str) -> None:
    assert Redactor(key=b"k").redact_text(f"{text}\n")[0] == f"{text}\n"


def test_only_the_secret_of_a_workload_identity_file_is_taken() -> None:
    pool = "//iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/p/providers/q"
    config = {
        "type": "external_account",
        "audience": pool,
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": "https://sts.googleapis.com/v1/token",
        "client_secret": f"{WORD}TundraX",
        "credential_source": {
            "file": "/var/run/secrets/token",
            "format": {"subject_token_field_name": "access_token"},
        },
    }
    redacted = json.loads(Redactor(key=b"k").redact_text(json.dumps(config))[0])
    assert redacted.pop("client_secret").startswith("<SECRET_")
    assert redacted == {name: value for name, value in config.items() if name != "client_secret"}


@pytest.mark.parametrize(
    ("line", "output", "kept"),
    [
        ("env", "A_PATH=/usr/bin\n{}\nHOME=/root\n", "9f86d081884c7d659a2feaa0c55ad015"),
        ("pass show x; ls", "{}\nmain.py\n", "aB3/xY9/kL2mQ"),
        ("ls; pass show x", "src/app/main\n{}\n", "aB3/xY9/kL2mQ"),
        ("pass show x", "{}\n", "/Kq7x/Zp2w/mB9"),
    ],
)
def test_odd_values_in_outputs_are_found(line: str, output: str, kept: str) -> None:
    trace = output_trace("claude_code", line, output.format(kept))
    shown = Redactor(key=b"k").redact_trace(trace)[0].contexts[0].messages[-1].content
    before, behind = output.split("{}")
    assert kept not in shown
    assert shown.startswith(before)
    assert shown.endswith(behind)


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("env; git rev-parse HEAD", "HOME=/root\n9f86d081884c7d659a2feaa0c55ad015a3bf4f1b\n"),
        (
            "docker inspect -f '{{.Id}}' web",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n",
        ),
        ("env", "BUILD_SHA=9f86d081884c7d659a2feaa0c55ad015\nDATA=src/app/main\n"),
    ],
)
def test_digests_and_paths_in_outputs_stay(line: str, output: str) -> None:
    trace = output_trace("claude_code", line, output)
    assert Redactor(key=b"k").redact_trace(trace)[0].contexts[0].messages[-1].content == output
