# ruff: noqa: E501 (tables)
"""A table of commands that print a secret, one command a line.

A line has the program, then words that its operands must hold in this order (`a|b`: one of them). `!` is
followed by words that the first operand may not be, `^` by words that no operand may be, `+` by options of which one is required, `~` by options
that are excluded. `?`: the last operand must be the name of a secret; `??`: it may not be another name. `*`
in a word stands for anything.
"""

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

from tracemill.privacy.core.secret_variables import is_secret_variable_name
from tracemill.privacy.secrets.environments import is_everybodys_variable

# Password managers and keyrings.
_MANAGERS = """
pass|gopass|passage|prs !ls|list|find|search|grep|insert|add|edit|rm|remove|delete|mv|move|rename|cp|copy|git|init|help|version|import|audit|update|tail|open|config|sync|setup|mounts|recipients|fsck|history|completion|alias ~-c|--clip|-q|--qrcode|--help|--version
op read ??
op item get +--reveal|--fields|--otp|--field|--format
op document get ~--output|--out-file|-o
op signin|signout +--raw
op connect token create
op service-account create
bw get password|totp|notes|item
bw list items
bw unlock|login +--raw
1pass
hiera|hiera3 ?
PlistBuddy *Print*Secret*|*Print*Password*|*Print*Token*|*Print*Key
gpg-connect-agent *get_passphrase*
zerotier-cli dump-secret
bw generate
bws secret get|list
rbw get|code|gen|generate ~--clipboard
lpass show ~--username|--url|--name|--notes|-c|--clip
lpass generate
keepassxc-cli show +-s|--show-protected|-a|--attributes|-t|--totp
keepassxc-cli generate|diceware
kpcli show
secret-tool lookup|search
security find-generic-password|find-internet-password +-w|-g
security dump-keychain +-d
keyring get
kwallet-query * +-r|--read-password
dcli password|note|p|n|read|otp ~-c
enpass-cli show|pass
juju show-secret +--reveal
hiq * +-d
skate get ??
pass-cli|protonpass item view|get
conjur variable get
akeyless get-secret-value|get-rotated-secret-value|get-dynamic-secret-value
tss secret
vlt secrets get
hcp vault-secrets secrets open
berglas access
buildkite-agent secret get
systemd-creds cat|decrypt
systemd-ask-password
tpm2_unseal
keyctl print|pipe|read
ceph auth get-key|print-key|get-or-create-key
git secret cat
git-secret cat
oathtool
ykman oath accounts code
"""
# Vaults and secret stores of clouds.
_STORES = """
vault|bao kv get ^metadata ~-metadata
vault|bao !policy|audit|plugin read ^transit/keys/*|sys/*|identity/*|auth/*/config|auth/*/role/*|database/config/*|database/roles/*|pki*/cert/*|*/role-id
vault|bao print token
vault|bao unwrap
vault|bao token create|lookup|renew
vault|bao login +-token-only|-field
vault|bao write +-field
vault|bao operator init|generate-root ~-status
consul kv get ?
consul acl token create|read
consul acl bootstrap
consul keygen
nomad operator gossip keyring generate
step crypto rand
nomad var get
nomad acl token create|self|read
nomad acl bootstrap
etcdctl get ?
gcloud secrets versions access ~--out-file
gcloud auth print-access-token|print-identity-token|print-refresh-token
gcloud auth application-default print-access-token
gcloud sql generate-login-token
gcloud kms decrypt
gcloud config config-helper
gcloud services api-keys get-key-string
gcloud iam service-accounts keys create -
aws secretsmanager get-secret-value|batch-get-secret-value|get-random-password
aws ssm get-parameter|get-parameters|get-parameters-by-path +--with-decryption
aws ecr|ecr-public get-login-password|get-authorization-token|get-login
aws codeartifact get-authorization-token
aws eks get-token
aws rds generate-db-auth-token
aws dsql generate-db-connect-auth-token|generate-db-connect-admin-auth-token
aws kms decrypt|generate-data-key|generate-random
aws sts assume-role|get-session-token|assume-role-with-web-identity|get-federation-token
aws iam create-access-key|create-service-specific-credential
aws sso get-role-credentials
aws cognito-idp initiate-auth|admin-initiate-auth
aws ec2 get-password-data
aws lightsail get-relational-database-master-user-password
aws redshift get-cluster-credentials
aws configure export-credentials
aws configure get ?
az keyvault secret show|download
az account get-access-token
az acr credential show
az acr login +--expose-token
az storage account keys list|renew
az storage account show-connection-string
az storage generate-sas
az cosmosdb keys list
az redis list-keys
az keys|key|admin-key|query-key list|show
az show-connection-string|connection-string
az authorization-rule keys list
az ad sp create-for-rbac
az ad credential reset
az webapp|functionapp deployment list-publishing-credentials|list-publishing-profiles
az functionapp keys list
az aks get-credentials +-f|--file
ibmcloud iam oauth-tokens|api-key-create
ibmcloud secrets-manager secret
oci secrets secret-bundle get
oci iam auth-token create
scw secret version access
scw iam api-key create|get
yc iam create-token
yc lockbox payload get
aliyun kms GetSecretValue
tccli ssm GetSecretValue
openstack token issue
civo apikey show
linode-cli object-storage keys-create
chamber read|export
credstash get|getall
doppler secrets get ??
doppler secrets download +--no-file
doppler configure get token
infisical secrets get ?? ^folders|tags
infisical export
infisical login|token +--plain|--silent
teller get|env|sh
phase secrets get ??
dotenvx|dotenv get ?
envchain
aws-vault export
saml2aws script
aws-okta env
"""
# Services and their command lines.
_SERVICES = """
gh auth token
gh auth status +-t|--show-token
glab auth token|print-token|print-access-token
glab auth status +-t|--show-token
glab config get ?
glab token create
doctl auth token
doctl registry docker-config
doctl kubernetes cluster kubeconfig show
doctl databases connection
fly|flyctl auth token
fly|flyctl tokens create
heroku auth:token
heroku config:get ?
heroku authorizations:create
heroku pg:credentials:url
netlify env:get ??
railway variables get ??
vercel env get ??
dokku config:get * ??
fly|flyctl secrets get ??
launchctl getenv ?
snap get ?
ddev config get ?
supabase projects api-keys
pscale password create
turso auth token
turso db tokens create
neonctl|neon connection-string
firebase login:ci
firebase functions:secrets:access
cf oauth-token
cloudflared tunnel|access token
ngrok config authtoken
oc whoami +-t|--show-token
kubectl|oc|k3s create token
kubectl|oc|k get secret|secrets +-o|--output|--template|-ojsonpath|-oyaml|-ojson|-ogo-template
kubectl|oc config view +--raw
k3s token
kubeadm token create|generate
argocd admin initial-password
argocd account generate-token
docker swarm join-token|unlock-key
terraform|tofu|terragrunt output ?
pulumi config get ?
pulumi stack output ? +--show-secrets
stripe listen +--print-secret
stripe config +--get
supabase secrets get ??
crudini * * ?
npm token create
npm|yarn|pnpm config get ?
poetry config ?
poetry config http-basic.*
pip config get ?
composer config ?
composer config *oauth*|*token*|http-basic*|bearer*|custom-headers*
huggingface-cli|hf auth token
databricks auth token
databricks tokens create
databricks secrets get-secret
snyk config get api
cscli bouncers|machines add
curl|http|xh|wget *latest/api/token
fastly auth-token|profile token
sf org auth show-access-token
sf|sfdx org display +--verbose
jf access-token-create|atc
headscale apikeys|preauthkeys create
step ca token
step oauth
jwt encode
git credential fill|get
git config ?
git config get ?
git config *extraheader
git credential-osxkeychain|credential-manager|credential-store|credential-cache|credential-libsecret get
docker-credential-pass|docker-credential-secretservice|docker-credential-osxkeychain|docker-credential-wincred|docker-credential-desktop|docker-credential-ecr-login|docker-credential-gcloud get
git-credential-osxkeychain|git-credential-manager|git-credential-store get
wp config get ?
symfony secrets:reveal
dotnet user-jwts create|print
redis-cli|valkey-cli|keydb-cli get|GET|Get|getex|GETEX|getdel|GETDEL|mget|MGET ?
redis-cli|valkey-cli|keydb-cli hget|HGET|HGet|hmget|HMGET * ?
redis-cli|valkey-cli|keydb-cli hgetall|HGETALL|hvals|HVALS|lrange|LRANGE|smembers|SMEMBERS ?
redis-cli|valkey-cli|keydb-cli config|CONFIG get|GET requirepass|masterauth
redis-cli|valkey-cli|keydb-cli acl|ACL genpass|GENPASS
memcached-tool|memccat ?
travis token
influx auth create
nmcli * +-s|--show-secrets
netsh wlan key=clear
wpa_passphrase
rclone reveal|obscure
"""
# Commands that decrypt, and commands that make a secret.
_KEYS = """
ansible-vault view
ansible-vault decrypt +--output=-|--output
sops +-d|--decrypt ~-i|--in-place|--output
sops decrypt ~-i|--in-place|--output
gpg|gpg2 +-d|--decrypt ~-o|--output
gpg|gpg2 +--export-secret-keys|--export-secret-key|--export-secret-subkeys|--gen-random ~-o|--output
age|rage +-d|--decrypt ~-o|--output
age-keygen|rage-keygen ~-o|-y
blackbox_cat
ejson|eyaml decrypt
ccat
ccrypt|ccdecrypt +-c|--cat
scrypt dec
keybase decrypt ~-o|--outfile
keybase pgp decrypt ~-o|--outfile
openssl rand ~-out
openssl genrsa|genpkey ~-out
openssl enc|aes-256-cbc|pkeyutl|rsautl|cms|smime +-d|-decrypt ~-out
openssl pkcs12 +-nodes|-noenc|-nocerts ~-out
openssl passwd
pwgen
apg
makepasswd
xkcdpass
diceware
pwqgen
pwmake
genpass
passgen
mkpasswd
slappasswd ~-T
grub-mkpasswd-pbkdf2|grub2-mkpasswd-pbkdf2
htpasswd +-n|-nbB|-nB|-bnB|-bnBC|-nbBC
caddy hash-password
doveadm pw ~-t
authelia crypto rand
wg|awg genkey|genpsk
wg|awg show private-key|preshared-keys
rails|rake|bin/rails secret
rails credentials:show|secrets:show|encrypted:show
artisan|php key:generate +--show
mix phx.gen.secret|guardian.gen.secret
auth secret
manage.py generate_secret_key|drf_create_token|create_token|createtoken|create_api_key
flask|artisan|rake|rails create-token|token:create|passport:client
Get-Secret
Get-AzKeyVaultSecret +-AsPlainText
nk +-gen
solana-keygen new ~-o|--outfile
cast wallet new|new-mnemonic|private-key
bitcoin-cli dumpprivkey
"""
_FIELDS = """
bw unlock|login ~--check
op signin
openssl enc|aes-128-cbc|aes-256-cbc +-P|-p
rails|rake db:encryption:init
microk8s add-node
doveadm auth lookup
php *bin/console debug:container +--show-hidden
heroku config
doppler secrets
infisical secrets
railway variables
helm get values|manifest|all
kubectl|oc describe secret|secrets
terraform|tofu show +-json
terraform|tofu output +-json
terraform|tofu state pull
supabase status
dotnet user-secrets list
wp config list
stripe config +--list
pulumi config +--show-secrets
pulumi stack output +--show-secrets
firebase functions:config:get
rclone config show|dump
mc alias list
ceph auth get|export|ls|list|get-or-create
bundle|bundler config
redis-cli|valkey-cli|keydb-cli acl|ACL list|LIST|getuser|GETUSER
rabbitmqadmin|rabbitmqctl export|export_definitions
nsc generate creds
postmap +-q
wg|awg showconf
s3cmd +--dump-config
"""
# Environments and settings of services: names with values that can be secrets.
_ENVIRONMENTS = """
docker|podman|nerdctl inspect
docker|podman|nerdctl container|service|config|task|stack inspect|config
docker|podman|nerdctl compose config|convert
docker-compose|podman-compose config|convert
docker stack config
kubectl|oc get pod|pods|po|deploy|deployment|deployments|statefulset|sts|daemonset|ds|cm|configmap|configmaps|cronjob|job|all +-o|--output|--template|-ojsonpath|-oyaml|-ojson|-ogo-template
kubectl|oc describe pod|pods|po|deploy|deployment|statefulset|sts|daemonset|ds|cm|configmap|configmaps|cronjob|job
kubectl|oc set env +--list
nomad job|alloc inspect
systemctl show Environment|Environment,* +-p|--property
systemctl show +--property=Environment|-pEnvironment
systemctl show ~-p|--property|-pEnvironment
systemctl cat|show-environment
tmux show-environment|showenv
aws lambda get-function-configuration|get-function
aws ecs describe-task-definition|describe-tasks
aws elasticbeanstalk describe-configuration-settings
aws amplify get-app|get-branch
aws apprunner describe-service
gcloud run services|revisions|jobs describe
gcloud functions|app describe
az webapp|functionapp config appsettings|connection-string list
az containerapp show
cf env
eb printenv
dokku config|config:show|config:export
netlify env:list
railway variables
vercel env ls
render env
fly|flyctl config show|env
pm2 env|show|prettylist|jlist
supervisorctl environment
dotenv list
direnv export
crontab +-l
git config +--list|-l
composer config +--list|-l
npm|yarn|pnpm config list|ls
pip config list
Get-ChildItem|gci|dir|ls|Get-Item|gi Env:*|env:*|ENV:*
snap get
ps *eww*|*auxe*|axe*
"""
# Stores that print a name and its value, on two lines or on one.
_PAIRS = """
redis-cli|valkey-cli|keydb-cli hgetall|HGETALL|HGetAll|hscan|HSCAN
redis-cli|valkey-cli|keydb-cli config|CONFIG get|GET
etcdctl get
consul kv get +-recurse
reg query
"""
_SELECTING = frozenset(
    (
        "--fields",
        "--field",
        "-field",
        "--query",
        "--attributes",
        "-a",
        "--jq",
        "--template",
        "-o",
        "--output",
        "--format",
    )
)
_KEYWORDS = (
    r"secret|token|pass|key|(?:_|\b)(?:pw|sk|pin|hook)\b|cookie|session|bearer|hmac|seed|parole|geheim|contrase|segredo|clave|mdp\b|cred|auth|rand|pwd|_pat\b|dsn|jwt|netrc|pgpass|id_(?:rsa|dsa|ecdsa|ed25519)|\.env|environ|htpasswd"
    r"|shadow|my\.cnf|\.pem\b|kube/config|npmrc|pypirc|docker/config|dockercfg|terraformrc|tfvars|tfstate|\.boto|s3cfg|rclone"
    r"|databrickscfg|\.envrc|hosts\.yml|erlang\.cookie|vault|salt|pepper|mnemonic|psk|(?:msmtp|fetchmail|mbsync|ldap)rc|nmconnection|wpa_supplicant|userlist|bundle/config|gradle\.properties|webhook|senha|kennwort|op://"
)
# Shell commands that print the environment.
_SHELLS_OWN = (
    r"\b(?:print)?env(?:\b|:)|\b(?:set|export|(?:declare|typeset|export|local) -[a-z]*[xp][a-z]*)[ \t]*(?:\\n|[\n\"|;&)>}]|$)"
    r"|\b(?:config|login|profile|account|wallet|identity) export|\badd-(?:node|agent|worker)|GetEnvironmentVariable|extraheader|drf_create|\bps -?(?:[a-z]*eww|auxe|axe)|process\.env|SecureString|AsPlainText|PtrToString|\bENV\b"
)
_START = r"(?:\b|\\[nrt])"  # of a word, also after a line end that JSON escapes
_SECRET_PART = re.compile(
    r"(?i)passw|pass\b|secret|token|key|credential|\bpin\b|otp|value|data|connection|string|pwd|private|\.\.|\*|@"
)
_ORDINARY_PART = re.compile(
    r"(?i)(?:^|[^a-z])(?:user(?:_?name)?|e?mail|url|uri|name|id|arn|version|title|host(?:_?name)?|port|expir\w*|expires_?on"
    r"|created\w*|updated\w*|type|tags?|login|status|location|region|website|description|metadata|keys|length|count|wide)$"
)
_PLAIN_FACT = re.compile(
    r"(?i)(?:name|[ug]?id|uuid|\w*sha\d*|\w*digest|checksum|etag|fingerprint|arn|namespace|image|phase|ip|kind|version|status|state|replicas|address|port|host|gateway|driver|platform|running|created\w*|updated\w*|\w+time(?:stamp)?"
    r"|ttl|polic(?:y|ies)|duration|renewable|accessor|expir\w*|uses|orphan|period|count|length|size|enabled|type|ur[il]|e?mail|username|user|login|title"
    r"|label|description|region|location|path|metadata|keys|mode|usage|alg(?:orithm)?|scopes?|tags?)$"
)


