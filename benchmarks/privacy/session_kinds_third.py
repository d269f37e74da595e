# ruff: noqa: E501 (literal texts)
"""A third, held-out list of what sessions are made of, in the structures of `session_kinds_second.py`.

Its commands are those met often, with all that they print: whole files, whole objects, several secrets at once.
"""

_JWT = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJ[{w160}.{w86}]"
"""A signed token, whose header and first bytes are the same in all."""
_LINES = "{b64}\n{b64}\n{b64}\n{b64}\n{b30}=="


def _armoured(what: str, lines: str = f"[{_LINES}]") -> str:
    return f"-----BEGIN {what}-----\n{lines}\n-----END {what}-----"


PLAIN_VALUES = (
    "{a10}",
    "{a14}",
    "{a18}",
    "{a26}",
    "{a36}",
    "{a44}",
    "{h20}",
    "{h28}",
    "{h36}",
    "{h56}",
    "{b27}=",
    "{b64}",
    "{b87}=",
    "{w22}",
    "{w27}",
    "{w64}",
    "{p10}",
    "{p15}",
    "{p22}",
    "{s20}",
    "{word}_{word}_{d4}",
    "{l5}-{l6}-{l4}-{d2}",
    "{a5}-{a5}-{a5}-{a5}",
    "{uuid}",
)

