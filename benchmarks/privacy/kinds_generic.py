"""Secrets without a format of their own: known by the name, the header or the command they stand in.

`NAMED`: values with the variable that holds them; alone they are indistinguishable from hashes and ids.
`LINES`: whole lines of which a part is secret. `BLOCKS`: several lines.
"""

import base64
import json
import random
import textwrap

from shapes import Made, Maker, characters, domain, host_name, segment, template, user_name, uuid4

NAMED = (
    ("aws-secret-key", "AWS_SECRET_ACCESS_KEY", "{b40}"),
    ("azure-ad-secret-plain", "ARM_CLIENT_SECRET", "{w40}"),
    ("cloudflare-token", "CLOUDFLARE_API_TOKEN", "{w40}"),
    ("ibm-cloud-key", "IBMCLOUD_API_KEY", "{w44}"),
    ("linode-token", "LINODE_TOKEN", "{h64}"),
    ("hetzner-token", "HCLOUD_TOKEN", "{a64}"),
    ("heroku-uuid-key", "HEROKU_API_KEY", "{uuid}"),
    ("vercel-token", "VERCEL_TOKEN", "{a24}"),
    ("gitea-token", "GITEA_TOKEN", "{h40}"),
    ("cohere-key", "COHERE_API_KEY", "{a40}"),
    ("mistral-key", "MISTRAL_API_KEY", "{a32}"),
    ("deepgram-key", "DEEPGRAM_API_KEY", "{h40}"),
    ("wandb-key", "WANDB_API_KEY", "{h40}"),
    ("twilio-auth-token", "TWILIO_AUTH_TOKEN", "{h32}"),
    ("datadog-key", "DD_API_KEY", "{h32}"),
    ("datadog-app-key", "DD_APP_KEY", "{h40}"),
    ("algolia-admin-key", "ALGOLIA_ADMIN_KEY", "{h32}"),
    ("pagerduty-key", "PAGERDUTY_API_KEY", "u+{w18}"),
    ("okta-token", "OKTA_API_TOKEN", "00{w40}"),
    ("django-secret-key", "SECRET_KEY", "django-insecure-{p50}"),
    ("flask-secret-key", "FLASK_SECRET_KEY", "{h48}"),
    ("rails-secret-base", "SECRET_KEY_BASE", "{h128}"),
    ("jwt-signing-secret", "JWT_SECRET", "{a32}"),
    ("session-secret", "SESSION_SECRET", "{w43}"),
    ("encryption-key", "ENCRYPTION_KEY", "{b43}="),
    ("oauth-client-secret", "CLIENT_SECRET", "{w36}"),
    ("webhook-secret", "WEBHOOK_SECRET", "{h40}"),
    ("database-password", "DB_PASSWORD", "{p16}"),
    ("admin-password", "ADMIN_PASSWORD", "{p12}"),
    ("redis-password", "REDIS_PASSWORD", "{a20}"),
    ("smtp-password", "SMTP_PASS", "{a16}"),
    ("service-api-key", "SERVICE_API_KEY", "{a32}"),
    ("refresh-token", "REFRESH_TOKEN", "{w64}"),
    ("access-token", "ACCESS_TOKEN", "{w48}"),
    ("ethereum-key", "DEPLOYER_PRIVATE_KEY", "0x{h64}"),
    ("passphrase-words", "KEY_PASSPHRASE", "{word}-{a5}-{word}-{a5}"),
)
LINES = (
    ("bearer-header", "Authorization: Bearer {w48}"),
    ("token-header", "Authorization: token {h40}"),
    ("api-key-header", "x-api-key: {a40}"),
    ("curl-user", "curl -sS -u {user}:[{a16}] https://api.{domain}/v2/jobs"),
    ("wandb-login", "wandb login {h40}"),
    ("docker-login", "docker login -u {user} -p [{a18}] registry.{domain}"),
    ("mysql-flag", "mysql -h {host} -u root -p[{a14}] shop -e 'select count(*) from orders'"),
    ("pgpassword", "PGPASSWORD=[{a16}] psql -h {host} -U app -d orders -c 'select 1'"),
    ("sshpass", "sshpass -p '[{a14}]' ssh deploy@10.0.0.7 uptime"),
    ("redis-cli", "redis-cli -h {host} -a [{a22}] ping"),
    ("password-flag", "./migrate --user admin --password [{a16}] --dry-run"),
    ("token-flag", "gh-sync --token={a36} --org acme"),
    ("netrc", "machine api.{domain} login {user} password [{a18}]"),
    ("git-credentials", "https://{user}:[{a24}]@git.{domain}"),
    ("npmrc-auth", "//registry.{domain}/:_authToken=[{uuid}]"),
    ("pip-index", "pip install --index-url https://{user}:[{a20}]@pypi.{domain}/simple acme-core"),
    ("mssql-connection", "Server=tcp:{host},1433;Database=crm;User ID=sa;Password=[{a16}];Encrypt=true;"),
    (
        "azure-storage-connection",
        "DefaultEndpointsProtocol=https;AccountName={word}store;Account|Key=[{b86}]==;"
        "EndpointSuffix=core.windows.net",
    ),
    (
        "service-bus-connection",
        "Endpoint=sb://{word}.servicebus.windows|.net/;SharedAccessKeyName=Root;SharedAccessKey=[{b43}]=",
    ),
    ("jdbc-url", "jdbc:postgresql://{host}:5432/orders?user=app&password=[{a16}]&ssl=true"),
    ("session-cookie", "Cookie: theme=dark; sessionid=[{s32}]; lang=en"),
    ("set-cookie", "Set-Cookie: auth_token=[{w64}]; Path=/; HttpOnly; Secure"),
    (
        "kubeadm-join",
        "kubeadm join {host}:6443 --token [{s6}.{s16}] --discovery-token-unsafe-skip-ca-verification",
    ),
    ("sql-identified-by", "ALTER USER app WITH PASSWORD '[{a18}]';"),
    ("chpasswd", "echo '{user}:[{a14}]' | chpasswd"),
    ("openssl-pass", "openssl pkcs12 -in bundle.p12 -passin pass:[{a16}] -nodes"),
    ("wireguard-key", "PrivateKey = {b43}="),
)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def basic_header(rng: random.Random) -> Made:
    """Make a basic authentication header."""
    value = _base64(f"{user_name(rng)}:{characters(rng, 'a', 17)}")
    return Made(f"Authorization: Basic {value}", (value,))


