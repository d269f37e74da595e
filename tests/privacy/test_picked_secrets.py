# ruff: noqa: E501 (command lines)
"""Secrets that a filter, a one-liner, a store or PowerShell picks by their names; values are invented."""

import pytest
from secret_sessions import output_trace

from tracemill.privacy.redaction.redactor import Redactor

REDACTOR = Redactor(key=b"k")
VALUE = "Tulip7!ash9"
TOKEN = "u7Qe2rTz9LmX4vBn8KsW"
SEED = "SUA" + "".join("QX7KD2MW5"[at * 5 % 9] for at in range(55))
OPEN_HANDS = "\n[The command completed with exit code 0.]\n[Current working directory: /workspace]"
PICKED = r"""
awk '/password/ {print $2}' config/production.yml
awk -F= '$1 == "DB_PASSWORD" {print $2}' app.properties
awk '/secret_key/{print $NF}' settings.ini
grep -oP 'password=\K.*' app.properties
grep -oP '(?<=api_key: ).+' config.yml
grep password config/database.yml | cut -d: -f2 | tr -d ' '
grep -m1 API_KEY docker-compose.yml | awk '{print $2}'
perl -ne 'print "$1\n" if /api_key\s*=\s*(\S+)/' app.conf
perl -lane 'print $F[1] if /token/' app.conf
ruby -ne 'puts $1 if /password: (.*)/' config/database.yml
ruby -ryaml -e 'puts YAML.load_file("config/database.yml", aliases: true).dig("production", "password")'
python3 -c "import yaml; print(yaml.safe_load(open('config.yml'))['db'].get('password'))"
python3 -c "import re; print(re.search(r'password=(\S+)', open('app.conf').read()).group(1))"
bash -lc 'perl -ne '"'"'print "$1\n" if /api_key\s*=\s*(\S+)/'"'"' app.conf'
flask shell -c 'print(app.config["SECRET_KEY"])'
wp eval 'echo DB_PASSWORD;'
mix run -e 'IO.puts Application.get_env(:shop, Shop.Endpoint)[:secret_key_base]'
pwsh -c '[Environment]::GetEnvironmentVariable("API_KEY", "Machine")'
pwsh -c '(Get-Content config.json | ConvertFrom-Json).db.password'
pwsh -c '(Get-Item Env:API_KEY).Value'
pwsh -c 'Get-ItemPropertyValue "HKCU:\Software\App" -Name ApiToken'
pwsh -c '$cred.GetNetworkCredential().Password'
pwsh -c 'ConvertFrom-SecureString $s -AsPlainText'
chezmoi execute-template '{{ pass "prod/db" }}'
gomplate -i '{{ (ds "vault").password }}'
curl -s localhost:2379/v3/kv/range -d '{"key":"L2FwcC9kYi9wYXNz"}' | jq -r '.kvs[0].value'
ceph auth get-key client.admin
poetry config http-basic.corp
htpasswd -nbB admin x
caddy hash-password --plaintext x
vault write -field=secret_id -f auth/approle/role/ci/secret-id
sshpass -p x ssh web-1 cat /run/secrets/db
gitea admin user generate-access-token -u ci --raw
""".strip("\n").split("\n")
LEFT = (
    ("awk '/token/ {print $2}' src/lexer.c", "Token\nparse_token(lexer)"),
    ("ps aux | awk '/token-refresh/ {print $2}'", "812345"),
    ("awk -F: '/password/ {print $1}' config.yml", "  password\n  smtp_password"),
    ("grep -i token config.yml", "  token_url: https://auth.corp/token\n  token_ttl: 3600"),
    ("grep token config.yml | cut -d: -f2", " 3600\n bearer"),
    ("grep -oP '(?<=token_type=)\\w+' app.log", "bearer\nbearer"),
    ("perl -ne 'print \"$1\\n\" if /def (\\w+)/' token.py", "refresh_token2\nget_secret1"),
    ("ruby -ryaml -e 'puts YAML.load_file(\"config/database.yml\").dig(\"production\", \"host\")'", "db1.corp"),
    ("cat secret-config.yml", "secretName: app-credentials\nauth: enabled-by-default"),
    ("cat .env.example", "DB_PASSWORD=\nJWT_SECRET=\nPORT=8080"),
    ("redis-cli hgetall job:1", "id\n0d1e11aa-2b1c-4c53-9d0e-7d1b2f7a1c11\ntoken_count\n12345678\nname\nDaily report"),
    ("etcdctl get --prefix /app/flags", "/app/flags/new-ui\ntrue\n/app/flags/token-ttl\n86400000"),
    ("reg query HKLM\\SOFTWARE\\App /v TokenGuid", "\nHKEY_LOCAL_MACHINE\\SOFTWARE\\App\n    MachineGuid    REG_SZ    0d1e11aa-2b1c-4c53-9d0e-7d1b2f7a1c11"),
    ("vault kv metadata get secret/app", "== Metadata Path ==\nsecret/metadata/app\n\nKey     Value\ncurrent_version     4\nupdated_time   2026-08-14T07:00:31.001Z"),
    ("journalctl -u token-refresh -n 1", "access token refreshed, expires in 3600 s"),
    ("systemctl status secret-rotate", "secret-rotate.service - Rotate\n   Main PID: 81234 (code=exited)"),
    ("argocd app get token-refresh", "Name: argocd/token-refresh\nSync Status: Synced to main (a1b2c3d)"),
    ("pwsh -c '(Get-Item token.txt).Length'", "40"),
    ("pwsh -c '(Get-Content package.json | ConvertFrom-Json).version'", "4.12.0-rc1"),
    ("chezmoi execute-template '{{ .chezmoi.osRelease.id }}'", "alpine-3a21"),
    ("curl -s localhost:2379/v3/kv/range -d '{\"key\":\"L2FwcC9yZXBsaWNhcw==\"}' | jq -r '.kvs[0].value'", "MTI="),
    ("kubectl -n prod get secret db -o yaml | yq .metadata.uid", "0d1e11aa-2b1c-4c53-9d0e-7d1b2f7a1c11"),
)  # fmt: skip