DATABASES = (
    (
        "docker inspect pg --format '{{json .Config.Env}}'",
        '⟦"POSTGRES_USER=app","POSTGRES_PASSWORD=[{v}]","POSTGRES_DB=shop","PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/postgresql/17/bin","GOSU_VERSION=1.19","LANG=en_US.utf8","PG_MAJOR=17","PG_VERSION=17.7-3.pgdg13+1","PGDATA=/var/lib/postgresql/data"⟧',
    ),
    (
        "docker exec shop-db-1 env | grep -i postgres",
        "POSTGRES_USER=app\nPOSTGRES_PASSWORD=[{v}]\nPOSTGRES_DB=shop\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/postgresql/17/bin",
    ),
    (
        "psql shop -c 'select subname, subconninfo from pg_subscription'",
        " subname ¦                             subconninfo\n---------+---------------------------------------------------------------------\n orders  ¦ host=pg-1 port=5432 dbname=shop user=repl password=[{a20}]\n(1 row)",
    ),
    (
        'psql "$DATABASE_URL" -c "select key, value from settings where key like \'%secret%\'"',
        "          key          ¦              value\n-----------------------+----------------------------------\n stripe_webhook_secret ¦ whsec_[{a32}]\n session_secret        ¦ [{h32}]\n(2 rows)",
    ),
    (
        "psql -Atc \"select rolname, rolpassword from pg_authid where rolname = 'app'\"",
        "app¦SCRAM-SHA-256$4096:{b22}==$[{b43}=:{b43}=]",
    ),
    (
        "pg_dumpall --roles-only | grep 'ALTER ROLE app'",
        "ALTER ROLE app WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS PASSWORD 'SCRAM-SHA-256$4096:{b22}==$[{b43}=:{b43}=]';",
    ),
    ("my_print_defaults -s client", "--user=app\n--password=[{v}]\n--host=db\n--port=3306"),
    (
        "mysql -e \"select user, host, authentication_string from mysql.user where user = 'app'\"",
        "user\thost\tauthentication_string\napp\t%\t*[{H40}]",
    ),
    (
        "mysql shop -e 'select * from oauth_clients limit 1\\G'",
        "*************************** 1. row ***************************\n         id: 3\n       name: Mobile app\n     secret: [{a40}]\n   redirect: https://shop.corp/callback\n    revoked: 0\n created_at: 2026-02-11 09:12:44",
    ),
    (
        "mongosh shop --quiet --eval 'db.integrations.find().toArray()'",
        "⟦\n  {\n    _id: ObjectId('{h24}'),\n    name: 'shipping',\n    apiKey: '[{v}]',\n    enabled: true\n  }\n⟧",
    ),
    (
        "redis-cli hgetall session:42",
        "user_id\n42\ncsrf_token\n[{w43}]\nlast_seen\n1795944112",
    ),
    (
        "redis-cli acl list",
        "user app on sanitize-payload #[{h64}] ~* resetchannels &* +@all\nuser default off sanitize-payload resetchannels -@all",
    ),
    ("grep -n '^requirepass' /etc/redis/redis.conf", "1045:requirepass [{v}]"),
    (
        "sqlite3 -line app.db 'select id, reset_token from users where id = 42'",
        "         id = 42\nreset_token = [{w43}]",
    ),
    (
        "sqlite3 -header -csv app.db 'select id, name, token from api_tokens'",
        "id,name,token\n1,ci,[{h40}]\n2,backup,[{h40}]",
    ),
    (
        "cat ~/.influxdbv2/configs",
        '⟦default⟧\n  url = "http://localhost:8086"\n  token = "[{w86}==]"\n  org = "acme"\n  active = true',
    ),
    (
        "sudo cat /etc/pgbouncer/userlist.txt",
        '"app" "[{a20}]"\n"stats" "md5[{h32}]"',
    ),
    (
        "cat ~/.dbt/profiles.yml",
        "shop:\n  target: prod\n  outputs:\n    prod:\n      type: snowflake\n      account: ab12345.eu-west-1\n      user: DBT\n      password: [{v}]\n      role: TRANSFORMER\n      database: ANALYTICS\n      warehouse: DBT_WH\n      schema: MARTS\n      threads: 4",
    ),
    ("echo $DATABASE_URL", "postgres://app:[{a20}]@db.corp:5432/shop?sslmode=require"),
    (
        "grep DATABASE_URL .env",
        'DATABASE_URL="postgresql://app:[{a16}]@localhost:5432/shop?schema=public"\nSHADOW_DATABASE_URL="postgresql://app:[{a16}]@localhost:5432/shadow"',
    ),
    (
        "sudo cat /etc/mysql/debian.cnf",
        "# Automatically generated for Debian scripts. DO NOT TOUCH!\n⟦client⟧\nhost     = localhost\nuser     = debian-sys-maint\npassword = [{a16}]\nsocket   = /var/run/mysqld/mysqld.sock\n⟦mysql_upgrade⟧\nhost     = localhost\nuser     = debian-sys-maint\npassword = [{a16}]\nsocket   = /var/run/mysqld/mysqld.sock",
    ),
)
AMAZON = (
    (
        "cat ~/.aws/credentials",
        "⟦default⟧\naws_access_key_id = AKIA{S16}\naws_secret_access_key = [{b40}]\n\n⟦billing⟧\naws_access_key_id = AKIA{S16}\naws_secret_access_key = [{b40}]",
    ),
    (
        "aws iam create-access-key --user-name ci",
        '{\n    "AccessKey": {\n        "UserName": "ci",\n        "AccessKeyId": "AKIA{S16}",\n        "Status": "Active",\n        "SecretAccessKey": "[{b40}]",\n        "CreateDate": "2026-11-02T10:11:12+00:00"\n    }\n}',
    ),
    (
        "aws sts assume-role --role-arn arn:aws:iam::418822709913:role/deploy --role-session-name ci",
        '{\n    "Credentials": {\n        "AccessKeyId": "ASIA{S16}",\n        "SecretAccessKey": "[{b40}]",\n        "SessionToken": "IQoJb3JpZ2luX2VjE[{b300}=]",\n        "Expiration": "2026-11-02T11:11:12+00:00"\n    },\n    "AssumedRoleUser": {\n        "AssumedRoleId": "AROA{S17}:ci",\n        "Arn": "arn:aws:sts::{d12}:assumed-role/deploy/ci"\n    }\n}',
    ),
    (
        "aws configure export-credentials --format env",
        "export AWS_ACCESS_KEY_ID=ASIA{S16}\nexport AWS_SECRET_ACCESS_KEY=[{b40}]\nexport AWS_SESSION_TOKEN=IQoJb3JpZ2luX2VjE[{b300}=]\nexport AWS_CREDENTIAL_EXPIRATION=2026-11-02T11:11:12+00:00",
    ),
    (
        "aws secretsmanager get-secret-value --secret-id prod/api",
        '{\n    "ARN": "arn:aws:secretsmanager:eu-west-1:{d12}:secret:prod/api-{a6}",\n    "Name": "prod/api",\n    "VersionId": "{uuid}",\n    "SecretString": "{\\"username\\":\\"api\\",\\"password\\":\\"[{v}]\\",\\"engine\\":\\"postgres\\",\\"host\\":\\"db.corp\\",\\"port\\":5432}",\n    "VersionStages": ⟦\n        "AWSCURRENT"\n    ⟧,\n    "CreatedDate": "2026-08-14T07:00:31.112000+00:00"\n}',
    ),
    (
        "aws ssm get-parameters-by-path --path /prod/api --with-decryption --query 'Parameters[].[Name,Value]' --output text",
        "/prod/api/db_host\tdb.corp\n/prod/api/db_password\t[{a24}]\n/prod/api/jwt_secret\t[{h64}]\n/prod/api/log_level\tinfo",
    ),
    (
        "aws ecs describe-task-definition --task-definition api --query 'taskDefinition.containerDefinitions[0].environment'",
        '⟦\n    {\n        "name": "NODE_ENV",\n        "value": "production"\n    },\n    {\n        "name": "DB_PASSWORD",\n        "value": "[{v}]"\n    },\n    {\n        "name": "SENTRY_ENVIRONMENT",\n        "value": "prod"\n    }\n⟧',
    ),
    (
        "aws lambda get-function-configuration --function-name mailer --query Environment.Variables",
        '{\n    "LOG_LEVEL": "info",\n    "SMTP_HOST": "smtp.corp",\n    "SMTP_PASS": "[{v}]",\n    "TABLE": "mails"\n}',
    ),
    (
        "aws eks get-token --cluster-name prod",
        '{\n    "kind": "ExecCredential",\n    "apiVersion": "client.authentication.k8s.io/v1beta1",\n    "spec": {},\n    "status": {\n        "expirationTimestamp": "2026-11-02T10:25:12Z",\n        "token": "k8s-aws-v1.[{w300}]"\n    }\n}',
    ),
    (
        "aws rds generate-db-auth-token --hostname db.corp --port 5432 --username app",
        "db.corp:5432/?Action=connect&DBUser=app&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=ASIA{S16}%2F20261102%2Feu-west-1%2Frds-db%2Faws4_request&X-Amz-Date=20261102T101112Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature=[{h64}]",
    ),
    (
        "aws s3 presign s3://shop-backups/db.dump",
        "https://shop-backups.s3.eu-west-1.amazonaws.com/db.dump?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA{S16}%2F20261102%2Feu-west-1%2Fs3%2Faws4_request&X-Amz-Date=20261102T101112Z&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Signature=[{h64}]",
    ),
    ("aws secretsmanager get-random-password --exclude-punctuation --output text", "{a32}"),
    (
        "aws cloudformation describe-stacks --stack-name ci-user --query 'Stacks[0].Outputs' --output table",
        "------------------------------------------------------------------\n¦                         DescribeStacks                         ¦\n+------------+---------------------------------------------------+\n¦  OutputKey ¦                    OutputValue                    ¦\n+------------+---------------------------------------------------+\n¦  AccessKey ¦  AKIA{S16}                             ¦\n¦  SecretKey ¦  [{b40}]         ¦\n+------------+---------------------------------------------------+",
    ),
    (
        'curl -s "http://169.254.170.2$AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"',
        '{"RoleArn":"arn:aws:iam::{d12}:role/api-task","AccessKeyId":"ASIA{S16}","SecretAccessKey":"[{b40}]","Token":"IQoJb3JpZ2luX2VjE[{b300}=]","Expiration":"2026-11-02T16:11:12Z"}',
    ),
)
OTHER_CLOUDS = (
    (
        "cat sa-key.json",
        '{\n  "type": "service_account",\n  "project_id": "shop-prod",\n  "private_key_id": "{h40}",\n  "private_key": "'
        + _armoured("PRIVATE KEY", "[{b64}\n{b64}\n{b64}\n{b24}]").replace("\n", "\\n")
        + '\\n",\n  "client_email": "ci@shop-prod.iam.gserviceaccount.com",\n  "client_id": "{d21}",\n  "auth_uri": "https://accounts.google.com/o/oauth2/auth",\n  "token_uri": "https://oauth2.googleapis.com/token",\n  "universe_domain": "googleapis.com"\n}',
    ),
    ("gcloud auth print-identity-token", _JWT),
    (
        "gcloud run services describe api --region europe-west1 --format=json | jq '.spec.template.spec.containers[0].env'",
        '⟦\n  {\n    "name": "LOG_LEVEL",\n    "value": "info"\n  },\n  {\n    "name": "MAILGUN_API_KEY",\n    "value": "[{h32}-{h8}-{h8}]"\n  }\n⟧',
    ),
    (
        "gcloud compute reset-windows-password win-1 --zone europe-west1-b --quiet",
        "Resetting and retrieving password for ⟦admin⟧ on ⟦win-1⟧\nUpdated ⟦https://www.googleapis.com/compute/v1/projects/shop-prod/zones/europe-west1-b/instances/win-1⟧.\nip_address: 34.78.12.9\npassword:   [{p15}]\nusername:   admin",
    ),
    (
        "curl -s -H 'Metadata-Flavor: Google' http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token",
        '{"access_token":"ya29.c.[{w180}]","expires_in":3412,"token_type":"Bearer"}',
    ),
    (
        "az webapp config appsettings list -g prod -n shop",
        '⟦\n  {\n    "name": "WEBSITE_NODE_DEFAULT_VERSION",\n    "slotSetting": false,\n    "value": "~22"\n  },\n  {\n    "name": "SESSION_SECRET",\n    "slotSetting": false,\n    "value": "[{v}]"\n  },\n  {\n    "name": "DB_HOST",\n    "slotSetting": false,\n    "value": "shop.postgres.database.azure.com"\n  }\n⟧',
    ),
    (
        "az storage account show-connection-string -g prod -n shopstore -o tsv",
        "DefaultEndpointsProtocol=https;EndpointSuffix=core.windows.net;AccountName=shopstore;AccountKey=[{b86}==];BlobEndpoint=https://shopstore.blob.core.windows.net/;FileEndpoint=https://shopstore.file.core.windows.net/;QueueEndpoint=https://shopstore.queue.core.windows.net/;TableEndpoint=https://shopstore.table.core.windows.net/",
    ),
    (
        "az storage container generate-sas --account-name shopstore -n backups --permissions rl --expiry 2026-12-01 -o tsv",
        "se=2026-12-01&sp=rl&sv=2022-11-02&sr=c&sig=[{a21}%2B{a21}%3D]",
    ),
    (
        "az ad app credential reset --id 7c1f2a52-0c57-4c0e-9a39-53c1f1be8d20",
        '{\n  "appId": "{uuid}",\n  "password": "[{a3}8Q~{w34}]",\n  "tenant": "{uuid}"\n}',
    ),
    (
        "az functionapp keys list -g prod -n fn",
        '{\n  "functionKeys": {\n    "default": "[{w54}==]"\n  },\n  "masterKey": "[{w54}==]",\n  "systemKeys": {}\n}',
    ),
    (
        "az cognitiveservices account keys list -g prod -n shop-openai",
        '{\n  "key1": "[{h32}]",\n  "key2": "[{h32}]"\n}',
    ),
    (
        "cat ~/.config/doctl/config.yaml",
        "access-token: dop_v1_[{h64}]\ncontext: default\noutput: text",
    ),
    (
        "doctl databases user list 9cc10173-e9ea-4176-9dbc-a4cee4c4ff30",
        "Name       Role       Password\ndoadmin    primary    AVNS_[{w19}]\napp        normal     AVNS_[{w19}]",
    ),
    (
        "cat ~/.config/hcloud/cli.toml",
        'active_context = "prod"\n\n⟦⟦contexts⟧⟧\n  name = "prod"\n  token = "[{a64}]"',
    ),
    (
        "hcloud server create --name web2 --type cx22 --image ubuntu-24.04",
        "Server 5512 created\nIPv4: 95.217.10.21\nIPv6: 2a01:4f9:c010:1::1\nIPv6 Network: 2a01:4f9:c010:1::/64\nRoot password: [{a20}]",
    ),
    (
        "cat ~/.ovh.conf",
        "⟦default⟧\nendpoint=ovh-eu\n\n⟦ovh-eu⟧\napplication_key={h16}\napplication_secret=[{h32}]\nconsumer_key=[{h32}]",
    ),
    (
        "openstack token issue",
        "+------------+----------------------------------------------------------------------------------+\n¦ Field      ¦ Value                                                                            ¦\n+------------+----------------------------------------------------------------------------------+\n¦ expires    ¦ 2026-11-03T10:11:12+0000                                                         ¦\n¦ id         ¦ gAAAAAB[{w170}] ¦\n¦ project_id ¦ {h32}                                                 ¦\n¦ user_id    ¦ {h32}                                                 ¦\n+------------+----------------------------------------------------------------------------------+",
    ),
    (
        "grep OS_ openrc.sh",
        "export OS_AUTH_URL=https://auth.cloud.ovh.net/v3\nexport OS_USERNAME=user-{a12}\nexport OS_PASSWORD=[{a32}]\nexport OS_REGION_NAME=GRA11",
    ),
    (
        "s3cmd --dump-config | grep -E '^(access|secret)_key'",
        "access_key = {S20}\nsecret_key = [{b40}]",
    ),
    (
        "cat ~/.config/rclone/rclone.conf",
        "⟦store⟧\ntype = s3\nprovider = Minio\naccess_key_id = {S20}\nsecret_access_key = [{b40}]\nendpoint = https://s3.corp\n\n⟦nas⟧\ntype = sftp\nhost = nas\nuser = backup\npass = [{w38}]",
    ),
    (
        "cat ~/.wrangler/config/default.toml",
        'oauth_token = "[{w43}.{w43}]"\nrefresh_token = "[{w43}.{w43}]"\nexpiration_time = "2026-11-02T11:11:12.000Z"\nscopes = ⟦ "account:read", "user:read", "workers:write", "offline_access" ⟧',
    ),
)
CLUSTERS = (
    (
        "kubectl get secret app -n prod -o yaml",
        'apiVersion: v1\ndata:\n  DB_PASSWORD: [{b24}]\n  JWT_SECRET: [{b43}=]\nkind: Secret\nmetadata:\n  creationTimestamp: "2026-03-02T10:11:12Z"\n  name: app\n  namespace: prod\n  resourceVersion: "812331"\n  uid: {uuid}\ntype: Opaque',
    ),
    (
        "kubectl get secret app -o json | jq '.data | map_values(@base64d)'",
        '{\n  "DB_HOST": "db.prod.svc",\n  "DB_PASSWORD": "[{v}]",\n  "JWT_SECRET": "[{h64}]"\n}',
    ),
    (
        "kubectl -n prod exec deploy/api -- env",
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nHOSTNAME=api-{s9}-{s5}\nNODE_ENV=production\nDB_HOST=db\nDB_PASSWORD=[{v}]\nJWT_SECRET=[{h64}]\nKUBERNETES_SERVICE_HOST=10.96.0.1\nKUBERNETES_SERVICE_PORT=443\nNODE_VERSION=22.21.1\nHOME=/root",
    ),
    (
        "kubectl describe pod api-0 | grep -A6 Environment:",
        "    Environment:\n      NODE_ENV:          production\n      SMTP_PASSWORD:     [{v}]\n      DB_PASSWORD:       <set to the key 'password' in secret 'db'>  Optional: false\n    Mounts:\n      /var/run/secrets/kubernetes.io/serviceaccount from kube-api-access-{s5} (ro)\nConditions:",
    ),
    (
        "kubectl get deploy api -o jsonpath='{.spec.template.spec.containers[0].env}'",
        '⟦{"name":"NODE_ENV","value":"production"},{"name":"REDIS_URL","value":"redis://:[{a24}]@redis:6379/0"},{"name":"API_KEY","value":"[{v}]"}⟧',
    ),
    (
        "kubectl get cm api-config -o yaml",
        'apiVersion: v1\ndata:\n  application.yml: ¦\n    spring:\n      datasource:\n        url: jdbc:postgresql://db:5432/shop\n        username: app\n        password: [{v}]\nkind: ConfigMap\nmetadata:\n  creationTimestamp: "2026-03-02T10:11:12Z"\n  name: api-config\n  namespace: prod\n  resourceVersion: "71233"\n  uid: {uuid}',
    ),
    (
        "cat ~/.kube/config",
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk{b120}\n    server: https://k8s.corp:6443\n  name: prod\ncontexts:\n- context:\n    cluster: prod\n    user: admin\n  name: prod\ncurrent-context: prod\nkind: Config\npreferences: {}\nusers:\n- name: admin\n  user:\n    client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk{b120}\n    client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpN[{b300}=]",
    ),
    (
        "kubectl config view --raw --minify",
        "apiVersion: v1\nclusters:\n- cluster:\n    insecure-skip-tls-verify: true\n    server: https://k8s.corp:6443\n  name: staging\ncontexts:\n- context:\n    cluster: staging\n    user: ci\n  name: staging\ncurrent-context: staging\nkind: Config\nusers:\n- name: ci\n  user:\n    token: "
        + _JWT,
    ),
    (
        "kubectl get secret regcred -o jsonpath='{.data.\\.dockerconfigjson}' | base64 -d",
        '{"auths":{"registry.corp":{"username":"ci","password":"[{a24}]","auth":"Y2k6[{b32}]"}}}',
    ),
    (
        "kubectl get secret -n monitoring grafana -o jsonpath='{.data.admin-password}' | base64 --decode ; echo",
        "{v}",
    ),
    (
        "kubectl -n argocd get secret argocd-initial-admin-secret -o jsonpath='{.data.password}' | base64 -d; echo",
        "{w16}",
    ),
    (
        "kubectl -n kubernetes-dashboard get secret admin-user -o jsonpath='{.data.token}' | base64 -d",
        _JWT,
    ),
    (
        "kubectl get secret db-app -o go-template='{{range $k,$v := .data}}{{$k}}: {{$v | base64decode}}{{\"\\n\"}}{{end}}'",
        "dbname: shop\nhost: db-rw\npassword: [{a64}]\nport: 5432\nuri: postgresql://app:[{a64}]@db-rw.prod:5432/shop\nuser: app\nusername: app",
    ),
    (
        "kubectl logs job/create-admin",
        "2026-11-02 10:11:12 INFO  connecting to db:5432\n2026-11-02 10:11:13 INFO  migrations up to date\n2026-11-02 10:11:13 INFO  Created user admin with password [{v}]",
    ),
    (
        "helm get values shop -n prod",
        "USER-SUPPLIED VALUES:\ningress:\n  enabled: true\n  host: shop.corp\npostgresql:\n  auth:\n    database: shop\n    password: [{v}]\n    username: app\nreplicaCount: 3",
    ),
    (
        "helm template shop ./chart -f values-prod.yaml -s templates/secret.yaml",
        '---\n# Source: shop/templates/secret.yaml\napiVersion: v1\nkind: Secret\nmetadata:\n  name: shop\n  labels:\n    app.kubernetes.io/name: shop\ntype: Opaque\nstringData:\n  smtp-password: "[{v}]"\n  cookie-key: "[{h64}]"',
    ),
    (
        "cat ~/.config/helm/repositories.yaml",
        'apiVersion: ""\ngenerated: "0001-01-01T00:00:00Z"\nrepositories:\n- caFile: ""\n  certFile: ""\n  insecure_skip_tls_verify: false\n  keyFile: ""\n  name: corp\n  pass_credentials_all: false\n  password: [{a32}]\n  url: https://charts.corp\n  username: ci',
    ),
    (
        "kubeadm token create --print-join-command",
        "kubeadm join k8s.corp:6443 --token {s6}.[{s16}] --discovery-token-ca-cert-hash sha256:{h64} ",
    ),
    (
        "docker swarm join-token worker",
        "To add a worker to this swarm, run the following command:\n\n    docker swarm join --token SWMTKN-1-[{s50}-{s25}] 10.0.0.4:2377",
    ),
    (
        "vault kv get -format=json secret/mailer",
        '{\n  "request_id": "{uuid}",\n  "lease_id": "",\n  "lease_duration": 0,\n  "renewable": false,\n  "data": {\n    "data": {\n      "host": "smtp.corp",\n      "password": "[{v}]",\n      "user": "relay"\n    },\n    "metadata": {\n      "created_time": "2026-03-02T10:11:12.112Z",\n      "custom_metadata": null,\n      "deletion_time": "",\n      "destroyed": false,\n      "version": 4\n    }\n  },\n  "warnings": null\n}',
    ),
    (
        "vault token create -policy=ci",
        'Key                  Value\n---                  -----\ntoken                hvs.[{w90}]\ntoken_accessor       {a24}\ntoken_duration       768h\ntoken_renewable      true\ntoken_policies       ⟦"ci" "default"⟧\nidentity_policies    ⟦⟧\npolicies             ⟦"ci" "default"⟧',
    ),
    (
        "vault read aws/creds/deploy",
        "Key                Value\n---                -----\nlease_id           aws/creds/deploy/{a24}\nlease_duration     1h\nlease_renewable    true\naccess_key         AKIA{S16}\nsecret_key         [{b40}]\nsession_token      <nil>",
    ),
    (
        "vault operator init",
        "Unseal Key 1: [{b44}]\nUnseal Key 2: [{b44}]\nUnseal Key 3: [{b44}]\nUnseal Key 4: [{b44}]\nUnseal Key 5: [{b44}]\n\nInitial Root Token: hvs.[{a24}]\n\nVault initialized with 5 key shares and a key threshold of 3. Please securely\ndistribute the key shares printed above. When the Vault is re-sealed,\nrestarted, or stopped, you must supply at least 3 of these keys to unseal it\nbefore it can start servicing requests.",
    ),
    (
        "nomad acl token create -name ci -type client -policy deploy",
        "Accessor ID  = {uuid}\nSecret ID    = [{uuid}]\nName         = ci\nType         = client\nGlobal       = false\nCreate Time  = 2026-11-02 10:11:12.112 +0000 UTC\nExpiry Time  = <none>\nCreate Index = 812\nModify Index = 812\nPolicies     = ⟦deploy⟧\n\nRoles\n<none>",
    ),
    (
        "consul kv export app/",
        '⟦\n\t{\n\t\t"key": "app/db/password",\n\t\t"flags": 0,\n\t\t"value": "[{b32}]"\n\t},\n\t{\n\t\t"key": "app/replicas",\n\t\t"flags": 0,\n\t\t"value": "MTI="\n\t}\n⟧',
    ),
    (
        "nomad alloc exec 3f1c9a2b env | grep -i pass",
        "DB_PASSWORD=[{v}]\nSMTP_PASSWORD=[{v}]",
    ),
)
GIT_AND_CI = (
    ("git remote get-url origin", "https://ci:ghp_[{a36}]@github.com/acme/shop.git"),
    (
        "cat .git/config",
        '⟦core⟧\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n⟦remote "origin"⟧\n\turl = https://oauth2:glpat-[{w20}]@git.corp/acme/shop.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n⟦branch "main"⟧\n\tremote = origin\n\tmerge = refs/heads/main',
    ),
    (
        "git config --list | grep -i extraheader",
        "http.https://github.com/.extraheader=AUTHORIZATION: basic eC1hY2Nlc3MtdG9rZW46[{b56}]",
    ),
    (
        "cat ~/.docker/config.json",
        '{\n\t"auths": {\n\t\t"https://index.docker.io/v1/": {\n\t\t\t"auth": "YWNtZTpk[{b48}]"\n\t\t},\n\t\t"registry.corp": {\n\t\t\t"auth": "Y2k6[{b32}]"\n\t\t}\n\t}\n}',
    ),
    (
        "cat ~/.config/glab-cli/config.yml",
        "git_protocol: https\neditor:\nhosts:\n    git.corp:\n        token: glpat-[{w20}]\n        api_host: git.corp\n        git_protocol: https\n        api_protocol: https\n        user: ci",
    ),
    (
        'curl -s --header "PRIVATE-TOKEN: $GITLAB_TOKEN" https://git.corp/api/v4/projects/42/variables',
        '⟦{"variable_type":"env_var","key":"DEPLOY_PASSWORD","value":"[{v}]","hidden":false,"protected":true,"masked":true,"raw":false,"environment_scope":"*","description":null}⟧',
    ),
    (
        "sudo cat /etc/gitlab-runner/config.toml",
        'concurrent = 4\ncheck_interval = 0\n\n⟦session_server⟧\n  session_timeout = 1800\n\n⟦⟦runners⟧⟧\n  name = "build-04"\n  url = "https://git.corp"\n  id = 12\n  token = "glrt-[{w20}]"\n  executor = "docker"\n  ⟦runners.docker⟧\n    image = "debian:13"\n    privileged = false',
    ),
    (
        "cat ~/.circleci/cli.yml",
        "host: https://circleci.com\nendpoint: graphql-unstable\ntoken: CCIPAT_[{a22}_{h40}]\nrest_endpoint: api/v2",
    ),
    (
        "cat sonar-project.properties",
        "sonar.projectKey=shop\nsonar.sources=src\nsonar.host.url=https://sonar.corp\nsonar.token=squ_[{h40}]",
    ),
    (
        "docker history --no-trunc --format '{{.CreatedBy}}' shop/api:latest | grep -i token",
        "RUN ¦1 NPM_TOKEN=[{v}] /bin/sh -c npm ci --omit=dev # buildkit\nARG NPM_TOKEN=[{v}]",
    ),
    (
        "curl -s 'https://auth.docker.io/token?service=registry.docker.io&scope=repository:library/nginx:pull' | jq -r .token",
        _JWT,
    ),
    (
        "gh api -X POST /app/installations/812331/access_tokens --jq .token",
        "ghs_[{a36}]",
    ),
)
PACKAGES = (
    (
        "cat ~/.npmrc",
        "registry=https://npm.corp/\n//npm.corp/:_authToken=[{uuid}]\n//registry.npmjs.org/:_authToken=npm_[{g36}]\nfund=false",
    ),
    (
        "cat .yarnrc.yml",
        'nodeLinker: node-modules\n\nnpmScopes:\n  acme:\n    npmRegistryServer: "https://npm.corp"\n    npmAlwaysAuth: true\n    npmAuthToken: "[{v}]"\n\nyarnPath: .yarn/releases/yarn-4.11.0.cjs',
    ),
    ("pip config list", "global.extra-index-url='https://ci:[{a32}]@pypi.corp/simple'\nglobal.timeout='60'"),
    (
        "cat ~/.config/pip/pip.conf",
        "⟦global⟧\nindex-url = https://__token__:[{w40}]@pypi.corp/simple\ntrusted-host = pypi.corp",
    ),
    ("cat ~/.config/pypoetry/auth.toml", '⟦http-basic.corp⟧\nusername = "ci"\npassword = "[{v}]"'),
    (
        "cat ~/.gradle/gradle.properties",
        "org.gradle.jvmargs=-Xmx4g\norg.gradle.parallel=true\nnexusUsername=ci\nnexusPassword=[{v}]\nsigning.keyId={H8}\nsigning.password=[{a16}]\nsigning.secretKeyRingFile=/root/.gnupg/secring.gpg",
    ),
    (
        "cat ~/.m2/settings.xml",
        '<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0">\n  <servers>\n    <server>\n      <id>corp-releases</id>\n      <username>ci</username>\n      <password>[{v}]</password>\n    </server>\n  </servers>\n  <mirrors>\n    <mirror>\n      <id>corp</id>\n      <mirrorOf>central</mirrorOf>\n      <url>https://nexus.corp/repository/maven-public/</url>\n    </mirror>\n  </mirrors>\n</settings>',
    ),
    (
        "cat ~/.gem/credentials",
        "---\n:rubygems_api_key: rubygems_[{h48}]",
    ),
    ("cat ~/.bundle/config", '---\nBUNDLE_GEMS__CORP: "ci:[{a24}]"\nBUNDLE_JOBS: "4"'),
    ("go env GOPROXY", "https://ci:[{a24}]@goproxy.corp,direct"),
    (
        "cat ~/.condarc",
        "channels:\n  - https://conda.corp/t/[{a40}]/main\n  - conda-forge\nchannel_priority: strict",
    ),
    ("composer config --global github-oauth.github.com", "ghp_[{a36}]"),
)
KEYS = (
    ("cat ~/.ssh/id_ed25519", _armoured("OPENSSH PRIVATE KEY")),
    ("openssl genpkey -algorithm ed25519", _armoured("PRIVATE KEY", "MC4CAQAwBQYDK2VwBCIEI[{b43}]")),
    ("sudo cat /etc/ssl/private/shop.key", _armoured("PRIVATE KEY")),
    (
        "openssl ecparam -genkey -name prime256v1 -noout",
        _armoured("EC PRIVATE KEY", "MHcCAQEEI[{b55}\n{b64}\n{b32}==]"),
    ),
    (
        "openssl pkcs12 -in client.p12 -nodes -nocerts -passin env:P12",
        "Bag Attributes\n    localKeyID: {H8}\n    friendlyName: client\nKey Attributes: <No Attributes>\n"
        + _armoured("PRIVATE KEY"),
    ),
    ("gpg --export-secret-keys --armor ci", _armoured("PGP PRIVATE KEY BLOCK", "\n[" + _LINES + "\n={b4}]")),
    ("openssl rand -base64 32", "{b43}="),
    ("openssl rand -base64 18 | tr -d '/+='", "{a23}"),
    ('openssl passwd -6 -salt x9 "$PW"', "$6$x9$[{b86}]"),
    ('htpasswd -nbB admin "$PW"', "admin:$2y$05$[{b53}]"),
    ("step ca token web.corp", "✔ Provisioner: ci (JWK) ⟦kid: {w43}⟧\n" + _JWT),
    (
        "age-keygen",
        "# created: 2026-11-02T10:11:12Z\n# public key: age1{s58}\nAGE-SECRET-KEY-1[{S58}]",
    ),
    (
        "cat ~/.config/sops/age/keys.txt",
        "# created: 2026-03-02T10:11:12Z\n# public key: age1{s58}\nAGE-SECRET-KEY-1[{S58}]",
    ),
    ("cat jwtRS256.key", _armoured("RSA PRIVATE KEY")),
)
MANAGERS = (
    ("pass show prod/shop", "[{v}]\nuser: app\nurl: https://shop.corp/admin"),
    (
        "pass generate -f prod/new 24",
        "\x1b⟦1mThe generated password for \x1b⟦4mprod/new\x1b⟦24m is:\x1b⟦0m\n\x1b⟦1m\x1b⟦93m[{p24}]\x1b⟦0m",
    ),
    (
        "bw get item github --pretty",
        '{\n  "passwordHistory": null,\n  "revisionDate": "2026-03-02T10:11:12.112Z",\n  "creationDate": "2025-01-14T08:00:01.000Z",\n  "object": "item",\n  "id": "{uuid}",\n  "organizationId": null,\n  "folderId": null,\n  "type": 1,\n  "reprompt": 0,\n  "name": "github",\n  "notes": null,\n  "favorite": false,\n  "login": {\n    "uris": ⟦\n      {\n        "match": null,\n        "uri": "https://github.com"\n      }\n    ⟧,\n    "username": "acme-ci",\n    "password": "[{v}]",\n    "totp": null\n  },\n  "collectionIds": ⟦⟧\n}',
    ),
    ("bw list items --search db | jq -r '.[].login.password'", "[{p15}]\n[{p15}]"),
    ("bw get notes prod-env", "DB_PASSWORD=[{a24}]\nAPI_KEY=[{h32}]\nPORT=8080"),
    ("bw generate -uln --length 24", "{a24}"),
    (
        "op item get db --vault Prod --format json",
        '{\n  "id": "{s26}",\n  "title": "db",\n  "version": 3,\n  "vault": {\n    "id": "{s26}",\n    "name": "Prod"\n  },\n  "category": "DATABASE",\n  "fields": ⟦\n    {\n      "id": "username",\n      "type": "STRING",\n      "label": "username",\n      "value": "app",\n      "reference": "op://Prod/db/username"\n    },\n    {\n      "id": "password",\n      "type": "CONCEALED",\n      "label": "password",\n      "value": "[{v}]",\n      "reference": "op://Prod/db/password"\n    }\n  ⟧\n}',
    ),
    ("op run --no-masking --env-file=.env -- printenv DB_PASSWORD", "{v}"),
    ("gopass show prod/mail", "Secret: prod/mail\n\n[{v}]\nuser: relay\nhost: smtp.corp"),
    (
        "lpass show db",
        "Servers/db ⟦id: {d19}⟧\nUsername: app\nPassword: [{v}]\nURL: https://db.corp",
    ),
    (
        "keepassxc-cli show -s prod.kdbx db",
        "Title: db\nUserName: app\nPassword: [{v}]\nURL: https://db.corp\nNotes: \nUuid: {{uuid}}\nTags: ",
    ),
    (
        "secret-tool search --all service acme",
        "⟦/org/freedesktop/secrets/collection/login/12⟧\nlabel = acme deploy\nsecret = [{v}]\ncreated = 2026-03-02 10:11:12\nmodified = 2026-03-02 10:11:12\nschema = org.freedesktop.Secret.Generic\nattribute.service = acme\nattribute.user = ci",
    ),
    (
        "security find-generic-password -ga acme 2>&1 | grep ^password",
        'password: "[{v}]"',
    ),
    ("python3 -m keyring get https://pypi.corp ci", "{v}"),
    ("rbw get --full shop-admin", "[{v}]\nUsername: admin\nURI: https://shop.corp/admin"),
)
LANGUAGES = (
    (
        "python -c 'from dotenv import dotenv_values; print(dotenv_values(\".env\"))'",
        "OrderedDict({'DEBUG': 'false', 'DB_PASSWORD': '[{v}]', 'REDIS_URL': 'redis://:[{a20}]@redis:6379/1'})",
    ),
    (
        "python manage.py shell -c 'from django.conf import settings; print(settings.DATABASES[\"default\"])'",
        "{'ENGINE': 'django.db.backends.postgresql', 'NAME': 'shop', 'USER': 'app', 'PASSWORD': '[{v}]', 'HOST': 'db', 'PORT': '5432', 'ATOMIC_REQUESTS': False, 'AUTOCOMMIT': True, 'CONN_MAX_AGE': 0, 'CONN_HEALTH_CHECKS': False, 'OPTIONS': {}, 'TIME_ZONE': None, 'TEST': {'CHARSET': None, 'COLLATION': None, 'MIGRATE': True, 'MIRROR': None, 'NAME': None}}",
    ),
    (
        "python manage.py shell -c 'from django.conf import settings; print(settings.SECRET_KEY)'",
        "django-insecure-[{p50}]",
    ),
    ("python manage.py drf_create_token ci", "Generated token [{h40}] for user ci"),
    (
        "python3 -c \"import jwt, os; print(jwt.encode({'sub': '42'}, os.environ['JWT_SECRET'], algorithm='HS256'))\"",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ[{w17}.{w43}]",
    ),
    (
        'python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"',
        "{w43}=",
    ),
    (
        "python -c \"import yaml; print(yaml.safe_load(open('config.yml')))\"",
        "{'app': {'port': 8080, 'debug': False}, 'mail': {'host': 'smtp.corp', 'user': 'relay', 'password': '[{v}]'}}",
    ),
    ("node -e \"console.log(require('crypto').randomBytes(32).toString('hex'))\"", "{h64}"),
    (
        "node -e \"console.log(require('./config').db)\"",
        "{ host: 'db', port: 5432, user: 'app', password: '[{v}]', database: 'shop' }",
    ),
    (
        "node -e \"require('dotenv').config(); console.log(process.env.STRIPE_SECRET_KEY)\"",
        "sk_live_[{a99}]",
    ),
    (
        'ruby -ryaml -e \'puts YAML.load_file("config/database.yml", aliases: true).dig("production", "password")\'',
        "{v}",
    ),
    (
        "bin/rails credentials:show",
        "# aws:\n#   access_key_id: 123\n#   secret_access_key: 345\n\nsmtp:\n  user_name: relay\n  password: [{v}]\n\n# Used as the base secret for all MessageVerifiers in Rails, including the one protecting cookies.\nsecret_key_base: [{h128}]",
    ),
    ("bin/rails runner 'puts User.find(42).api_token'", "{a24}"),
    (
        "php artisan tinker --execute='echo App\\Models\\User::first()->createToken(\"ci\")->plainTextToken;'",
        "12¦[{a40}{h8}]",
    ),
    (
        "php artisan tinker --execute='dump(config(\"database.connections.mysql\"));'",
        'array:6 ⟦ // vendor/psy/psysh/src/ExecutionClosure.php(41) : eval()\'d code:1\n  "driver" => "mysql"\n  "host" => "db"\n  "port" => "3306"\n  "database" => "shop"\n  "username" => "app"\n  "password" => "[{v}]"\n⟧',
    ),
    (
        "php bin/console secrets:list --reveal",
        ' // Use "%env(<name>)%" to reference a secret in a config file.\n\n --------------- ---------------------------------- -------------\n  Secret          Value                              Local Value\n --------------- ---------------------------------- -------------\n  MAILER_SECRET   "[{a24}]"\n --------------- ---------------------------------- -------------',
    ),
)
FILES = (
    (
        "cat .env",
        "NODE_ENV=development\nPORT=3000\nDATABASE_URL=postgres://app:[{a16}]@localhost:5432/shop\nJWT_SECRET=[{v}]\nSTRIPE_SECRET_KEY=sk_test_[{a24}]\nOPENAI_API_KEY=sk-proj-[{w64}]\nLOG_LEVEL=debug",
    ),
    (
        "head -20 .env.local",
        '# Created by Vercel CLI\nNEXTAUTH_SECRET="[{b43}=]"\nNEXTAUTH_URL="http://localhost:3000"\nGITHUB_CLIENT_ID="Iv1.{h16}"\nGITHUB_CLIENT_SECRET="[{h40}]"\nVERCEL="1"',
    ),
    (
        "grep -rn password config/",
        'config/dev.yml:4:  password: [{v}]\nconfig/prod.yml:4:  password: !vault prod/db\nconfig/queue.json:6:    "password": "[{v}]",',
    ),
    ("grep -A4 '^\\[smtp\\]' config.ini", "⟦smtp⟧\nhost = smtp.corp\nport = 587\nuser = relay\npass = [{v}]"),
    (
        "cat docker-compose.yml",
        'services:\n  api:\n    build: .\n    ports:\n      - "8080:8080"\n    environment:\n      DB_HOST: db\n      DB_PASSWORD: [{v}]\n  db:\n    image: postgres:17\n    environment:\n      - POSTGRES_USER=app\n      - POSTGRES_PASSWORD=[{v}]\n    volumes:\n      - data:/var/lib/postgresql/data\nvolumes:\n  data:',
    ),
    (
        "docker compose config",
        "name: shop\nservices:\n  worker:\n    command:\n      - celery\n      - -A\n      - shop\n      - worker\n    environment:\n      CELERY_BROKER_URL: amqp://shop:[{a20}]@mq:5672//\n      SECRET_KEY: [{v}]\n    image: shop/worker:latest\n    networks:\n      default: null\nnetworks:\n  default:\n    name: shop_default",
    ),
    (
        "cat config/database.yml",
        "default: &default\n  adapter: postgresql\n  encoding: unicode\n  pool: 5\n\nproduction:\n  <<: *default\n  database: shop_production\n  username: shop\n  password: [{v}]\n  host: db",
    ),
    (
        "cat src/main/resources/application.properties",
        "server.port=8080\nspring.datasource.url=jdbc:mysql://db:3306/shop\nspring.datasource.username=app\nspring.datasource.password=[{v}]\nspring.jpa.hibernate.ddl-auto=validate\njwt.secret=[{b64}]",
    ),
    (
        "cat appsettings.Production.json",
        '{\n  "Logging": {\n    "LogLevel": {\n      "Default": "Warning"\n    }\n  },\n  "ConnectionStrings": {\n    "Default": "Server=sql;Database=Shop;User Id=app;Password=[{a20}];TrustServerCertificate=True"\n  },\n  "Jwt": {\n    "Issuer": "shop",\n    "Key": "[{v}]"\n  }\n}',
    ),
    (
        'grep -E "DB_|_KEY\'" wp-config.php',
        "define( 'DB_NAME', 'shop' );\ndefine( 'DB_USER', 'shop' );\ndefine( 'DB_PASSWORD', '[{v}]' );\ndefine( 'DB_HOST', 'localhost' );\ndefine( 'DB_CHARSET', 'utf8mb4' );\ndefine( 'AUTH_KEY',         '[{p64}]' );\ndefine( 'NONCE_KEY',        '[{p64}]' );",
    ),
    (
        "sed -n '/^SECRET_KEY/p;/^DATABASES/,/^}/p' shop/settings.py",
        "SECRET_KEY = 'django-insecure-[{p50}]'\nDATABASES = {\n    'default': {\n        'ENGINE': 'django.db.backends.postgresql',\n        'NAME': 'shop',\n        'USER': 'app',\n        'PASSWORD': '[{v}]',\n        'HOST': 'localhost',\n    }\n}",
    ),
    (
        "jq .db config.json",
        '{\n  "host": "db",\n  "port": 5432,\n  "user": "app",\n  "password": "[{v}]"\n}',
    ),
    (
        "yq '.services.*.environment' docker-compose.prod.yml",
        "API_TOKEN: [{v}]\nLOG_LEVEL: info\n- POSTGRES_PASSWORD=[{v}]",
    ),
    ("awk '/password/ {print $2}' config/production.yml", "{v}"),
    ("perl -ne 'print \"$1\\n\" if /api_key\\s*=\\s*(\\S+)/' app.conf", "{v}"),
    (
        "git diff HEAD~1 -- config/prod.yml",
        "diff --git a/config/prod.yml b/config/prod.yml\nindex {h7}..{h7} 100644\n--- a/config/prod.yml\n+++ b/config/prod.yml\n@@ -2,5 +2,5 @@ mail:\n   host: smtp.corp\n   user: relay\n-  password: [{v}]\n+  password: [{v}]\n   port: 587",
    ),
    (
        "git log -p -S'api_key' --oneline -- settings.py",
        '{h7} Read the key from the environment\ndiff --git a/settings.py b/settings.py\nindex {h7}..{h7} 100644\n--- a/settings.py\n+++ b/settings.py\n@@ -9,3 +9,3 @@ import os\n \n-api_key = "[{v}]"\n+api_key = os.environ⟦"API_KEY"⟧\n ',
    ),
)
ENVIRONMENT = (
    (
        "env",
        "SHELL=/bin/bash\nPWD=/workspace\nLOGNAME=root\nANTHROPIC_API_KEY=sk-ant-api03-[{w93}AA]\nHOME=/root\nLANG=C.UTF-8\nGITHUB_TOKEN=ghp_[{a36}]\nTERM=xterm\nSHLVL=1\nDB_PASSWORD=[{v}]\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n_=/usr/bin/env",
    ),
    (
        "printenv | grep -iE 'token|secret|key'",
        "SLACK_BOT_TOKEN=xoxb-[{d12}-{d13}-{a24}]\nAPP_SECRET_KEY=[{v}]\nAWS_SECRET_ACCESS_KEY=[{b40}]",
    ),
    ("set | grep -i passw", "DB_PASSWORD=[{a24}]\nPGPASSWORD=[{a24}]"),
    ("declare -p API_TOKEN", 'declare -x API_TOKEN="[{v}]"'),
    (
        "export -p | grep AWS",
        'declare -x AWS_ACCESS_KEY_ID="AKIA{S16}"\ndeclare -x AWS_DEFAULT_REGION="eu-west-1"\ndeclare -x AWS_SECRET_ACCESS_KEY="[{b40}]"',
    ),
    (
        "cat /proc/1/environ | tr '\\0' '\\n'",
        "PATH=/usr/local/bin:/usr/bin:/bin\nHOSTNAME={h12}\nRABBITMQ_DEFAULT_USER=shop\nRABBITMQ_DEFAULT_PASS=[{v}]\nHOME=/root",
    ),
    (
        "ps aux | grep [r]edis_exporter",
        "nobody     812  0.1  0.2 1240112 18212 ?       Ssl  08:11   0:42 /bin/redis_exporter -redis.addr=redis://redis:6379 -redis.password=[{a16}]",
    ),
    (
        "grep curl ~/.bash_history | tail -2",
        'curl -s https://api.corp/v1/health\ncurl -s -H "Authorization: Bearer [{w40}]" https://api.corp/v1/orders',
    ),
    (
        "tail -3 ~/.bash_history",
        "cd /srv/app\nexport API_KEY=[{v}]\nmysql -u app -p[{a16}] shop",
    ),
    ("systemctl show api -p Environment", "Environment=NODE_ENV=production DB_PASSWORD=[{a20}] PORT=8080"),
    (
        "systemctl cat api",
        '# /etc/systemd/system/api.service\n⟦Unit⟧\nDescription=Shop API\nAfter=network-online.target\n\n⟦Service⟧\nUser=app\nEnvironment=NODE_ENV=production\nEnvironment="SESSION_SECRET=[{v}]"\nExecStart=/usr/bin/node /srv/app/server.js\nRestart=on-failure\n\n⟦Install⟧\nWantedBy=multi-user.target',
    ),
    (
        "journalctl -u api -n 4 --no-pager",
        "Nov 02 10:11:12 web-1 node⟦812⟧: listening on 8080\nNov 02 10:11:14 web-1 node⟦812⟧: POST /v1/login 200 14ms\nNov 02 10:11:14 web-1 node⟦812⟧: issued session token=[{w43}] for user 42\nNov 02 10:11:15 web-1 node⟦812⟧: Error: connect ECONNREFUSED postgres://app:[{a16}]@db:5432/shop",
    ),
    (
        "crontab -l",
        "# m h  dom mon dow   command\n0 3 * * * PGPASSWORD=[{a20}] pg_dump -h db -U app shop ¦ gzip > /backup/shop.sql.gz\n@reboot /srv/app/warm-cache.sh",
    ),
    (
        "cat /etc/environment",
        'PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"\nAPI_TOKEN="[{v}]"',
    ),
    (
        "sudo cat /etc/default/grafana-server | grep -i pass",
        "GF_SECURITY_ADMIN_PASSWORD=[{v}]\nGF_DATABASE_PASSWORD=[{v}]",
    ),
)
STATE_AND_PLATFORMS = (
    (
        "cat terraform.tfvars",
        'region      = "eu-west-1"\ndb_username = "app"\ndb_password = "[{v}]"\nreplicas    = 3',
    ),
    (
        "terraform state pull | jq -r '.resources[] | select(.type == \"random_password\") | .instances[0].attributes.result'",
        "{p20}",
    ),
    (
        "grep -n '\"password\"' terraform.tfstate",
        '214:            "password": "[{v}]",\n388:            "password": "[{v}]",',
    ),
    (
        "terraform output -json",
        '{\n  "cluster_name": {\n    "sensitive": false,\n    "type": "string",\n    "value": "shop-prod"\n  },\n  "db_password": {\n    "sensitive": true,\n    "type": "string",\n    "value": "[{v}]"\n  }\n}',
    ),
    (
        "pulumi config --show-secrets",
        "KEY         VALUE\naws:region  eu-west-1\ndbPassword  [{v}]\nreplicas    3",
    ),
    (
        "ansible-vault view group_vars/all/vault.yml",
        '---\nvault_db_password: [{v}]\nvault_smtp_password: "[{v}]"\nvault_api_token: [{h40}]',
    ),
    (
        "sops -d secrets/prod.yaml",
        "db:\n    user: app\n    password: [{v}]\nstripe:\n    webhook_secret: whsec_[{a32}]",
    ),
    ("sops exec-env secrets/prod.env 'printenv API_KEY'", "{v}"),
    ("age -d -i ~/.age/key.txt .env.age", "DB_PASSWORD=[{v}]\nREDIS_PASSWORD=[{v}]\nDEBUG=0"),
    (
        "doppler secrets download --no-file --format env",
        'DB_PASSWORD="[{v}]"\nDOPPLER_CONFIG="prd"\nDOPPLER_PROJECT="shop"\nSTRIPE_KEY="sk_live_[{a24}]"',
    ),
    (
        "doppler secrets",
        "┌─────────────────┬──────────────────────────────────┐\n│ NAME            │ VALUE                            │\n├─────────────────┼──────────────────────────────────┤\n│ DB_PASSWORD     │ [{a32}] │\n│ DOPPLER_CONFIG  │ prd                              │\n│ DOPPLER_PROJECT │ shop                             │\n└─────────────────┴──────────────────────────────────┘",
    ),
    ("doppler run -- printenv WEBHOOK_SECRET", "{v}"),
    ("infisical export --env=prod", "DB_PASSWORD='[{v}]'\nLOG_LEVEL='info'\nSENTRY_AUTH_TOKEN='[{h64}]'"),
    ("chezmoi cat ~/.netrc", "machine git.corp\n  login ci\n  password [{a20}]"),
    ("chezmoi execute-template '{{ pass \"prod/db\" }}'", "{v}"),
    (
        "heroku config -a shop",
        "=== shop Config Vars\n\nDATABASE_URL:    postgres://u{s13}:p[{h64}]@ec2-52-18-1-9.eu-west-1.compute.amazonaws.com:5432/d{s13}\nNODE_ENV:        production\nSECRET_KEY_BASE: [{h128}]",
    ),
    (
        "supabase status",
        "         API URL: http://127.0.0.1:54321\n          DB URL: postgresql://postgres:[{a16}]@127.0.0.1:54322/postgres\n      Studio URL: http://127.0.0.1:54323\n      JWT secret: [{a40}]\n        anon key: eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ{w90}.{w43}\nservice_role key: eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ[{w96}.{w43}]",
    ),
    (
        "stripe config --list",
        "color = ''\n\n⟦default⟧\ndevice_name = 'build-04'\ndisplay_name = 'acme'\ntest_mode_api_key = 'rk_test_[{a99}]'\ntest_mode_pub_key = 'pk_test_{a99}'",
    ),
    ("cat ~/.config/ngrok/ngrok.yml", 'version: "3"\nagent:\n    authtoken: [{a27}_{a21}]'),
    (
        "firebase functions:config:get",
        '{\n  "mail": {\n    "host": "smtp.corp",\n    "password": "[{v}]"\n  }\n}',
    ),
    (
        "railway variables --kv",
        "PGHOST=postgres.railway.internal\nPGPASSWORD=[{a32}]\nPGPORT=5432\nPGUSER=postgres\nRAILWAY_ENVIRONMENT=production",
    ),
)
NETWORK_AND_MAIL = (
    (
        "sudo cat /etc/NetworkManager/system-connections/office.nmconnection",
        "⟦connection⟧\nid=office\nuuid={uuid}\ntype=wifi\n\n⟦wifi⟧\nmode=infrastructure\nssid=office\n\n⟦wifi-security⟧\nauth-alg=open\nkey-mgmt=wpa-psk\npsk=[{v}]\n\n⟦ipv4⟧\nmethod=auto",
    ),
    (
        "nmcli -s connection show office | grep psk",
        "802-11-wireless-security.key-mgmt:      wpa-psk\n802-11-wireless-security.psk:           [{v}]\n802-11-wireless-security.psk-flags:     0 (none)",
    ),
    (
        'wpa_passphrase office "$WIFI_PASS"',
        'network={\n\tssid="office"\n\t#psk="[{word}{d4}]"\n\tpsk=[{h64}]\n}',
    ),
    (
        "sudo cat /etc/wpa_supplicant/wpa_supplicant.conf",
        'ctrl_interface=DIR=/var/run/wpa_supplicant GROUP=netdev\nupdate_config=1\ncountry=DE\n\nnetwork={\n\tssid="office"\n\tpsk="[{v}]"\n\tkey_mgmt=WPA-PSK\n}',
    ),
    (
        'netsh wlan show profile name="office" key=clear | findstr Key',
        "    Security key           : Present\n    Key Content            : [{word}{d4}]",
    ),
    (
        "sudo wg showconf wg0",
        "⟦Interface⟧\nListenPort = 51820\nPrivateKey = [{b43}=]\n\n⟦Peer⟧\nPublicKey = {b43}=\nPresharedKey = [{b43}=]\nAllowedIPs = 10.8.0.2/32\nEndpoint = 203.0.113.7:51820",
    ),
    (
        "ssh sw1 'show running-config | include secret|community|key'",
        "enable secret 9 $9$[{a14}${a43}]\nusername admin privilege 15 secret 9 $9$[{a14}${a43}]\nsnmp-server community [{a12}] RO\ntacacs-server key 7 [{H22}]",
    ),
    ("grep wpa_passphrase /etc/hostapd/hostapd.conf", "wpa_passphrase=[{v}]"),
    (
        "grep cifs /etc/fstab",
        "//nas/backup  /mnt/backup  cifs  username=backup,password=[{a14}],uid=1000,iocharset=utf8  0  0",
    ),
    ("sudo cat /etc/samba/credentials", "username=backup\npassword=[{v}]\ndomain=CORP"),
    (
        "cat kafka/client.properties",
        'security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="orders" password="[{a24}]";\nssl.truststore.location=/etc/kafka/truststore.jks\nssl.truststore.password=[{a16}]',
    ),
    (
        "rabbitmqadmin export /dev/stdout | jq -c '.users[]'",
        '{"name":"shop","password_hash":"[{b48}]","hashing_algorithm":"rabbit_password_hashing_sha256","tags":⟦"administrator"⟧,"limits":{}}',
    ),
    (
        "cat ~/.config/nats/context/prod.json",
        '{\n  "description": "",\n  "url": "nats://nats.corp:4222",\n  "token": "",\n  "user": "orders",\n  "password": "[{v}]",\n  "creds": "",\n  "nkey": "",\n  "cert": "",\n  "key": "",\n  "ca": ""\n}',
    ),
    ("sudo cat /etc/postfix/sasl_passwd", "⟦smtp.corp⟧:587 relay:[{v}]"),
    (
        "cat ~/.msmtprc",
        "defaults\nauth on\ntls on\nlogfile ~/.msmtp.log\n\naccount corp\nhost smtp.corp\nport 587\nfrom ci@shop.corp\nuser relay\npassword [{v}]\n\naccount default : corp",
    ),
    ("sudo cat /etc/exim4/passwd.client", "# target:login:password\nsmtp.corp:relay:[{a16}]"),
    ('doveadm pw -s SHA512-CRYPT -p "$PW"', "{SHA512-CRYPT}$6$[{a16}${a86}]"),
    (
        'swaks --server smtp.corp:587 --tls --auth LOGIN --auth-user relay --auth-password "$SMTP_PASS" --to ci@shop.corp --quit-after AUTH',
        "=== Trying smtp.corp:587...\n=== Connected to smtp.corp.\n<-  220 smtp.corp ESMTP Postfix\n -> EHLO build-04\n<-  250-smtp.corp\n<-  250-STARTTLS\n<-  250 8BITMIME\n -> STARTTLS\n<-  220 2.0.0 Ready to start TLS\n=== TLS started with cipher TLSv1.3:TLS_AES_256_GCM_SHA384:256\n ~> EHLO build-04\n<~  250-smtp.corp\n<~  250 AUTH PLAIN LOGIN\n ~> AUTH LOGIN\n<~  334 VXNlcm5hbWU6\n ~> cmVsYXk=\n<~  334 UGFzc3dvcmQ6\n ~> [{b24}]\n<~  235 2.7.0 Authentication successful\n ~> QUIT\n<~  221 2.0.0 Bye\n=== Connection closed with remote host.",
    ),
)
WEB_AND_WINDOWS = (
    (
        'curl -s -u "$ID:$SECRET" -d grant_type=client_credentials https://auth.corp/oauth2/token',
        '{"access_token":"[{w64}]","token_type":"Bearer","expires_in":3600,"scope":"orders:read"}',
    ),
    (
        'curl -s https://login.microsoftonline.com/$TENANT/oauth2/v2.0/token -d "client_id=$ID&client_secret=$SECRET&scope=https://graph.microsoft.com/.default&grant_type=client_credentials"',
        '{"token_type":"Bearer","expires_in":3599,"ext_expires_in":3599,"access_token":"' + _JWT + '"}',
    ),
    (
        'curl -s -d "client_id=$ID&client_secret=$SECRET&refresh_token=$RT&grant_type=refresh_token" https://oauth2.googleapis.com/token',
        '{\n  "access_token": "ya29.[{w180}]",\n  "expires_in": 3599,\n  "scope": "https://www.googleapis.com/auth/drive.readonly",\n  "token_type": "Bearer"\n}',
    ),
    (
        'curl -s -X POST https://sso.corp/realms/shop/protocol/openid-connect/token -d grant_type=password -d client_id=web -d username=ci -d password="$PW" | jq',
        '{\n  "access_token": "'
        + _JWT
        + '",\n  "expires_in": 300,\n  "refresh_expires_in": 1800,\n  "refresh_token": "'
        + _JWT
        + '",\n  "token_type": "Bearer",\n  "not-before-policy": 0,\n  "session_state": "{uuid}",\n  "scope": "profile"\n}',
    ),
    (
        'curl -sv -H "Authorization: Bearer $TOKEN" https://api.corp/v1/me 2>&1 | grep "^[<>]"',
        "> GET /v1/me HTTP/2\n> Host: api.corp\n> User-Agent: curl/8.14.1\n> Accept: */*\n> Authorization: Bearer [{w43}]\n> \n< HTTP/2 200 \n< content-type: application/json\n< content-length: 41\n< ",
    ),
    (
        "curl -s -X POST localhost:8080/api/login -H 'Content-Type: application/json' -d @login.json",
        '{"user":{"id":42,"name":"ci","role":"admin"},"token":"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ[{w60}.{w43}]"}',
    ),
    (
        "curl -si -X POST localhost:3000/login -d @login.form | head -8",
        "HTTP/1.1 302 Found\nX-Powered-By: Express\nLocation: /\nVary: Accept\nSet-Cookie: connect.sid=s%3A[{w32}.{a43}]; Path=/; Expires=Tue, 03 Nov 2026 10:11:12 GMT; HttpOnly\nDate: Mon, 02 Nov 2026 10:11:12 GMT\nConnection: keep-alive\n",
    ),
    (
        "cat cookies.txt",
        "# Netscape HTTP Cookie File\n# https://curl.se/docs/http-cookies.html\n# This file was generated by libcurl! Edit at your own risk.\n\n#HttpOnly_shop.corp\tFALSE\t/\tTRUE\t1795944112\tsessionid\t[{s32}]\nshop.corp\tFALSE\t/\tTRUE\t1827393712\tcsrftoken\t[{a32}]",
    ),
    (
        "curl -s -X POST -u admin:$GF_PW -H 'Content-Type: application/json' -d '{\"name\":\"ci\"}' http://localhost:3000/api/serviceaccounts/2/tokens",
        '{"id":7,"name":"ci","key":"glsa_[{a32}_{h8}]"}',
    ),
    (
        "powershell -Command \"Get-ChildItem Env: | Where-Object Name -like '*TOKEN*'\"",
        "\nName                           Value\n----                           -----\nNPM_TOKEN                      [{a36}]\nVAULT_TOKEN                    hvs.[{a24}]\n",
    ),
    ('pwsh -c \'[Environment]::GetEnvironmentVariable("API_KEY", "Machine")\'', "{v}"),
    ("pwsh -c 'Get-AzKeyVaultSecret -VaultName shop-kv -Name db -AsPlainText'", "{v}"),
    (
        "pwsh -c '(Get-Content appsettings.json | ConvertFrom-Json).ConnectionStrings.Default'",
        "Server=sql,1433;Database=Shop;User Id=sa;Password=[{a20}];Encrypt=True",
    ),
    (
        'reg query "HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Winlogon" /v DefaultPassword',
        "\nHKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Winlogon\n    DefaultPassword    REG_SZ    [{v}]\n",
    ),
)
COMMANDS = (
    *DATABASES,
    *AMAZON,
    *OTHER_CLOUDS,
    *CLUSTERS,
    *GIT_AND_CI,
    *PACKAGES,
    *KEYS,
    *MANAGERS,
    *LANGUAGES,
    *FILES,
    *ENVIRONMENT,
    *STATE_AND_PLATFORMS,
    *NETWORK_AND_MAIL,
    *WEB_AND_WINDOWS,
)
"""Commands that print a secret, and what they print."""

