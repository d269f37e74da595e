# ruff: noqa: E501 (command lines)
"""Commands that print an environment, a column or one variable: what can be a secret goes, whatever its name."""

import random

import pytest
from secret_sessions import HARNESS_NAMES, output_trace, random_secrets

from tracemill.privacy.redaction.redactor import Redactor
from tracemill.privacy.secrets.printed_secrets import find_printed_secrets
from tracemill.privacy.secrets.queries import judge_query

REDACTOR = Redactor(key=b"k")
KEPT = (
    "HOME=/root",
    "PATH=/usr/local/bin:/usr/bin",
    "LANG=C.UTF-8",
    "NODE_VERSION=20.11.1",
    "TERM=xterm-256color",
    "DEBUG=1",
    "NODE_ENV=production",
    "GIT_COMMIT=b52901a6ccaccdb251bce79793a67c9eb52901a6",
    "PYTHON_SHA256=b52901a6ccaccdb251bce79793a67c9eb52901a6ccaccdb251bce79793a67c9e",
    "REDIS_ADDRESS=cache:6379",
    "APP_IMAGE=python3.11-slim-bookworm",
    "SERVICE_URL=https://shop.internal/api/v2",
)
ENVIRONMENT = "\n".join((*KEPT[:4], "ACME_LICENSE=@", "QUUX=@", *KEPT[4:])) + "\n"
DUMPS = r"""
env
printenv
set
export
env | sort
env | grep -i e
set | grep _
sudo env
( env )
bash -c env
env > /tmp/x; cat /tmp/x
printenv | head -50
docker exec web env
docker exec -it web printenv
docker exec web sh -c 'env | sort'
docker compose exec -T web env
docker-compose run web env
docker run --rm alpine env
podman exec c env
kubectl exec pod -- env
kubectl exec -it deploy/web -c app -- printenv
kubectl exec pod -- sh -c 'printenv'
kubectl set env deploy/web --list
ssh prod env
heroku run env
heroku config -s
fly ssh console -C env
minikube ssh env
direnv exec . env
aws-vault exec prod -- env
op run --env-file=.env -- env
cat /proc/1/environ | tr '\0' '\n'
tr '\0' '\n' < /proc/1/environ
xargs -0 -n1 < /proc/1/environ
sudo cat /proc/42/environ
strings /proc/1/environ
systemctl show-environment
crontab -l
ps eww 12
python -c 'import os; print(os.environ)'
node -p process.env
docker inspect -f '{{range .Config.Env}}{{println .}}{{end}}' web
""".strip("\n").split("\n")
OTHERS = {
    "export -p": 'declare -x HOME="/root"\ndeclare -x ACME_LICENSE="@"\n',
    "declare -p": 'declare -x ACME_LICENSE="@"\n',
    "env -0": "HOME=/root\0ACME_LICENSE=@\0LANG=C",
    "docker inspect web": '[{"Id": "b52901a6ccaccdb251bce797", "Config": {"Env": ["PATH=/usr/bin", "ACME_LICENSE=@"]}}]',
    "docker inspect --format '{{.Config.Env}}' web": "[PATH=/usr/bin ACME_LICENSE=@ LANG=C]",
    "docker inspect --format '{{json .Config.Env}}' web": '["PATH=/usr/bin","ACME_LICENSE=@"]',
    "docker compose config": "services:\n  web:\n    environment:\n      ACME_LICENSE: @\n    image: nginx:1.25\n",
    "docker-compose -f a.yml config": "services:\n  web:\n    environment:\n      - ACME_LICENSE=@\n",
    "systemctl show web -p Environment": "Environment=LANG=C ACME_LICENSE=@ MODE=prod\n",
    "systemctl show -p Environment web": "Environment=ACME_LICENSE=@\n",
    "systemctl show --property=Environment web": "Environment=ACME_LICENSE=@\n",
    "systemctl cat web": '[Service]\nEnvironment="ACME_LICENSE=@"\n',
    "kubectl get cm app -o yaml": "apiVersion: v1\ndata:\n  ACME: @\nkind: ConfigMap\n",
    "kubectl get pod x -o json": '{"spec": {"containers": [{"env": [{"name": "ACME", "value": "@"}]}]}}',
    "kubectl describe pod x": "    Environment:\n      ACME_LICENSE:  @\n      LANG:          C\n",
    "Get-ChildItem Env:": "Name                           Value\n----                           -----\nACME_LICENSE                   @\n",
    "aws lambda get-function-configuration --function-name f": '{"FunctionName": "f", "Environment": {"Variables": {"ACME": "@"}}}',
    "az webapp config appsettings list -n x": '[{"name": "ACME", "slotSetting": false, "value": "@"}]',
    "aws secretsmanager get-secret-value --secret-id prod": '{"ARN": "arn:aws:x", "Name": "prod", "SecretString": "{\\"u\\": \\"shop\\", \\"v\\": \\"@\\"}"}',
    "aws secretsmanager get-secret-value --secret-id x --query SecretString --output text": '{"host": "db.local", "v": "@"}',
    "aws ssm get-parameters --names a --with-decryption --query 'Parameters[].Value'": '["@"]',
    "python manage.py drf_create_token kim": "Generated token @ for user kim\n",
    "python3 -c 'import os; print(os.environ)'": "environ({'HOME': '/root', 'ACME_LICENSE': '@'})\n",
    "mysql -e 'select password from users'": "+------------------+\n| password |\n+------------------+\n| @ |\n+------------------+\n1 row in set (0.00 sec)\n",
}
BARE = r"""
psql -Atc 'select api_key from users'
psql -At -c "SELECT id, u.api_key AS k FROM users u WHERE id=1"
psql $DATABASE_URL -tAc 'select token from sessions'
mysql -N -e 'select password from users' shop
mysql -uroot -p$P shop -sNe 'select password from users'
mysql -h db -N -e 'select password from users'
sqlite3 a.db 'select token from t'
sqlite3 -readonly a.db "select token from t limit 1;"
echo 'select token from t' | sqlite3 a.db
sqlite3 a.db <<< 'select token from t'
docker exec db psql -U app -Atc 'select api_key from users'
kubectl exec db-0 -- mysql -N -e 'select password from users'
psql -Atc 'insert into keys(name) values (1) returning api_key'
sqlcmd -Q 'select api_key from users' -h -1
clickhouse-client -q 'select token from t'
mongosh --quiet --eval 'db.users.findOne().apiKey'
redis-cli GET session:token
redis-cli -h cache get auth:secret
redis-cli HGET user:1 password
docker exec r redis-cli get session:token
netlify env:get X
netlify env:get ACME_LICENSE
heroku config:get ACME_LICENSE
railway variables get X
printenv ACME_LICENSE
docker exec web printenv ACME_LICENSE
sudo cat /var/lib/rancher/k3s/server/node-token
cat /var/lib/rancher/k3s/server/token
cat /var/jenkins_home/secrets/initialAdminPassword
git config --get http.extraheader
git config http.https://github.com/.extraheader
composer config github-oauth.github.com
composer config --global gitlab-token.gitlab.com
powershell -c "$env:API_KEY"
pwsh -Command '$env:API_KEY'
$env:API_KEY
sops exec-env s.yaml 'echo $DB_PASSWORD'
sed -n 3p .env
awk -F= '/PASS/{print $2}' .env
awk -F= '{print $2}' .env
cut -d= -f2 .env
head -1 .env
python -c "print(open('.env').read())"
env | cut -d= -f2
""".strip("\n").split("\n")
HARMLESS = r"""
set -e
set -euo pipefail && ls
export NODE_ENV=production
env FOO=1 make
/usr/bin/env python a.py
env | wc -l
docker inspect --format '{{.State.Status}}' web
docker ps
systemctl show web -p ActiveState
psql -Atc 'select count(*) from users'
psql -Atc 'select length(password) from users'
psql -c 'select name from users where token is not null'
sqlite3 a.db '.tables'
redis-cli GET page:views
git config --get remote.origin.url
printenv PATH
netlify env:get NODE_VERSION
kubectl get pods
ps aux
""".strip("\n").split("\n")


