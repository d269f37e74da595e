# ruff: noqa: E501 (command lines)
"""Outputs of commands that print a secret: the command is what says so, in every agent's form."""

import dataclasses
import json
import random
import re

import pytest
from secret_sessions import HARNESS_NAMES, output_trace, plain_secrets, random_secrets, trace_of
from whole_records import whole_text

from tracemill.privacy.redaction.redactor import Redactor
from tracemill.privacy.secrets.printed_secrets import find_printed_secrets
from tracemill.records.message import Message, ToolCall

REDACTOR = Redactor(key=b"k")
PLACEHOLDER = re.compile(r"<[A-Z_]+_[0-9a-f]{8}>")
PRINTING = r"""
glab variable get DEPLOY_PASSWORD
airflow variables get hook_secret
puppet lookup profile::db::root_password --node db1 --render-as s
salt-call pillar.get mailer:smtp_password
keeper get 'prod db' --format password
kubectl view-secret shop-db password
mytool settings show --name smtp-password
redis-cli acl genpass
vault write -field=secret_id -f auth/approle/role/ci/secret-id
aws dynamodb get-item --table-name t --query Item.webhook_secret.S --output text
curl -s http://localhost:8080/v1/items/1 | jq -r '.fields[] | select(.id == "password") | .value'
curl -s localhost:8500/v1/kv/app/mailer/password | jq -r '.[0].Value'
docker config inspect app_smtp_password | jq -r '.[0].Spec.Data'
vault operator init -format=json | jq -r '.unseal_keys_b64[]'
mariadb -N -e "select value from settings where name = 'smtp_password'" shop
docker exec nexus cat /nexus-data/admin.password
sudo gitlab-rails runner 'puts Gitlab::CurrentSettings.runners_registration_token'
pass show x
cd app && pass show x
op read "op://Private/db/password"
op item get db --fields password
op item get db --reveal
gcloud secrets versions access latest --secret=db
vault kv get -field=password secret/db
vault print token
vault token create -field token
cat /run/secrets/db
cat ~/.pgpass
echo $DB_PASSWORD
echo "$DB_PASSWORD"
printf '%s' "$TOKEN"
printf "%s\n" "${API_TOKEN}"
printenv API_TOKEN
heroku config:get SECRET_KEY -a app
terraform output -raw db_password
openssl rand -hex 32
bw get password github
aws secretsmanager get-secret-value --secret-id x --query SecretString --output text
aws ssm get-parameter --name /x --with-decryption --query Parameter.Value --output text
aws ecr get-login-password --region eu-west-1
aws configure get aws_secret_access_key
gcloud auth print-access-token
az keyvault secret show --name x --vault-name v --query value -o tsv
az account get-access-token --query accessToken -o tsv
gh auth token
glab auth status -t
glab config get token
doctl auth token
fly auth token
doppler secrets get DB_PASSWORD --plain
infisical secrets get DB_PASSWORD --plain
chamber read svc key -q
credstash get db.password
security find-generic-password -a me -s x -w
secret-tool lookup service x
keepassxc-cli show -s -a Password db.kdbx x
lpass show --password x
gopass show -o x
kubectl get secret db -o jsonpath='{.data.password}' | base64 -d
kubectl create token sa
sops -d secrets.enc.yaml
ansible-vault view v.yml
gpg -d x.gpg
gpg --quiet --decrypt x.gpg
age -d -i key.txt x.age
pwgen -s 32 1
wg genkey
npm token create
git credential fill
jq -r .password f.json
jq -r '.data.token' f.json
yq '.database.password' f.yml
yq -r .db.password f.yml
python -c "import secrets; print(secrets.token_hex())"
python3 -c 'import os; print(os.environ["API_KEY"])'
node -e "console.log(require('crypto').randomBytes(32).toString('hex'))"
head -c 32 /dev/urandom | base64
tr -dc A-Za-z0-9 </dev/urandom | head -c 32
tr -dc A-Za-z0-9 </dev/urandom | head -c 32; echo
X=$(gh auth token); echo $X
pass show x | tee out.txt
pass show x | xargs echo
pass show x | tr -d '\n'
pass show x | head -1
sudo cat /run/secrets/db
docker exec web printenv SECRET_KEY
docker exec web sh -c 'echo $SECRET_KEY'
kubectl exec pod -- cat /run/secrets/x
ssh host 'cat ~/.vault-token'
ssh host cat /run/secrets/x
bash -c 'pass show x'
grep API_KEY .env | cut -d= -f2
env | grep TOKEN | cut -d= -f2
cat .env | grep DB_PASSWORD | cut -d '=' -f 2-
curl -s https://x/token | jq -r .access_token
F=/run/secrets/db; cat $F
for f in /run/secrets/*; do cat "$f"; done
echo "$(gh auth token)"
cat <<< "$TOKEN"
base64 -d <<< "$TOKEN_B64"
dd if=/dev/urandom bs=32 count=1 2>/dev/null | base64
pass show x 2>/dev/null
pass show x >&2
bin/rails secret
php artisan key:generate --show
op run -- printenv DB_PASSWORD
aws-vault exec prod -- printenv AWS_SECRET_ACCESS_KEY
poetry run python manage.py generate_secret_key
kubectl get secret db -o json | jq -r '.data.password' | base64 --decode
timeout 5 gh auth token
{ pass show x; }
(pass show x)
cat /var/run/secrets/kubernetes.io/serviceaccount/token
cat config/master.key
cat secrets/db_password.txt
less ~/.ssh/id_rsa
sed -n 1p /run/secrets/x
awk '{print $1}' /run/secrets/x
echo ${TOKEN:0:8}
eval "echo \$TOKEN"
op item get "Stripe" --fields label=credential --reveal
op item get x --format json --reveal | jq -r '.fields[] | select(.id=="password").value'
bw get item github | jq -r .login.password
vault kv get -format=json secret/app | jq -r .data.data.api_key
vault read -field=value secret/foo
vault write -field=client_token auth/approle/login role_id=x secret_id=y
aws sts get-session-token --query Credentials.SecretAccessKey --output text
aws --profile prod configure get aws_session_token
kubectl -n prod get secret db -o go-template='{{.data.password | base64decode}}'
kubectl get secret db -o yaml
gcloud auth application-default print-access-token
gcloud secrets versions access 3 --secret my-secret --project p | base64 -d
az acr credential show -n reg --query "passwords[0].value" -o tsv
az storage account keys list -n acct --query '[0].value' -o tsv
az cosmosdb keys list -n x -g y --query primaryMasterKey -o tsv
fly tokens create deploy
hf auth token
heroku auth:token
oc whoami -t
cat ~/.config/gh/hosts.yml | grep oauth_token | awk '{print $2}'
sed -n 's/^password=//p' ~/.my.cnf
awk -F: '{print $5}' ~/.pgpass
ruby -rsecurerandom -e 'puts SecureRandom.hex(32)'
php -r 'echo bin2hex(random_bytes(16));'
perl -e 'print $ENV{DB_PASSWORD}'
openssl rand -base64 24 | tr -d '/+='
LC_ALL=C tr -dc 'A-Za-z0-9' </dev/urandom | head -c 20 ; echo
docker run --rm alpine sh -c 'cat /run/secrets/x'
docker compose exec -T db printenv POSTGRES_PASSWORD
ssh prod "echo \$DB_PASSWORD"
env | grep ^DB_PASSWORD= | sed 's/.*=//'
source .env && echo $API_KEY
set -a; . ./.env; set +a; echo "$STRIPE_SECRET_KEY"
export $(cat .env | xargs) && echo $SECRET
TOKEN="$(cat ~/.vault-token)"; printf '%s\n' "$TOKEN"
read -rs PW; echo "$PW"
git config --get github.token
git credential-osxkeychain get
printf "host=github.com\nprotocol=https\n\n" | git credential fill
gh auth status --show-token
npm config get //registry.npmjs.org/:_authToken
cat ~/.npmrc | grep _authToken | cut -d= -f2
jq -r '.auths["https://index.docker.io/v1/"].auth' ~/.docker/config.json | base64 -d
yq e '.data.password' secret.yaml | base64 -d
grep -oP '(?<=DB_PASSWORD=).*' .env
wp config get DB_PASSWORD
rails runner 'puts ENV["SECRET_KEY_BASE"]'
bundle exec rails secret
terraform output -json | jq -r .db_password.value
terraform output db_password
pulumi config get dbPassword
ansible-vault view group_vars/all/vault.yml | grep db_password
sops -d --extract '["password"]' x.yaml
echo "$ENC" | openssl enc -d -aes-256-cbc -a -k pw
security find-internet-password -s github.com -w
chamber export svc
aws ssm get-parameters-by-path --path /x --with-decryption --query 'Parameters[].Value' --output text
aws secretsmanager get-secret-value --secret-id x | jq -r .SecretString
aws secretsmanager get-secret-value --secret-id x | jq -r '.SecretString | fromjson | .password'
doppler secrets get A B --plain
infisical run -- printenv DB_PASSWORD
wg genpsk
nmcli -s -g 802-11-wireless-security.psk connection show home
python3 -c "import keyring; print(keyring.get_password('svc', 'me'))"
python -c "from django.core.management.utils import get_random_secret_key as g; print(g())"
python -c "print(open('/run/secrets/db').read())"
node -p "process.env.API_TOKEN"
node -p 'require("./config.json").apiKey'
python -c "import json; print(json.load(open('c.json'))['password'])"
powershell -c "echo $env:API_TOKEN"
kubectl get secret db -ojsonpath='{.data.password}'
kubectl get secret/db -o jsonpath="{.data['tls\.key']}" | base64 --decode
heroku config:get DATABASE_PASSWORD
gh auth token --hostname github.com 2>&1
PGPASSWORD=$(aws rds generate-db-auth-token --hostname h); echo "$PGPASSWORD"
if [ -n "$TOKEN" ]; then echo "$TOKEN"; fi
pass show x || echo missing
cat /run/secrets/a /run/secrets/b
strings /run/secrets/x
cat ./secrets/stripe_api_key
cat .secrets/token
tail -n +1 /run/secrets/*
curl -s -X POST https://auth/oauth/token -d x | python3 -c "import sys,json; print(json.load(sys.stdin)['access_token'])"
curl -s http://169.254.169.254/latest/meta-data/iam/security-credentials/role | jq -r .Token
curl -s -H "Metadata-Flavor: Google" http://metadata/token | jq -r '.access_token'
mkpasswd -l 20
scw config get secret-key
occ config:system:get dbpassword
cargo config get registry.token
tctl tokens add --type=node --format=text
confluent api-key create --resource lkc-1
chezmoi secret keyring get --service=acme --user=me
helm secrets view values.yaml
gcloud redis instances get-auth-string cache --region=x
linode-cli databases mysql-creds-view 1 --text --no-headers
hcloud server reset-password web1
php artisan config:show services.stripe.secret
python manage.py show-token kim
keyctl print 8120
sudo keyctl pipe 8120
wg show wg0 private-key
awg show all preshared-keys
git secret cat token.txt
git -C app secret cat token.txt
eyaml decrypt -f token.eyaml
ccrypt -c token.cpt
aws cognito-idp describe-user-pool-client --query UserPoolClient.ClientSecret --output text
az iot hub show --query authentication.primaryKey -o tsv
gcloud filestore instances describe x --format='value(authToken)'
gh api -X POST repos/o/r/actions/runners/registration-token --jq .token
gh api repos/o/r/actions/runners/remove-token -X POST -q .token
kubectl get sa x -o jsonpath='{.status.token}'
kubectl get pod x -o jsonpath='{.spec.containers[0].env[?(@.name=="DB_PASSWORD")].value}'
docker inspect -f '{{.Config.Password}}' x
podman secret inspect --showsecret --format '{{.SecretData}}' db
xmllint --xpath 'string(//server/password)' ~/.m2/settings.xml
xmllint --xpath '//server[id="x"]/password/text()' conf.xml
xmlstarlet sel -t -v //db/@password conf.xml
echo 'nonsensitive(var.db_password)' | terraform console
tofu console <<< 'random_password.db.result'
bin/rails runner 'puts Rails.application.credentials.dig(:aws, :secret)'
rails runner 'puts Rails.application.credentials[:stripe][:secret_key]'
php -r 'echo (include "config.php")["db"]["password"];'
php -r 'echo parse_ini_file("app.ini")["password"];'
elixir -e 'IO.puts System.get_env("SECRET_KEY_BASE")'
rabbitmqctl eval 'erlang:get_cookie().'
sed -n 's/^API_KEY=//p' .env
sed -nE 's/^DB_PASSWORD=(.*)$/\1/p' app.conf
V=$(sed -n 's/^API_KEY=//p' .env) && echo "$V"
sudo -u app cat /run/secrets/x
git config get user.token
kubectl exec x -- tctl tokens add --type=node
git pull -q && pass show x
apt-get install -qq pass; pass show x
sed -i s/a/b/ f && pass show x
""".strip("\n").split("\n")
HARMLESS = r"""
apt show libsecret-password
kubectl get sa api-token
systemctl show vault-token
gh variable list
git show HEAD:docs/token
terraform state list
aws lambda get-function-configuration --function-name f --query CodeSha256 --output text
curl -s localhost:8500/v1/kv/app/mailer/password | jq -r '.[0].ModifyIndex'
curl -s http://localhost:8080/v1/items/1 | jq -r '.fields[] | select(.id == "title") | .value'
mariadb -N -e "select value from settings where name = 'page_size'" shop
airflow variables get page_size
vault operator init -status
pass show x | wc -c
pass show x | sha256sum
pass show x | pbcopy
gh auth token | docker login ghcr.io -u x --password-stdin
pass show x > file
pass show x >/dev/null
pass show x &>/dev/null && echo ok
echo "${#TOKEN}"
[ -n "$TOKEN" ] && echo set
echo "${TOKEN:+set}"
echo '$TOKEN'
pass ls
pass -c x
pass generate --help
gh auth status
op item list
op item get x --fields username
vault status
vault kv list secret/
aws sts get-caller-identity
aws secretsmanager list-secrets
kubectl get secrets
kubectl get secret db
kubectl get pods -o json
heroku config:get NODE_ENV
terraform output -raw vpc_id
openssl rand -out k 32
openssl x509 -in cert.pem -noout -text
jq -r .name package.json
jq '.tokens | length' f.json
jq -r '.password | length' f.json
wg genkey | tee priv | wg pubkey
wg genkey > priv
export TOKEN=$(gh auth token)
TOKEN=$(gh auth token)
curl -H "Authorization: Bearer $TOKEN" https://x
curl -H "Authorization: Bearer $(gh auth token)" https://x
python -c "import os; print(len(os.environ['API_KEY']))"
python -c "import os; print('API_KEY' in os.environ)"
python manage.py migrate
cat src/secrets/manager.py
cat README.md
cat .env.example
cat ~/.ssh/id_rsa.pub
cat tests/test_token.py
grep -rn password src
grep -c TOKEN .env
ls /run/secrets
for key in a b c; do echo $key; done
while read -r TOKEN; do echo "$TOKEN"; done < words.txt
git config user.name
npm config get registry
printenv PATH
echo $HOME
echo "$KEYBOARD"
gpg --verify x.sig
gpg --list-keys
sops -e x.yaml
ansible-vault encrypt x.yml
age -r age1x -o out in
security find-generic-password -s x
lpass show --username x
bw list folders
aws configure get region
az account show
doctl account get
test -f ~/.netrc && echo yes
pass insert x
chmod 600 ~/.netrc
echo "$TOKEN" | gh auth login --with-token
echo "$TOKEN" > f
echo $TOKEN | sha256sum | cut -c1-8
docker login -u x -p "$PASS"
cat tokenizer.json
cat tokens.txt
head -5 vocab/tokens.txt
cat keys.json
pass grep password
pass find stripe
gopass ls
op vault list
op whoami
bw status
bw sync
vault policy list
vault token capabilities secret/x
vault secrets enable kv
aws ssm get-parameter --name /app/log-level
aws ssm describe-parameters
aws kms list-keys
aws iam list-access-keys
aws configure list
gcloud auth list
gcloud secrets list
gcloud secrets create db --data-file=-
az keyvault secret list --vault-name v
az account list
gh secret list
gh secret set TOKEN < token.txt
gh auth login
docker secret ls
docker login -u x --password-stdin < token.txt
kubectl describe pod web
kubectl create secret generic db --from-literal=a=b
kubectl config get-contexts
heroku apps
terraform plan
terraform output
git log --oneline -5
git config --list --name-only
openssl s_client -connect h:443
openssl dgst -sha256 f
ssh-keygen -l -f id_ed25519.pub
npm run auth:test
pytest tests/test_tokens.py -k secret
grep -n "SECRET_KEY" settings.py
rg "api_key" src
sed -n '1,40p' src/auth/token.py
cat src/components/PasswordField.tsx
cat docs/secrets.md
cat package.json | jq '.dependencies | keys'
jq -r '.scripts.test' package.json
jq '.items[].metadata.name' pods.json
yq '.services.web.image' compose.yml
python -c "from app.auth import make_token; print(make_token.__name__)"
python train.py --tokenizer gpt2 --max_tokens 512
node scripts/keygen.js --help
find . -name "*.pem"
ls -la ~/.ssh
stat ~/.netrc
rm -f .env
cp .env.example .env
diff .env .env.example
source .env && python manage.py migrate
export API_KEY=abc123 && make test
curl -s -u "$USER:$PASSWORD" https://x/api | jq .count
curl -s https://x/api -H "X-Api-Key: $API_KEY"
psql "$DATABASE_URL" -c 'select count(*) from users'
PGPASSWORD=$DB_PASSWORD psql -h db -c '\dt'
echo "Set TOKEN first"
echo "KEY_COUNT=$KEY_COUNT"
test -z "$API_KEY" && echo missing
if [ -z "$TOKEN" ]; then echo "no token"; else echo "token there"; fi
echo "$SECRET" | wc -c
printenv TOKEN | md5sum
gh auth token | wc -c
gh auth token >/dev/null && echo "logged in"
T=$(gh auth token) && curl -s -H "Authorization: token $T" https://api/user | jq -r .login
kubectl get secret db -o jsonpath='{.data.password}' | base64 -d | sha256sum
cat /run/secrets/db | psql-connect
cat ~/.vault-token | vault login -
openssl rand -hex 32 > key.txt
wc -c /run/secrets/db
file ~/.ssh/id_rsa
sha256sum /run/secrets/db
head -c 1000000 /dev/urandom > blob.bin
head -c 1000 /dev/urandom | wc -c
for f in /run/secrets/*; do wc -c $f; done
scw config get default-region
tctl tokens ls
chezmoi diff
git secret list
git secret reveal
keyctl show @s
wg show wg0 public-key
eyaml encrypt -s x
linode-cli databases list
gcloud container clusters get-credentials shop
gcloud config get auth/access_token_file
aws iam get-account-password-policy
aws cognito-idp describe-user-pool-client --query UserPoolClient.ClientName --output text
aws kms describe-key --key-id x --query KeyMetadata.KeyState --output text
aws secretsmanager describe-secret --secret-id x --query RotationEnabled
aws s3api list-objects-v2 --query NextToken
aws ec2 describe-key-pairs --query 'KeyPairs[].KeyName' --output text
gh api repos/o/r/actions/secrets --jq '.secrets[].name'
gh repo view token
kubectl get pod x -o jsonpath='{.metadata.uid}'
kubectl get pods -o custom-columns=NAME:.metadata.name,IP:.status.podIP
kubectl get secret x -o jsonpath='{.metadata.name}'
kubectl get secret api-token
docker inspect -f '{{.NetworkSettings.IPAddress}}' x
docker run --name token create
xmllint --xpath 'string(//project/version)' pom.xml
xmllint --xpath 'count(//password)' c.xml
sed -n 's/^version = //p' Cargo.toml
sed -i 's/API_KEY=.*/API_KEY=x/' .env
terraform console <<< 'var.region'
elixir -e 'IO.puts System.version'
python -c "from app.config import settings; print(settings.debug)"
python tests/test_token_add.py
rabbitmqctl eval 'rabbit_misc:version().'
X=$(git rev-parse HEAD) && echo "$X"
npm run get-token
cp token new
find . -name get-token
grep -rn tokens add
vault policy read api-token
kubectl exec x -- ls /run/secrets
""".strip("\n").split("\n")
ORDINARY_OUTPUTS = (
    "total 12\n-rw-r--r-- 1 me me 120 Nov 22 10:11 a.py\ndrwxr-xr-x@ 3 me me 96 src",
    "3f2c1d9e8b7a6f5e4d3c2b1a09f8e7d6c5b4a392e1f00d1c2b3a495867768594  -",
    "Copied x to clipboard. Will clear in 45 seconds.",
    "a1b2c3d Fix the Base64Decoder2 of utf8mb4 (#1234)\n4f9850a Raise VERSION_2 to v1.22.3-rc.1",
    "set",
    "x.alpha1-beta2.internal:8443/v2/items?page=3",
)
ERRORS = (
    "Error: x is not in the password store.",
    "bash: pass: command not found",
    "usage: op read [flags] <reference>\n  -n, --no-newline   do not print a new line\n  --account ACCT_9f3k2m1x",
    "An error occurred (AccessDeniedException) when calling the GetSecretValue operation: no",
    "You are not logged into any GitHub hosts. To log in, run: gh auth login",
    "cat: /run/secrets/db: No such file or directory",
    'Error from server (NotFound): secrets "db-7f9c4x2q" not found',
    "[ERROR] 2026/05/05 10:10:10 You are not currently signed in.",
)


