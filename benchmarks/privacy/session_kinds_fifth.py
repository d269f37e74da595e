# ruff: noqa: E501 (literal texts)
"""A fifth, held-out list of what sessions are made of, in the structures of `session_kinds_second.py`.

Its commands and its harmless outputs were written by two authors; neither knew the rules, and none of what they wrote stands in another list.
"""

_JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ[{w140}.{w43}]"
_LINES = "{b64}\n{b64}\n{b64}\n{b64}\n{b64}\n{b38}=="


def _pem(what: str, lines: str = f"[{_LINES}]") -> str:
    return f"-----BEGIN {what}-----\n{lines}\n-----END {what}-----"


PLAIN_VALUES = (
    "{a9}",
    "{a12}",
    "{a16}",
    "{a20}",
    "{a24}",
    "{a32}",
    "{a40}",
    "{a48}",
    "{a64}",
    "{h24}",
    "{h32}",
    "{h40}",
    "{h64}",
    "{b43}=",
    "{b22}==",
    "{w32}",
    "{w43}",
    "{p12}",
    "{p16}",
    "{p18}",
    "{s16}",
    "{s24}",
    "{word}-{word}-{word}-{word}",
    "{word}.{word}{d2}",
    "{l5}_{d4}{l5}",
    "{uuid}",
)