def _output(harness: str, line: str, output: str) -> str:
    return REDACTOR.redact_trace(output_trace(harness, line, output))[0].contexts[0].messages[2].content


def test_an_environment_keeps_what_everybody_has_and_loses_the_rest() -> None:
    rng = random.Random()
    missed: list[tuple[str, str]] = []
    for at, line in enumerate(DUMPS):
        for make, value in random_secrets(rng).items():
            shown = _output(HARNESS_NAMES[at % 4], line, ENVIRONMENT.replace("@", value))
            missed += [(make, line)] * shown.count(value)
            assert [each for each in KEPT if each not in shown] == [], (line, shown)
    assert len(DUMPS) == 42
    assert len(missed) <= 0.01 * 10 * len(DUMPS), missed


def test_values_go_from_every_form_in_which_settings_are_printed() -> None:
    rng = random.Random()
    missed = [
        (make, line)
        for at, (line, output) in enumerate(OTHERS.items())
        for make, value in random_secrets(rng).items()
        if value in _output(HARNESS_NAMES[at % 3], line, output.replace("@", value))
    ]
    assert len(OTHERS) == 24
    assert len(missed) <= 0.02 * 5 * len(OTHERS), missed


def test_a_bare_value_goes_by_the_command_that_printed_it() -> None:
    rng = random.Random()
    missed = [
        (make, line)
        for at, line in enumerate(BARE)
        for make, value in random_secrets(rng).items()
        if not (make == "hex" and line.startswith("env |"))
        and value in _output(HARNESS_NAMES[at % 4], line, value)
    ]
    assert len(BARE) == 44
    assert len(missed) <= 0.01 * 5 * len(BARE), missed