def _result(harness: str, line: str, output: str, is_error: bool | None = None) -> str:
    trace = output_trace(harness, line, output, is_error)
    return REDACTOR.redact_trace(trace)[0].contexts[0].messages[2].content


def test_what_a_command_prints_that_prints_a_secret_is_taken_out() -> None:
    rng = random.Random()
    missed: list[tuple[str, str]] = []
    count = 0
    for at, line in enumerate(PRINTING):
        values = random_secrets(rng) | plain_secrets(rng)
        for make, value in values.items():
            count += 1
            if value in _result(HARNESS_NAMES[(at + count) % 4], line, value):
                missed.append((make, line))
    assert len(PRINTING) >= 150
    assert count == 8 * len(PRINTING)
    assert len(missed) <= 0.01 * count, missed


def test_outputs_redacted_twice_are_as_redacted_once() -> None:
    rng = random.Random()
    mails = "to kim.larsen@northwind.io from 192.168.7.31 in /home/kimlarsen/x"
    for at, line in enumerate(
        [*PRINTING, *HARMLESS, "cat .env", "cat ~/.aws/credentials", "ls; pass show x"]
    ):
        output = "\n".join([*random_secrets(rng).values(), mails, *plain_secrets(rng).values()])
        once, _ = REDACTOR.redact_trace(output_trace(HARNESS_NAMES[at % 4], line, output))
        assert REDACTOR.redact_trace(dataclasses.replace(once, redaction=None))[0] == once
        assert REDACTOR.redact_again(once).found.total() == 0


