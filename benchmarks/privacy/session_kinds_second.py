# ruff: noqa: E501 (literal texts)
"""A second, held-out list of what sessions are made of, in the structures of `session_kinds.py`.

A name of `TELLING_VALUES` in capitals is shown in an `.env` file, any other in a YAML file.
"""

PLAIN_VALUES = (
    "{a12}",
    "{a16}",
    "{a22}",
    "{a28}",
    "{a32}",
    "{a48}",
    "{h24}",
    "{h32}",
    "{h48}",
    "{h64}",
    "{b22}==",
    "{b43}=",
    "{w32}",
    "{w43}",
    "{p12}",
    "{p16}",
    "{p20}",
    "{word}.{l7}.{word}.{d2}",
    "{word} {l5} {word} {l7}",
    "{s24}",
)

DATABASES = (
    (
        "docker exec es01 bin/elasticsearch-reset-password -u elastic -b",
        "Password for the ⟦elastic⟧ user successfully reset.\nNew value: [{p20}]",
    ),
    ("redis-cli acl genpass", "{h64}"),
    (
        "psql -At -c 'show primary_conninfo'",
        "user=replicator password=[{a24}] host=pg-1 port=5432 sslmode=prefer application_name=pg_2",
    ),
    (
        "cqlsh -e 'select tenant, api_key from shop.tenants limit 2'",
        "\n tenant ¦ api_key\n--------+----------------------------------\n  north ¦ [{a32}]\n  south ¦ [{a32}]\n\n(2 rows)",
    ),
    (
        'aws dynamodb get-item --table-name tenants --key \'{"id":{"S":"north"}}\' --query Item.webhook_secret.S --output text',
        "{v}",
    ),
    (
        "bq query --format=csv --use_legacy_sql=false 'select client_id, client_secret from ops.oauth_clients limit 2'",
        "client_id,client_secret\nweb,[{a40}]\nmobile,[{a40}]",
    ),
    (
        "docker compose exec -T db mariadb -N -e \"select value from settings where name = 'smtp_password'\" shop",
        "{v}",
    ),
    ("zmlocalconfig -s zimbra_ldap_password", "zimbra_ldap_password = [{a12}]"),
)
CI_AND_REGISTRIES = (
    (
        "java -jar jenkins-cli.jar -s http://ci.corp groovy = < dump-credentials.groovy",
        "registry-ci : ci / [{v}]\nsonar : [{h40}]",
    ),
    ("glab variable get DEPLOY_PASSWORD", "{v}"),
    ("buildkite-agent secret get deploy_token", "{v}"),
    ("sudo gitlab-rails runner 'puts Gitlab::CurrentSettings.runners_registration_token'", "{w20}"),
    (
        "sudo cat /etc/gitlab/initial_root_password",
        "# WARNING: This value is valid only in the following conditions\n#          1. If provided manually (either via `GITLAB_ROOT_PASSWORD` environment variable or via `gitlab_rails⟦'initial_root_password'⟧` setting in `gitlab.rb`, it was provided before database was seeded for the first time (usually, the first reconfigure run).\n#          2. Password hasn't been changed manually, either via UI or via command line.\n\nPassword: [{b43}=]\n\n# NOTE: This file will be automatically deleted in the first reconfigure run after 24 hours.",
    ),
    (
        "docker logs teamcity 2>&1 | grep 'Super user authentication token' | tail -1",
        "⟦TeamCity⟧ Super user authentication token: [{d19}] (use empty username with the token as the password to access the server)",
    ),
    ("docker exec nexus cat /nexus-data/admin.password", "{uuid}"),
    ("gitea admin user generate-access-token -u ci --scopes write:repository --raw", "{h40}"),
    (
        "cat ~/.composer/auth.json",
        '{\n    "http-basic": {\n        "repo.corp": {\n            "username": "ci",\n            "password": "[{a32}]"\n        }\n    }\n}',
    ),
    (
        "cat ~/.nuget/NuGet/NuGet.Config",
        '<?xml version="1.0" encoding="utf-8"?>\n<configuration>\n  <packageSources>\n    <add key="corp" value="https://nuget.corp/v3/index.json" />\n  </packageSources>\n  <packageSourceCredentials>\n    <corp>\n      <add key="Username" value="ci" />\n      <add key="ClearTextPassword" value="[{a52}]" />\n    </corp>\n  </packageSourceCredentials>\n</configuration>',
    ),
    (
        "aws codeartifact get-authorization-token --domain acme --query authorizationToken --output text",
        "{w300}",
    ),
)
MANAGERS = (
    ("dcli password db -o console", "{v}"),
    ("keeper get 'prod db' --format password", "{v}"),
    (
        'curl -s -H "Authorization: Bearer $OP_CONNECT_TOKEN" http://localhost:8080/v1/vaults/$VAULT/items/$ITEM | jq -r \'.fields[] | select(.id == "password") | .value\'',
        "{v}",
    ),
    ("op inject -i app.env.tpl", "PORT=8080\nDB_PASSWORD=[{a24}]\nLOG_LEVEL=info"),
    (
        "boundary targets authorize-session -id ttcp_prod -format json | jq -r '.item.credentials[0].secret.decoded.password'",
        "{v}",
    ),
    ("vault write -field=secret_id -f auth/approle/role/ci/secret-id", "{uuid}"),
    (
        "vault operator init -key-shares=3 -key-threshold=2 -format=json | jq -r '.unseal_keys_b64[]'",
        "[{b43}=]\n[{b43}=]\n[{b43}=]",
    ),
    (
        "consul acl bootstrap",
        "AccessorID:       {uuid}\nSecretID:         [{uuid}]\nDescription:      Bootstrap Token (Global Management)\nLocal:            false\nCreate Time:      2026-03-02 10:11:12.112 +0000 UTC\nPolicies:\n   00000000-0000-0000-0000-000000000001 - global-management",
    ),
    ("consul keygen", "{b43}="),
    ("nomad var get -out json nomad/jobs/api | jq -r .Items.db_password", "{v}"),
)
CONFIGURATION = (
    ("docker compose config --format json | jq -r .services.api.environment.SESSION_SECRET", "{v}"),
    (
        "docker service inspect api --format '{{range .Spec.TaskTemplate.ContainerSpec.Env}}{{println .}}{{end}}' | grep MAIL",
        "MAIL_USER=app\nMAIL_PASSWORD=[{p16}]",
    ),
    (
        "ansible localhost -m debug -a var=vault_db_password -e @group_vars/prod/vault.yml",
        'localhost ¦ SUCCESS => {\n    "vault_db_password": "[{v}]"\n}',
    ),
    ("ansible-inventory --host db1 | jq -r .ansible_become_pass", "{v}"),
    ("knife data bag show passwords db --secret-file ~/.chef/bag.key -F json | jq -r .password", "{v}"),
    ("puppet lookup profile::db::root_password --node db1 --render-as s", "{v}"),
    ("salt-call pillar.get mailer:smtp_password", "local:\n    [{v}]"),
    ("airflow variables get hook_secret", "{v}"),
    ("dotnet user-secrets list --project src/Api", "Smtp:Password = [{p16}]\nJwt:Key = [{b43}=]"),
    ("php artisan tinker --execute='echo config(\"mail.mailers.smtp.password\");'", "{v}"),
)
NETWORK_AND_CLUSTERS = (
    (
        "rabbitmqctl -q list_parameters -p /",
        'shovel\torders-out\t{"dest-queue":"orders","dest-uri":"amqp://relay:[{a20}]@mq-2","src-queue":"orders","src-uri":"amqp://"}',
    ),
    ("kubectl view-secret shop-db password", "{v}"),
    (
        "kubectl -n cattle-system exec deploy/rancher -c rancher -- reset-password",
        "New password for default admin user (user-x7k2p):\n[{w20}]",
    ),
    ("ssh gw uci get wireless.default_radio0.key", "{p14}"),
    ("headscale preauthkeys create -u ci --expiration 1h", "{h48}"),
    ("sudo cat /etc/ipsec.secrets", '# RSA and PSK of the branches\nbranch1 %any : PSK "[{p18}]"'),
    (
        "ssh gw '/ppp secret print detail'",
        'Flags: X - disabled\n 0   name="branch1" service=l2tp caller-id="" password="[{a14}]" profile=default routes="" limit-bytes-in=0',
    ),
    ("postmap -q '[smtp.corp]:587' hash:/etc/postfix/sasl_passwd", "relay:[{a16}]"),
    ("cat /etc/openvpn/client/auth.txt", "vpn-ci\n[{p14}]"),
    ("grep ^rocommunity /etc/snmp/snmpd.conf", "rocommunity [{a12}] default"),
    (
        "jupyter server list",
        "Currently running servers:\nhttp://localhost:8888/?token=[{h48}] :: /srv/notebooks",
    ),
)
MOBILE_CLOUD_AND_WINDOWS = (
    (
        "cat android/key.properties",
        "storePassword=[{a14}]\nkeyPassword=[{a14}]\nkeyAlias=upload\nstoreFile=upload-keystore.jks",
    ),
    (
        "aws lambda get-function-configuration --function-name billing --query Environment.Variables.WEBHOOK_SECRET --output text",
        "{v}",
    ),
    (
        "az servicebus namespace authorization-rule keys list -g prod --namespace-name shop-bus --name RootManageSharedAccessKey --query primaryKey -o tsv",
        "{b43}=",
    ),
    (
        "python3 -c \"import boto3; print(boto3.client('secretsmanager').get_secret_value(SecretId='prod/mailer')['SecretString'])\"",
        "{v}",
    ),
    ("pwsh -NoProfile -Command '$env:SMTP_PASSWORD'", "{v}"),
    ("pwsh -c '(Import-Clixml cred.xml).GetNetworkCredential().Password'", "{v}"),
)
COMMANDS = (
    *DATABASES,
    *CI_AND_REGISTRIES,
    *MANAGERS,
    *CONFIGURATION,
    *NETWORK_AND_CLUSTERS,
    *MOBILE_CLOUD_AND_WINDOWS,
)
"""Commands that print a secret, and what they print: with the encoded ones, 60."""

