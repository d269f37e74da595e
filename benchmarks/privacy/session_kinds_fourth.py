# ruff: noqa: E501 (literal texts)
"""A fourth, held-out list of what sessions are made of, in the structures of `session_kinds_second.py`.

Its commands are those of many trades: operators, developers of services, of apps and of devices, and what users of
Windows, of mail, of payments and of models run in a day. None of them stands in another list.
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
    "{word}-{word}-{word}-{d3}",
    "{word}{d4}!",
    "{l6}{d3}{l4}",
    "{uuid}",
)

DATABASES = (
    ("redis-cli CONFIG GET requirepass", '1) "requirepass"\n2) "[{v}]"'),
    ("grep -E '^(requirepass|masterauth)' /etc/redis/redis.conf", "requirepass [{v}]\nmasterauth [{v}]"),
    (
        "psql -U postgres -c 'select rolname, rolpassword from pg_authid where rolcanlogin'",
        " rolname  ¦                                                              rolpassword\n----------+---------------------------------------------------------------------------------------------------------------------------------------\n postgres ¦ SCRAM-SHA-256$4096:[{b22}==${b43}=:{b43}=]\n(1 row)",
    ),
    (
        "mysql shop -e \"select name, value from core_config where name like 'smtp%'\"",
        "+---------------+----------------------+\n¦ name          ¦ value                ¦\n+---------------+----------------------+\n¦ smtp_host     ¦ smtp.shop.corp       ¦\n¦ smtp_user     ¦ relay                ¦\n¦ smtp_password ¦ [{a20}] ¦\n+---------------+----------------------+",
    ),
    (
        "sqlite3 -line grafana.db 'select login, password, salt from user'",
        "   login = admin\npassword = [{h100}]\n    salt = [{a10}]",
    ),
    (
        "sudo cat /etc/mongo/keyfile",
        "[{b64}\n{b64}\n{b64}\n{b63}=]",
    ),
    (
        "xmllint --xpath '//users/default/password' /etc/clickhouse-server/users.xml",
        "<password>[{v}]</password>",
    ),
    (
        "neonctl connection-string main --pooled",
        "postgresql://shop_owner:npg_[{a12}]@ep-cold-mountain-a2xk81vd-pooler.eu-central-1.aws.neon.tech/shop?sslmode=require",
    ),
    (
        "pscale password create shop main ci-runner",
        "Password ci-runner was successfully created in shop/main.\nPlease save the values below as they will not be shown again\n\n  NAME        USERNAME               ACCESS HOST URL              ROLE            PASSWORD                                             TTL\n ----------- ---------------------- ---------------------------- --------------- --------------------------------------------------- -------\n  ci-runner   q2v7zk1m4x9c8b3n5l0a   aws.connect.psdb.cloud       Administrator   pscale_pw_[{w43}]   Never",
    ),
    (
        "fly postgres create --name shop-db --region fra --vm-size shared-cpu-1x",
        "Creating postgres cluster in organization shop\nSetting secrets on app shop-db...\nProvisioning 1 of 1 machines\nPostgres cluster shop-db created\n  Username:    postgres\n  Password:    [{a15}]\n  Hostname:    shop-db.internal\n  Flycast:     fdaa:0:5d2a:0:1::2\n  Proxy port:  5432\n  Postgres port:  5433\n  Connection string: postgres://postgres:[{a15}]@shop-db.flycast:5432\n\nSave your credentials in a secure place -- you won't be able to see them again!",
    ),
    (
        "elasticsearch-reset-password -u elastic -b",
        "Password for the ⟦elastic⟧ user successfully reset.\nNew value: [{w20}]",
    ),
    (
        'curl -s -XPOST localhost:9200/_security/api_key -d \'{"name":"ingest"}\'',
        '{"id":"VuaCfGcBCdbkQm-e5aOx","name":"ingest","api_key":"[{w22}]","encoded":"{b58}=="}',
    ),
    (
        "jq . ~/.config/Code/User/globalStorage/mtxr.sqltools/connections.json",
        '⟦\n  {\n    "name": "prod",\n    "driver": "MySQL",\n    "server": "mysql-1.shop.corp",\n    "port": 3306,\n    "username": "shop",\n    "password": "[{v}]"\n  }\n⟧',
    ),
)

CLOUDS = (
    (
        "aws iam create-access-key --user-name backup --query 'AccessKey.[AccessKeyId,SecretAccessKey]' --output text",
        "AKIA{S16}\t[{b40}]",
    ),
    (
        "aws ssm get-parameter --name /shop/prod/api_token --with-decryption",
        '{\n    "Parameter": {\n        "Name": "/shop/prod/api_token",\n        "Type": "SecureString",\n        "Value": "[{v}]",\n        "Version": 4,\n        "LastModifiedDate": "2026-10-02T08:31:05.412000+02:00",\n        "ARN": "arn:aws:ssm:eu-central-1:123456789012:parameter/shop/prod/api_token",\n        "DataType": "text"\n    }\n}',
    ),
    (
        "aws rds generate-db-auth-token --hostname pg.shop.corp --port 5432 --username app",
        "pg.shop.corp:5432/?Action=connect&DBUser=app&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=ASIA{S16}%2F20261129%2Feu-central-1%2Frds-db%2Faws4_request&X-Amz-Date=20261129T090000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature=[{h64}]",
    ),
    (
        "aws ecs describe-task-definition --task-definition shop --query 'taskDefinition.containerDefinitions[0].environment'",
        '⟦\n    {\n        "name": "PORT",\n        "value": "8080"\n    },\n    {\n        "name": "SMTP_PASSWORD",\n        "value": "[{v}]"\n    },\n    {\n        "name": "LOG_LEVEL",\n        "value": "info"\n    }\n⟧',
    ),
    (
        "aws ec2 describe-instance-attribute --instance-id i-0c2f4a6b8d0e1f203 --attribute userData --query UserData.Value --output text | base64 -d",
        "#!/bin/bash\nset -eu\nyum install -y docker\nsystemctl enable --now docker\necho '[{v}]' ¦ docker login -u ci --password-stdin registry.shop.corp\ndocker run -d -p 80:8080 registry.shop.corp/shop:1.4",
    ),
    (
        "cat ~/.aws/cli/cache/*.json | jq -c .Credentials",
        '{"AccessKeyId":"ASIA{S16}","SecretAccessKey":"[{b40}]","SessionToken":"FwoGZXIvYXdzE[{b280}]","Expiration":"2026-11-29T11:00:00Z"}',
    ),
    (
        "aws cognito-idp describe-user-pool-client --user-pool-id eu-central-1_Ab12Cd34E --client-id 4k2v7m1q9x0z5c8b3n6l --query UserPoolClient.ClientSecret",
        '"[{s51}]"',
    ),
    (
        "gcloud auth print-access-token --impersonate-service-account=deploy@shop-prod.iam.gserviceaccount.com",
        "ya29.c.[{w220}]",
    ),
    (
        "gcloud services api-keys get-key-string projects/123456789012/locations/global/keys/0f1e2d3c",
        "keyString: AIza[{w35}]",
    ),
    (
        "gcloud run services describe shop --format='yaml(spec.template.spec.containers[0].env)'",
        "spec:\n  template:\n    spec:\n      containers:\n      - env:\n        - name: NODE_ENV\n          value: production\n        - name: SENDGRID_API_KEY\n          value: SG.[{w22}.{w43}]\n        - name: COOKIE_SECRET\n          value: [{v}]",
    ),
    (
        "jq -r .private_key deploy-sa.json | head -4",
        "-----BEGIN PRIVATE KEY-----\n[{b64}\n{b64}\n{b64}]",
    ),
    (
        "az ad sp create-for-rbac --name ci-deploy --role Contributor --scopes /subscriptions/0b1f6471-1bf0-4dda-aec3-111122223333",
        '{\n  "appId": "{uuid}",\n  "displayName": "ci-deploy",\n  "password": "[{a3}8Q~{w34}]",\n  "tenant": "{uuid}"\n}',
    ),
    (
        "az webapp deployment list-publishing-credentials -g shop -n shop-web --query '{user:publishingUserName,pw:publishingPassword}'",
        '{\n  "pw": "[{a60}]",\n  "user": "$shop-web"\n}',
    ),
    ("az acr credential show -n shopregistry --query 'passwords[0].value' -o tsv", "[{a46}+ACR{a6}]"),
    (
        "az servicebus namespace authorization-rule keys list -g shop --namespace-name shop-bus -n RootManageSharedAccessKey --query primaryConnectionString",
        '"Endpoint=sb://shop-bus.servicebus.windows.net/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=[{b38}+ASb{a2}]="',
    ),
    (
        "az functionapp keys list -g shop -n shop-fn",
        '{\n  "functionKeys": {\n    "default": "[{w54}==]"\n  },\n  "masterKey": "[{w54}==]",\n  "systemKeys": {}\n}',
    ),
    (
        "doctl databases connection 9cc10173-e9ea-4176-9dbc-a4cee4c4ff30 --format User,Password,Host,Port",
        "User       Password                    Host                                   Port\ndoadmin    AVNS_[{w19}]    shop-db-do-user-1-0.db.ondigitalocean.com    25060",
    ),
    (
        "cat ~/.oci/config",
        "⟦DEFAULT⟧\nuser=ocid1.user.oc1..aaaaaaaa{s52}\nfingerprint=20:3b:97:13:55:1c:5b:0d:d3:37:d8:50:4e:c5:3a:34\ntenancy=ocid1.tenancy.oc1..aaaaaaaa{s52}\nregion=eu-frankfurt-1\nkey_file=/etc/oci/oci_api_key.pem\npass_phrase=[{v}]",
    ),
    ("openstack application credential create ci -f value -c secret", "[{w86}]"),
    (
        "cat ~/.config/.wrangler/config/default.toml",
        'oauth_token = "[{w43}.{w43}]"\nexpiration_time = "2026-11-29T10:12:33.123Z"\nrefresh_token = "[{w43}.{w43}]"\nscopes = ⟦ "account:read", "user:read", "workers:write" ⟧',
    ),
)

CLUSTERS = (
    (
        "kubectl get secret shop -o json | jq '.data | map_values(@base64d)'",
        '{\n  "DB_PASSWORD": "[{v}]",\n  "DB_USER": "shop",\n  "STRIPE_KEY": "sk_live_[{a24}]"\n}',
    ),
    (
        "kubectl exec deploy/shop -- printenv",
        "PATH=/usr/local/bin:/usr/bin:/bin\nHOSTNAME=shop-7d9c8b6f5-x2x4q\nKUBERNETES_SERVICE_PORT=443\nSESSION_KEY=[{v}]\nLOG_LEVEL=info\nHOME=/root",
    ),
    (
        "kubectl get configmap shop-config -o yaml",
        "apiVersion: v1\ndata:\n  application.yml: ¦\n    spring:\n      datasource:\n        url: jdbc:postgresql://pg-1/shop\n        username: shop\n        password: [{v}]\n    server:\n      port: 8080\nkind: ConfigMap\nmetadata:\n  name: shop-config\n  namespace: prod",
    ),
    (
        "kubectl describe pod shop-7d9c8b6f5-x2x4q | sed -n '/Environment/,/Mounts/p'",
        "    Environment:\n      PORT:           8080\n      MAIL_PASSWORD:  [{v}]\n      DB_PASSWORD:    <set to the key 'password' in secret 'shop'>  Optional: false\n    Mounts:",
    ),
    (
        "helm get manifest grafana | yq 'select(.kind==\"Secret\").stringData'",
        "admin-user: admin\nadmin-password: [{v}]",
    ),
    (
        "microk8s add-node",
        "From the node you wish to join to this cluster, run the following:\nmicrok8s join mk-1.shop.corp:25000/[{h32}]/{h12}\n\nUse the '--worker' flag to join a node as a worker not running the control plane, eg:\nmicrok8s join mk-1.shop.corp:25000/[{h32}]/{h12} --worker",
    ),
    (
        "docker logs mysql 2>&1 | grep GENERATED",
        "2026-11-29 05:10:11+00:00 ⟦Note⟧ ⟦Entrypoint⟧: GENERATED ROOT PASSWORD: [{b43}]=",
    ),
    ("docker exec -it gitlab grep 'Password:' /etc/gitlab/initial_root_password", "Password: [{b43}]="),
    (
        "docker history --no-trunc --format '{{.CreatedBy}}' shop:1.4 | grep ARG",
        "¦1 NPM_TOKEN=npm_[{a36}] /bin/sh -c npm ci",
    ),
    (
        "cat $XDG_RUNTIME_DIR/containers/auth.json",
        '{\n\t"auths": {\n\t\t"quay.io": {\n\t\t\t"auth": "[{b56}]"\n\t\t}\n\t}\n}',
    ),
    (
        "oc extract secret/pull --to=-",
        '# .dockerconfigjson\n{"auths":{"registry.shop.corp":{"username":"ci","password":"[{v}]","auth":"[{b44}]"}}}',
    ),
    (
        "nomad acl bootstrap",
        "Accessor ID  = {uuid}\nSecret ID    = [{uuid}]\nName         = Bootstrap Token\nType         = management\nGlobal       = true\nCreate Time  = 2026-11-29 05:20:01.442 +0000 UTC\nExpiry Time  = <none>\nPolicies     = n/a\nRoles        = n/a",
    ),
    ("nomad alloc exec 1f2e3d4c env | grep -i -E 'key|pass'", "SHOP_DB_PASS=[{v}]\nSHOP_SIGNING_KEY=[{h64}]"),
)

MANAGERS = (
    (
        "vault kv get -format=json secret/shop | jq .data.data",
        '{\n  "api_key": "[{v}]",\n  "endpoint": "https://api.shop.corp"\n}',
    ),
    (
        "vault operator init -key-shares=3 -key-threshold=2",
        "Unseal Key 1: [{b44}]\nUnseal Key 2: [{b44}]\nUnseal Key 3: [{b44}]\n\nInitial Root Token: hvs.[{w24}]\n\nVault initialized with 3 key shares and a key threshold of 2. Please securely\ndistribute the key shares printed above.",
    ),
    (
        "vault write -f auth/approle/role/ci/secret-id",
        "Key                   Value\n---                   -----\nsecret_id             [{uuid}]\nsecret_id_accessor    {uuid}\nsecret_id_num_uses    0\nsecret_id_ttl         24h",
    ),
    (
        "consul acl token create -description ci -policy-name deploy",
        "AccessorID:       {uuid}\nSecretID:         [{uuid}]\nDescription:      ci\nLocal:            false\nCreate Time:      2026-11-29 05:20:01.442 +0000 UTC\nPolicies:\n   {uuid} - deploy",
    ),
    (
        "consul kv export shop/ | jq -r '.[] | \"\\(.key)=\\(.value|@base64d)\"'",
        "shop/log_level=info\nshop/smtp_pass=[{v}]\nshop/workers=8",
    ),
    ("op item get 'Prod DB' --fields label=password --reveal", "[{v}]"),
    ("op inject -i .env.tpl", "NODE_ENV=production\nDATABASE_PASSWORD=[{v}]\nALGOLIA_ADMIN_KEY=[{h32}]"),
    (
        "bw unlock --passwordfile /run/bw",
        'Your vault is now unlocked!\n\nTo unlock your vault, set your session key to the `BW_SESSION` environment variable. ex:\n$ export BW_SESSION="[{b86}]=="\n> $env:BW_SESSION="[{b86}]=="',
    ),
    ("bws secret get be8e0ad8-d545-4017-a55a-b02f014d4158 -o env", 'SES_KEY="[{v}]"'),
    ("gopass show -o infra/router", "[{v}]"),
    ("lpass show --password shop/prod", "[{v}]"),
    (
        "infisical export --env=prod --format=yaml",
        "DB_PASSWORD: [{v}]\nLOG_LEVEL: info\nTWILIO_AUTH_TOKEN: [{h32}]",
    ),
    (
        "sops exec-env prod.enc.env 'env | grep -E \"^(DB|JWT)_\"'",
        "DB_HOST=pg-1\nDB_PASS=[{v}]\nJWT_SECRET=[{h64}]",
    ),
    (
        "ansible-vault view group_vars/prod/vault.yml",
        '---\nvault_db_password: [{v}]\nvault_smtp_password: "[{p16}]"\nvault_grafana_admin: [{v}]',
    ),
    (
        "ansible-inventory --host db-1",
        '{\n    "ansible_become_password": "[{v}]",\n    "ansible_host": "db-1.shop.corp",\n    "ansible_user": "deploy"\n}',
    ),
    (
        "terraform state show random_password.db",
        '# random_password.db:\nresource "random_password" "db" {\n    bcrypt_hash      = (sensitive value)\n    id               = "none"\n    length           = 20\n    special          = true\n    result           = "[{p20}]"\n}',
    ),
    (
        "pulumi stack output --show-secrets",
        "Current stack outputs (3):\n    OUTPUT       VALUE\n    bucketName   shop-images-4f2a1bc\n    dbPassword   [{v}]\n    url          https://shop.corp",
    ),
    ("pulumi config get shop:datadogKey", "[{h32}]"),
    (
        "eyaml decrypt -f hieradata/prod.eyaml",
        "---\nprofile::db::user: shop\nprofile::db::password: DEC::PKCS7⟦[{v}]⟧!",
    ),
    ("salt 'db-1' pillar.get mysql:root_password", "db-1:\n    [{v}]"),
    ("systemd-creds decrypt /etc/credstore.encrypted/db.cred -", "[{v}]"),
    (
        "security find-generic-password -s com.shop.cli -g",
        'keychain: "/Library/Keychains/System.keychain"\nversion: 512\nclass: "genp"\nattributes:\n    "acct"<blob>="shop"\n    "svce"<blob>="com.shop.cli"\npassword: "[{v}]"',
    ),
)

HOSTING_AND_CI = (
    (
        "gh api -X POST repos/shop/shop/actions/runners/registration-token",
        '{"token":"A[{S28}]","expires_at":"2026-11-29T07:10:22.000Z"}',
    ),
    (
        "git config --list --show-origin | grep -i extraheader",
        "file:.git/config\thttp.https://github.com/.extraheader=AUTHORIZATION: basic [{b76}]",
    ),
    (
        "git log -p -1 -- config/prod.json | grep '^[+-]'",
        '-  "apiSecret": "[{v}]",\n+  "apiSecret": "[{v}]",',
    ),
    ("glab config get token --host git.shop.corp", "glpat-[{w20}]"),
    (
        "curl -s -H \"PRIVATE-TOKEN: $T\" https://git.shop.corp/api/v4/projects/12/variables | jq -r '.[] | [.key,.value] | @tsv'",
        "AWS_REGION\teu-central-1\nREGISTRY_PASSWORD\t[{v}]",
    ),
    (
        "gitlab-rails runner 'puts User.find(1).personal_access_tokens.create!(name: \"ci\", scopes: [:api], expires_at: 30.days.from_now).token'",
        "glpat-[{w20}]",
    ),
    (
        "gitea admin user create --username ops --random-password --email ops@shop.corp",
        "generated random password is '[{a12}]'\nNew user 'ops' has been successfully created!",
    ),
    (
        "java -jar jenkins-cli.jar -s http://ci:8080 groovy = < creds.groovy",
        "registry : ci / [{v}]\ngithub : shop-bot / ghp_[{g36}]",
    ),
    ("buildkite-agent secret get DEPLOY_KEY", "[{v}]"),
    (
        "heroku config -a shop-prod",
        "=== shop-prod Config Vars\n\nNODE_ENV:          production\nREDIS_URL:         rediss://:p[{h64}]@ec2-shop.compute-1.amazonaws.com:25110\nSECRET_KEY_BASE:   [{h128}]",
    ),
    ("fly tokens create deploy -a shop", "FlyV1 fm2_[{b240},fm2_{b160}]"),
    (
        "vercel env pull --environment=production /dev/stdout",
        '> Downloading `production` Environment Variables for shop/web\n# Created by Vercel CLI\nAUTH_SECRET="[{b43}]="\nVERCEL_ENV="production"\nCONTENTFUL_TOKEN="CFPAT-[{w43}]"',
    ),
    ("netlify env:list --plain", "ALGOLIA_INDEX=shop\nALGOLIA_WRITE_KEY=[{h32}]\nCONTACT_FORM_SECRET=[{v}]"),
    (
        "eb printenv shop-prod",
        " Environment Variables:\n     LOG_LEVEL = info\n     RDS_PASSWORD = [{v}]\n     STAGE = prod",
    ),
)

PACKAGES = (
    ("yarn config get npmAuthToken --no-redacted", "npm_[{a36}]"),
    (
        "cat auth.json",
        '{\n    "http-basic": {\n        "repo.magento.com": {\n            "username": "{h32}",\n            "password": "[{h32}]"\n        }\n    }\n}',
    ),
    (
        "grep -iE 'password|token' ~/.gradle/gradle.properties",
        "mavenPassword=[{v}]\nsigning.password=[{v}]\ngithubToken=ghp_[{g36}]",
    ),
    (
        "dotnet user-secrets list --project src/Shop.Api",
        "Stripe:WebhookSecret = whsec_[{a32}]\nConnectionStrings:Default = Server=sql-1;Database=Shop;User Id=shop;Password=[{a18}];TrustServerCertificate=True\nJwt:SigningKey = [{b64}]",
    ),
    (
        "conda config --show-sources | grep channels -A3",
        "channels:\n  - https://conda.anaconda.org/t/sh-[{uuid}]/shop\n  - conda-forge",
    ),
    ("jf config export shop", "[{b44}{b200}]="),
)

KEYS = (
    (
        "wg showconf wg0",
        "⟦Interface⟧\nListenPort = 51820\nPrivateKey = [{b43}]=\n\n⟦Peer⟧\nPublicKey = {b43}=\nPresharedKey = [{b43}]=\nAllowedIPs = 10.8.0.2/32",
    ),
    (
        "openssl pkcs12 -in shop.p12 -nocerts -nodes -passin env:P12",
        "Bag Attributes\n    friendlyName: shop\n    localKeyID: 54 69 6D 65 20 31\nKey Attributes: <No Attributes>\n"
        + _pem("PRIVATE KEY"),
    ),
    ("openssl enc -aes-256-cbc -P -pbkdf2 -pass file:/root/p", "salt={H16}\nkey=[{H64}]\niv ={H32}"),
    ("pwgen -s 20 3 -1", "[{a20}]\n[{a20}]\n[{a20}]"),
    (
        "sudo cat /etc/ssh/ssh_host_ed25519_key",
        _pem(
            "OPENSSH PRIVATE KEY",
            "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n[{b70}\n{b70}\n{b70}]==",
        ),
    ),
    (
        "step crypto jwk create pub.json priv.json --no-password --insecure && jq . priv.json",
        '{\n  "use": "sig",\n  "kty": "EC",\n  "kid": "{w43}",\n  "crv": "P-256",\n  "alg": "ES256",\n  "x": "{w43}",\n  "y": "{w43}",\n  "d": "[{w43}]"\n}',
    ),
    (
        'oathtool --totp -v -b "$(cat ~/.2fa/github)"',
        "Hex secret: [{h32}]\nBase32 secret: [{t32}]\nDigits: 6\nWindow size: 0\nStep size (seconds): 30\nStart time: 1970-01-01 00:00:00 UTC (0)\n\n{d6}",
    ),
    ("zbarimg -q --raw 2fa.png", "otpauth://totp/Shop:ops@shop.corp?secret=[{t32}]&issuer=Shop&period=30"),
    ('htpasswd -nbB ops "$(pwgen 16 1)"', "ops:$2y$05$[{a53}]"),
    ("grep PRIVATE_KEY hardhat/.env", "DEPLOYER_PRIVATE_KEY=0x[{h64}]"),
    ("sudo dmsetup table --showkeys", "luks-data: 0 976740352 crypt aes-xts-plain64 [{h128}] 0 8:2 32768"),
    (
        "sudo fdesetup changerecovery -personal -inputplist < in.plist",
        "New personal recovery key = '[{S4}-{S4}-{S4}-{S4}-{S4}-{S4}]'",
    ),
)

LANGUAGES = (
    (
        "python -c 'from app.config import settings; print(settings)'",
        "env='prod' debug=False database_url=PostgresDsn('postgresql+asyncpg://shop:[{a20}]@pg-1:5432/shop') jwt_secret='[{h64}]' workers=4",
    ),
    (
        "flask shell <<< 'print(app.config[\"SECRET_KEY\"])'",
        "Python 3.13.1 (main, Dec  4 2026) ⟦GCC 14.2.0⟧ on linux\nApp: shop\nInstance: /srv/app/instance\n>>> [{v}]\n>>>",
    ),
    (
        "airflow connections get warehouse -o yaml",
        "- conn_id: warehouse\n  conn_type: postgres\n  host: dwh.shop.corp\n  id: '4'\n  login: loader\n  password: [{v}]\n  port: '5439'\n  schema: dwh",
    ),
    ("node -p 'process.env.JWT_REFRESH_SECRET'", "[{v}]"),
    ("node -e 'console.log(require(\"jsonwebtoken\").sign({sub:1}, process.env.S))'", _JWT),
    ("npx auth secret --raw", "[{b43}]="),
    (
        "bin/rails db:encryption:init",
        "Add this entry to the credentials of the target environment:\n\nactive_record_encryption:\n  primary_key: [{a32}]\n  deterministic_key: [{a32}]\n  key_derivation_salt: [{a32}]",
    ),
    (
        "irb -r ./app -e 'puts ENV.to_h.slice(\"SIDEKIQ_PASSWORD\")' --noprompt",
        '{"SIDEKIQ_PASSWORD" => "[{v}]"}',
    ),
    (
        "php artisan tinker --execute=\"dump(config('services.stripe'))\"",
        'array:2 ⟦\n  "key" => "pk_live_{a24}"\n  "secret" => "sk_live_[{a24}]"\n⟧ // vendor/psy/psysh/src/ExecutionClosure.php:40',
    ),
    ("drush user:login --uid=1", "https://www.shop.corp/user/reset/1/1795929000/[{w43}]/login"),
    ("go run ./cmd/config dump", "{Env:prod DB:{Host:pg-1 Port:5432 User:shop Password:[{a24}]} Workers:8}"),
    (
        "java -jar app.jar --debug 2>&1 | grep 'generated security password'",
        "Using generated security password: [{uuid}]",
    ),
    ("jshell -s - <<< 'System.out.println(System.getenv(\"KEYSTORE_PASS\"))'", "[{v}]"),
    (
        "cargo run -q -- config show",
        'Config { bind: "0.0.0.0:8080", upstream: "api.shop.corp", hmac_key: "[{v}]", workers: 4 }',
    ),
)

FILES = (
    (
        "cat docker-compose.override.yml",
        'services:\n  api:\n    environment:\n      - NODE_ENV=development\n      - AUTH0_CLIENT_SECRET=[{w64}]\n      - SMTP_PASS=[{v}]\n    ports:\n      - "8080:8080"',
    ),
    (
        "grep -n connectionString Web.config",
        '14:    <add name="Shop" connectionString="Data Source=sql-1;Initial Catalog=Shop;User ID=shop;Password=[{a16}]" providerName="System.Data.SqlClient" />',
    ),
    (
        "grep -rn 'api_key' --include=*.py src/",
        'src/shop/geo.py:12:    client = Geo(api_key="[{v}]", timeout=5)\nsrc/shop/ship.py:8:API_KEY = "[{a32}]"',
    ),
    ("awk '/^machine/ {print $2, $4, $6}' ~/.netrc", "api.heroku.com ci [{uuid}]\ngit.shop.corp ci [{a20}]"),
    (
        "yq -o=props '.integrations' settings.yml",
        "hubspot.token = pat-eu1-[{uuid}]\nzendesk.token = [{a40}]\nzendesk.subdomain = shop",
    ),
    (
        "sed -n '/\\[smtp\\]/,/^$/p' /etc/grafana/grafana.ini",
        '⟦smtp⟧\nenabled = true\nhost = smtp.shop.corp:587\nuser = relay\npassword = """[{v}]"""',
    ),
    (
        "cat .streamlit/secrets.toml",
        'db_username = "shop"\ndb_password = "[{v}]"\n\n⟦openai⟧\nkey = "sk-proj-[{w74}T3BlbkFJ{w74}]"',
    ),
    (
        "cat config/parameters.yml",
        "parameters:\n    database_host: mysql-1\n    database_user: shop\n    database_password: '[{v}]'\n    mailer_password: ~\n    secret: [{h40}]",
    ),
    (
        "cat ~/.mc/config.json | jq '.aliases.prod'",
        '{\n  "url": "https://minio.shop.corp",\n  "accessKey": "shop",\n  "secretKey": "[{v}]",\n  "api": "S3v4",\n  "path": "auto"\n}',
    ),
    (
        "systemctl cat shop",
        '# /etc/systemd/system/shop.service\n⟦Unit⟧\nDescription=Shop\nAfter=network.target\n\n⟦Service⟧\nEnvironment=PORT=8080\nEnvironment="API_TOKEN=[{v}]"\nExecStart=/usr/bin/shop\nRestart=always',
    ),
    ("tr '\\0' '\\n' < /proc/4120/environ", "PORT=8080\nHMAC_SECRET=[{v}]\nPATH=/usr/bin:/bin\nLANG=C.UTF-8"),
    ("pm2 env 0", "PORT: 8080\nNODE_ENV: production\nSESSION_SECRET: [{v}]\nnode_version: 22.11.0"),
    ("direnv exec . env | grep -E '^(HASS|TF_VAR)'", "HASS_TOKEN=" + _JWT + "\nTF_VAR_root_password=[{v}]"),
    (
        "cat .github/act/event.json | jq '.inputs'",
        '{\n  "environment": "prod",\n  "deploy_token": "[{v}]",\n  "dry_run": "false"\n}',
    ),
)

SERVICES = (
    (
        "curl -s https://api.stripe.com/v1/webhook_endpoints -u \"$K:\" -d url=https://shop.corp/h -d 'enabled_events[]=*' | jq '{id,secret}'",
        '{\n  "id": "we_{a24}",\n  "secret": "whsec_[{a32}]"\n}',
    ),
    (
        "curl -s https://connect.squareup.com/oauth2/token -d @req.json | jq",
        '{\n  "access_token": "EAAA[{w60}]",\n  "token_type": "bearer",\n  "expires_at": "2026-12-29T09:00:00Z",\n  "merchant_id": "{S13}",\n  "refresh_token": "EQAA[{w60}]"\n}',
    ),
    ("cat braintree.yml", "production:\n  merchant_id: {s16}\n  public_key: {s16}\n  private_key: [{h32}]"),
    (
        "grep -i slack -A3 alertmanager.yml",
        "slack_configs:\n  - api_url: https://hooks.slack.com/services/T{S10}/B{S10}/[{a24}]\n    channel: '#alerts'\n    send_resolved: true",
    ),
    (
        "cat bot/config.json",
        '{\n  "prefix": "!",\n  "clientId": "{d18}",\n  "token": "MTE[{w23}.{w6}.{w38}]"\n}',
    ),
    (
        "docker logs tg-bot --tail 2",
        '2026-11-29 05:31:02,118 INFO httpx HTTP Request: POST https://api.telegram.org/bot{d10}:[AA{w33}]/getUpdates "HTTP/1.1 200 OK"\n2026-11-29 05:31:12,240 INFO httpx HTTP Request: POST https://api.telegram.org/bot{d10}:[AA{w33}]/getUpdates "HTTP/1.1 200 OK"',
    ),
    (
        "jq . ~/.twilio-cli/config.json",
        '{\n  "activeProfile": "prod",\n  "profiles": {\n    "prod": {\n      "accountSid": "AC{h32}",\n      "apiKey": "SK{h32}",\n      "apiSecret": "[{a32}]"\n    }\n  }\n}',
    ),
    (
        "cat ~/.mutt/accounts/work",
        'set imap_user = "ops@shop.corp"\nset imap_pass = "[{v}]"\nset smtp_url = "smtps://ops@smtp.shop.corp:465"\nset smtp_pass = "[{v}]"',
    ),
    ("sudo postmap -q '[smtp.shop.corp]:587' hash:/etc/postfix/sasl_passwd", "relay:[{v}]"),
    (
        "sudo cat /etc/sssd/sssd.conf",
        "⟦domain/shop⟧\nid_provider = ldap\nldap_uri = ldaps://ldap.shop.corp\nldap_default_bind_dn = cn=sssd,dc=shop,dc=corp\nldap_default_authtok_type = password\nldap_default_authtok = [{v}]",
    ),
    (
        "cat client.properties",
        'bootstrap.servers=pkc-4r087.eu-central-1.aws.confluent.cloud:9092\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="{S16}" password="[{b64}]";',
    ),
    (
        "rabbitmqctl list_parameters --vhost shop --formatter json",
        '⟦\n{"component":"shovel","name":"orders","value":"{\\"src-uri\\":\\"amqp://shop:[{a20}]@mq-1\\",\\"src-queue\\":\\"orders\\",\\"dest-uri\\":\\"amqp://mq-2\\"}"}\n⟧',
    ),
    ("sudo cat /var/lib/rabbitmq/.erlang.cookie", "[{S20}]"),
    ("nk -gen user -pubout", "SU[{t56}]\nU{t55}"),
    (
        "cat esphome/secrets.yaml",
        'wifi_ssid: "Office"\nwifi_password: "[{l6}-{l5}{d2}]"\napi_encryption_key: "[{b43}]="\nota_password: "[{h32}]"',
    ),
    (
        "cat zigbee2mqtt/data/configuration.yaml",
        "mqtt:\n  base_topic: zigbee2mqtt\n  server: mqtt://mqtt:1883\n  user: z2m\n  password: [{v}]\nserial:\n  port: /dev/ttyUSB0\nadvanced:\n  channel: 15",
    ),
    (
        "sudo grep -E 'community|createUser' /etc/snmp/snmpd.conf",
        "rocommunity [{a12}] default\ncreateUser monitor SHA [{a16}] AES [{a16}]",
    ),
    ("cat /etc/default/tailscale-authkey", "tskey-auth-[{a12}CNTRL-{a32}]"),
    (
        'curl -s -d client_id=web -d client_secret="$S" -d grant_type=client_credentials https://sso.shop.corp/realms/shop/protocol/openid-connect/token',
        '{"access_token":"'
        + _JWT
        + '","expires_in":300,"refresh_expires_in":0,"token_type":"Bearer","not-before-policy":0,"scope":"email profile"}',
    ),
    ("cat ~/.okta/okta.yaml", "okta:\n  client:\n    orgUrl: https://shop.okta.com\n    token: 00[{w40}]"),
    (
        "curl -sv https://api.shop.corp/login -d @login.json 2>&1 | grep -i set-cookie",
        "< set-cookie: sessionid=[{s32}]; expires=Sun, 13 Dec 2026 05:40:00 GMT; HttpOnly; Max-Age=1209600; Path=/; SameSite=Lax; Secure",
    ),
    (
        "http --print=Hh POST api.shop.corp/v1/items",
        "POST /v1/items HTTP/1.1\nAccept: */*\nHost: api.shop.corp\nX-Api-Key: [{v}]\n\nHTTP/1.1 201 Created\nContent-Length: 17\nContent-Type: application/json",
    ),
    (
        'newrelic apiAccess apiAccessCreateKeys --keys \'{"user":{"accountId":1,"name":"ci","userId":2}}\' | jq -r \'.[0].key\'',
        "NRAK-[{S27}]",
    ),
    (
        'curl -s -X POST localhost:3000/api/serviceaccounts/2/tokens -d \'{"name":"ci"}\'',
        '{"id":7,"name":"ci","key":"glsa_[{a32}_{h8}]"}',
    ),
)

MODELS_AND_APPS = (
    (
        "cat ~/.codex/auth.json",
        '{\n  "OPENAI_API_KEY": "sk-proj-[{w74}T3BlbkFJ{w74}]",\n  "tokens": null,\n  "last_refresh": null\n}',
    ),
    (
        "cat ~/.claude/.credentials.json",
        '{"claudeAiOauth":{"accessToken":"sk-ant-oat01-[{w86}AA]","refreshToken":"sk-ant-ort01-[{w86}AA]","expiresAt":1795929000000,"scopes":⟦"user:inference","user:profile"⟧}}',
    ),
    ("llm keys get openrouter", "sk-or-v1-[{h64}]"),
    (
        "grep -v '^#' ~/.aider.conf.yml",
        "model: gpt-5\nopenai-api-key: sk-svcacct-[{w74}T3BlbkFJ{w74}]\nauto-commits: false",
    ),
    (
        "curl -s localhost:4000/key/generate -H \"Authorization: Bearer $MASTER\" -d '{}' | jq '{key, expires}'",
        '{\n  "key": "sk-[{w22}]",\n  "expires": null\n}',
    ),
    ("grep -A2 wandb ~/.netrc", "machine wandb.shop.corp\n  login user\n  password [{h40}]"),
    ("cat ~/.modal.toml", '⟦shop⟧\ntoken_id = "ak-{a22}"\ntoken_secret = "as-[{a22}]"\nactive = true'),
    (
        "cat ~/.databrickscfg",
        "⟦DEFAULT⟧\nhost = https://adb-1234567890123456.7.azuredatabricks.net\ntoken = dapi[{h32}]-2",
    ),
    (
        "claude mcp get linear",
        "linear:\n  Scope: Local config (private to you in this project)\n  Type: stdio\n  Command: npx\n  Args: -y linear-mcp\n  Environment:\n    LINEAR_API_KEY=lin_api_[{a40}]",
    ),
    (
        "cat android/local.properties",
        "sdk.dir=/opt/android-sdk\nflutter.sdk=/opt/flutter\nMAPS_API_KEY=AIza[{w35}]",
    ),
    (
        "cat fastlane/.env",
        "FASTLANE_USER=ci@shop.corp\nFASTLANE_APPLE_APPLICATION_SPECIFIC_PASSWORD=[{l4}-{l4}-{l4}-{l4}]\nMATCH_PASSWORD=[{v}]",
    ),
    (
        "adb shell run-as com.shop.app cat shared_prefs/session.xml",
        "<?xml version='1.0' encoding='utf-8' standalone='yes' ?>\n<map>\n    <string name=\"refresh_token\">[{w64}]</string>\n    <boolean name=\"onboarded\" value=\"true\" />\n</map>",
    ),
    (
        "firebase login:ci --no-localhost | tail -3",
        "✔  Success! Use this token to login on a CI server:\n\n1//0[{w98}]",
    ),
)

POWERSHELL = (
    (
        "pwsh -c 'Get-ChildItem Env: | Where-Object Name -like \"*TOKEN*\"'",
        "\nName                           Value\n----                           -----\nAZURE_DEVOPS_TOKEN             [{s52}]\nNUGET_TOKEN                    oy2[{s43}]",
    ),
    ("pwsh -c '[Environment]::GetEnvironmentVariable(\"SYSTEM_ACCESSTOKEN\")'", "[{s52}]"),
    ("pwsh -c 'Get-AzKeyVaultSecret -VaultName shop-kv -Name smtp -AsPlainText'", "[{v}]"),
    (
        "pwsh -c 'Get-Content secret.txt | ConvertTo-SecureString | ConvertFrom-SecureString -AsPlainText'",
        "[{v}]",
    ),
    (
        "pwsh -c 'Get-AzStorageAccountKey -ResourceGroupName shop -Name shopimages'",
        "\nKeyName Value                                                                                    Permissions CreationTime\n------- -----                                                                                    ----------- ------------\nkey1    [{b86}]== Full        04/11/2026 08:12:30",
    ),
    (
        "reg.exe query 'HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Winlogon' /v DefaultPassword",
        "\nHKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Winlogon\n    DefaultPassword    REG_SZ    [{v}]\n",
    ),
    (
        "pwsh -c 'Get-ADComputer ws-12 -Properties ms-Mcs-AdmPwd | Select-Object Name,ms-Mcs-AdmPwd'",
        "\nName  ms-Mcs-AdmPwd\n----  -------------\nws-12 [{p14}]",
    ),
    ("cmd.exe /c 'type C:\\ProgramData\\shop\\settings.ini'", "⟦service⟧\nport=9000\napikey=[{v}]\nverify=1"),
)

FURTHER = (
    (
        "clickhouse-client -q \"SELECT name, create_table_query FROM system.tables WHERE engine = 'PostgreSQL' FORMAT Vertical\"",
        "Row 1:\n──────\nname:               orders\ncreate_table_query: CREATE TABLE default.orders (`id` UInt64, `total` Decimal(10, 2)) ENGINE = PostgreSQL('pg-1:5432', 'shop', 'orders', 'reader', '[{v}]')",
    ),
    ("cat ~/.cassandra/credentials", "⟦PlainTextAuthProvider⟧\nusername = reports\npassword = [{v}]"),
    (
        "aws ssm get-parameters-by-path --path /shop/prod --with-decryption --query 'Parameters[].[Name,Value]' --output text",
        "/shop/prod/db_password\t[{v}]\n/shop/prod/db_user\tshop\n/shop/prod/log_level\tinfo\n/shop/prod/mailgun_key\tkey-[{h32}]",
    ),
    (
        "aws lambda get-function-configuration --function-name resize --query Environment.Variables",
        '{\n    "BUCKET": "shop-images",\n    "IMGIX_TOKEN": "[{v}]",\n    "LOG_LEVEL": "info"\n}',
    ),
    (
        "cat ~/.config/gcloud/application_default_credentials.json",
        '{\n  "account": "",\n  "client_id": "764086051850-6qr4p6gpi6hn506pt8ejuq83di341hur.apps.googleusercontent.com",\n  "client_secret": "d-FL95Q19q7MQmFpd7hHD0Ty",\n  "quota_project_id": "shop-prod",\n  "refresh_token": "1//0[{w98}]",\n  "type": "authorized_user",\n  "universe_domain": "googleapis.com"\n}',
    ),
    ("az cosmosdb keys list -g shop -n shop-cosmos --query primaryMasterKey -o tsv", "[{b86}]=="),
    (
        "az iot hub device-identity connection-string show -n shop-hub -d sensor-17",
        '{\n  "connectionString": "HostName=shop-hub.azure-devices.net;DeviceId=sensor-17;SharedAccessKey=[{b43}]="\n}',
    ),
    (
        'flux create secret git shop --url=https://git.shop.corp/shop --username=git --password="$PAT" --export',
        "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: shop\n  namespace: flux-system\nstringData:\n  password: [{v}]\n  username: git",
    ),
    ("consul kv get shop/prod/session_secret", "[{v}]"),
    (
        "terraform show -json | jq '.values.root_module.resources[] | select(.type==\"aws_iam_access_key\").values | {id, secret}'",
        '{\n  "id": "AKIA{S16}",\n  "secret": "[{b40}]"\n}',
    ),
    ("jq -r '.accessTokens | to_entries[].value' ~/.pulumi/credentials.json", "pul-[{h40}]"),
    ("python -m keyring get shop deploy", "[{v}]"),
    (
        "gitea admin user generate-access-token --username ci --token-name deploy --scopes all",
        "Access token was successfully created: [{h40}]",
    ),
    (
        "cat ~/.config/tea/config.yml",
        "logins:\n    - name: git.shop.corp\n      url: https://git.shop.corp\n      token: [{h40}]\n      default: true\n      ssh_host: git.shop.corp",
    ),
    (
        "cat ~/.flyrc",
        "targets:\n  ci:\n    api: https://concourse.shop.corp\n    team: main\n    token:\n      type: bearer\n      value: [{b43}.{b60}]",
    ),
    ("cat .secrets", "GITHUB_TOKEN=github_pat_[{a22}_{a59}]\nNPM_TOKEN=npm_[{a36}]\nCODECOV_TOKEN=[{uuid}]"),
    ("npm token create --read-only", "Created publish token npm_[{a36}]"),
    (
        "composer config --global --auth --list",
        "⟦github-oauth.github.com⟧ ghp_[{g36}]\n⟦http-basic.repo.shop.corp.username⟧ ci\n⟦http-basic.repo.shop.corp.password⟧ [{v}]",
    ),
    (
        'python -c "from django.core.management.utils import get_random_secret_key as g; print(g())"',
        "[{p50}]",
    ),
    (
        "php artisan passport:client --personal --no-interaction",
        "\n   INFO  Personal access client created successfully.\n\n  Client ID ................................... {uuid}\n  Client secret ............... [{a40}]",
    ),
    (
        "wp config list --fields=name,value --format=csv",
        'name,value\nDB_NAME,wp\nDB_USER,wp\nDB_PASSWORD,"[{a18}]"\nAUTH_KEY,"[{p64}]"\nWP_DEBUG,',
    ),
    ("stripe listen --print-secret", "whsec_[{h64}]"),
    (
        "confluent api-key create --resource lkc-abc123",
        "It may take a couple of minutes for the API key to be ready.\nSave the API key and secret. The secret is not retrievable later.\n+------------+------------------------------------------------------------------+\n¦ API Key    ¦ {S16}                                                 ¦\n¦ API Secret ¦ [{b64}] ¦\n+------------+------------------------------------------------------------------+",
    ),
    (
        "grep -n define include/secrets.h",
        '1:#define WIFI_SSID "Office"\n2:#define WIFI_PASS "[{l8}{d3}]"\n3:#define MQTT_TOKEN "[{a20}]"',
    ),
    (
        "ssh switch-1 'show running-config | include username|snmp|secret'",
        "enable secret 9 $9$[{a14}${a43}]\nusername admin privilege 15 secret 9 $9$[{a14}${a43}]\nsnmp-server community [{a12}] RO",
    ),
)

COMMANDS = (
    *DATABASES,
    *CLOUDS,
    *CLUSTERS,
    *MANAGERS,
    *HOSTING_AND_CI,
    *PACKAGES,
    *KEYS,
    *LANGUAGES,
    *FILES,
    *SERVICES,
    *MODELS_AND_APPS,
    *POWERSHELL,
    *FURTHER,
)
"""Commands that print a secret, and what they print."""

ENCODED_COMMANDS = (
    ("kubectl get secret shop-db -o jsonpath='{.data.DB_PASSWORD}'", "{v}"),
    ("kubectl get secret registry -o go-template='{{index .data \"password\"}}'", "{v}"),
    ("oc get secret argocd-cluster -n gitops -o jsonpath='{.data.admin\\.password}'", "{v}"),
    ("gcloud secrets versions access latest --secret=smtp --format='get(payload.data)'", "{v}"),
    ("aws secretsmanager get-secret-value --secret-id shop/hmac --query SecretBinary --output text", "{a40}"),
)
"""Commands that print a secret in base64, and the secret."""

CONTROLS = (
    (
        "redis-cli INFO server | head -6",
        "# Server\nredis_version:7.4.1\nredis_git_sha1:00000000\nredis_git_dirty:0\nredis_build_id:{h16}\nredis_mode:standalone",
    ),
    ("redis-cli --scan --pattern 'session:*' | wc -l", "18204"),
    (
        "psql -c '\\d api_tokens'",
        '                          Table "public.api_tokens"\n   Column   ¦           Type           ¦ Collation ¦ Nullable ¦ Default\n------------+--------------------------+-----------+----------+---------\n id         ¦ bigint                   ¦           ¦ not null ¦\n token_hash ¦ bytea                    ¦           ¦ not null ¦\n secret_id  ¦ uuid                     ¦           ¦          ¦\n password   ¦ text                     ¦           ¦          ¦\nIndexes:\n    "api_tokens_pkey" PRIMARY KEY, btree (id)',
    ),
    (
        "psql -c \"select name, setting from pg_settings where name ~ 'password'\"",
        "            name            ¦    setting\n----------------------------+---------------\n password_encryption        ¦ scram-sha-256\n scram_iterations           ¦ 4096\n(2 rows)",
    ),
    (
        "mysql -e \"show variables like 'validate_password%'\"",
        "+--------------------------------------+--------+\n¦ Variable_name                        ¦ Value  ¦\n+--------------------------------------+--------+\n¦ validate_password.check_user_name    ¦ ON     ¦\n¦ validate_password.length             ¦ 12     ¦\n¦ validate_password.policy             ¦ MEDIUM ¦\n+--------------------------------------+--------+",
    ),
    (
        "sqlite3 app.db .schema | grep -i secret",
        "CREATE TABLE client_secrets (id INTEGER PRIMARY KEY, client_id TEXT NOT NULL, secret_hash BLOB NOT NULL, created_at TEXT);",
    ),
    (
        "mongosh --quiet --eval 'db.orders.findOne({}, {_id: 1, status: 1})'",
        "{ _id: ObjectId('{h24}'), status: 'paid' }",
    ),
    (
        "aws secretsmanager list-secrets --query 'SecretList[].[Name,ARN]' --output text",
        "shop/prod/db\tarn:aws:secretsmanager:eu-central-1:123456789012:secret:shop/prod/db-{a6}\nshop/prod/smtp\tarn:aws:secretsmanager:eu-central-1:123456789012:secret:shop/prod/smtp-{a6}",
    ),
    (
        "aws iam list-access-keys --user-name ci --query 'AccessKeyMetadata[].Status'",
        '⟦\n    "Active",\n    "Inactive"\n⟧',
    ),
    ("aws kms list-keys --query 'Keys[].KeyId' --output text", "{uuid}\t{uuid}\t{uuid}"),
    (
        "aws configure list",
        "      Name                    Value             Type    Location\n      ----                    -----             ----    --------\n   profile                 <not set>             None    None\naccess_key     ****************K7QA shared-credentials-file\nsecret_key     ****************x0Zt shared-credentials-file\n    region             eu-central-1      config-file    ~/.aws/config",
    ),
    (
        "aws ssm describe-parameters --query 'Parameters[].[Name,Type]' --output text",
        "/shop/prod/api_token\tSecureString\n/shop/prod/db_password\tSecureString\n/shop/prod/log_level\tString",
    ),
    ("aws ssm get-parameter --name /shop/prod/log_level --query Parameter.Value --output text", "info"),
    (
        "aws s3api head-object --bucket shop-images --key logo.png --query '[ETag,ChecksumSHA256]'",
        '⟦\n    "\\"{h32}\\"",\n    "{b43}="\n⟧',
    ),
    (
        "gcloud secrets versions list smtp",
        "NAME  STATE     CREATED              DESTROYED\n3     enabled   2026-10-02T08:11:20  -\n2     disabled  2026-04-11T09:40:02  -\n1     destroyed  2025-12-01T10:00:00  2026-04-11T09:41:00",
    ),
    (
        "gcloud iam service-accounts keys list --iam-account=deploy --format='value(name.basename(),validAfterTime)'",
        "{h40}\t2026-09-01T07:00:00Z\n{h40}\t2026-11-01T07:00:00Z",
    ),
    (
        "gcloud kms keys list --location=global --keyring=shop --format='value(name)'",
        "projects/shop-prod/locations/global/keyRings/shop/cryptoKeys/orders\nprojects/shop-prod/locations/global/keyRings/shop/cryptoKeys/sessions",
    ),
    (
        "az keyvault secret list --vault-name shop-kv --query '[].{name:name,enabled:attributes.enabled}' -o table",
        "Name        Enabled\n----------  ---------\nsmtp        True\nstripe-key  True",
    ),
    (
        "az ad app credential list --id shop --query '[].{hint:hint,keyId:keyId}'",
        '⟦\n  {\n    "hint": "{a3}",\n    "keyId": "{uuid}"\n  }\n⟧',
    ),
    (
        "doctl compute ssh-key list --format Name,FingerPrint",
        "Name     FingerPrint\nci       {h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}",
    ),
    (
        "kubectl get secrets -n prod",
        "NAME                  TYPE                             DATA   AGE\nregistry              kubernetes.io/dockerconfigjson   1      201d\nshop                  Opaque                           4      201d\nshop-tls              kubernetes.io/tls                2      88d\nsh.helm.release.v1.shop.v41   helm.sh/release.v1       1      2d",
    ),
    (
        "kubectl describe secret shop -n prod",
        "Name:         shop\nNamespace:    prod\nLabels:       app=shop\nAnnotations:  <none>\n\nType:  Opaque\n\nData\n====\nDB_PASSWORD:  24 bytes\nDB_USER:      4 bytes\nSTRIPE_KEY:   32 bytes",
    ),
    (
        "kubectl get deploy shop -o yaml | yq '.spec.template.spec.containers[0].env'",
        "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      key: DB_PASSWORD\n      name: shop\n- name: LOG_LEVEL\n  value: info",
    ),
    ("kubectl get pods -l app=shop -o jsonpath='{.items[*].metadata.uid}'", "{uuid} {uuid} {uuid}"),
    (
        "kubectl get sealedsecret shop -o jsonpath='{.status.conditions}'",
        '⟦{"lastUpdateTime":"2026-11-02T08:00:00Z","status":"True","type":"Synced"}⟧',
    ),
    (
        "docker images --digests --format '{{.Repository}} {{.Digest}}'",
        "shop sha256:{h64}\nredis sha256:{h64}",
    ),
    ("docker ps --no-trunc --format '{{.ID}} {{.Names}}'", "{h64} shop-api-1\n{h64} shop-db-1"),
    (
        "docker secret ls",
        "ID                          NAME          DRIVER    CREATED        UPDATED\n{s25}   db_password             3 months ago   3 months ago\n{s25}   smtp                    2 weeks ago    2 weeks ago",
    ),
    ("docker compose config --environment | grep -c PASSWORD", "3"),
    (
        "docker inspect shop-db-1 --format '{{range .Config.Env}}{{println .}}{{end}}' | cut -d= -f1",
        "POSTGRES_USER\nPOSTGRES_PASSWORD\nPOSTGRES_DB\nPATH\nPGDATA",
    ),
    (
        "helm list -n prod -o json | jq -c '.[0]'",
        '{"name":"shop","namespace":"prod","revision":"41","updated":"2026-11-27 08:12:11.120 +0000 UTC","status":"deployed","chart":"shop-2.3.1","app_version":"1.4.2"}',
    ),
    (
        "nomad status shop | head -6",
        "ID            = shop\nName          = shop\nSubmit Date   = 2026-11-27T08:12:11Z\nType          = service\nPriority      = 50\nDatacenters   = fra1",
    ),
    ("vault kv list secret/shop", "Keys\n----\ndb\nsmtp\nstripe/"),
    (
        "vault token lookup -format=json | jq '{policies: .data.policies, ttl: .data.ttl}'",
        '{\n  "policies": ⟦\n    "default",\n    "deploy"\n  ⟧,\n  "ttl": 2764790\n}',
    ),
    ("consul kv get -keys shop/prod/", "shop/prod/log_level\nshop/prod/session_secret\nshop/prod/smtp_pass"),
    ("op item list --vault Prod --format json | jq -r '.[].title'", "Prod DB\nStripe\nSMTP relay"),
    ("sops filestatus secrets.enc.yaml", '{"encrypted":true}'),
    (
        "cat secrets.enc.yaml",
        'smtp:\n    password: ENC⟦AES256_GCM,data:{b28},iv:{b43}=,tag:{b22}==,type:str⟧\nsops:\n    age:\n        - recipient: age1{e58}\n    lastmodified: "2026-10-01T09:00:00Z"\n    version: 3.9.1',
    ),
    ("head -3 group_vars/prod/vault.yml", "$ANSIBLE_VAULT;1.1;AES256\n{d80}\n{d80}"),
    (
        "terraform plan -no-color | grep -A8 random_password",
        '  # random_password.db will be created\n  + resource "random_password" "db" {\n      + bcrypt_hash = (sensitive value)\n      + id          = (known after apply)\n      + length      = 20\n      + result      = (sensitive value)\n      + special     = true\n    }',
    ),
    (
        "git log --oneline -4 -- src/auth/token.py",
        "{h8} Rotate the signing key every 30 days\n{h8} Read the token from the environment\n{h8} Drop the password grant\n{h8} Add a secret manager client",
    ),
    (
        "git ls-tree -r HEAD src/auth",
        "100644 blob {h40}\tsrc/auth/__init__.py\n100644 blob {h40}\tsrc/auth/password.py\n100644 blob {h40}\tsrc/auth/token.py",
    ),
    (
        "grep -n secrets .github/workflows/deploy.yml",
        "31:          password: $⟦ secrets.DOCKER_PASSWORD ⟧\n44:          token: $⟦ secrets.DEPLOY_TOKEN ⟧".replace(
            "⟦", "{{"
        ).replace("⟧", "}}"),
    ),
    ("heroku config:get NODE_ENV -a shop-prod", "production"),
    (
        "fly secrets list -a shop",
        "NAME         DIGEST           STATUS\nS3_SECRET    {h16} Deployed\nSMTP_PASS    {h16} Deployed",
    ),
    (
        "vercel env ls production",
        " name               value               environments        created\n AUTH_SECRET        Encrypted           Production          41d ago\n CONTENTFUL_TOKEN   Encrypted           Production          102d ago",
    ),
    (
        "npm token list",
        "Publish token npm_aF… with id {h6} created 2026-05-04\nRead only token npm_9k… with id {h6} created 2026-10-11",
    ),
    (
        "grep -A3 'node_modules/jsonwebtoken\"' package-lock.json",
        '    "node_modules/jsonwebtoken": {\n      "version": "9.0.2",\n      "resolved": "https://registry.npmjs.org/jsonwebtoken/-/jsonwebtoken-9.0.2.tgz",\n      "integrity": "sha512-{b86}==",',
    ),
    ("pip hash dist/shop-1.4.2-py3-none-any.whl", "dist/shop-1.4.2-py3-none-any.whl:\n--hash=sha256:{h64}"),
    (
        "cat go.sum | head -2",
        "github.com/golang-jwt/jwt/v5 v5.2.1 h1:{b43}=\ngithub.com/golang-jwt/jwt/v5 v5.2.1/go.mod h1:{b43}=",
    ),
    (
        "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub",
        "256 SHA256:{b43} root@web-1 (ED25519)".replace("root@web-1", "no comment"),
    ),
    (
        "openssl x509 -in tls.crt -noout -fingerprint -sha256",
        "sha256 Fingerprint={H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}:{H2}",
    ),
    ("openssl rsa -in key.pem -pubout 2>/dev/null | head -3", "-----BEGIN PUBLIC KEY-----\n{b64}\n{b64}"),
    ("sha256sum dist/*", "{h64}  dist/shop-1.4.2-py3-none-any.whl\n{h64}  dist/shop-1.4.2.tar.gz"),
    (
        "chage -l deploy",
        "Last password change\t\t\t\t\t: Nov 02, 2026\nPassword expires\t\t\t\t\t: never\nPassword inactive\t\t\t\t\t: never\nMinimum number of days between password change\t\t: 0",
    ),
    (
        "python manage.py check --deploy 2>&1 | tail -3",
        "?: (security.W009) Your SECRET_KEY has less than 50 characters, less than 5 unique characters, or it's prefixed with 'django-insecure-' indicating that it was generated automatically by Django.\n\nSystem check identified 1 issue (0 silenced).",
    ),
    (
        "python -c 'import os; print(sorted(k for k in os.environ if \"KEY\" in k))'",
        "⟦'API_KEY', 'HMAC_KEY', 'SSH_KEY_PATH'⟧",
    ),
    (
        "python -c 'from app.config import Settings; print(Settings.model_fields.keys())'",
        "dict_keys(⟦'env', 'database_url', 'jwt_secret', 'smtp_password', 'workers'⟧)",
    ),
    ("python -c 'from pydantic import SecretStr; print(repr(SecretStr(\"x\")))'", "SecretStr('**********')"),
    ("node -p 'Object.keys(process.env).filter(k => /TOKEN/.test(k))'", "⟦ 'CI_JOB_TOKEN', 'NPM_TOKEN' ⟧"),
    (
        "bin/rails routes | grep password",
        "    new_password GET    /passwords/new(.:format)          passwords#new\n   edit_password GET    /passwords/:token/edit(.:format)  passwords#edit\n       passwords POST   /passwords(.:format)              passwords#create",
    ),
    (
        "grep -rn 'password' app/models/user.rb",
        "app/models/user.rb:4:  has_secure_password\napp/models/user.rb:9:  validates :password, length: { minimum: 12 }, allow_nil: true\napp/models/user.rb:15:  generates_token_for :password_reset, expires_in: 15.minutes",
    ),
    (
        "rg -n 'getenv' internal/config",
        'internal/config/config.go:14:\tc.Secret = os.Getenv("JWT_SECRET")\ninternal/config/config.go:15:\tc.DB.Password = os.Getenv("DB_PASSWORD")',
    ),
    (
        "pytest -q tests/test_tokens.py",
        "........................                                                 ⟦100%⟧\n24 passed in 1.82s",
    ),
    ("stripe prices list --limit 1 | jq -r '.data[0].id'", "price_{a24}"),
    (
        "curl -s https://sso.shop.corp/.well-known/jwks.json | jq -c '.keys[0]'",
        '{"kty":"RSA","use":"sig","alg":"RS256","kid":"{w43}","n":"{w342}","e":"AQAB"}',
    ),
    ("curl -sI https://shop.corp | grep -i -E 'etag|x-request-id'", 'etag: W/"{h32}"\nx-request-id: {uuid}'),
    ("nats stream ls --json", '⟦\n  "orders",\n  "payments"\n⟧'),
    ("rabbitmqctl list_users", "Listing users ...\nuser\ttags\nshop\t⟦⟧\nmonitor\t⟦monitoring⟧"),
    (
        "cat esphome/gateway.yaml",
        "esphome:\n  name: gateway\nwifi:\n  ssid: !secret wifi_ssid\n  password: !secret wifi_password\nota:\n  - platform: esphome\n    password: !secret ota_password",
    ),
    ("llm keys list", "anthropic\nopenai\nopenrouter"),
    (
        "pwsh -c 'Get-Credential -UserName svc -Message x | Format-List'",
        "\nUserName : svc\nPassword : System.Security.SecureString\n",
    ),
)
"""Commands whose output looks like the others' and holds no secret."""