def test_what_other_commands_print_stays() -> None:
    false = [
        (line, output)
        for line in HARMLESS
        for output in ORDINARY_OUTPUTS
        for harness in HARNESS_NAMES[:2]
        if output not in _result(harness, line, output)
    ]
    assert len(HARMLESS) >= 150
    assert false == []


def test_an_error_is_no_secret() -> None:
    false = [
        (line, error) for line in PRINTING for error in ERRORS if error not in _result("codex", line, error)
    ]
    assert false == []
    assert "9f3kQm1xT7" in _result("claude_code", "pass show x", "9f3kQm1xT7", is_error=True)


@pytest.mark.parametrize(
    ("line", "output", "left"),
    [
        ("ls; pass show x", "a.py\nREADME.md\n{}", "a.py\nREADME.md\n*"),
        ("ls; sqlite3 a.db 'select name, secret from t'", "a.py\nnorth|{}", "a.py\nnorth|*"),
        ("git pull; gh auth token", "Updating a1b2c3d..b2c3d4e\nFast-forward\n a.py | 4 ++--\n{}", "Updating a1b2c3d..b2c3d4e\nFast-forward\n a.py | 4 ++--\n*"),
        ("ls; vault read -format=json x/creds/y", 'a.py\n{{\n  "password": "{}"\n}}', 'a.py\n{{\n  "password": "*"\n}}'),
        ("pass show x; ls", "{}\na.py\nREADME.md", "*\na.py\nREADME.md"),
        ("ls -la && cat /run/secrets/x", "total 1\n-rw-r--r-- 1 me me 1 a.py\n{}", "total 1\n-rw-r--r-- 1 me me 1 a.py\n*"),
        ('echo "token: $TOKEN"', "token: {}", "token: *"),
        ('echo "TOKEN=$TOKEN;"', "TOKEN={};", "TOKEN=*;"),
        ('echo "--- token ---"; gh auth token', "--- token ---\n{}", "--- token ---\n*"),
        ("vault kv get secret/x", "=== Data ===\nKey         Value\n---         -----\npassword    {}", "=== Data ===\nKey         Value\n---         -----\npassword    *"),
        ("git credential fill", "protocol=https\nhost=github.com\nusername=bob\npassword={}", "protocol=https\nhost=github.com\nusername=bob\npassword=*"),
        ("aws secretsmanager get-secret-value --secret-id x", '{{"Name": "x", "SecretString": "{}"}}', '{{"Name": "x", "SecretString": "*"}}'),
        ("cat /etc/ppp/chap-secrets", "# client  server  secret  IP\nbranch  any  {}  any", "# client  server  secret  IP\nbranch  any  *  any"),
        ("sudo cat /etc/ipsec.secrets", '# keys\n10.0.0.1 : PSK "{}"', '# keys\n10.0.0.1 : PSK "*"'),
        ("cat ~/.netrc", "machine api.host.dev login bob password {}", "machine api.host.dev login bob password *"),
    ],
)  # fmt: skip
def test_what_stands_beside_a_secret_stays(line: str, output: str, left: str) -> None:
    value = random_secrets(random.Random())["token"]
    for harness in HARNESS_NAMES:
        told = output.format(value)
        content = PLACEHOLDER.sub("*", _result(harness, line, told))
        assert left.replace("{{", "{").replace("}}", "}") in content