_NO_SECRET = re.compile(
    r"(?i)COUNT|LENGTH|(?:^|_)(?:PREFIX|SUFFIX|HINT|LAST_?(?:4|FOUR)|PREVIEW)(?:_|$)|_(?:AT|BY)$|LEN$|SIZE|^(?:NUM|MAX|MIN|TOTAL|N)_|KEYWORD|TOKENI[SZ]|TOKENS$|^KEYS$|EXPIR|PUBLIC|ALGO|(?:NEXT|PAGE|CONTINUATION|SYNC|RESUME|REQUEST)_?TOKEN|"
    r"(?:CACHE|PRIMARY|FOREIGN|SORT|PARTITION|S3|OBJECT|CONFIG|DICT|MAP)_?KEY|(?:^|_)(?:HAS|IS|USE|ENABLE\w*)_|_(?:LABEL|FIELD|HEADER|VERSION|STATUS|ENV|SET|REQUIRED|POLICY|AGE|LAST_CHANGE|TIME)$"
)


_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+")
# Command lines of any program that ask for a secret, or make one: operands, separated by blanks.
_ASK = r"(?:get|show|view|print|reveal|read|cat|fetch|decrypt|display|retrieve|access|lookup)"
_MAKE = r"(?:create|add|new|generate|gen|issue|mint|rotate|regenerate|reset|refresh|renew)"
_STORE = r"(?:[a-z]+-)?(?:secrets?|credentials?|creds|keyring|keychain)"
_ISSUED = r"(?:[a-z]+-){0,3}(?:tokens?|(?:api|auth|join|access|secret|private|setup|enrollment|recovery|registration|master|admin|license|machine)-?keys?|passwords?|passphrase|auth-string|cookie)"
_ASKS = re.compile(
    rf"(?:^|[ :])(?:{_STORE}[ :-]{_ASK}(?:-value)?|{_ISSUED}[ :-]{_ASK}|{_ASK}[-:](?:{_ISSUED}|(?:[a-z]+-){{0,2}}secret(?:-value)?))(?![\w.:/-])"
)
_MAKES = re.compile(rf"(?:^|[ :])(?:{_ISSUED}[ :-]{_MAKE}|{_MAKE}[-:]{_ISSUED})(?![\w.:/-])")
_DRAWS = re.compile(
    r"(?:^|[ /])(?:gen|generate|make|mk|new|random)-?(?:secret|password|passphrase|token|api-key|key)(?:-key)?(?:\.\w+)?(?= |$)"
    r"|(?:^|[ /])(?:secret|password|passphrase|token|api-key|keyfile)-?(?:gen|generator)(?:\.\w+)?(?= |$)"
)
"""A program that draws a secret and prints it."""
_EXPORTS = re.compile(
    r"(?:^|[ :])(?:(?:config|login|profile|account|session|credentials?|identity|wallet|keys?|keyring|keystore)(?: config)?[ :]export|(?:dump|show|print|export|reveal)-(?:secrets?|keyring|credentials|tokens?|passwords?))(?![\w:/-])"
)
"""A command that writes out what a program stores, credentials among it."""
_NAMED_AFTER = re.compile(
    rf"(?:^|/)(?:{_STORE}-{_ASK}|{_ISSUED}-(?!(?:add|create|get|show|print|reveal|issue|mint|new)$)(?:{_ASK}|{_MAKE}))(?![\w:/-])"
)
_ASKS_SETTING = re.compile(
    r"(?:^|[ :])(?:config|configuration|settings?|env|prefs)(?:[ :][a-z-]+)?[ :](?:get|get-value|show|read) (?P<name>\S+)$"
)
_GROUPS = frozenset(("session", "sessions", "auth", "cookie", "cookies", "jwt", "keys", "token", "tokens"))
"""Names of settings that as often name a group of them."""
_HELP = frozenset(("--help", "--version", "-h", "help"))
_DESCRIBED = frozenset(
    [
        "audit",
        "cluster",
        "event",
        "group",
        "image",
        "issue",
        "job",
        "log",
        "plugin",
        "policy",
        "pr",
        "project",
        "release",
        "repo",
        "role",
        "run",
        "service",
        "user",
        "workflow",
    ]
)
"""What is described where it is shown, whatever its name."""
_MANAGING = frozenset(
    "systemctl journalctl service rc-service initctl launchctl supervisorctl pm2 kill pkill pgrep killall tmux screen dig host".split()  # noqa: SIM905
)
"""Programs whose operands are names of services, processes or machines."""
_READS = re.compile(rf"(?:[\w-]+[.:-])?{_ASK}(?:[-_.:][\w-]+)*")
_SCRIPT = re.compile(r"\.(?:sh|py|rb|js|ts|mjs|pl|php)$")
# Options whose value selects what of a document is printed.
_TEMPLATES = re.compile(r"(?:jsonpath(?:-as-json|-file)?|go-template|template|custom-columns)=")
IS_ONE_OF = re.compile(
    r"\[\?[^\[\]]*?==? ?\\*[\"'`]([\w.-]+)\\*[\"'`][^\[\]]*\]|select\([^()]*== ?\\*\"([\w.-]+)[^()]*\)"
)
"""A condition that selects by a name: `select(.id == "password")`."""
_TELLS_ONLY = re.compile(r"\b(?:count|length|boolean|contains|starts_?-?with|type|keys|has)\(|[!=]= ?null")
_CLOUD_KEY = re.compile(r"(?i)^(?:primary|secondary)_?(?:master_?)?key$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CONTENT = frozenset(("value", "data", "content", "text", "plaintext", "result", "S", "B"))
_SECRET_FIELD = re.compile(
    r"(?i)(?:secrets?|secret_id|token|(?:^|_)pw|passw(?:or)?ds?|passphrase|passcode|pwd|psk|cookie|credentials?|dsn|otp|jwt|mnemonic"
    r"|(?:secret|token|password|auth|connection)_?(?:string|value|data|text|binary)"
    r"|(?:api|secret|private|access|master|account|shared|admin|auth|signing|encryption|service|license"
    r"|write|read|application|deploy|storage|role|preshared|app)_?key)$"
)


class _Command(NamedTuple):
    words: tuple[frozenset[str], ...]
    never: frozenset[str]
    excluded: frozenset[str] | None
    needed: frozenset[str]
    unless: frozenset[str]
    named: str


def _read(line: str) -> tuple[frozenset[str], _Command]:
    programs, *rest = line.split()
    words: list[frozenset[str]] = []
    marked: dict[str, frozenset[str]] = {}
    for word in rest:
        if word[0] in "!^+~?":
            marked[word[0]] = frozenset(word[1:].split("|"))
        else:
            words.append(frozenset(word.split("|")))
    named = next((word for word in rest if word[0] == "?"), "")
    none: frozenset[str] = frozenset()
    command = _Command(
        tuple(words),
        marked.get("^", none),
        marked.get("!"),
        marked.get("+", none),
        marked.get("~", none),
        named,
    )
    return frozenset(programs.split("|")), command


def _by_program(table: str) -> dict[str, list[_Command]]:
    found: dict[str, list[_Command]] = {}
    for programs, command in map(_read, table.split("\n")[1:-1]):
        for program in programs:
            found.setdefault(program, []).append(command)
    return found


_ALL = _MANAGERS + _STORES[1:] + _SERVICES[1:] + _KEYS[1:]
_PRINTING = _by_program(_ALL)
_HOLDING = _by_program(_FIELDS)
_LISTING = _by_program(_ENVIRONMENTS)
_PAIRING = _by_program(_PAIRS)
PROGRAMS = frozenset((*_PRINTING, *_HOLDING, *_LISTING, *_PAIRING)) - {"dir", "ls", "ps"}
"""Programs of the table."""


def _trigger() -> str:
    """Build a pattern of each command of the table that has no keyword: its program, then its first word."""
    keyword = re.compile(rf"(?i){_KEYWORDS}")
    following: dict[str, set[str]] = {}
    for line in (_ALL + _FIELDS[1:] + _ENVIRONMENTS[1:] + _PAIRS[1:]).split("\n"):
        words = [word.split("|") for word in line.split() if word[0] not in "!^+~?"]
        if words and " ?" not in line and not any(all(map(keyword.search, word)) for word in words):
            first = words[1] if len(words) > 1 and "*" not in "".join(words[1]) else [""]
            for program in words[0]:
                following.setdefault(program, set()).update(first)
    programs: dict[str, list[str]] = {}
    for program in sorted(following.keys() - {"dir", "ls", "ps"}):
        words = "" if "" in following[program] else "|".join(map(re.escape, sorted(following[program])))
        programs.setdefault(words, []).append(re.escape(program))
    commands = (
        rf"(?:{'|'.join(names)})\b" + (rf"[\s\S]*{_START}(?:{words})" if words else "")
        for words, names in programs.items()
    )
    return rf"(?i)(?:{_KEYWORDS}|{_SHELLS_OWN})|{_START}(?:{'|'.join(commands)})"


TRIGGER = _trigger()
"""A pattern that matches in every command line that can print a secret."""


@lru_cache(maxsize=1024)
def is_name_of_secret(name: str) -> bool:
    """Tell whether the value of a name is a secret, and no count, flag or other fact about one."""
    return is_secret_variable_name(name) and not _NO_SECRET.search(name)


@lru_cache(maxsize=1024)
def prints_secret(argv: tuple[str, ...]) -> bool:
    """Tell whether a command prints a secret and nothing else, by the table."""
    return _is_among(argv, _PRINTING)


@lru_cache(maxsize=1024)
def asks_for_secret(argv: tuple[str, ...]) -> bool | None:
    """Tell by its own words whether a command of any program prints a secret.

    True: it asks for one, or makes one (`config get secret-key`, `tokens add`). False: it is a script that is
    named so, and may print more. None: neither.
    """
    if not argv or not _HELP.isdisjoint(argv) or _selects_other(argv):
        return None
    operands = [word for word in argv[1:] if word[:1] not in "-'\"" and " " not in word][:6]
    operands = [word for word in operands if not _is_named_after(word, argv)]
    program = _SCRIPT.sub("", argv[0].rpartition("/")[2])
    line = " ".join((program, *operands)).replace("_", "-")
    setting = _ASKS_SETTING.search(line)
    if setting and is_name_of_secret(_last_part(setting["name"])):
        return setting["name"].lower() not in _GROUPS
    if "test" not in program and _DRAWS.search(line):
        return True
    if "test" in program or not (_ASKS.search(line) or _MAKES.search(line)):
        return False if _EXPORTS.search(line) else None
    script = program.replace("_", "-")
    return not (_ASKS.search(script) or _MAKES.search(script))


def _is_named_after(word: str, argv: tuple[str, ...]) -> bool:
    """Tell whether a word is the name of a thing, such as the unit `token-refresh`, and no subcommand.

    A subcommand in which the verb comes last is the first word, beside options and their values.
    """
    if not _NAMED_AFTER.search(word):
        return False
    if argv[0].rpartition("/")[2] in _MANAGING:
        return True
    at = argv.index(word)
    return any(
        argv[before][:1] != "-" and (before == 1 or argv[before - 1][:1] != "-") for before in range(1, at)
    )


@lru_cache(maxsize=1024)
def names_secret(argv: tuple[str, ...]) -> bool:
    """Return whether a command prints a setting whose name is a secret's: `variable get DEPLOY_PASSWORD`."""
    if not _HELP.isdisjoint(argv) or _selects_other(argv):
        return False
    operands = [word for word in argv[1:] if word[:1] != "-"]
    read = next((at for at, word in enumerate(operands[:4], 1) if _READS.fullmatch(word)), None)
    if read is None or not _DESCRIBED.isdisjoint(operands[:read]):
        return False
    return any(is_name_of_secret(_last_part(word)) for word in operands[read:])


@lru_cache(maxsize=1024)
def selects_secret(argv: tuple[str, ...]) -> bool | None:
    """Tell whether an option selects secrets of a document by the names of its fields.

    True: every selected field is one. False: some are. None: none is, or nothing is selected.
    """
    judged = [_is_secret_field(name) for value in _selections(argv) for name in find_selected_fields(value)]
    return all(judged) if any(judged) else None


def find_selected_fields(expression: str) -> list[str]:
    """Return the names of the fields that a jq, JSONPath, JMESPath, XPath or template expression selects."""
    expression = IS_ONE_OF.sub(lambda found: f".{found[1] or found[2]}", expression)
    expression = re.sub(r"\[[^\[\]]*\]", lambda found: found[0] if "," in found[0] else "", expression)
    fields: list[str] = []
    for part in re.split(r"[,|\s{}]+", expression):
        names = re.findall(r"[A-Za-z_][\w-]*", part)
        while len(names) > 1 and names[-1] in _CONTENT:
            names.pop()
        fields += names[-1:]
    return fields


def split_camel_case(name: str) -> str:
    """Return a name with `_` before each capital that follows a small letter or a digit."""
    return _CAMEL.sub("_", name)


@lru_cache(maxsize=1024)
def is_plain_fact(name: str) -> bool:
    """Tell whether a field of a document holds a plain fact by its name: a name, a time, a duration, a digest."""
    return bool(_PLAIN_FACT.search(name)) and not _is_secret_field(name)


@lru_cache(maxsize=1024)
def _is_secret_field(name: str) -> bool:
    """Tell whether the name of a field ends in a word for a secret, whatever its case."""
    if _CLOUD_KEY.search(name) or name.lower() in ("secret_id", "secretid"):
        return True
    name = split_camel_case(name.replace("-", "_"))
    return bool(_SECRET_FIELD.search(name)) and is_name_of_secret(name)


def _selections(argv: tuple[str, ...]) -> Iterator[str]:
    """Yield the values of options that select fields by an expression."""
    program = argv[0].rpartition("/")[2]
    for at, word in enumerate(argv):
        option, sign, value = word.partition("=")
        if word.startswith("-o") and _TEMPLATES.match(word[2:]):
            option, value = "-o", word[2:]
        elif not sign:
            value = "".join(argv[at + 1 : at + 2])
        value = value.strip("'\"")
        if option == "-q" and program in ("gh", "glab"):
            option = "--jq"
        if option in ("-o", "--output"):
            value = value[found.end() :] if (found := _TEMPLATES.match(value)) else ""
        elif option in ("--template", "-f"):
            value = value if "{{" in value else ""
        elif option == "--query":
            value = value if program in ("aws", "az", "oci", "aliyun", "tccli") else ""
        elif option == "-v":
            value = value if program in ("xmlstarlet", "xml") else ""
        elif option not in (
            "--jq",
            "--xpath",
            "--format",
            "--fields",
            "--field",
            "-field",
            "--property",
            "--attributes",
        ):
            value = ""
        value = value.removeprefix("label=")
        if (
            value
            and not _TELLS_ONLY.search(value)
            and not (option in ("--field", "-field", "--fields") and "=" in value)
        ):
            yield value


@lru_cache(maxsize=1024)
def prints_variable(argv: tuple[str, ...]) -> bool:
    """Tell whether a command prints one variable with a neutral name, by the table."""
    return _is_among(argv, _PRINTING, is_neutral_variable)


@lru_cache(maxsize=1024)
def prints_environment(argv: tuple[str, ...]) -> bool:
    """Tell whether a command prints an environment or the settings of a service, by the table."""
    return _is_among(argv, _LISTING)


@lru_cache(maxsize=1024)
def is_neutral_variable(name: str) -> bool:
    """Tell whether a variable can hold a secret although its name does not say so."""
    if not _VARIABLE.fullmatch(name) or is_everybodys_variable(name):
        return False
    return not _NO_SECRET.search(name) and not _ORDINARY_PART.search(name)


@lru_cache(maxsize=1024)
def prints_pairs(argv: tuple[str, ...]) -> bool:
    """Tell whether a command prints names with values, of which only the names say what is a secret."""
    return _is_among(argv, _PAIRING)


@lru_cache(maxsize=1024)
def prints_fields(argv: tuple[str, ...]) -> bool:
    """Tell whether a command prints settings with secrets among them, by the table."""
    return _is_among(argv, _HOLDING)


def _is_among(
    argv: tuple[str, ...],
    table: dict[str, list[_Command]],
    is_name: Callable[[str], bool] = is_name_of_secret,
) -> bool:
    commands = table.get(argv[0].rpartition("/")[2], ()) if argv else ()
    if not commands or not {"--help", "--version"}.isdisjoint(argv) or argv[1:2] == ("help",):
        return False
    if argv[-1] == "-h":
        return False
    operands = [word for word in argv[1:] if word == "-" or not word.startswith("-")]
    options = [word for word in argv[1:] if word.startswith("-")]
    return any(_fits(command, operands, options, is_name) for command in commands) and not _selects_other(
        argv
    )


def _fits(command: _Command, operands: list[str], options: list[str], is_name: Callable[[str], bool]) -> bool:
    if any(_is_of(word, command.never, whole=True) for word in operands):
        return False
    if command.excluded is not None and (not operands or operands[0] in command.excluded):
        return False
    waiting = iter(operands)
    if not all(any(_is_of(word, each) for word in waiting) for each in command.words):
        return False
    if command.needed and not _has(command.needed, options):
        return False
    if command.unless and _has(command.unless, options):
        return False
    name = _last_part(next(waiting, "")) if command.named else ""
    if command.named == "?":
        return is_name(name)
    return not _ORDINARY_PART.search(name)


def _is_of(word: str, wanted: frozenset[str], *, whole: bool = False) -> bool:
    if word in wanted or (not whole and word.partition("/")[0] in wanted):
        return True
    return any("*" in each and fnmatchcase(word, each) for each in wanted)


def _has(wanted: frozenset[str], options: list[str]) -> bool:
    for option in options:
        if option.partition("=")[0] in wanted or option in wanted:
            return True
        if option[1:2] != "-" and len(option) <= 4 and any(f"-{letter}" in wanted for letter in option[1:]):
            return True
    return False


def _last_part(name: str) -> str:
    return re.split(r"[/.:]", name.rstrip("/"))[-1]


def _selects_other(argv: tuple[str, ...]) -> bool:
    """Tell whether an option selects a field that is no secret, such as a user's name."""
    for at, word in enumerate(argv):
        option, sign, value = word.partition("=")
        if option in _SELECTING:
            value = value if sign else " ".join(argv[at + 1 : at + 2])
            value = value.strip("'\"{}[] ").removeprefix("label=")
            if _ORDINARY_PART.search(value) and not _SECRET_PART.search(value):
                return True
    fields = [name for value in _selections(argv) for name in find_selected_fields(value)]
    return bool(fields) and all(map(is_plain_fact, fields))