@pytest.mark.parametrize("size", [32, 40, 64])
def test_hex_that_is_picked_of_an_env_file_is_no_digest(size: int) -> None:
    value = "".join(random.Random().choices("0123456789abcdef", k=size - 2)) + "a1"
    for line in ("sed -n 3p .env", "awk -F= '/PASS/{print $2}' .env", "cut -d= -f2 .env | head -1"):
        assert value not in _output("claude_code", line, value)
    assert value in _output("claude_code", "cat .env; git rev-parse HEAD", f"DEBUG=1\n{value}\n")


@pytest.mark.parametrize("line", HARMLESS)
def test_lines_that_print_no_secret(line: str) -> None:
    assert find_printed_secrets(line) is None


def test_an_inspected_container_keeps_its_digests() -> None:
    digest = "b52901a6ccaccdb251bce79793a67c9eb52901a6ccaccdb251bce79793a67c9e"
    told = f'[{{"Id": "{digest}", "Image": "sha256:{digest}", "Name": "/web", "Driver": "overlay2", "Path": "/entry.sh"}}]'
    assert _output("claude_code", "docker inspect web", told) == told


@pytest.mark.parametrize("before", ["docker ps", "cd web", "# what runs"])
def test_a_later_line_of_a_command_prints_too(before: str) -> None:
    value = "kw93-" + "".join(random.Random(before).choices("abcdefghkmnpqrstuvwxyz23456789", k=18))
    told = f'[{{"Config": {{"Env": ["PATH=/usr/bin", "ACME_LICENSE={value}"]}}}}]'
    assert value not in _output("claude_code", f"{before}\ndocker inspect web", told)


def test_queries_are_judged_by_their_columns() -> None:
    assert judge_query("psql", "select api_key from users") is True
    assert judge_query("psql", "select login, password from users") is False
    assert judge_query("psql", "select * from api_keys") is True
    assert judge_query("psql", "select * from users") is None
    assert judge_query("psql", "select md5(password) from users") is None
    assert judge_query("mongosh", "db.users.find({}, {token: 1})") is False