FRONTS = {
    "git pull && {}": "Already up to date.\n",
    "make -s; {}": "",
    "git rev-parse HEAD; {}": "4f9850a1b2c3d4e5f60718293a4b5c6d7e8f9012\n",
    "npm ci && {}": "added 312 packages in 8s\n\nfound 0 vulnerabilities\n",
    "docker compose up -d && {} 2>/dev/null": "[+] Running 1/1\n \u2714 Container db  Started\n",
}


@pytest.mark.parametrize("front", FRONTS)
def test_the_last_line_is_of_the_last_command(front: str) -> None:
    rng = random.Random()
    values = {**random_secrets(rng), **plain_secrets(rng), "words": "quartz velvet gmoxu lantern walnut"}
    values.pop("pin")  # a number may be a count
    for at, (make, value) in enumerate(values.items()):
        for line in ("pass show x", "kubectl get secret x -o jsonpath='{.data.x}'", "printenv API_TOKEN"):
            told = FRONTS[front] + value
            content = _result(HARNESS_NAMES[at % 4], front.replace("{}", line), told)
            assert FRONTS[front] in content, (make, line)
            assert value not in content, (make, line)


@pytest.mark.parametrize("value", ["gbabazuglx", "gbkbgkhbaz", "bazuglxqha", "hlqtvkyfoo", "ruglxhebar"])
def test_three_letters_of_a_placeholder_do_not_keep_a_password(value: str) -> None:
    for harness in HARNESS_NAMES:
        assert value not in _result(harness, "git pull && pass show x", f"Already up to date.\n{value}")
        assert "foobaz" in _result(harness, "git pull && pass show x", "Already up to date.\nfoobaz")


