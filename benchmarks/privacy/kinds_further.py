"""Further kinds: less common services, other spellings, interrupted tokens, and names in system logs.

Each row: name of the kind, the variable it is usually kept in, template (`shapes.py`).
"""

import base64
import random

from shapes import Made, Maker, characters, checked, template, user_name

SERVICES = (
    ("adyen-key", "ADYEN_API_KEY", "AQ|Eyhmfx{b70}"),
    ("aiven-password", "AIVEN_SECRET", "AVN|S_{w19}"),
    ("apify-token", "APIFY_TOKEN", "apify|_api_{a36}"),
    ("asana-pat", "ASANA_TOKEN", "2/12{d14}/12{d14}:{h32}"),
    ("axiom-token", "AXIOM_TOKEN", "xa|at-{uuid}"),
    ("browserbase-key", "BROWSERBASE_API_KEY", "bb|_live_{w27}"),
    ("cal-key", "CAL_API_KEY", "cal|_live_{h32}"),
    ("clerk-key", "CLERK_SECRET_KEY", "sk|_live_{a40}"),
    ("clickup-token", "CLICKUP_TOKEN", "p|k_{d8}_{S32}"),
    ("composio-key", "COMPOSIO_API_KEY", "a|k_{a20}"),
    ("cursor-key", "CURSOR_API_KEY", "crs|r_{h64}"),
    ("deno-token", "DENO_DEPLOY_TOKEN", "dd|p_{a36}"),
    ("google-oauth-code", "AUTH_CODE", "4|/0A{w60}"),
    ("lob-key", "LOB_API_KEY", "live|_{h35}"),
    ("onesignal-key", "ONESIGNAL_API_KEY", "os|_v2_app_{e103}"),
    ("polar-token", "POLAR_ACCESS_TOKEN", "polar|_oat_{a43}"),
    ("scalingo-token", "SCALINGO_TOKEN", "tk|-us-{w48}"),
    ("slack-client", "SLACK_TOKEN", "xo|xc-{d12}-{d12}-{d12}-{h64}"),
    ("unknown-live-key", "LUMENTRA_KEY", "lumentra|_live_{a32}"),
    ("unknown-pat", "QUORVO_TOKEN", "quorvo|_pat_{a40}"),
    ("workos-key", "WORKOS_API_KEY", "sk|_a2V5X{a40}"),
    ("xata-key", "XATA_API_KEY", "xau|_{a40}"),
    ("zapier-hook", "ZAPIER_HOOK", "https://hooks.zapier|.com/hooks/catch/[{d7}/{s7}]/"),
)
LINES = (
    ("adonet-phrase", "Server=sql1;Database=crm;User Id=sa;Password=[{word} {word} {d2}!];Encrypt=yes"),
    ("argv-list", "run('mysql', '-u', 'root', '--password', '{a14}')"),
    ("azure-header", "Ocp-Apim-Subscription-Key: {h32}"),
    ("bcrypt-hash", "app:[$2b$12${a53}]"),
    (
        "cloudfront-signature",
        "GET https://cdn.{domain}/f.zip?Expires=1790000000&Signature=[{a90}]&Key-Pair-Id=KX",
    ),
    ("crypt-hash", "app:[$6${a16}${a86}]:19700:0:99999:7:::"),
    ("device-password", "username ops privilege 15 password 7 [09{h12}]"),
    ("device-secret", "enable secret [{a13}7]"),
    ("device-server-key", "tacacs-server key [{a11}4]"),
    ("export-history", "  501  export SECRET=[Ab{a10}7]"),
    ("keytool-storepass", "keytool -list -keystore k.jks -storepass [{a14}] -alias main"),
    ("labelled-pin", "PIN: [{d6}]"),
    ("ldif-password", "userPassword:: [{a24}]"),
    ("license-key", "LICENSE_KEY=[{S5}-{S5}-{S5}-{S5}-7A4B2]"),
    ("login-call", "smtp.login('mailer', '[{a14}]')"),
    ("connect-call", "db = pymysql.connect('{host}', 'root', '[{a14}]', 'shop')"),
    ("maven-password", "<server><id>nexus</id><password>[{a14}9]</password></server>"),
    ("nmcli-password", "nmcli dev wifi connect Attic password [{a14}]"),
    ("psk-phrase", 'psk="[{word} {word} {d2} {word}]"'),
    ("prose-german", "Das Passwort lautet [{a12}4]."),
    ("prose-login", "Sign in with admin / [{a12}4] on staging."),
    ("reset-link", "https://app.{domain}/reset-password/[{a40}]"),
    ("snmp-community", "snmp-server community [{l9}] RO"),
    ("useradd-password", "useradd -m -p [{a14}] worker"),
    ("webhook-link", "https://{host}.{domain}/webhooks/[{a32}]"),
    ("xml-setting", '<add key="ApiKey" value="[{a28}]"/>'),
    ("yaml-letters", "  password: [{l20}]"),
)


