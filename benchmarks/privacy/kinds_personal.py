# ruff: noqa: E501 (literal texts)
"""Personal data: what names a person, a machine or a place, in the forms tools print it.

Each row: name of the kind, the word it stands by, maker. `VALUES` stand anywhere a value can; `LINES` are
what a program prints, whole.
"""

import ipaddress
import random

from shapes import Made, Maker, domain, template, user_name

_NAMES = (
    "Ana Kowalczyk",
    "Dmitri Okafor",
    "Greta Lindqvist",
    "Mira Castellano",
    "Petra Abbasi",
    "Hugo Novak",
)


def email(rng: random.Random) -> Made:
    """Make a mail address at a domain that is not reserved for examples."""
    value = f"{user_name(rng)}@{domain(rng)}"
    return Made(value, (value,))


def tagged_email(rng: random.Random) -> Made:
    """Make a mail address with a plus tag and a subdomain."""
    value = f"{user_name(rng)}+{rng.choice(('ci', 'billing', 'dev'))}@mail.{domain(rng)}"
    return Made(value, (value,))


def author(rng: random.Random) -> Made:
    """Make the author line of a commit; its address is private."""
    value = f"{user_name(rng)}@{domain(rng)}"
    return Made(f"Author: {rng.choice(_NAMES)} <{value}>", (value,))


def public_ip(rng: random.Random) -> Made:
    """Make a routable IPv4 address."""
    while True:
        address = ipaddress.IPv4Address(rng.getrandbits(32))
        if address.is_global and not address.is_multicast and min(map(int, str(address).split("."))) > 9:
            return Made(str(address), (str(address),))


def private_ip(rng: random.Random) -> Made:
    """Make an address of a home or company network."""
    head = rng.choice((f"10.{rng.randrange(1, 250)}", "192.168", f"172.{rng.randrange(16, 31)}"))
    value = f"{head}.{rng.randrange(2, 250)}.{rng.randrange(10, 250)}"
    return Made(value, (value,))


def ipv6(rng: random.Random) -> Made:
    """Make a routable IPv6 address, compressed or not."""
    if rng.random() < 0.5:
        value = f"2a0{rng.randrange(1, 9)}:{rng.randrange(4096, 65535):x}:{rng.randrange(256, 4095):x}::{rng.randrange(256, 65535):x}"
    else:
        value = ":".join(["2a01", *(f"{rng.randrange(4096, 65536):x}" for _ in range(7))])
    return Made(value, (value,))


def mac(separator: str) -> Maker:
    """Return a maker of hardware addresses in one spelling."""

    def make(rng: random.Random) -> Made:
        value = separator.join(f"{rng.randrange(256):02x}" for _ in range(6))
        return Made(
            value.upper() if separator == "-" else value, (value.upper() if separator == "-" else value,)
        )

    return make


def phone(*layouts: str) -> Maker:
    """Return a maker of phone numbers: `#` is any digit, `%` one from 2 to 8."""

    def make(rng: random.Random) -> Made:
        value = "".join(
            str(rng.randrange(10)) if c == "#" else str(rng.randrange(2, 9)) if c == "%" else c
            for c in rng.choice(layouts)
        )
        return Made(value, (value,))

    return make


def card(rng: random.Random) -> Made:
    """Make a payment card number with a valid check digit, in groups of four."""
    digits = [4, *(rng.randrange(10) for _ in range(14))]
    doubled = [d if i % 2 else d * 2 - 9 * (d > 4) for i, d in enumerate(digits)]
    text = "".join(map(str, (*digits, -sum(doubled) % 10)))
    value = " ".join(text[i : i + 4] for i in range(0, 16, 4))
    return Made(value, (value,))


def iban(rng: random.Random) -> Made:
    """Make a German bank account number with valid check digits."""
    account = f"{rng.randrange(10**7, 10**8)}{rng.randrange(10**9, 10**10)}"
    value = f"DE{98 - int(account + '131400') % 97:02d}{account}"
    return Made(value, (value,))


def home_slug(rng: random.Random) -> Made:
    """Make a home folder as a folder name, as some agents name a project's folder."""
    user = user_name(rng).replace(".", "-")
    return Made(f"-Users-{user}-code-billing", (user,))


VALUES: tuple[tuple[str, str, Maker], ...] = (
    ("email", "email", email),
    ("email-tagged", "contact", tagged_email),
    ("ipv4-public", "host", public_ip),
    ("ipv4-private", "addr", private_ip),
    ("ipv6", "addr", ipv6),
    ("mac-colon", "hwaddr", mac(":")),
    ("mac-dash", "hwaddr", mac("-")),
    ("phone-us", "phone", phone("(%##) %##-####", "+1 %##-%##-####", "+1 (%##) %##-####")),
    (
        "phone-international",
        "phone",
        phone("+49 30 %#######", "+33 6 %# ## ## ##", "+44 20 %### ####", "+81 3-%###-####"),
    ),
    ("phone-compact", "mobile", phone("+4915%########", "+447%########", "+1%##%######", "+336%#######")),
    ("card-number", "card", card),
    ("iban", "iban", iban),
    ("social-security", "ssn", phone("%##-%#-%###")),
    ("home-linux", "path", template("/home/[{user}]/work/api/main.py")),
    ("home-mac", "path", template("/Users/[{user}]/Documents/plan.md")),
    ("home-windows", "path", template(r"C:\Users\[{user}]\AppData\Local\Temp\out.txt")),
    ("home-wsl", "path", template("/mnt/c/Users/[{user}]/src/app")),
    ("home-msys", "path", template("/c/Users/[{user}]/.ssh/config")),
    ("home-slug", "project", home_slug),
    ("home-file-url", "uri", template("file:///home/[{user}]/notes/todo.md")),
    ("ssh-target", "target", template("{user}@{host}.corp.{domain}")),
    ("scp-path", "target", template("{user}@[{host}]:/srv/releases/app.tgz")),
)
LINES: tuple[tuple[str, Maker], ...] = (
    ("shell-prompt", template("[{user}]@[{host}]:~/api$ git status --short")),
    ("git-author", author),
    ("ls-owner", template("-rw-r--r-- 1 [{user}] staff 4211 Nov  3 10:12 /Users/[{user}]/api/main.py")),
    (
        "id-output",
        template("uid=1000([{user}]) gid=1000([{user}]) groups=1000([{user}]),27(sudo) HOME=/home/[{user}]"),
    ),
    ("passwd-entry", template("[{user}]:x:1001:1001:,,,:/home/[{user}]:/bin/bash")),
    ("user-variable", template("USER=[{user}]")),
    ("ssh-command", template("ssh -p 2222 [{user}]@[{host}].internal.{domain} 'systemctl restart api'")),
    (
        "syslog-host",
        template("Nov 21 03:12:44 [{host}] sshd: Accepted publickey for [{user}] from port 51122"),
    ),
    ("ifconfig-lines", template("ether {h2}:{h2}:{h2}:{h2}:{h2}:{h2} txqueuelen 1000 (Ethernet)")),
)