def test_words_in_a_column_of_secrets_go() -> None:
    words = "quartz velvet gmoxu lantern"
    rows = f"north|{words}\nsouth|-\nblue velvet lantern shirt|x"
    content = _result("claude_code", "sqlite3 a.db 'select name, secret from t'", rows)
    assert PLACEHOLDER.sub("*", content).startswith("north|*\nsouth|-\nblue velvet lantern shirt|x")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("gh secret list", "NPM_TOKEN\t2026-10-02T10:11:12Z\nSTRIPE_SECRET_KEY\t2026-09-14T07:00:31Z"),
        ("kubectl describe secret app", "Data\n====\npassword:   16 bytes\napi-token:  1024 bytes"),
        ("kubectl get pod x -o jsonpath='{.metadata.uid}'", "0b1c9d3e-2f4a-4b6c-8d7e-9f0a1b2c3d4e"),
    ],
)
def test_times_and_sizes_under_the_name_of_a_secret_stay(line: str, told: str) -> None:
    for harness in HARNESS_NAMES:
        assert told in _result(harness, line, told)


def test_every_line_of_a_secret_is_taken() -> None:
    lines = random_secrets(random.Random())
    content = _result("claude_code", "gpg -d notes.gpg", "\n\n".join(lines.values()))
    assert len(PLACEHOLDER.findall(content)) == len(lines)
    assert PLACEHOLDER.sub("", content).strip() == ""