def docker_config(rng: random.Random) -> Made:
    """Make the stored login of a container registry."""
    value = _base64(f"{user_name(rng)}:{characters(rng, 'a', 20)}")
    return Made(json.dumps({"auths": {f"registry.{domain(rng)}": {"auth": value}}}), (value,))


def jwt(rng: random.Random) -> Made:
    """Make a signed JSON web token; its header is always the same and not private."""
    claims = {"sub": characters(rng, "h", 12), "iat": rng.randrange(1_700_000_000, 1_790_000_000)}
    body = f"{segment(claims)}.{characters(rng, 'w', 43)}"
    return Made(f"{segment({'alg': 'HS256', 'typ': 'JWT'})}.{body}", (body,))


def discord_bot(rng: random.Random) -> Made:
    """Make a bot token: its number in base64, a time, a signature."""
    number = _base64(str(rng.randrange(10**17, 10**18))).rstrip("=")
    value = f"{number}.{characters(rng, 'w', 6)}.{characters(rng, 'w', 38)}"
    return Made(value, (value,))


def _pem(label: str, size: int) -> Maker:
    def make(rng: random.Random) -> Made:
        start = {"OPENSSH": "b3BlbnNzaC1rZXktdjEA", "PGP": "lQdGBGYv"}.get(label.split()[0], "MIIE")
        lines = textwrap.wrap(start + characters(rng, "b", size), 64)
        head, extra = f"{'-' * 5}BEGIN {label}{'-' * 5}", [""] if label.startswith("PGP") else []
        text = "\n".join([head, *extra, *lines, head.replace("BEGIN", "END")])
        return Made(text, tuple(lines))

    return make


def service_account(rng: random.Random) -> Made:
    """Make a cloud service account's key file, with the key escaped in a JSON string."""
    key = _pem("PRIVATE KEY", 800)(rng)
    account = {
        "type": "service_account",
        "project_id": "orders-prod",
        "private_key_id": "k1",
        "private_key": key.text + "\n",
        "client_id": "1",
    }
    return Made(json.dumps(account, indent=2), key.parts)


def kubernetes_secret(rng: random.Random) -> Made:
    """Make a Secret manifest with its values in base64."""
    first, second = (_base64(characters(rng, "a", size)) for size in (18, 32))
    text = (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: app-credentials\ntype: Opaque\n"
        f"data:\n  password: {first}\n  api-token: {second}"
    )
    return Made(text, (first, second))


def dotenv(rng: random.Random) -> Made:
    """Make a `.env` file with settings that are not private, and three that are."""
    values = (characters(rng, "p", 18), characters(rng, "a", 32), uuid4(rng))
    text = (
        f"NODE_ENV=production\nPORT=8080\nDB_PASS='{values[0]}'\nLOG_LEVEL=info\n"
        f'PAYMENTS_API_KEY="{values[1]}"\nINTERNAL_SERVICE_TOKEN={values[2]}\nTZ=UTC'
    )
    return Made(text, values)


def aws_credentials(rng: random.Random) -> Made:
    """Make a profile of the shared credentials file."""
    key_id, secret = characters(rng, "t", 16), characters(rng, "b", 40)
    head = "AK" + "IA"
    text = (
        f"[default]\naws_access_key_id = {head}{key_id}\naws_secret_access_key = {secret}\nregion = eu-west-1"
    )
    return Made(text, (key_id, secret))


def kubeconfig(rng: random.Random) -> Made:
    """Make a user of a kubeconfig, with a token and a key in base64."""
    token, key = characters(rng, "w", 90), _base64(_pem("PRIVATE KEY", 300)(rng).text)
    text = f"users:\n- name: admin@{host_name(rng)}\n  user:\n    client-key-data: {key}\n    token: {token}"
    return Made(text, (token, key))


VALUES: tuple[tuple[str, str, Maker], ...] = (
    ("jwt", "ID_TOKEN", jwt),
    ("discord-bot", "DISCORD_TOKEN", discord_bot),
)
BLOCKS: tuple[tuple[str, Maker], ...] = (
    ("rsa-private-key", _pem("RSA PRIVATE KEY", 1592)),
    ("ec-private-key", _pem("EC PRIVATE KEY", 160)),
    ("openssh-private-key", _pem("OPENSSH PRIVATE KEY", 380)),
    ("encrypted-private-key", _pem("ENCRYPTED PRIVATE KEY", 900)),
    ("pgp-private-key", _pem("PGP PRIVATE KEY BLOCK", 900)),
    ("gcp-service-account", service_account),
    ("kubernetes-secret", kubernetes_secret),
    ("dotenv-file", dotenv),
    ("aws-credentials-file", aws_credentials),
    ("kubeconfig-user", kubeconfig),
    ("docker-config", docker_config),
)
HEADERS: tuple[tuple[str, Maker], ...] = (("basic-header", basic_header),)
LINE_MAKERS = (*((name, template(text)) for name, text in LINES), *HEADERS)