ENCODED_COMMANDS = (
    ("kubectl get secret redis -n cache -o jsonpath='{.data.redis-password}'", "{v}"),
    ("kubectl -n prod get secret db -o yaml | yq .data.password", "{v}"),
    ("curl -s localhost:2379/v3/kv/range -d '{\"key\":\"L2FwcC9kYi9wYXNz\"}' | jq -r '.kvs[0].value'", "{v}"),
    ("aws secretsmanager get-secret-value --secret-id prod/tls --query SecretBinary --output text", "{v}"),
    ("jq -r '.auths[].auth' ~/.config/containers/auth.json", "ci:{a28}"),
)
"""Commands that print a secret in base64, and what they print once it is decoded."""

CONTROLS = (
    ("psql -Atc 'select count(*) from api_keys where revoked_at is null'", "37"),
    (
        "pg_dump --help | grep -i password",
        "  -w, --no-password        never prompt for password\n  -W, --password           force password prompt (should happen automatically)",
    ),
    (
        "mysql --print-defaults",
        "mysql would have been started with the following arguments:\n--user=app --password=***** --host=db ",
    ),
    (
        "sqlite3 app.db '.schema api_tokens'",
        "CREATE TABLE api_tokens (\n  id INTEGER PRIMARY KEY,\n  name TEXT NOT NULL,\n  token TEXT NOT NULL UNIQUE,\n  created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP\n);",
    ),
    ("mongosh shop --quiet --eval 'db.integrations.countDocuments()'", "4"),
    ("redis-cli ping", "PONG"),
    ("redis-cli --scan --pattern 'session:*' | head -3", "session:42\nsession:108\nsession:7"),
    (
        "aws secretsmanager describe-secret --secret-id prod/api --query VersionIdsToStages",
        '{\n    "{uuid}": ⟦\n        "AWSPREVIOUS"\n    ⟧,\n    "{uuid}": ⟦\n        "AWSCURRENT"\n    ⟧\n}',
    ),
    ("aws kms describe-key --key-id alias/app --query KeyMetadata.KeyState --output text", "Enabled"),
    (
        "aws ecr describe-images --repository-name api --query 'imageDetails[0].imageDigest' --output text",
        "sha256:{h64}",
    ),
    (
        "aws s3api head-object --bucket shop-backups --key db.dump",
        '{\n    "AcceptRanges": "bytes",\n    "LastModified": "2026-11-02T03:00:41+00:00",\n    "ContentLength": 48211044,\n    "ETag": "\\"{h32}\\"",\n    "VersionId": "{w32}",\n    "ContentType": "binary/octet-stream",\n    "ServerSideEncryption": "AES256",\n    "Metadata": {}\n}',
    ),
    (
        "gcloud secrets versions list db-password",
        "NAME  STATE    CREATED              DESTROYED\n3     enabled  2026-08-14T07:00:31  -\n2     enabled  2026-03-02T10:11:12  -",
    ),
    (
        "az keyvault secret show --vault-name shop-kv --name db-pw --query id -o tsv",
        "https://shop-kv.vault.azure.net/secrets/db-pw/{h32}",
    ),
    ("az account show --query id -o tsv", "{uuid}"),
    (
        "az webapp config appsettings list -g prod -n shop --query '[].name' -o tsv",
        "WEBSITE_NODE_DEFAULT_VERSION\nSESSION_SECRET\nDB_HOST",
    ),
    (
        "hcloud ssh-key list",
        "ID       NAME      FINGERPRINT                                       AGE\n812331   build     {h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}:{h2}   41d",
    ),
    ("kubectl auth can-i get secrets -n prod", "yes"),
    ("kubectl get secret app -o jsonpath='{.metadata.resourceVersion}'", "812331"),
    ("kubectl get secret app -o json | jq -r '.data | keys[]'", "DB_PASSWORD\nJWT_SECRET"),
    (
        "kubectl get externalsecrets",
        "NAME   STORETYPE            STORE   REFRESH INTERVAL   STATUS         READY\napp    ClusterSecretStore   vault   1h                 SecretSynced   True",
    ),
    (
        "kubectl get pod api-0 -o jsonpath='{.status.containerStatuses[0].imageID}'",
        "registry.corp/shop/api@sha256:{h64}",
    ),
    (
        "kubectl rollout status deploy/api",
        'deployment "api" successfully rolled out',
    ),
    ("helm version --short", "v3.19.2+g{h7}"),
    (
        "helm history shop -n prod",
        "REVISION\tUPDATED                 \tSTATUS    \tCHART     \tAPP VERSION\tDESCRIPTION\n11      \tMon Nov  2 10:11:12 2026\tsuperseded\tshop-1.4.0\t4.11.2     \tUpgrade complete\n12      \tTue Nov  3 08:40:01 2026\tdeployed  \tshop-1.4.1\t4.12.0     \tUpgrade complete",
    ),
    (
        "vault kv metadata get secret/app",
        "== Metadata Path ==\nsecret/metadata/app\n\n========== Metadata ==========\nKey                     Value\n---                     -----\ncas_required            false\ncreated_time            2026-03-02T10:11:12.112Z\ncurrent_version         4\ncustom_metadata         <nil>\ndelete_version_after    0s\nmax_versions            0\noldest_version          0\nupdated_time            2026-08-14T07:00:31.001Z",
    ),
    (
        "vault token lookup -format=json | jq -c .data.policies",
        '⟦"ci","default"⟧',
    ),
    ("consul acl token list -format=json | jq -r '.[].AccessorID'", "{uuid}\n{uuid}"),
    (
        "nomad acl policy list",
        "Name       Description\ndeploy     Submit jobs\nread-only  <none>",
    ),
    ("git ls-remote origin HEAD", "{h40}\tHEAD"),
    ("git config --get credential.helper", "store"),
    (
        "gh auth status",
        "github.com\n  ✓ Logged in to github.com account acme-ci (keyring)\n  - Active account: true\n  - Git operations protocol: https\n  - Token: gho_************************************\n  - Token scopes: 'gist', 'read:org', 'repo', 'workflow'",
    ),
    ("docker login registry.corp -u ci --password-stdin < pw.txt", "Login Succeeded"),
    ("docker inspect --format '{{.Id}} {{.State.Status}}' pg", "{h64} running"),
    (
        "docker images --digests shop/api",
        "REPOSITORY   TAG      DIGEST                                                                    IMAGE ID       CREATED        SIZE\nshop/api     latest   sha256:{h64}   {h12}   2 hours ago    412MB",
    ),
    (
        "npm config list",
        '; "user" config from /root/.npmrc\n\n//npm.corp/:_authToken = (protected)\nregistry = "https://npm.corp/"\n\n; node bin location = /usr/local/bin/node\n; node version = v22.21.1\n; npm local prefix = /workspace\n; npm version = 10.9.4\n; cwd = /workspace\n; HOME = /root\n; Run `npm config ls -l` to show all defaults.',
    ),
    (
        "grep -A4 '\"node_modules/ms\"' package-lock.json",
        '    "node_modules/ms": {\n      "version": "2.1.3",\n      "resolved": "https://registry.npmjs.org/ms/-/ms-2.1.3.tgz",\n      "integrity": "sha512-{b86}==",\n      "license": "MIT"',
    ),
    ("pip hash dist/shop-4.12.0-py3-none-any.whl", "dist/shop-4.12.0-py3-none-any.whl:\n--hash=sha256:{h64}"),
    (
        "grep -A3 'name = \"serde\"' Cargo.lock",
        'name = "serde"\nversion = "1.0.228"\nsource = "registry+https://github.com/rust-lang/crates.io-index"\nchecksum = "{h64}"',
    ),
    (
        "ssh-keygen -lf ~/.ssh/id_ed25519.pub",
        "256 SHA256:{b43} ci@build-04 (ED25519)",
    ),
    ("ssh-add -l", "The agent has no identities."),
    ("gpg --list-keys --with-colons | grep ^fpr", "fpr:::::::::{H40}:"),
    (
        "openssl x509 -in tls.crt -noout -subject -issuer -serial",
        "subject=CN=shop.corp\nissuer=C=US, O=Let's Encrypt, CN=R12\nserial=05{H34}",
    ),
    ("openssl pkey -in tls.key -pubout", _armoured("PUBLIC KEY", "{b64}\n{b64}")),
    ("pass show -c prod/shop", "Copied prod/shop to clipboard. Will clear in 45 seconds."),
    (
        "op item get db --vault Prod",
        "ID:          {s26}\nTitle:       db\nVault:       Prod ({s26})\nCreated:     8 months ago\nUpdated:     1 month ago by ci\nFavorite:    false\nVersion:     3\nCategory:    DATABASE\nFields:\n  username:    app\n  password:    ⟦use 'op item get {s26} --reveal' to reveal⟧",
    ),
    ("bw list folders | jq -r '.[].name'", "Prod\nStaging\nNo Folder"),
    ("lpass status", "Not logged in."),
    ("keepassxc-cli ls -q prod.kdbx", "db\nmail\nRecycle Bin/"),
    ("python -c 'import uuid; print(uuid.uuid4())'", "{uuid}"),
    (
        "python manage.py showmigrations authtoken",
        "authtoken\n ⟦X⟧ 0001_initial\n ⟦X⟧ 0002_auto_20160226_1747\n ⟦X⟧ 0003_tokenproxy\n ⟦ ⟧ 0004_alter_tokenproxy_options",
    ),
    (
        "bin/rails routes -g password",
        "       Prefix Verb  URI Pattern               Controller#Action\nnew_password GET   /password/new(.:format)   passwords#new\nedit_password GET   /password/edit(.:format)  passwords#edit\n              PATCH /password(.:format)       passwords#update",
    ),
    (
        "node -p \"Object.keys(require('./config').db)\"",
        "⟦ 'host', 'port', 'user', 'password', 'database' ⟧",
    ),
    ("grep -c PASSWORD .env", "3"),
    ("cut -d= -f1 .env", "NODE_ENV\nPORT\nDATABASE_URL\nJWT_SECRET\nSTRIPE_SECRET_KEY"),
    ("env | wc -l", "41"),
    ("systemctl show api -p MainPID,ActiveState", "MainPID=812\nActiveState=active"),
    (
        "journalctl -u token-refresh -n 2 --no-pager",
        "Nov 02 10:11:12 web-1 token-refresh⟦812⟧: access token refreshed, expires in 3600 s\nNov 02 10:11:12 web-1 systemd⟦1⟧: token-refresh.service: Deactivated successfully.",
    ),
    (
        "terraform state show aws_iam_access_key.ci",
        '# aws_iam_access_key.ci:\nresource "aws_iam_access_key" "ci" {\n    create_date          = "2026-03-02T10:11:12Z"\n    secret               = (sensitive value)\n    ses_smtp_password_v4 = (sensitive value)\n    status               = "Active"\n    user                 = "ci"\n}',
    ),
    ("terraform state list", "aws_db_instance.shop\naws_iam_access_key.ci\nrandom_password.db"),
    ("sops filestatus secrets/prod.yaml", '{"encrypted":true}'),
    (
        "fly secrets list",
        "NAME            DIGEST           CREATED AT\nDATABASE_URL    {h16} 41d ago\nSECRET_KEY_BASE {h16} 41d ago",
    ),
    (
        "wrangler secret list",
        '⟦\n  {\n    "name": "API_KEY",\n    "type": "secret_text"\n  }\n⟧',
    ),
    (
        "nmcli -f NAME,UUID,TYPE connection show",
        "NAME    UUID                                  TYPE\noffice  {uuid}  wifi\nlo      {uuid}  loopback",
    ),
    ("rabbitmqctl -q list_users", "user\ttags\nshop\t⟦administrator⟧\nmonitor\t⟦monitoring⟧"),
    (
        "kafka-configs.sh --bootstrap-server mq:9092 --describe --entity-type users",
        "SCRAM credential configs for user-principal 'orders' are SCRAM-SHA-512=iterations=8192",
    ),
    ("postqueue -p", "Mail queue is empty"),
    ("curl -s -o /dev/null -w '%{http_code}\\n' https://auth.corp/oauth2/token", "405"),
    (
        "curl -s https://auth.corp/.well-known/openid-configuration | jq -r .token_endpoint",
        "https://auth.corp/oauth2/token",
    ),
    (
        "pwsh -c 'Get-SecretInfo'",
        "\nName   Type         VaultName  Metadata\n----   ----         ---------  --------\ndb     String       Local      {}\nmail   PSCredential Local      {}\n",
    ),
)
"""Commands of the same families that print nothing private, and what they print."""