def test_a_secret_that_was_printed_is_taken_out_of_all_other_places() -> None:
    value = random_secrets(random.Random())["token"]
    trace = output_trace("claude_code", "gh auth token", value)
    call = ToolCall("c2", "Bash", json.dumps({"command": f"curl -H 'X-Auth: {value}' https://x.dev"}))
    messages = (*trace.contexts[0].messages, Message("assistant", f"It is {value}.", (call,)))
    redacted, _ = REDACTOR.redact_trace(trace_of(*messages))
    assert value not in whole_text(redacted)
    assert len(set(PLACEHOLDER.findall(whole_text(redacted)))) == 1


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"file_path": "/run/secrets/db_password"}),
        ("Read", {"file_path": "/home/kim/.vault-token"}),
        ("read_file", {"path": "config/master.key"}),
        ("str_replace_editor", {"command": "view", "path": "/srv/secrets/api_key"}),
        ("mcp__vault__get_secret", {"name": "db"}),
        ("execute_ipython_cell", {"code": "import os\nprint(os.environ['API_TOKEN'])"}),
        ("run_terminal_cmd", {"command": "printenv API_TOKEN"}),
    ],
)
def test_tools_that_show_a_secret(tool: str, arguments: dict[str, str]) -> None:
    value = random_secrets(random.Random())["token"]
    call = Message("assistant", "", (ToolCall("c1", tool, json.dumps(arguments)),))
    result = Message("tool", f"     1\u2192{value}\n", tool_call_id="c1")
    content = (
        REDACTOR.redact_trace(trace_of(Message("user", "go"), call, result))[0]
        .contexts[0]
        .messages[2]
        .content
    )
    assert re.fullmatch(r"     1\u2192<[A-Z_]+_[0-9a-f]{8}>\n", content)


@pytest.mark.parametrize(
    "path", ["src/auth/token.py", "docs/secrets.md", ".env.example", "id_rsa.pub", "vocab/tokens.txt"]
)
def test_files_that_are_no_secret(path: str) -> None:
    text = "     1\u2192def f(x9Kq2LmN8v):\n     2\u2192    return Base64Url7(x9Kq2LmN8v)\n"
    call = Message("assistant", "", (ToolCall("c1", "Read", json.dumps({"file_path": path})),))
    trace = trace_of(Message("user", "go"), call, Message("tool", text, tool_call_id="c1"))
    assert REDACTOR.redact_trace(trace)[0].contexts == trace.contexts


def test_a_line_is_judged_and_not_the_words_in_it() -> None:
    for line in (
        "git commit -m 'pass show x'",
        "grep -rn 'gh auth token' docs",
        "echo 'run: op read op://a/b/c'",
    ):
        assert find_printed_secrets(line) is None