def _github(rng: random.Random) -> str:
    return "gh" + "p_" + checked(rng, 36)


def _split(joint: str, before: str = "", after: str = "") -> Maker:
    """Return a maker of tokens that a text interrupts."""

    def make(rng: random.Random) -> Made:
        token = _github(rng)
        return Made(f"{before}{token[:20]}{joint}{token[20:]}{after}", (token[4:20], token[20:]))

    return make


def _spelled(underscore: str) -> Maker:
    """Return a maker of tokens with an escaped underscore."""

    def make(rng: random.Random) -> Made:
        token = _github(rng)
        return Made(f"x={token.replace('_', underscore)}", (token[4:],))

    return make


def _encoded(rng: random.Random) -> Made:
    value = base64.b64encode(f"TOKEN={_github(rng)}\n".encode()).decode()
    return Made(f"echo {value} > out", (value,))


def _phrase(rng: random.Random) -> Made:
    value = " ".join(characters(rng, "l", 5) for _ in range(12))
    return Made(f"mnemonic: {value}", (value,))


def _sudo(rng: random.Random) -> Made:
    name = user_name(rng)
    return Made(f"[sudo] password for {name}: ", (name,))


DISGUISED: tuple[tuple[str, Maker], ...] = (
    ("token-coloured", _split("\x1b[0m\x1b[31m")),
    ("token-invisible", _split("\u200b")),
    ("token-soft-hyphen", _split("\u00ad")),
    ("token-two-literals", _split('" "', 't = "', '"')),
    ("token-added-literals", _split('" + "', 't = "', '"')),
    ("token-continued-line", _split("\\\n", "export T=")),
    ("token-two-lines", _split("\n", "token: ")),
    ("token-url-escape", _spelled("%5F")),
    ("token-html-escape", _spelled("&#95;")),
    ("token-in-base64", _encoded),
    ("wallet-phrase", _phrase),
)
PEOPLE: tuple[tuple[str, Maker], ...] = (
    ("sudo-prompt", _sudo),
    (
        "sudo-log",
        template("Nov 21 03:12:44 [{host}] sudo: [{user}] : TTY=pts/0 ; PWD=/srv ; COMMAND=/bin/ls"),
    ),
    ("session-log", template("sshd: pam_unix(sshd:session): session opened for user [{user}] by (uid=0)")),
    ("pytest-folder", template("/tmp/pytest-of-[{user}]/pytest-0/test_a0")),
    ("documents-and-settings", template(r"C:\Documents and Settings\[{user}]\Desktop\a.txt")),
    ("encoded-home", template("GET /open?path=%2FUsers%2F[{user}]%2Fcode")),
    ("ls-group", template("drwxr-xr-x 2 [{user}] [{user}] 4096 Jan  3 10:00 src")),
    ("git-name", template('git config user.name "[{person}]"')),
    ("git-blame", template("1a2b3c4d ([{person}] 2026-01-02 10:00:00 +0100 12) x = 1")),
    ("signed-off", template("Signed-off-by: [{person}] <[{user}@{domain}]>")),
    ("local-host", template("[{host}-MacBook-Pro].local: up 3 days")),
    ("internal-url", template("http://[jenkins.intra.{domain}]:8080/job/api")),
    ("cloud-host", template("ec2-[81-16{d1}-14{d1}-3{d1}].compute.amazonaws.com")),
    ("email-umlaut", template("[{user}@bäckerei-{word}.de]")),
    ("email-said", template("[{user}] (at) {word}post (dot) de")),
    ("network", template("route [172.19.4{d1}.0]/24 via eth0")),
    ("phone-zeros", template("ring [0049 30 {d6}]")),
)