ENCODED_COMMANDS = (
    ("aws kms decrypt --ciphertext-blob fileb://db.enc --query Plaintext --output text", "{v}"),
    ("curl -s localhost:8500/v1/kv/app/mailer/password | jq -r '.[0].Value'", "{v}"),
    ("docker config inspect app_smtp_password | jq -r '.[0].Spec.Data'", "{v}"),
    ("kubeseal --recovery-unseal --recovery-private-key key.pem < sealed.json | jq -r .data.token", "{v}"),
)
"""Commands that print a secret in base64, and what they print once it is decoded."""

CONTROLS = (
    (
        "curl -s localhost:9200/_cluster/health | jq -r .status",
        "green",
    ),
    ("docker exec es01 bin/elasticsearch-users list", "elastic        : superuser\nkibana_ro      : viewer"),
    ("redis-cli acl whoami", '"default"'),
    ("redis-cli info replication | head -3", "# Replication\nrole:master\nconnected_slaves:2"),
    ("psql -At -c 'show password_encryption'", "scram-sha-256"),
    (
        "cqlsh -e 'select tenant, plan from shop.tenants limit 2'",
        "\n tenant ¦ plan\n--------+----------\n  north ¦ standard\n  south ¦ extended\n\n(2 rows)",
    ),
    (
        "aws dynamodb describe-table --table-name tenants --query Table.TableStatus --output text",
        "ACTIVE",
    ),
    (
        "bq query --format=csv --use_legacy_sql=false 'select client_id, count(*) n from ops.logins group by 1'",
        "client_id,n\nweb,48211\nmobile,9120",
    ),
    ("docker compose exec -T db mariadb -N -e 'show tables' shop", "orders\nsettings\nusers"),
    ("zmcontrol -v", "Release 10.1.4.GA.4655.UBUNTU22.64 UBUNTU22_64 FOSS edition."),
    ("java -jar jenkins-cli.jar -s http://ci.corp list-jobs", "shop-build\nshop-deploy\nnightly-backup"),
    (
        "glab variable list",
        "KEY\tPROTECTED\tMASKED\tEXPANDED\tSCOPE\nDEPLOY_PASSWORD\ttrue\ttrue\tfalse\t*\nNODE_ENV\tfalse\tfalse\tfalse\t*",
    ),
    ("glab ci status", "(success) • 01m 12s\tbuild\t\tcompile\n(running) • 00m 31s\ttest\t\tunit"),
    ("buildkite-agent meta-data get release-version", "2026.11.3"),
    ("sudo gitlab-rails runner 'puts User.count'", "312"),
    ("docker logs teamcity 2>&1 | tail -1", "TeamCity initialized, server UUID: {uuid}"),
    ("gem list --remote --exact rack", "*** REMOTE GEMS ***\n\nrack (3.2.4)"),
    (
        "composer show --locked monolog/monolog | head -3",
        "name     : monolog/monolog\ndescrip. : Sends your logs to files, sockets, inboxes, databases and various web services\nkeywords : log, logging, psr-3",
    ),
    (
        "dotnet nuget list source",
        "Registered Sources:\n  1.  nuget.org ⟦Enabled⟧\n      https://api.nuget.org/v3/index.json\n  2.  corp ⟦Enabled⟧\n      https://nuget.corp/v3/index.json",
    ),
    (
        "aws codeartifact list-packages --domain acme --repository py --query 'packages[].package' --output text",
        "shop-core\tshop-mailer\tshop-auth",
    ),
    ("go mod verify", "all modules verified"),
    (
        "grep golang.org/x/sync go.sum",
        "golang.org/x/sync v0.19.0 h1:{b43}=\ngolang.org/x/sync v0.19.0/go.mod h1:{b43}=",
    ),
    ("op vault list", "ID                            NAME\n{s26}    Prod\n{s26}    Staging"),
    ("curl -s http://localhost:8080/heartbeat", "."),
    (
        "boundary targets list -recursive -format json | jq -r '.items[].name'",
        "orders-db\nadmin-ssh",
    ),
    ("vault policy read ci", 'path "secret/data/app" {\n  capabilities = ⟦"read"⟧\n}'),
    (
        "vault auth list",
        "Path        Type        Accessor                  Description                Version\n----        ----        --------                  -----------                -------\napprole/    approle     auth_approle_{h8}     n/a                        n/a\ntoken/      token       auth_token_{h8}       token based credentials    n/a",
    ),
    (
        "consul members",
        "Node   Address     Status  Type    Build   Protocol  DC   Partition  Segment\nweb-1  web-1:8301  alive   server  1.21.0  2         dc1  default    <all>",
    ),
    ("consul acl policy list -format=json | jq -r '.[].Name'", "global-management\nci-deploy\nnode-read"),
    (
        "nomad var list",
        "Namespace  Path            Last Updated\ndefault    nomad/jobs/api  2026-11-02T10:11:12Z",
    ),
    (
        "nomad job status -short api | head -3",
        "ID            = api\nName          = api\nSubmit Date   = 2026-11-02T10:11:12Z",
    ),
    ("docker compose config --services", "api\ndb\nworker"),
    ("docker compose config --hash api", "api {h64}"),
    ("docker service ls --format '{{.Name}} {{.Replicas}}'", "shop_api 3/3\nshop_db 1/1"),
    ("docker node ls -q", "{s25}\n{s25}"),
    ("ansible localhost -m debug -a var=app_port", 'localhost ¦ SUCCESS => {\n    "app_port": "8080"\n}'),
    (
        "ansible-inventory --graph",
        "@all:\n  ¦--@ungrouped:\n  ¦--@db:\n  ¦  ¦--db1\n  ¦--@web:\n  ¦  ¦--web1",
    ),
    ("knife data bag list", "apps\npasswords\nusers"),
    ("puppet lookup profile::db::port --node db1 --render-as s", "5432"),
    ("salt-call grains.get os_family", "local:\n    Debian"),
    ("salt db1 pillar.keys --out=newline_values_only", "⟦'mysql', 'mailer', 'backup'⟧"),
    ("airflow variables list -o plain", "key\nhook_secret\nbatch_size"),
    ("php artisan tinker --execute='echo config(\"mail.mailers.smtp.host\");'", "smtp.corp"),
    ("rabbitmqctl -q list_queues name messages", "name\tmessages\norders\t12\nmail\t0"),
    (
        "kubectl -n kafka get kafkausers",
        "NAME     CLUSTER   AUTHENTICATION   AUTHORIZATION   READY\norders   main      scram-sha-512    simple          True",
    ),
    ("ssh gw uci get wireless.default_radio0.encryption", "sae-mixed"),
    ("headscale nodes list -o json | jq -r '.[].givenName'", "build-04\nweb-11"),
    ("postconf -h smtp_sasl_password_maps", "hash:/etc/postfix/sasl_passwd"),
    (
        "aws lambda get-function-configuration --function-name billing --query CodeSha256 --output text",
        "{b43}=",
    ),
    ("pwsh -NoProfile -Command '$PSVersionTable.PSVersion.ToString()'", "7.5.4"),
)
"""Commands of the same families that print nothing private, and what they print."""