VENDOR_VALUES = (
    ("Anthropic", "sk-|ant-api03-[{w93}AA]"),
    ("GitHub, fine-grained", "github|_pat_[{a22}_{a59}]"),
    ("GitLab", "gl|pat-[{w20}]"),
    ("Slack bot", "xo|xb-{d12}-{d13}-[{a24}]"),
    ("Stripe, restricted", "rk_|live_[{a24}]"),
    ("Hugging Face", "hf|_[{a34}]"),
    ("SendGrid", "SG|.[{w22}.{w43}]"),
    ("DigitalOcean", "dop|_v1_[{h64}]"),
    ("PyPI", "pypi|-AgEIcHlwaS5vcmc[{w80}]"),
    ("Vault", "hvs|.[{w24}]"),
    ("Grafana", "glsa|_[{a32}_{h8}]"),
    ("Databricks", "dapi|[{h32}]"),
    ("Google key", "AI|za[{w35}]"),
    ("Linear", "lin|_api_[{a40}]"),
)

TELLING_VALUES = (
    ("DB_PASSWORD", "{p16}"),
    ("MYSQL_ROOT_PASSWORD", "[{word}{d4}!]"),
    ("APP_SECRET", "{h32}"),
    ("JWT_SIGNING_KEY", "[{b43}=]"),
    ("SMTP_PASS", "{a14}"),
    ("ADMIN_PASSWORD", "[{word}-{word}-{d3}]"),
    ("OIDC_CLIENT_SECRET", "{w40}"),
    ("WEBHOOK_TOKEN", "{uuid}"),
    ("AUTH_TOKEN", "{h40}"),
    ("AWS_SECRET_ACCESS_KEY", "{b40}"),
    ("password", "{a12}"),
    ("client_secret", "{w32}"),
    ("api_key", "{s32}"),
    ("encryption_key", "{h64}"),
)