def _result(line: str, output: str, harness: str = "claude_code") -> str:
    return REDACTOR.redact_trace(output_trace(harness, line, output))[0].contexts[0].messages[2].content


@pytest.mark.parametrize("line", PICKED)
def test_a_secret_goes_that_is_picked_by_its_name(line: str) -> None:
    for value in (VALUE, TOKEN):
        assert value not in _result(line, value)
        assert value not in _result(f"set -e; {line} 2>/dev/null", value + OPEN_HANDS)


@pytest.mark.parametrize(("line", "output"), LEFT)
def test_what_only_looks_like_a_picked_secret_stays(line: str, output: str) -> None:
    assert _result(line, output) == output
    assert _result(line, output + OPEN_HANDS) == output + OPEN_HANDS


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("redis-cli hgetall session:42", "user_id\n42\ncsrf_token\n{}\nplan\nfree"),
        ("redis-cli hgetall oauth:1", '1) "client_id"\n2) "shop"\n3) "client_secret"\n4) "{}"'),
        ("redis-cli config get '*'", "maxmemory\n0\nrequirepass\n{}\nport\n6379"),
        ("redis-cli acl list", "user app on sanitize-payload #{} ~* &* +@all"),
        ("etcdctl get --prefix /app", "/app/db/host\ndb\n/app/db/password\n{}\n/app/replicas\n3"),
        ("consul kv get -recurse app/", "app/db/host:db\napp/db/password:{}"),
        ("consul kv export app/", '[\n\t{{\n\t\t"key": "app/db/password",\n\t\t"flags": 0,\n\t\t"value": "{}"\n\t}}\n]'),
        ("reg query HKCU\\Software\\App /v ApiToken", "\nHKEY_CURRENT_USER\\Software\\App\n    ApiToken    REG_SZ    {}\n"),
        ("cat /etc/pgbouncer/userlist.txt", '"app" "{}"'),
        ("cat ~/.bundle/config", '---\nBUNDLE_GEMS__CORP: "ci:{}"\nBUNDLE_JOBS: "4"'),
        ("bundle config list", "gems.corp\nSet for the current user (/root/.bundle/config): \"ci:{}\""),
        ("cat ~/.gradle/gradle.properties", "nexusUser=ci\nnexusPw={}"),
        ("op item get db --format json", '{{\n  "title": "db",\n  "fields": [\n    {{\n      "id": "password",\n      "value": "{}"\n    }}\n  ]\n}}'),
    ],
)  # fmt: skip
def test_a_value_goes_under_the_name_that_stands_beside_it(line: str, output: str) -> None:
    for end in ("", OPEN_HANDS):
        told = output.format(TOKEN) + end
        content = _result(line, told)
        before, after = told.split(TOKEN)
        assert TOKEN not in content
        assert content.startswith(before.removesuffix("#").removesuffix("ci:"))
        assert content.endswith(after)


def test_a_hash_of_a_password_goes_by_its_name() -> None:
    value = "3m9gZ1UgHjKFpEDJsLn/4t3jVl42y+8xQMrZsTaS3hJDtHDX"
    text = f'{{"name":"shop","password_hash":"{value}","hashing_algorithm":"rabbit_password_hashing_sha256"}}'
    redacted = REDACTOR.redact_text(text)[0]
    assert value not in redacted
    assert '"hashing_algorithm":"rabbit_password_hashing_sha256"' in redacted
    plain = "password_hash: sha256\npasswordHash = hashPassword(plain)"
    assert REDACTOR.redact_text(plain)[0] == plain


def test_a_seed_of_nats_goes_by_its_form() -> None:
    assert SEED not in REDACTOR.redact_text(f"-----BEGIN USER NKEY SEED-----\n{SEED}\n------END")[0]
    assert SEED[:40] in REDACTOR.redact_text(f"row {SEED[:40]}")[0]


@pytest.mark.parametrize("program", ["base64 -d", "sha256sum | cut -c1-8", "md5sum", "python3 -m json.tool"])
def test_a_program_behind_a_pipe_is_no_password(program: str) -> None:
    line = f"kubectl get secret db -o yaml | yq .data.password | {program}"
    assert REDACTOR.redact_text(line)[0] == line