COMMANDS = (
    (
        "redis-cli -h cache-1 ACL LIST",
        "user default on nopass sanitize-payload ~* &* +@all\nuser shop on sanitize-payload #[{h64}] ~shop:* resetchannels -@all +@read +@write",
    ),
    ("cat /etc/pgbouncer/userlist.txt", '"app" "[{v}]"\n"metrics" "[{a16}]"'),
    (
        "mysql -e 'SELECT User_name, User_password FROM mysql.slave_master_info\\G'",
        "*************************** 1. row ***************************\n    User_name: repl\nUser_password: [{v}]",
    ),
    (
        "sqlite3 -header -column ~/.local/share/app/state.db 'select id, access_token, expires_at from sessions'",
        "id  access_token                                      expires_at\n--  ------------------------------------------------  ----------\n1   [{a48}]  1795862400\n2   [{a48}]  1795948800",
    ),
    (
        "mongosh --quiet shop --eval 'db.integrations.find({name: \"shipping\"}, {_id: 0})'",
        "⟦\n  {\n    name: 'shipping',\n    enabled: true,\n    apiKey: '[{v}]',\n    createdAt: ISODate('2026-08-11T09:12:44.000Z')\n  }\n⟧",
    ),
    ("turso db tokens create shop --expiration 7d", "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJ[{w118}.{w86}]"),
    (
        "heroku pg:credentials:url DATABASE -a shop-prod",
        'Connection information for default credential.\nConnection info string:\n   "dbname=d7k1m0q9 host=ec2-shop.compute-1.amazonaws.com port=5432 user=uxyqhwlk password=p[{h64}] sslmode=require"\nConnection URL:\n   postgres://uxyqhwlk:p[{h64}]@ec2-shop.compute-1.amazonaws.com:5432/d7k1m0q9',
    ),
    (
        "influx auth create --org shop --all-access --json",
        '{\n\t"id": "0d1a2b3c4d5e6f70",\n\t"description": "",\n\t"token": "[{w86}]==",\n\t"status": "active",\n\t"userName": "admin"\n}',
    ),
    (
        "bin/elasticsearch-create-enrollment-token -s kibana",
        "eyJ2ZXIiOiI4LjE0LjAiLCJhZHIiOlsi[{a180}]",
    ),
    (
        "cat ~/.snowflake/connections.toml",
        '⟦shop⟧\naccount = "xy12345.eu-central-1"\nuser = "LOADER"\npassword = "[{v}]"\nwarehouse = "LOAD_WH"',
    ),
    (
        "awk -F= '/^db/ {print}' /opt/app/conf/application.properties",
        "db.url=jdbc:mysql://mysql-1:3306/shop\ndb.username=shop\ndb.password=[{v}]\ndb.pool.size=20",
    ),
    (
        "curl -s localhost:8083/connectors/orders-source/config | jq",
        '{\n  "connector.class": "io.debezium.connector.postgresql.PostgresConnector",\n  "database.hostname": "pg-1",\n  "database.user": "debezium",\n  "database.password": "[{v}]",\n  "database.dbname": "shop",\n  "topic.prefix": "orders",\n  "tasks.max": "1"\n}',
    ),
    (
        "aws sts assume-role --role-arn arn:aws:iam::123456789012:role/deploy --role-session-name ci --output text",
        "ASSUMEDROLEUSER\tarn:aws:sts::123456789012:assumed-role/deploy/ci\tAROAEXAMPLEROLEID0001:ci\nCREDENTIALS\tASIA{S16}\t2026-11-29T12:00:00+00:00\t[{b40}]\tIQoJb3JpZ2luX2Vj[{b300}]",
    ),
    ("aws ecr get-login-password --region eu-central-1", "eyJwYXlsb2FkIjoi[{b400}]"),
    (
        "aws ec2 get-password-data --instance-id i-0c2f4a6b8d0e1f203 --priv-launch-key key.pem",
        '{\n    "InstanceId": "i-0c2f4a6b8d0e1f203",\n    "Timestamp": "2026-11-28T16:20:11+00:00",\n    "PasswordData": "[{p24}]"\n}',
    ),
    (
        "curl -s http://169.254.169.254/latest/meta-data/iam/security-credentials/web",
        '{\n  "Code" : "Success",\n  "LastUpdated" : "2026-11-29T05:02:10Z",\n  "Type" : "AWS-HMAC",\n  "AccessKeyId" : "ASIA{S16}",\n  "SecretAccessKey" : "[{b40}]",\n  "Token" : "IQoJb3JpZ2luX2Vj[{b320}]",\n  "Expiration" : "2026-11-29T11:20:33Z"\n}',
    ),
    (
        "aws codeartifact get-authorization-token --domain shop --query authorizationToken --output text",
        "eyJ2ZXIiOjEsImlzdSI6[{w380}]",
    ),
    (
        "aws s3 presign s3://shop-exports/orders.csv --expires-in 600",
        "https://shop-exports.s3.eu-central-1.amazonaws.com/orders.csv?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA{S16}%2F20261129%2Feu-central-1%2Fs3%2Faws4_request&X-Amz-Date=20261129T090000Z&X-Amz-Expires=600&X-Amz-SignedHeaders=host&X-Amz-Signature=[{h64}]",
    ),
    (
        "gcloud storage hmac create ci@shop-prod.iam.gserviceaccount.com --format=json",
        '{\n  "kind": "storage#hmacKey",\n  "metadata": {\n    "accessId": "GOOG1E{S55}",\n    "projectId": "shop-prod",\n    "state": "ACTIVE"\n  },\n  "secret": "[{b40}]"\n}',
    ),
    (
        "az storage account show-connection-string -n shopimages -o tsv",
        "DefaultEndpointsProtocol=https;EndpointSuffix=core.windows.net;AccountName=shopimages;AccountKey=[{b86}]==;BlobEndpoint=https://shopimages.blob.core.windows.net/",
    ),
    (
        "az webapp config appsettings list -g shop -n shop-web -o table",
        "Name                         Value                                 SlotSetting\n---------------------------  ------------------------------------  -------------\nWEBSITE_NODE_DEFAULT_VERSION  ~22                                   False\nPAYMENT_API_KEY              [{a32}]      False",
    ),
    ("grep token ~/.config/linode-cli", "token = [{h64}]"),
    (
        "ibmcloud iam api-key-create ci --output json",
        '{\n  "id": "ApiKey-{uuid}",\n  "name": "ci",\n  "apikey": "[{w44}]",\n  "created_at": "2026-11-29T09:10+0000"\n}',
    ),
    (
        "cat clouds.yaml",
        "clouds:\n  shop:\n    auth:\n      auth_url: https://keystone.shop.corp:5000/v3\n      username: deploy\n      password: [{v}]\n      project_name: shop\n      user_domain_name: Default\n    region_name: RegionOne",
    ),
    ("cloudflared tunnel token shop", "eyJhIjoi[{b180}]"),
    (
        "kubectl get secret shop -o go-template='{{range $k,$v := .data}}{{$k}}: {{$v | base64decode}}{{\"\\n\"}}{{end}}'",
        "password: [{v}]\nusername: shop\nwebhook: https://hooks.slack.com/services/T{S10}/B{S10}/[{a24}]",
    ),
    (
        "kubectl create token deploy -n ci --duration=1h",
        "eyJhbGciOiJSUzI1NiIsImtpZCI6[{w54}.eyJ{w300}.{w342}]",
    ),
    ("sudo cat /var/lib/rancher/k3s/server/node-token", "K10{h64}::server:[{h32}]"),
    (
        "docker logs keycloak 2>&1 | grep -i password",
        "2026-11-29 05:10:11,204 INFO  ⟦org.keycloak.services⟧ (main) KC-SERVICES0077: Created temporary admin user with username admin and password [{a16}]",
    ),
    ("docker exec jenkins cat /var/jenkins_home/secrets/initialAdminPassword", "[{h32}]"),
    (
        "docker logs jupyter 2>&1 | tail -3",
        "    To access the server, open this file in a browser:\n        file:///root/.local/share/jupyter/runtime/jpserver-7-open.html\n    Or copy and paste one of these URLs:\n        http://127.0.0.1:8888/lab?token=[{h48}]",
    ),
    ("podman secret inspect db --showsecret --format '{{.SecretData}}'", "[{v}]"),
    (
        "nomad var get -out=json nomad/jobs/shop | jq .Items",
        '{\n  "db_password": "[{v}]",\n  "db_user": "shop"\n}',
    ),
    ("rancher kubectl config view --raw | grep token:", "    token: kubeconfig-user-{s10}:[{s54}]"),
    (
        "vault kv get secret/shop/smtp",
        "==== Secret Path ====\nsecret/data/shop/smtp\n\n======= Metadata =======\nKey                Value\n---                -----\ncreated_time       2026-09-01T10:00:00.123456789Z\ncustom_metadata    <nil>\ndeletion_time      n/a\ndestroyed          false\nversion            3\n\n====== Data ======\nKey         Value\n---         -----\npassword    [{v}]\nusername    relay",
    ),
    (
        "vault read database/creds/shop-ro",
        "Key                Value\n---                -----\nlease_id           database/creds/shop-ro/{a24}\nlease_duration     1h\nlease_renewable    true\npassword           [{w20}]\nusername           v-token-shop-ro-{a20}-1795929000",
    ),
    (
        "op item get Stripe --format json --reveal | jq '.fields[] | {label, value}' -c",
        '{"label":"username","value":"shop"}\n{"label":"credential","value":"[{v}]"}\n{"label":"notesPlain","value":null}',
    ),
    ("bw get password shop-prod", "[{v}]"),
    (
        "bw get item gitlab | jq -c .login",
        '{"uris":⟦{"match":null,"uri":"https://git.shop.corp"}⟧,"username":"root","password":"[{v}]","totp":"[{t32}]","passwordRevisionDate":null}',
    ),
    ("pass show shop/prod/db", "[{v}]\nuser: shop\nurl: https://db.shop.corp"),
    ("keepassxc-cli show -s -a Password vault.kdbx 'Servers/web-1'", "[{v}]"),
    (
        "chamber list shop --expand",
        "Key          Version  LastModified   User      Value\ndb_password  3        11-12 09:31:11 deploy    [{a24}]\nlog_level    1        08-02 14:01:55 deploy    info",
    ),
    ('sops -d --extract \'["smtp"]["password"]\' secrets.enc.yaml', "[{v}]"),
    (
        "ansible web-1 -m debug -a var=mysql_root_password",
        'web-1 ¦ SUCCESS => {\n    "mysql_root_password": "[{v}]"\n}',
    ),
    (
        "terraform output -json | jq -r 'to_entries[] | \"\\(.key)=\\(.value.value)\"'",
        "bucket=shop-images\ndb_password=[{v}]\nregion=eu-central-1",
    ),
    (
        "cat ~/.terraform.d/credentials.tfrc.json",
        '{\n  "credentials": {\n    "app.terraform.io": {\n      "token": "[{a14}].atlasv1.[{a67}]"\n    }\n  }\n}',
    ),
    (
        "knife data bag show secrets mysql --secret-file ~/.chef/key -F json",
        '{\n  "id": "mysql",\n  "root": "[{v}]",\n  "replication": "[{v}]"\n}',
    ),
    ("credstash get shop.prod.paypal", "[{v}]"),
    (
        "secret-tool search --all service shop",
        "⟦/org/freedesktop/secrets/collection/login/12⟧\nlabel = Shop\nsecret = [{v}]\ncreated = 2026-05-03 08:11:42\nmodified = 2026-05-03 08:11:42\nschema = org.freedesktop.Secret.Generic\nattribute.service = shop",
    ),
    (
        "printf 'protocol=https\\nhost=github.com\\n' | git credential fill",
        "protocol=https\nhost=github.com\nusername=shop-bot\npassword=ghp_[{g36}]",
    ),
    ("git remote get-url --push origin", "https://oauth2:glpat-[{w20}]@git.shop.corp/shop/shop.git"),
    ("git stash show -p | grep -i secret", "+SHOP_CLIENT_SECRET=[{v}]"),
    (
        "glab variable export --output env",
        "DEPLOY_HOST=web-1\nDEPLOY_TOKEN=gldt-[{w20}]\nSONAR_TOKEN=squ_[{h40}]",
    ),
    (
        "sudo grep -A2 token /etc/gitlab-runner/config.toml",
        '  token = "glrt-[{w20}]"\n  token_obtained_at = 2026-02-11T08:00:00Z\n  executor = "docker"',
    ),
    ("travis token --com", "Your access token is [{w22}]"),
    (
        "fly ssh console -a shop -C 'printenv S3_SECRET'",
        "Connecting to fdaa:0:5d2a:a7b:1::3... complete\n[{b40}]",
    ),
    (
        "dokku config:show shop",
        "=====> shop env vars\nDATABASE_URL:  postgres://postgres:[{h32}]@dokku-postgres-shop:5432/shop\nMAILER_PASS:   [{v}]\nPORT:          5000",
    ),
    ("convox env -a shop", "DATABASE_PASSWORD=[{v}]\nNODE_ENV=production"),
    ("uv auth token --username ci pypi.shop.corp", "[{v}]"),
    (
        "bundle config list",
        'Settings are listed in order of priority. The top value will be used.\ngems.shop.corp\nSet for the current user (/root/.bundle/config): "ci:[{a20}]"\n\njobs\nSet for the current user (/root/.bundle/config): 4',
    ),
    (
        "xmllint --format ~/.m2/settings.xml",
        '<?xml version="1.0"?>\n<settings>\n  <servers>\n    <server>\n      <id>releases</id>\n      <username>ci</username>\n      <password>[{v}]</password>\n    </server>\n  </servers>\n</settings>',
    ),
    (
        "cat ~/.config/NuGet/NuGet.Config",
        '<?xml version="1.0" encoding="utf-8"?>\n<configuration>\n  <packageSourceCredentials>\n    <shop>\n        <add key="Username" value="ci" />\n        <add key="ClearTextPassword" value="[{v}]" />\n      </shop>\n  </packageSourceCredentials>\n</configuration>',
    ),
    ("go env GOFLAGS GOPROXY", "\nhttps://ci:[{a20}]@goproxy.shop.corp,direct"),
    (
        "cat ~/.jfrog/jfrog-cli.conf.v6 | jq '.servers[0]'",
        '{\n  "url": "https://art.shop.corp/",\n  "artifactoryUrl": "https://art.shop.corp/artifactory/",\n  "user": "ci",\n  "password": "cmVmdGtuOj[{a54}]",\n  "serverId": "shop",\n  "isDefault": true\n}',
    ),
    ("wg genkey | tee /etc/wireguard/private.key", "[{b43}]="),
    (
        "openssl rsa -in key.pem -text -noout | sed -n '/privateExponent/,/prime1/p'",
        "privateExponent:\n    [{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:\n    {h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:\n    {h2}:{h2}]\nprime1:",
    ),
    ("uuidgen | tee ~/.config/shop/webhook_secret", "[{uuid}]"),
    (
        "gpg --armor --export-secret-subkeys ci@shop.corp",
        _pem("PGP PRIVATE KEY BLOCK", "\n[{b64}\n{b64}\n{b64}\n{b40}==\n={b4}]"),
    ),
    (
        "cat scripts/switch.exp",
        '#!/usr/bin/expect\nset timeout 20\nspawn ssh admin@switch-1\nexpect "password:"\nsend "[{v}]\\r"\nexpect "#"\nsend "show version\\r"\ninteract',
    ),
    (
        "google-authenticator -t -d -f -r 3 -R 30 -w 3 -Q NONE",
        "Your new secret key is: [{t26}]\nYour verification code is {d6}\nYour emergency scratch codes are:\n  [{d8}]\n  [{d8}]\n  [{d8}]",
    ),
    ("sudo cat /etc/shadow | grep ^deploy", "deploy:$6$[{a16}${b86}]:20421:0:99999:7:::"),
    ("cast wallet new", "Successfully created new keypair.\nAddress:     0x{h40}\nPrivate key: 0x[{h64}]"),
    ("bitcoin-cli dumpprivkey bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "K[{a51}]"),
    (
        "manage-bde -protectors -get C:",
        "BitLocker Drive Encryption: Configuration Tool\n\nVolume C: ⟦OS⟧\nAll Key Protectors\n\n    Numerical Password:\n      ID: {1B2A3C4D-0F1E-4D2C-8B3A-998877665544}\n      Password:\n        [{d6}-{d6}-{d6}-{d6}-{d6}-{d6}-{d6}-{d6}]",
    ),
    ("python manage.py drf_create_token ops", "Generated token [{h40}] for user ops"),
    (
        "python -c 'import os; print({k: v for k, v in os.environ.items() if k.startswith(\"SHOP_\")})'",
        "{'SHOP_ENV': 'prod', 'SHOP_HMAC_KEY': '[{v}]', 'SHOP_PORT': '8080'}",
    ),
    (
        "python -c 'import json,boto3; print(boto3.Session().get_credentials().get_frozen_credentials())'",
        "ReadOnlyCredentials(access_key='AKIA{S16}', secret_key='[{b40}]', token=None, account_id=None)",
    ),
    ("airflow variables get telegram_token", "[{d10}:AA{w33}]"),
    (
        "node -e 'console.log(require(\"./config/production\"))'",
        "{\n  env: 'production',\n  port: 8080,\n  smtp: { host: 'smtp.shop.corp', user: 'relay', pass: '[{v}]' },\n  session: { secret: '[{v}]', maxAge: 86400 }\n}",
    ),
    (
        "npx web-push generate-vapid-keys",
        "\n=======================================\n\nPublic Key:\nB{w86}\n\nPrivate Key:\n[{w43}]\n\n=======================================",
    ),
    ("bin/rails runner 'puts Rails.application.credentials.dig(:mailgun, :api_key)'", "[{h32}-{h8}-{h8}]"),
    (
        'ruby -ryaml -e \'p YAML.load_file("config/storage.yml")["s3"]\'',
        '{"service" => "S3", "access_key_id" => "AKIA{S16}", "secret_access_key" => "[{b40}]", "bucket" => "shop"}',
    ),
    (
        'php -r \'var_dump((require "app/etc/env.php")["crypt"]);\'',
        'array(1) {\n  ⟦"key"⟧=>\n  string(32) "[{h32}]"\n}',
    ),
    (
        "go run ./cmd/printcfg -format=gostr",
        'config.Config{Env:"prod", Redis:config.Redis{Addr:"cache-1:6379", Password:"[{v}]", DB:0}}',
    ),
    (
        "iex -S mix run -e 'IO.inspect(Application.get_env(:shop, ShopWeb.Endpoint)[:secret_key_base])' </dev/null",
        '"[{b64}]"',
    ),
    (
        "curl -s localhost:8080/actuator/env?pattern=mail | jq -c '.propertySources[1].properties'",
        '{"spring.mail.password":{"value":"[{v}]","origin":"class path resource ⟦application.yml⟧ - 14:15"}}',
    ),
    ("dart run bin/env.dart", "API_BASE: https://api.shop.corp\nAPI_SECRET: [{v}]"),
    (
        "sed -n '1,20p' /var/www/html/wp-config.php",
        "<?php\ndefine( 'DB_NAME', 'wp' );\ndefine( 'DB_USER', 'wp' );\ndefine( 'DB_PASSWORD', '[{v}]' );\ndefine( 'DB_HOST', 'localhost' );\ndefine( 'AUTH_KEY',         '[{a64}]' );\ndefine( 'SECURE_AUTH_KEY',  '[{a64}]' );",
    ),
    (
        "rg -n --no-heading 'Authorization' scripts/",
        'scripts/sync.sh:9:curl -H "Authorization: Bearer [{a40}]" https://api.shop.corp/v2/sync',
    ),
    ("yq '.smtp' config/production.yaml", "host: smtp.shop.corp\nport: 587\nuser: relay\npassword: [{v}]"),
    ("jq -r '.clients[] | \"\\(.id) \\(.secret)\"' oauth.json", "web [{v}]\nmobile [{v}]"),
    (
        "cat secrets.toml",
        '⟦connections.gsheets⟧\nspreadsheet = "https://docs.google.com/spreadsheets/d/abc"\nprivate_key_id = "{h40}"\nprivate_key = "'
        + _pem("PRIVATE KEY").replace("\n", "\\n")
        + '\\n"',
    ),
    ("diff .env.staging .env.production", "2c2\n< LEMONSQUEEZY_KEY=[{a40}]\n---\n> LEMONSQUEEZY_KEY=[{a40}]"),
    (
        "sudo cat /etc/NetworkManager/system-connections/Office.nmconnection",
        "⟦connection⟧\nid=Office\nuuid={uuid}\ntype=wifi\n\n⟦wifi⟧\nssid=Office\n\n⟦wifi-security⟧\nkey-mgmt=wpa-psk\npsk=[{a14}]",
    ),
    ("nmcli --show-secrets -g 802-11-wireless-security.psk connection show Office", "[{l6}-{l6}{d2}]"),
    ("cat ~/.s3cfg | grep -E '_key|token'", "access_key = {S20}\naccess_token =\nsecret_key = [{b40}]"),
    ("systemctl show shop -p Environment", "Environment=PORT=8080 SMTP_PASSWORD=[{a24}] LOG_LEVEL=info"),
    ("ps -eo args | grep [m]ysqldump", "mysqldump -h mysql-1 -u backup -p[{a16}] --single-transaction shop"),
    (
        "history | grep -i login",
        "  412  docker login -u ci -p dckr_pat_[{w27}]\n  498  az login --service-principal -u {uuid} -p [{a3}8Q~{w34}] --tenant {uuid}",
    ),
    ("set | grep -a _SECRET", "APP_SECRET=[{h32}]\nOIDC_SECRET='[{p16}]'"),
    ("strings build/app.bin | grep -E '^(sk|rk)_live'", "sk_live_[{a24}]"),
    (
        'curl -s https://api-m.paypal.com/v1/oauth2/token -u "$ID:$SECRET" -d grant_type=client_credentials | jq -r .access_token',
        "A21AA[{w92}]",
    ),
    (
        "shopify app env show",
        "\n    SHOPIFY_API_KEY={h32}\n    SHOPIFY_API_SECRET=shpss_[{h32}]\n    SCOPES=write_products",
    ),
    (
        "cat ~/.slack/credentials.json",
        '{\n  "T{S10}": {\n    "token": "xoxe.xoxp-1-[{a160}]",\n    "team_domain": "shop",\n    "refresh_token": "xoxe-1-[{a140}]",\n    "exp": 1795929000\n  }\n}',
    ),
    ("yq '.receivers[].pagerduty_configs' alertmanager.yml", "- service_key: [{h32}]\n  severity: critical"),
    (
        'curl -s "https://discord.com/api/v10/channels/1/webhooks" -H "Authorization: Bot $T" | jq -r \'.[].url\'',
        "https://discord.com/api/webhooks/{d19}/[{w68}]",
    ),
    (
        "twilio api:core:keys:create --friendly-name ci -o json",
        '⟦\n  {\n    "friendlyName": "ci",\n    "secret": "[{a32}]",\n    "sid": "SK{h32}"\n  }\n⟧',
    ),
    (
        'curl -s -X POST https://api.sendgrid.com/v3/api_keys -H "Authorization: Bearer $SG" -d \'{"name":"ci"}\'',
        '{"api_key":"SG.[{w22}.{w43}]","api_key_id":"{w22}","name":"ci","scopes":⟦"mail.send"⟧}',
    ),
    ('sudo doveadm -f tab pw -s SHA512-CRYPT -p "$P"', "{SHA512-CRYPT}$6$[{a16}${b86}]"),
    ("grep -E 'bindpw|binddn' /etc/nslcd.conf", "binddn cn=reader,dc=shop,dc=corp\nbindpw [{v}]"),
    (
        "ldapsearch -LLL -x -H ldap://ldap-1 -D cn=admin,dc=shop,dc=corp -y /run/pw '(uid=svc-ci)' userPassword",
        "dn: uid=svc-ci,ou=services,dc=shop,dc=corp\nuserPassword:: e1NTSEF9[{b43}]=",
    ),
    (
        "curl -s -u guest:guest localhost:15672/api/definitions | jq '.users[0]'",
        '{\n  "name": "shop",\n  "password_hash": "[{b48}]",\n  "hashing_algorithm": "rabbit_password_hashing_sha256",\n  "tags": ⟦\n    "administrator"\n  ⟧\n}',
    ),
    (
        "nats context info prod --json | jq '{url,user,password}'",
        '{\n  "url": "nats://nats-1:4222",\n  "user": "shop",\n  "password": "[{v}]"\n}',
    ),
    (
        "mosquitto_sub -h mqtt -t 'homie/gateway/config' -C 1",
        '{"wifi":{"ssid":"Office","password":"[{l6}{d4}]"},"mqtt":{"host":"mqtt","port":1883,"auth":true,"username":"gw","password":"[{a16}]"}}',
    ),
    (
        "ttn-lw-cli end-devices get shop sensor-17 --root-keys",
        '{\n  "ids": {\n    "device_id": "sensor-17",\n    "dev_eui": "{H16}",\n    "join_eui": "{H16}"\n  },\n  "root_keys": {\n    "app_key": {\n      "key": "[{H32}]"\n    }\n  }\n}',
    ),
    (
        "asterisk -rx 'pjsip show auth phone-21'",
        "     I/OAuth:  phone-21/phone-21\n\n ParameterName  : ParameterValue\n ==========================================\n auth_type      : userpass\n password       : [{v}]\n username       : phone-21",
    ),
    ("kcadm.sh get clients/5f1d/client-secret -r shop", '{\n  "type" : "secret",\n  "value" : "[{a32}]"\n}'),
    ("auth0 apps show 1a2b3c --reveal-secrets --json | jq -r .client_secret", "[{w64}]"),
    ("sudo grep ^api_key /etc/datadog-agent/datadog.yaml", "api_key: [{h32}]"),
    ("cat ~/.sentryclirc", "⟦auth⟧\ntoken=sntrys_eyJpYXQi[{b150}_{b43}]"),
    (
        "env | grep -E '_API_KEY='",
        "ANTHROPIC_API_KEY=sk-ant-api03-[{w93}AA]\nMISTRAL_API_KEY=[{a32}]\nGROQ_API_KEY=gsk_[{a52}]",
    ),
    (
        "cat ~/.config/aichat/config.yaml",
        "model: deepseek:deepseek-chat\nclients:\n- type: openai-compatible\n  name: deepseek\n  api_base: https://api.deepseek.com\n  api_key: sk-[{h32}]",
    ),
    (
        "cat litellm_config.yaml",
        "model_list:\n  - model_name: large\n    litellm_params:\n      model: azure/gpt-5\n      api_base: https://shop.openai.azure.com\n      api_key: [{a84}]\n  - model_name: rerank\n    litellm_params:\n      model: cohere/rerank-v3.5\n      api_key: [{a40}]\ngeneral_settings:\n  master_key: sk-[{a22}]",
    ),
    ("python -c 'import os; print(os.getenv(\"REPLICATE_API_TOKEN\"))'", "r8_[{a37}]"),
    ("cat ~/.kaggle/kaggle.json", '{"username":"shopdata","key":"[{h32}]"}'),
    (
        "databricks auth token --profile prod",
        '{\n  "access_token": "'
        + _JWT
        + '",\n  "token_type": "Bearer",\n  "expiry": "2026-11-29T06:40:00Z"\n}',
    ),
    (
        "cat ~/.cursor/mcp.json",
        '{\n  "mcpServers": {\n    "github": {\n      "command": "npx",\n      "args": ⟦"-y", "@modelcontextprotocol/server-github"⟧,\n      "env": {\n        "GITHUB_PERSONAL_ACCESS_TOKEN": "github_pat_[{a22}_{a59}]"\n      }\n    },\n    "notion": {\n      "url": "https://mcp.shop.corp",\n      "headers": { "Authorization": "Bearer ntn_[{a46}]" }\n    }\n  }\n}',
    ),
    (
        "plutil -p ios/Runner/Secrets.plist",
        '{\n  "API_BASE" => "https://api.shop.corp"\n  "API_SECRET" => "[{v}]"\n}',
    ),
    (
        "cat AuthKey_4K2V7M1Q9X.p8",
        _pem("PRIVATE KEY", "MIGTAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBHkwdwIBAQQg[{b16}\n{b64}\n{b64}\n{b8}]"),
    ),
    (
        "eas env:list --environment production --include-sensitive",
        "Environment: production\nAPI_URL=https://api.shop.corp\nSENTRY_AUTH_TOKEN=sntryu_[{h64}]",
    ),
    ("pwsh -c '$env:SHOP_DB_PASSWORD'", "[{v}]"),
    ("pwsh -c 'Get-Secret -Name shop-db -AsPlainText'", "[{v}]"),
    (
        "pwsh -c '(Import-Clixml ~/cred.xml).GetNetworkCredential() | Format-List UserName,Password'",
        "\nUserName : svc-shop\nPassword : [{v}]\n",
    ),
    (
        "pwsh -c '(Get-Content appsettings.json | ConvertFrom-Json).Smtp'",
        "\nHost     : smtp.shop.corp\nPort     : 587\nUser     : relay\nPassword : [{v}]\n",
    ),
    (
        'powershell.exe -c "netsh wlan show profile name=Office key=clear"',
        "Security settings\n-----------------\n    Authentication         : WPA2-Personal\n    Cipher                 : CCMP\n    Security key           : Present\n    Key Content            : [{l6}{d3}{l4}]",
    ),
    (
        "pwsh -c 'New-MgApplicationPassword -ApplicationId $id | Format-List SecretText,KeyId,EndDateTime'",
        "\nSecretText  : [{a3}8Q~{w34}]\nKeyId       : {uuid}\nEndDateTime : 11/29/2028 05:31:00\n",
    ),
    (
        "pwsh -c 'Get-LapsADPassword ws-12 -AsPlainText'",
        "\nComputerName        : ws-12\nDistinguishedName   : CN=ws-12,OU=Clients,DC=shop,DC=corp\nAccount             : Administrator\nPassword            : [{p14}]\nPasswordUpdateTime  : 11/27/2026 08:02:11\nSource              : EncryptedPassword\nDecryptionStatus    : Success\n",
    ),
    (
        "sqlcmd -S sql-1 -Q \"SET NOCOUNT ON; SELECT Name, Value FROM dbo.Settings WHERE Name LIKE '%Key'\"",
        "Name                 Value\n-------------------- ----------------------------------------\nMapsKey              AIza[{w35}]\nEncryptionKey        [{h32}]",
    ),
)
"""Commands that print a secret, and what they print."""

CONTROLS = (
    (
        "keytool -list -keystore release.jks < /dev/null",
        "Enter keystore password:  \n\n*****************  WARNING WARNING WARNING  *****************\n* The integrity of the information stored in your keystore  *\n* has NOT been verified!  In order to verify its integrity, *\n* you must provide your keystore password.                  *\n*****************  WARNING WARNING WARNING  *****************\n\nKeystore type: PKCS12\nKeystore provider: SUN\n\nYour keystore contains 1 entry\n\nupload, Mar 2, 2026, PrivateKeyEntry, \nCertificate fingerprint (SHA-256): {H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}",
    ),
    (
        "./gradlew -q :app:signingReport",
        "Variant: debug\nConfig: debug\nStore: /root/.android/debug.keystore\nAlias: AndroidDebugKey\nMD5: {H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}\nSHA1: {H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}\nSHA-256: {H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}\nValid until: Saturday, February 24, 2056\n----------",
    ),
    (
        "security find-identity -v -p codesigning",
        '  1) {H40} "Apple Development: Acme GmbH ({S10})"\n  2) {H40} "Developer ID Application: Acme GmbH ({S10})"\n     2 valid identities found',
    ),
    (
        "kubeseal --fetch-cert --controller-namespace sealed",
        "-----BEGIN CERTIFICATE-----\nMIIE{b60}\n{b64}\n{b64}\n{b64}\n{b64}\n{b42}==\n-----END CERTIFICATE-----",
    ),
    (
        "curl -s https://sso.corp/saml/metadata | xmllint --format - | head -9",
        '<?xml version="1.0"?>\n<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="https://sso.corp/saml" ID="_{h32}">\n  <md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">\n    <md:KeyDescriptor use="signing">\n      <ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#">\n        <ds:X509Data>\n          <ds:X509Certificate>MIIC{b396}</ds:X509Certificate>\n        </ds:X509Data>\n      </ds:KeyInfo>',
    ),
    (
        "rekor-cli get --log-index 81233041 | head -12",
        'LogID: {h64}\nIndex: 81233041\nIntegratedTime: 2026-11-02T10:11:12Z\nUUID: {h80}\nBody: {\n  "HashedRekordObj": {\n    "data": {\n      "hash": {\n        "algorithm": "sha256",\n        "value": "{h64}"\n      }\n    },',
    ),
    ("age-keygen -y /etc/sops/age.txt", "age1{e58}"),
    (
        "dig +short TXT mail._domainkey.shop.corp",
        '"v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A{b204}" "{b140}IDAQAB"',
    ),
    (
        "ssh core-sw1 'show crypto key mypubkey rsa'",
        "% Key pair was generated at: 10:11:12 UTC Mar 2 2026\nKey name: TP-self-signed-{d10}\nKey type: RSA KEYS\n Storage Device: private-config\n Usage: General Purpose Key\n Key is not exportable.\n Key Data:\n  30819F30 0D06092A 864886F7 0D010101 05000381 8D003081 89028181 00{H6}\n  {H8} {H8} {H8} {H8} {H8} {H8} {H8} {H8}",
    ),
    (
        "modinfo wireguard | tail -5",
        "sig_id:         PKCS#7\nsigner:         Build time autogenerated kernel key\nsig_key:        {H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}\nsig_hashalgo:   sha512\nsignature:      {H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:\n\t\t{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}",
    ),
    (
        "sudo apt-get update 2>&1 | tail -2",
        "W: GPG error: https://packages.corp/apt stable InRelease: The following signatures couldn't be verified because the public key is not available: NO_PUBKEY {H16}\nE: The repository 'https://packages.corp/apt stable InRelease' is not signed.",
    ),
    (
        "tailscale lock status",
        "Tailnet lock is ENABLED.\n\nThis node is accessible under tailnet lock.\n\nThis node's tailnet-lock key: tlpub:{h64}\n\nTrusted signing keys:\n\ttlpub:{h64}\t1\t(self)\n\ttlpub:{h64}\t1\t",
    ),
    (
        "kubectl -n kube-system exec ds/cilium -- cilium encrypt status",
        "Encryption: Wireguard\nInterface: cilium_wg0\n\tPublic key: {b43}=\n\tNumber of peers: 4",
    ),
    (
        "Get-AuthenticodeSignature .\\setup.msi | Format-List",
        "\n\nSignerCertificate      : ⟦Subject⟧\n                           CN=Acme GmbH, O=Acme GmbH, C=DE\n\n                         ⟦Issuer⟧\n                           CN=Acme Code Signing CA\n\n                         ⟦Serial Number⟧\n                           0{H31}\n\n                         ⟦Thumbprint⟧\n                           {H40}\n\nTimeStamperCertificate : \nStatus                 : Valid\nStatusMessage          : Signature verified.\nPath                   : C:\\build\\setup.msi\n",
    ),
    (
        "Get-ChildItem Cert:\\LocalMachine\\My",
        "\n\n   PSParentPath: Microsoft.PowerShell.Security\\Certificate::LocalMachine\\My\n\nThumbprint                                Subject\n----------                                -------\n{H40}  CN=web-1.shop.corp\n{H40}  CN=WMSvc-SHA2\n",
    ),
    (
        "cmdkey /list",
        "\nCurrently stored credentials:\n\n    Target: LegacyGeneric:target=git:https://dev.azure.com/acme\n    Type: Generic \n    User: Personal Access Token\n    Local machine persistence\n",
    ),
    (
        "net accounts",
        "Force user logoff how long after time expires?:       Never\nMinimum password age (days):                          1\nMaximum password age (days):                          42\nMinimum password length:                              14\nLength of password history maintained:                24\nLockout threshold:                                    10\nLockout duration (minutes):                           10\nLockout observation window (minutes):                 10\nComputer role:                                        SERVER\nThe command completed successfully.\n",
    ),
    (
        "manage-bde -status C:",
        "BitLocker Drive Encryption: Configuration Tool version 10.0.26100\nCopyright (C) 2013 Microsoft Corporation. All rights reserved.\n\nVolume C: ⟦OS⟧\n⟦OS Volume⟧\n\n    Size:                 475.69 GB\n    BitLocker Version:    2.0\n    Conversion Status:    Used Space Only Encrypted\n    Percentage Encrypted: 100.0%\n    Encryption Method:    XTS-AES 128\n    Protection Status:    Protection On\n    Lock Status:          Unlocked\n    Identification Field: Unknown\n    Key Protectors:\n        TPM\n        Numerical Password\n",
    ),
    (
        "type Web.config",
        '<?xml version="1.0"?>\n<configuration>\n  <connectionStrings configProtectionProvider="RsaProtectedConfigurationProvider">\n    <EncryptedData Type="http://www.w3.org/2001/04/xmlenc#Element" xmlns="http://www.w3.org/2001/04/xmlenc#">\n      <EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes256-cbc" />\n      <CipherData>\n        <CipherValue>{b214}==</CipherValue>\n      </CipherData>\n    </EncryptedData>\n  </connectionStrings>\n  <system.web>\n    <machineKey validationKey="AutoGenerate,IsolateApps" decryptionKey="AutoGenerate,IsolateApps" validation="SHA1" />\n  </system.web>\n</configuration>',
    ),
    (
        "findstr /s UserSecretsId *.csproj",
        "src\\Shop.Api\\Shop.Api.csproj:    <UserSecretsId>{uuid}</UserSecretsId>\nsrc\\Shop.Worker\\Shop.Worker.csproj:    <UserSecretsId>{uuid}</UserSecretsId>",
    ),
    (
        "[Reflection.AssemblyName]::GetAssemblyName('C:\\build\\Shop.Core.dll').FullName",
        "Shop.Core, Version=1.4.2.0, Culture=neutral, PublicKeyToken={h16}",
    ),
    (
        "cat NuGet.config",
        '<?xml version="1.0" encoding="utf-8"?>\n<configuration>\n  <packageSources>\n    <add key="corp" value="https://nuget.corp/v3/index.json" />\n  </packageSources>\n  <packageSourceCredentials>\n    <corp>\n      <add key="Username" value="%NUGET_USER%" />\n      <add key="ClearTextPassword" value="%NUGET_TOKEN%" />\n    </corp>\n  </packageSourceCredentials>\n</configuration>',
    ),
    ("cat config/credentials.yml.enc", "{b236}--{b16}--{b22}=="),
    (
        "cat .env.production",
        '#/-------------------⟦DOTENV_PUBLIC_KEY⟧--------------------/\n#/            public-key encryption for .env files          /\n#/----------------------------------------------------------/\nDOTENV_PUBLIC_KEY_PRODUCTION="03{h64}"\n\nDB_PASSWORD="encrypted:B{b150}="\nSTRIPE_SECRET_KEY="encrypted:B{b170}="',
    ),
    (
        "cat Pulumi.prod.yaml",
        'encryptionsalt: v1:{b11}=:v1:{b16}:{b38}==\nconfig:\n  aws:region: eu-west-1\n  shop:dbPassword:\n    secure: v1:{b16}:{b43}=\n  shop:replicas: "3"',
    ),
    (
        "cat deploy/sealed/mailer.yaml",
        "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata:\n  name: mailer\n  namespace: prod\nspec:\n  encryptedData:\n    SMTP_PASSWORD: AgB{b340}=\n  template:\n    type: Opaque",
    ),
    (
        "sed -n 1,6p hieradata/db1.eyaml",
        "---\nprofile::db::port: 5432\nprofile::db::password: >\n    ENC⟦PKCS7,MIIBeQYJKoZIhvcNAQcDoIIBajCCAWYCAQAxggEhMIIBHQIBADAF{b60}\n    {b64}\n    {b46}==⟧",
    ),
    (
        "xxd secrets/prod.env | head -3",
        "00000000: 0047 4954 4352 5950 5400 8{h1}9{h1} a{h1}b{h1} 9{h1}c{h1}  .GITCRYPT.......\n00000010: e{h1}8{h1} b{h1}f{h1} 9{h1}a{h1} c{h1}8{h1} d{h1}e{h1} f{h1}b{h1} 8{h1}a{h1} c{h1}9{h1}  ................\n00000020: 9{h1}d{h1} 8{h1}c{h1} b{h1}b{h1} f{h1}a{h1} e{h1}8{h1} a{h1}9{h1} d{h1}c{h1} e{h1}f{h1}  ................",
    ),
    (
        "cat /etc/systemd/system/api.service.d/50-db.conf",
        "⟦Service⟧\nSetCredentialEncrypted=db-password: \\\n        k6iUCUh0RJCQyvL8k8q1UyAAAAABAAAADAAAABAAAAC{b26} \\\n        {b69} \\\n        {b42}==",
    ),
    (
        "aws kms encrypt --key-id alias/app --plaintext fileb://row.bin --query CiphertextBlob --output text",
        "AQICAHh{b189}=",
    ),
    (
        "vault write transit/encrypt/orders plaintext=@row.b64",
        "Key            Value\n---            -----\nciphertext     vault:v3:{b58}==\nkey_version    3",
    ),
    (
        "cryptsetup luksDump /dev/sdb1 | head -24",
        "LUKS header information\nVersion:       \t2\nEpoch:         \t5\nMetadata area: \t16384 ⟦bytes⟧\nKeyslots area: \t16744448 ⟦bytes⟧\nUUID:          \t{uuid}\nLabel:         \t(no label)\nSubsystem:     \t(no subsystem)\nFlags:       \t(no flags)\n\nKeyslots:\n  0: luks2\n\tKey:        512 bits\n\tPriority:   normal\n\tCipher:     aes-xts-plain64\n\tCipher key: 512 bits\n\tPBKDF:      argon2id\n\tTime cost:  7\n\tMemory:     1048576\n\tThreads:    4\n\tSalt:       {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2}\n\t            {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2} {h2}\n\tAF stripes: 4000\n\tAF hash:    sha256",
    ),
    ("op run --env-file=prod.env -- printenv DB_PASSWORD", "<concealed by 1Password>"),
    (
        "kubectl config view",
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: DATA+OMITTED\n    server: https://k8s.corp:6443\n  name: prod\ncontexts:\n- context:\n    cluster: prod\n    user: deploy\n  name: prod\ncurrent-context: prod\nkind: Config\npreferences: {}\nusers:\n- name: deploy\n  user:\n    client-certificate-data: DATA+OMITTED\n    client-key-data: DATA+OMITTED\n- name: ci\n  user:\n    token: REDACTED",
    ),
    (
        "ansible-playbook -i prod db.yml --tags users -v | tail -6",
        'TASK ⟦postgres : Set the password of the application role⟧ **********************\nchanged: ⟦db1⟧ => {"censored": "the output has been hidden due to the fact that \'no_log: true\' was specified for this result", "changed": true}\n\nPLAY RECAP *********************************************************************\ndb1                        : ok=4    changed=1    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0   \n',
    ),
    (
        "mvn -q help:effective-settings | sed -n '/<servers>/,/<.servers>/p'",
        "  <servers>\n    <server>\n      <username>ci</username>\n      <password>***</password>\n      <id>nexus</id>\n    </server>\n  </servers>",
    ),
    (
        "curl -s localhost:8080/actuator/env/spring.datasource.password | jq .property",
        '{\n  "source": "Config resource \'class path resource ⟦application-prod.yml⟧\' via location \'optional:classpath:/\'",\n  "value": "******"\n}',
    ),
    (
        "grep 'Parameters:' log/production.log | tail -2",
        'I, ⟦2026-11-02T10:11:12.410233 #8⟧  INFO -- : ⟦{uuid}⟧   Parameters: {"authenticity_token"=>"⟦FILTERED⟧", "session"=>{"password"=>"⟦FILTERED⟧"}, "commit"=>"Log in"}\nI, ⟦2026-11-02T10:11:40.010871 #8⟧  INFO -- : ⟦{uuid}⟧   Parameters: {"token"=>"⟦FILTERED⟧", "passphrase"=>"⟦FILTERED⟧"}',
    ),
    (
        "aws cloudformation describe-stacks --stack-name shop-db --query 'Stacks[0].Parameters' --output table",
        "--------------------------------------\n¦           DescribeStacks           ¦\n+--------------------+---------------+\n¦    ParameterKey    ¦ParameterValue ¦\n+--------------------+---------------+\n¦  MasterUserPassword¦  ****         ¦\n¦  InstanceClass     ¦  db.t4g.large ¦\n+--------------------+---------------+",
    ),
    (
        "az deployment group show -g prod -n shop --query properties.parameters",
        '{\n  "adminPassword": {\n    "type": "SecureString"\n  },\n  "skuName": {\n    "type": "String",\n    "value": "B2s"\n  }\n}',
    ),
    (
        "aws sts get-caller-identity",
        '\nUnable to locate credentials. You can configure credentials by running "aws login".',
    ),
    (
        "python summarize.py 2>&1 | tail -4",
        '    client = OpenAI()\n             ^^^^^^^^\n  File "/usr/lib/python3.12/site-packages/openai/_client.py", line 135, in __init__\nopenai.OpenAIError: The api_key client option must be set either by passing api_key to the client or by setting the OPENAI_API_KEY environment variable',
    ),
    (
        "npm publish",
        "npm error code ENEEDAUTH\nnpm error need auth This command requires you to be logged in to https://registry.npmjs.org/\nnpm error need auth You need to authorize this machine using `npm adduser`\nnpm error A complete log of this run can be found in: /root/.npm/_logs/2026-11-02T10_11_12_410Z-debug-0.log",
    ),
    (
        "curl -s -H @headers.txt https://api.corp/v2/orders | jq .",
        '{\n  "error": "invalid_token",\n  "error_description": "The access token expired",\n  "request_id": "req_{a24}"\n}',
    ),
    (
        "kubectl get events -n prod --field-selector reason=FailedMount",
        'LAST SEEN   TYPE      REASON        OBJECT                      MESSAGE\n41s         Warning   FailedMount   pod/api-{s9}-{s5}   MountVolume.SetUp failed for volume "tls-key" : secret "shop-tls" not found',
    ),
    (
        "git diff HEAD~1 -- compose.yml",
        "diff --git a/compose.yml b/compose.yml\nindex {h7}..{h7} 100644\n--- a/compose.yml\n+++ b/compose.yml\n@@ -8,7 +8,9 @@ services:\n     image: postgres:17\n     environment:\n       POSTGRES_DB: orders\n-      POSTGRES_PASSWORD: ${POSTGRES_PASSWORD:?set it}\n+      POSTGRES_PASSWORD_FILE: /run/secrets/db_password\n+    secrets:\n+      - db_password\n     ports:",
    ),
    (
        "cat config/settings.example.toml",
        '⟦auth⟧\nclient_id = "<your-client-id>"\nclient_secret = "<your-client-secret>"\n\n⟦database⟧\nurl = "postgres://shop:changeme@localhost/shop"\n\n⟦mail⟧\npassword = "changeme"\napi_key = "xxxxxxxxxxxxxxxx"',
    ),
    (
        "sed -n '/## Set-up/,/## Use/p' README.md",
        "## Set-up\n\n```sh\nexport HF_TOKEN=<your-token>\nexport OPENAI_API_KEY=sk-...\n./shop login --password-file ~/.shop-password\n```\n\nNever commit a token. See `docs/secrets.md`.\n\n## Use",
    ),
    (
        "cat Jenkinsfile",
        "pipeline {\n  agent any\n  stages {\n    stage('Publish') {\n      steps {\n        withCredentials(⟦usernamePassword(credentialsId: 'nexus-ci', usernameVariable: 'NEXUS_USER', passwordVariable: 'NEXUS_PASSWORD')⟧) {\n          sh 'curl -u \"$NEXUS_USER:$NEXUS_PASSWORD\" --upload-file dist/shop.tgz https://nexus.corp/raw/'\n        }\n      }\n    }\n  }\n}",
    ),
    (
        "cat prisma/schema.prisma",
        'datasource db {\n  provider = "postgresql"\n  url      = env("DATABASE_URL")\n}\n\nmodel Account {\n  id            String  @id @default(cuid())\n  provider      String\n  refresh_token String? @db.Text\n  access_token  String? @db.Text\n  expires_at    Int?\n  token_type    String?\n\n  @@unique(⟦provider, id⟧)\n}',
    ),
    (
        "grpcurl -plaintext localhost:9090 describe auth.v1.LoginRequest",
        "auth.v1.LoginRequest is a message:\nmessage LoginRequest {\n  string tenant = 1;\n  string password = 2 ⟦debug_redact = true⟧;\n  bytes device_public_key = 3;\n  optional string otp_token = 4;\n}",
    ),
    (
        "helm get notes redis -n cache",
        'NOTES:\nCHART NAME: redis\nCHART VERSION: 22.0.7\nAPP VERSION: 8.2.1\n\n** Please be patient while the chart is being deployed **\n\nTo get your password run:\n\n    export REDIS_PASSWORD=$(kubectl get secret --namespace cache redis -o jsonpath="{.data.redis-password}" ¦ base64 -d)\n\nTo connect to your Redis® server:\n\n    REDISCLI_AUTH="$REDIS_PASSWORD" redis-cli -h redis-master',
    ),
    (
        "kubectl explain secret.stringData",
        "KIND:       Secret\nVERSION:    v1\n\nFIELD: stringData <map⟦string⟧string>\n\n\nDESCRIPTION:\n    stringData allows specifying non-binary secret data in string form. It is\n    provided as a write-only input field for convenience. All keys and values\n    are merged into the data field on write, overwriting any existing values.\n    The stringData field is never output when reading from the API.\n    ",
    ),
    (
        "curl -s localhost:8000/openapi.json | jq -c .components.securitySchemes",
        '{"OAuth2PasswordBearer":{"type":"oauth2","flows":{"password":{"scopes":{},"tokenUrl":"auth/token"}}},"APIKeyHeader":{"type":"apiKey","in":"header","name":"X-API-Key"}}',
    ),
    (
        "docker build --progress=plain -t shop/api . 2>&1 | tail -7",
        '#11 exporting layers done\n#11 writing image sha256:{h64} done\n#11 naming to docker.io/shop/api done\n#11 DONE 0.1s\n\n 1 warning found (use docker --debug to expand):\n - SecretsUsedInArgOrEnv: Do not use ARG or ENV instructions for sensitive data (ENV "API_TOKEN_FILE") (line 7)',
    ),
    (
        "cargo test auth::",
        "    Finished `test` profile ⟦unoptimized + debuginfo⟧ target(s) in 0.31s\n     Running unittests src/lib.rs (target/debug/deps/shop-{h16})\n\nrunning 3 tests\ntest auth::password::tests::rejects_short ... ok\ntest auth::token::tests::secret_is_not_printed ... ok\ntest auth::token::tests::expired_key_fails ... ok\n\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 41 filtered out; finished in 0.02s\n",
    ),
    (
        "npx tsc --noEmit --pretty false",
        "src/auth/client.ts(14,5): error TS2322: Type 'string ¦ undefined' is not assignable to type 'string'.\nsrc/auth/client.ts(22,31): error TS2339: Property 'refreshToken' does not exist on type 'Credentials'.",
    ),
    (
        "pre-commit run --all-files",
        "check yaml...............................................................Passed\ndetect aws credentials...................................................Passed\ndetect private key.......................................................Passed\nDetect hardcoded secrets.................................................Passed\nruff.....................................................................Passed",
    ),
    (
        "bandit -q -r src",
        ">> Issue: ⟦B105:hardcoded_password_string⟧ Possible hardcoded password: 'refresh_token'\n   Severity: Low   Confidence: Medium\n   CWE: CWE-259 (https://cwe.mitre.org/data/definitions/259.html)\n   More Info: https://bandit.readthedocs.io/en/1.8.6/plugins/b105_hardcoded_password_string.html\n   Location: src/oauth.py:31:17\n30\t    def grant(self):\n31\t        token_type = \"refresh_token\"\n32\t        return self.post(token_type)\n",
    ),
    (
        "alembic history -r-3:",
        "{h12} -> {h12} (head), add password_reset_tokens\n{h12} -> {h12}, hash api keys at rest\n{h12} -> {h12}, drop users.plain_secret",
    ),
    (
        "cat .terraform.lock.hcl",
        '# This file is maintained automatically by "terraform init".\n# Manual edits may be lost in future updates.\n\nprovider "registry.terraform.io/hashicorp/random" {\n  version     = "3.7.2"\n  constraints = "~> 3.7"\n  hashes = ⟦\n    "h1:{b43}=",\n    "zh:{h64}",\n    "zh:{h64}",\n  ⟧\n}',
    ),
    (
        "grep plug_crypto mix.lock",
        '  "plug_crypto": {:hex, :plug_crypto, "2.1.1", "{h64}", ⟦:mix⟧, ⟦⟧, "hexpm", "{h64}"},',
    ),
    (
        "jq .nodes.nixpkgs.locked flake.lock",
        '{\n  "lastModified": 1761907660,\n  "narHash": "sha256-{b43}=",\n  "owner": "NixOS",\n  "repo": "nixpkgs",\n  "rev": "{h40}",\n  "type": "github"\n}',
    ),
    (
        "gh cache list -R acme/shop",
        "Showing 2 of 2 caches in acme/shop\n\nID          KEY                                  SIZE        CREATED            ACCESSED\n{d10}  node-cache-Linux-x64-npm-{h64}  181.20 MiB  about 2 days ago   about 1 hour ago\n{d10}  setup-go-Linux-x64-ubuntu24-go-1.25.3-{h64}  412.71 MiB  about 5 days ago   about 1 day ago",
    ),
    (
        "gh api repos/acme/shop/actions/secrets/public-key",
        '{"key_id":"{d18}","key":"{b43}="}',
    ),
    (
        "curl -s https://acme-v02.api.letsencrypt.org/directory",
        '{\n  "{w11}": "https://community.letsencrypt.org/t/adding-random-entries-to-the-directory/33417",\n  "keyChange": "https://acme-v02.api.letsencrypt.org/acme/key-change",\n  "newAccount": "https://acme-v02.api.letsencrypt.org/acme/new-acct",\n  "newNonce": "https://acme-v02.api.letsencrypt.org/acme/new-nonce",\n  "newOrder": "https://acme-v02.api.letsencrypt.org/acme/new-order",\n  "revokeCert": "https://acme-v02.api.letsencrypt.org/acme/revoke-cert"\n}',
    ),
    (
        "curl -s https://www.shop.corp/ | grep -E 'nonce|integrity'",
        '<script nonce="{b22}==" src="/static/app.{h8}.js"></script>\n<link rel="stylesheet" href="/static/site.css" integrity="sha384-{b64}" crossorigin="anonymous">',
    ),
    (
        "curl -s https://media.corp/talk/stream.m3u8 | head -7",
        '#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:6\n#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-KEY:METHOD=AES-128,URI="https://media.corp/keys/{uuid}",IV=0x{h32}\n#EXTINF:6.000,\nseg-00000.ts',
    ),
    (
        "kubectl logs deploy/auth --tail=2",
        '{"level":"info","ts":"2026-11-02T10:11:12Z","msg":"token refreshed","grant":"client_credentials","expires_in":3600,"trace_id":"{h32}","span_id":"{h16}"}\n{"level":"warn","ts":"2026-11-02T10:11:31Z","msg":"signing key rotates soon","kid":"{w27}","trace_id":"{h32}","span_id":"{h16}"}',
    ),
    (
        "aws logs tail /aws/lambda/rotate-secret --since 10m --format short",
        "2026-11-02T10:11:12 INIT_START Runtime Version: python:3.13.v60\tRuntime Version ARN: arn:aws:lambda:eu-west-1::runtime:{h64}\n2026-11-02T10:11:12 START RequestId: {uuid} Version: $LATEST\n2026-11-02T10:11:14 ⟦INFO⟧\t2026-11-02T10:11:14.120Z\t{uuid}\tfinishSecret: Successfully set AWSCURRENT stage to version {uuid}\n2026-11-02T10:11:14 END RequestId: {uuid}",
    ),
    (
        "istioctl proxy-config secret deploy/api -n prod",
        "RESOURCE NAME     TYPE           STATUS     VALID CERT     SERIAL NUMBER                        NOT AFTER                NOT BEFORE\ndefault           Cert Chain     ACTIVE     true           {h32}     2026-11-03T10:11:12Z     2026-11-02T10:09:12Z\nROOTCA            CA             ACTIVE     true           {h32}     2036-02-28T08:00:00Z     2026-03-02T08:00:00Z",
    ),
    (
        "grep -v '^#' /etc/pam.d/common-password",
        "\npassword\trequisite\t\t\tpam_pwquality.so retry=3\npassword\t⟦success=1 default=ignore⟧\tpam_unix.so obscure use_authtok try_first_pass yescrypt\npassword\trequisite\t\t\tpam_deny.so\npassword\trequired\t\t\tpam_permit.so",
    ),
    (
        "file secrets/*",
        "secrets/db.kdbx:    Keepass password database 2.x KDBX\nsecrets/deploy.pub: OpenSSH ED25519 public key\nsecrets/prod.age:   age encrypted file, X25519 recipient\nsecrets/tls.crt:    PEM certificate",
    ),
    (
        "hexdump -C weights/encoder.safetensors | head -6",
        '00000000  74 00 00 00 00 00 00 00  7b 22 5f 5f 6d 65 74 61  ¦t.......{"__meta¦\n00000010  64 61 74 61 5f 5f 22 3a  7b 22 66 6f 72 6d 61 74  ¦data__":{"format¦\n00000020  22 3a 22 70 74 22 7d 2c  22 68 2e 30 2e 61 74 74  ¦":"pt"},"h.0.att¦\n00000030  6e 2e 6b 65 79 2e 77 65  69 67 68 74 22 3a 7b 22  ¦n.key.weight":{"¦\n00000040  64 74 79 70 65 22 3a 22  42 46 31 36 22 2c 22 73  ¦dtype":"BF16","s¦\n00000050  68 61 70 65 22 3a 5b 37  36 38 2c 37 36 38 5d 2c  ¦hape":⟦768,768⟧,¦',
    ),
    (
        "python -c 'from transformers import AutoTokenizer as T; print(T.from_pretrained(\"gpt2\").special_tokens_map)'",
        "{'bos_token': '<¦endoftext¦>', 'eos_token': '<¦endoftext¦>', 'unk_token': '<¦endoftext¦>'}",
    ),
    (
        "mlflow runs list --experiment-id 4",
        "Date                     Name            ID\n-----------------------  --------------  --------------------------------\n2026-11-02 10:11:12 UTC  tokens-per-sec  {h32}\n2026-11-01 17:40:08 UTC  key-dim-128     {h32}",
    ),
    (
        "duckdb -c \"describe select * from 'logins.parquet'\"",
        "┌───────────────┬─────────────┬─────────┬─────────┬─────────┬─────────┐\n│  column_name  │ column_type │  null   │   key   │ default │  extra  │\n│    varchar    │   varchar   │ varchar │ varchar │ varchar │ varchar │\n├───────────────┼─────────────┼─────────┼─────────┼─────────┼─────────┤\n│ token_id      │ UUID        │ YES     │ NULL    │ NULL    │ NULL    │\n│ secret_digest │ BLOB        │ YES     │ NULL    │ NULL    │ NULL    │\n│ api_key_name  │ VARCHAR     │ YES     │ NULL    │ NULL    │ NULL    │\n└───────────────┴─────────────┴─────────┴─────────┴─────────┴─────────┘",
    ),
    (
        'R -q -e \'digest::digest("orders", "md5")\'',
        '> digest::digest("orders", "md5")\n⟦1⟧ "{h32}"\n> \n> ',
    ),
    ("python3 -iq <<< 'import secrets; len(secrets.token_hex(16))'", ">>> 32\n>>> "),
    (
        "python manage.py diffsettings | grep -i -E 'password|token'",
        "AUTH_PASSWORD_VALIDATORS = ⟦{'NAME': 'django.contrib.auth.password_validation.MinimumLengthValidator', 'OPTIONS': {'min_length': 12}}⟧\nPASSWORD_RESET_TIMEOUT = 3600\nREST_AUTH_TOKEN_MODEL = None  ###",
    ),
)

VENDOR_VALUES = (
    ("OpenAI, project", "sk-|proj-[{w74}T3Blbk|FJ{w74}]"),
    ("Slack app-level", "xa|pp-1-A{S10}-{d13}-[{h64}]"),
    ("Figma", "fig|d_[{w40}]"),
    ("Airtable", "pa|t{a14}.[{h64}]"),
    ("Doppler", "dp|.pt.[{a43}]"),
    ("Pulumi", "pu|l-[{h40}]"),
    ("Terraform Cloud", "[{a14}.atl|asv1.{w67}]"),
    ("Supabase", "sb|p_[{h40}]"),
    ("Tailscale", "tskey|-auth-k{a10}CNTRL-[{a32}]"),
    ("Netlify", "nf|p_[{a36}]"),
    ("Perplexity", "ppl|x-[{a48}]"),
    ("Postman", "PM|AK-[{h24}-{h34}]"),
    ("Notion", "nt|n_[{d11}{a35}]"),
    ("Brevo", "xkey|sib-[{h64}-{a16}]"),
)

TELLING_VALUES = (
    ("KAFKA_SASL_PASSWORD", "[{word}{d2}.{a6}]"),
    ("HASURA_GRAPHQL_ADMIN_SECRET", "{h48}"),
    ("COUCHDB_PASSWORD", "[Kaffee!{d4}Pause]"),
    ("APP_KEY", "base64:[{b43}=]"),
    ("RESTIC_PASSWORD", "[{word}-{word}-{word}-{d2}]"),
    ("TURN_SHARED_SECRET", "{s24}"),
    ("bindPassword", "[{a5}#{a4}%{a3}]"),
    ("webhookSecret", "{uuid}"),
    ("RAILS_MASTER_KEY", "{h32}"),
    ("consumer_secret", "{a50}"),
    ("pg_password", "[Lets{word}Go{d3}]"),
    ("refresh_token", "{w64}"),
    ("keystorePassword", "[{word}_{word}_{d3}]"),
    ("RCON_PASSWORD", "{p14}"),
)

ENCODED_COMMANDS = (
    ("consul kv export shop/prod/db_password | jq -r '.[0].value'", "{a20}"),
    ("gh api repos/acme/ops/contents/db.pass --jq .content", "{a28}"),
    (
        "kustomize build overlays/prod | yq 'select(.kind == \"Secret\") | .data.DB_PASSWORD'",
        "[{word}-{a6}-{word}-{d3}]",
    ),
    ("base64 -w0 /run/secrets/session_key", "{h48}"),
    ("pwsh -c \"[Convert]::ToBase64String([IO.File]::ReadAllBytes('smtp.pass'))\"", "{p18}"),
    (
        "gcloud kms decrypt --location=global --keyring=shop --key=app --ciphertext-file=hmac.enc --plaintext-file=- | base64 -w0",
        "{w43}",
    ),
)