VENDOR_VALUES = (
    ("GitHub, classic", "gh|p_{a36}"),
    ("Stripe", "sk_|live_{a24}"),
    ("OpenAI, old", "sk|-{a20}T3BlbkFJ{a20}"),
    ("Telegram bot", "{d10}:[AA{w33}]"),
    ("Slack webhook", "https://hooks.slack.com/services/T{S10}/B{S10}/[{a24}]"),
    ("Databricks", "da|pi{h32}"),
    ("Shopify", "shp|at_{h32}"),
    ("Discord bot", "M|T{w24}.{w6}.{w38}"),
    ("Groq", "gs|k_{a52}"),
    ("Replicate", "r8|_{a37}"),
    ("Linear", "lin_|api_{a40}"),
    ("Vault", "hv|s.{w90}"),
    ("New Relic", "NR|AK-{S27}"),
    ("RubyGems", "rub|ygems_{h48}"),
)
"""Values of a vendor's shape, which a user gives."""

TELLING_VALUES = (
    ("MONGO_INITDB_ROOT_PASSWORD", "[Welcome{d4}]"),
    ("JWT_SECRET_KEY", "{h64}"),
    ("SECRET_KEY_BASE", "{h128}"),
    ("ELASTIC_PASSWORD", "[changeme-{l5}]"),
    ("RABBITMQ_DEFAULT_PASS", "{a18}"),
    ("NEXTAUTH_SECRET", "{b43}="),
    ("GF_SECURITY_ADMIN_PASSWORD", "[Gr@fana-{d4}]"),
    ("WEBHOOK_SECRET", "{w27}"),
    ("db_password", "[Winter{d4}$]"),
    ("api_key", "{a40}"),
    ("client_secret", "{a3}8Q~{w34}"),
    ("smtp_password", "[{l4} {l4} {l4} {l4}]"),
    ("cookieSecret", "{b32}"),
    ("adminPass", "[{word}{word}{d2}!]"),
)
"""Values without a format, under the name that the session shows them by once."""