VENDOR_VALUES = (
    ("GitHub, fine-grained", "github_|pat_{a22}_{a59}"),
    ("GitLab", "glp|at-{w20}"),
    ("Slack bot", "xo|xb-{d12}-{d13}-{a24}"),
    ("Stripe restricted", "rk_|live_{a24}"),
    ("npm", "np|m_{g36}"),
    ("Anthropic", "sk-|ant-api03-{w93}AA"),
    ("Google API", "AI|za{w35}"),
    ("SendGrid", "SG|.{w22}.{w43}"),
    ("Hugging Face", "h|f_{a34}"),
    ("DigitalOcean", "dop|_v1_{h64}"),
    ("Grafana service account", "gl|sa_{a32}_{h8}"),
    ("Docker Hub", "dckr|_pat_{w27}"),
)
"""Values of a vendor's shape, which a user gives."""

TELLING_VALUES = (
    ("POSTGRES_PASSWORD", "[Sommer20{d2}!]"),
    ("KEYCLOAK_ADMIN_PASSWORD", "[1qaz2wsx{d2}]"),
    ("SMTP_PASS", "[Blue-Kettle-{d2}]"),
    ("APP_SECRET", "{h32}"),
    ("INTERNAL_API_TOKEN", "{w32}"),
    ("MINIO_ROOT_PASSWORD", "[{word}@Warehouse{d3}]"),
    ("password", "[tr0ub4dor&{d2}]"),
    ("admin_password", "[hunT{d2}er]"),
    ("encryption_passphrase", "[purple {word} drinks {d2} coffees]"),
    ("auth_token", "{b43}="),
    ("rootPassword", "[Passw0rd#{d3}]"),
    ("signing_key", "{w43}"),
)
"""Values without a format, under the name that the session shows them by once."""
