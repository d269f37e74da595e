# ruff: noqa: E501 (literal texts)
"""A sixth, held-out list of what sessions are made of, in the structures of `session_kinds_second.py`.

Its author knew no rule. None of its commands stands in another list.
"""

PLAIN_VALUES = (
    "{a16}",
    "{h32}",
    "{word}-{word}-{d3}",
    "{p20}",
    "Summer20{d2}#",
    "{w43}",
    "{s12}",
    "{word}{d4}!",
    "{b43}=",
    "{uuid}",
    "P@ssw0rd{d4}",
    "{l8}{d2}",
    "{word}_{a6}_prod",
    "{S20}",
    "{a5}-{a5}-{a5}-{a5}",
    "Adm1n.{word}.{d2}",
    "{word} {word} {word} {d2}",
    "{h64}",
    "{a4}${a6}%{a3}",
    "Zx{d3}!{l4}@{S4}",
    "{t32}",
    "q1w2e3r4{l3}{d2}",
    "{word}.{word}.{word}",
    "k3{p12}Q!",
    "Käse{word}{d3}!",
    "{d10}",
)

COMMANDS = (
    (
        "cat .envrc",
        'layout python3.12\nexport DATABASE_URL=postgres://shop:[{a20}]@localhost:5432/shop_dev\nexport SENDGRID_API_KEY="SG|.[{w22}.{w43}]"\nexport AWS_PROFILE=shop-dev\nPATH_add bin',
    ),
    (
        "nl -ba backend/.env.test | sed -n 1,9p",
        "     1\tNODE_ENV=test\n     2\tPORT=3001\n     3\tDB_HOST=127.0.0.1\n     4\tDB_USER=test\n     5\tDB_PASS=[{v}]\n     6\t\n     7\tACCESS_TOKEN_SECRET=[{h64}]\n     8\tREFRESH_TOKEN_SECRET=[{h64}]\n     9\tLOG_LEVEL=warn",
    ),
    (
        "cat apps/edge/.dev.vars",
        'TURNSTILE_SECRET_KEY=0x4AAAAAAA[{w24}]\nAUTH_SECRET="[{b43}=]"\nGITHUB_CLIENT_ID=Iv1.8a61f9b3a7aba766\nGITHUB_CLIENT_SECRET=[{h40}]',
    ),
    (
        "sed -n '1,30p' deploy/env/worker.env",
        "# rendered by deploy/render.sh - do not edit\nQUEUE=orders,mail\nCONCURRENCY=8\nCELERY_BROKER_URL=amqp://worker:[{a18}]@mq-1:5672/shop\nCELERY_RESULT_BACKEND=redis://:[{h40}]@cache-1:6379/2\nSENTRY_ENVIRONMENT=production\nMAILJET_APIKEY_PUBLIC={h32}\nMAILJET_APIKEY_PRIVATE=[{h32}]",
    ),
    (
        "cat config/secrets.yml",
        'development:\n  secret_key_base: [{h128}]\n\ntest:\n  secret_key_base: [{h128}]\n\nproduction:\n  secret_key_base: <%= ENV⟦"SECRET_KEY_BASE"⟧ %>\n  recaptcha_private_key: [6L{w38}]',
    ),
    (
        "cat server/config/config.json",
        '{\n  "development": {\n    "username": "root",\n    "password": "[{v}]",\n    "database": "shop_dev",\n    "host": "127.0.0.1",\n    "dialect": "mysql"\n  },\n  "production": {\n    "use_env_variable": "DATABASE_URL"\n  }\n}',
    ),
    (
        "cat ormconfig.json",
        '{\n  "type": "postgres",\n  "host": "pg-1.internal",\n  "port": 5432,\n  "username": "orders",\n  "password": "[{v}]",\n  "database": "orders",\n  "synchronize": false,\n  "entities": ⟦"dist/**/*.entity.js"⟧\n}',
    ),
    (
        "cat knexfile.js",
        "module.exports = {\n  client: 'pg',\n  connection: {\n    host: process.env.PGHOST ?? 'localhost',\n    user: 'inventory',\n    password: process.env.PGPASSWORD ?? '[{v}]',\n    database: 'inventory',\n  },\n  pool: { min: 2, max: 10 },\n  migrations: { directory: './migrations' },\n};",
    ),
    (
        "cat drizzle.config.ts",
        "import { defineConfig } from 'drizzle-kit';\n\nexport default defineConfig({\n  schema: './src/db/schema.ts',\n  out: './drizzle',\n  dialect: 'postgresql',\n  dbCredentials: {\n    url: 'postgresql://neondb_owner:npg|_[{a12}]@ep-cool-sun-a2x9.eu-central-1.aws.neon.tech/neondb?sslmode=require',\n  },\n});",
    ),
    (
        "cat src/main/resources/application-prod.yml",
        "spring:\n  datasource:\n    url: jdbc:postgresql://pg-1:5432/billing\n    username: billing\n    password: [{v}]\n  data:\n    redis:\n      host: cache-1\n      password: [{a24}]\n  security:\n    oauth2:\n      client:\n        registration:\n          google:\n            client-id: 31415926535-{s32}.apps.googleusercontent.com\n            client-secret: GO|CSPX-[{w28}]\nserver:\n  port: 8081",
    ),
    (
        "cat src/main/resources/hibernate.cfg.xml",
        '<?xml version="1.0" encoding="utf-8"?>\n<hibernate-configuration>\n  <session-factory>\n    <property name="hibernate.connection.url">jdbc:mysql://db-2:3306/warehouse</property>\n    <property name="hibernate.connection.username">warehouse</property>\n    <property name="hibernate.connection.password">[{p16}]</property>\n    <property name="hibernate.hbm2ddl.auto">validate</property>\n  </session-factory>\n</hibernate-configuration>',
    ),
    (
        "grep -n sqlalchemy.url alembic.ini",
        "63:sqlalchemy.url = postgresql+psycopg://migrator:[{a16}]@localhost/shop",
    ),
    (
        "tail -14 web/sites/default/settings.php",
        "$databases⟦'default'⟧⟦'default'⟧ = array (\n  'database' => 'drupal',\n  'username' => 'drupal',\n  'password' => '[{v}]',\n  'prefix' => '',\n  'host' => 'mariadb',\n  'port' => '3306',\n  'driver' => 'mysql',\n);\n$settings⟦'hash_salt'⟧ = '[{w74}]';\n$settings⟦'config_sync_directory'⟧ = '../config/sync';",
    ),
    (
        "grep -nE 'user|password|secret' configuration.php",
        "12:\tpublic $user = 'joomla';\n13:\tpublic $password = '[{v}]';\n19:\tpublic $secret = '[{a16}]';\n44:\tpublic $smtpuser = 'relay';\n45:\tpublic $smtppass = '[{word}{d3}{a5}]';",
    ),
    (
        "sudo -u www-data sed -n '1,24p' /var/www/nextcloud/config/config.php",
        "<?php\n$CONFIG = array (\n  'instanceid' => 'oc{s10}',\n  'passwordsalt' => '[{b30}]',\n  'secret' => '[{b48}]',\n  'trusted_domains' =>\n  array (\n    0 => 'cloud.shop.corp',\n  ),\n  'datadirectory' => '/srv/nextcloud',\n  'dbtype' => 'pgsql',\n  'version' => '31.0.5.1',\n  'dbname' => 'nextcloud',\n  'dbhost' => '/run/postgresql',\n  'dbuser' => 'oc_admin',\n  'dbpassword' => '[{s30}]',\n  'installed' => true,",
    ),
    (
        "cat config/runtime.exs",
        'import Config\n\nif config_env() == :prod do\n  config :shop, Shop.Repo,\n    hostname: "pg-1",\n    username: "phoenix",\n    password: "[{v}]",\n    pool_size: 10\n\n  config :shop, ShopWeb.Endpoint,\n    url: ⟦host: "www.shop.corp", port: 443⟧,\n    secret_key_base: "[{b64}]",\n    live_view: ⟦signing_salt: "[{b8}]"⟧\nend',
    ),
    (
        "cat shop/settings_local.py",
        'from .settings import *  # noqa\n\nDEBUG = True\nSECRET_KEY = "django-insecure-[{s50}]"\nEMAIL_HOST_USER = "dev@shop.corp"\nEMAIL_HOST_PASSWORD = "[{l4} {l4} {l4} {l4}]"\nSTRIPE_TEST_SECRET_KEY = "sk_|test_[{a99}]"',
    ),
    (
        "cat instance/config.py",
        'SQLALCHEMY_DATABASE_URI = "mysql+pymysql://flask:[{a15}]@127.0.0.1/flaskr"\nSECRET_KEY = b"[{h48}]"\nSECURITY_PASSWORD_SALT = "[{d38}]"\nWTF_CSRF_ENABLED = True',
    ),
    (
        "cat app/core/config.py",
        'from pydantic_settings import BaseSettings\n\n\nclass Settings(BaseSettings):\n    app_name: str = "orders"\n    database_url: str = "postgresql+asyncpg://orders:[{a12}]@db:5432/orders"\n    jwt_secret: str = "[{v}]"\n    jwt_algorithm: str = "HS256"\n    access_token_expire_minutes: int = 30\n\n    model_config = {"env_file": ".env"}\n\n\nsettings = Settings()',
    ),
    (
        "cat .vscode/launch.json",
        '{\n  "version": "0.2.0",\n  "configurations": ⟦\n    {\n      "name": "API",\n      "type": "debugpy",\n      "request": "launch",\n      "module": "uvicorn",\n      "args": ⟦"app.main:app", "--reload"⟧,\n      "env": {\n        "DB_PASSWORD": "[{v}]",\n        "OPENAI_API_KEY": "sk-|proj-[{w74}T3Blbk|FJ{w74}]"\n      }\n    }\n  ⟧\n}',
    ),
    (
        "cat .idea/runConfigurations/Api.xml",
        '<component name="ProjectRunConfigurationManager">\n  <configuration default="false" name="Api" type="SpringBootApplicationConfigurationType">\n    <envs>\n      <env name="SPRING_PROFILES_ACTIVE" value="local" />\n      <env name="SPRING_DATASOURCE_PASSWORD" value="[{a18}]" />\n      <env name="MAIL_PASSWORD" value="[{word}-{a6}-{d2}]" />\n    </envs>\n    <module name="shop.api.main" />\n  </configuration>\n</component>',
    ),
    (
        "cat .devcontainer/devcontainer.json",
        '{\n  "name": "shop",\n  "image": "mcr.microsoft.com/devcontainers/typescript-node:22",\n  "containerEnv": {\n    "PGHOST": "db",\n    "PGPASSWORD": "[{v}]",\n    "NPM_TOKEN": "np|m_[{g36}]"\n  },\n  "forwardPorts": ⟦3000⟧\n}',
    ),
    (
        "cat .mcp.json",
        '{\n  "mcpServers": {\n    "github": {\n      "command": "npx",\n      "args": ⟦"-y", "@modelcontextprotocol/server-github"⟧,\n      "env": { "GITHUB_PERSONAL_ACCESS_TOKEN": "gh|p_[{g36}]" }\n    },\n    "search": {\n      "type": "http",\n      "url": "https://mcp.tavily.com/mcp/?tavilyApiKey=tvly-|dev-[{a32}]"\n    }\n  }\n}',
    ),
    (
        "grep -n '^export' ~/.zshrc",
        "8:export EDITOR=nvim\n21:export HOMEBREW_GITHUB_API_TOKEN=gh|p_[{g36}]\n22:export ANTHROPIC_API_KEY='sk-|ant-api03-[{w93}AA]'\n23:export JIRA_API_TOKEN=ATA|TT3xFfGF0[{w171}={H8}]\n40:export PATH=\"$HOME/.local/bin:$PATH\"",
    ),
    (
        "cat ~/.config/fish/config.fish",
        "if status is-interactive\n    starship init fish ¦ source\nend\nset -gx EDITOR hx\nset -gx TODOIST_TOKEN [{h40}]\nset -gx OPENROUTER_API_KEY sk-|or-v1-[{h64}]\nfish_add_path ~/.cargo/bin",
    ),
    (
        "cat Makefile",
        'REGISTRY := registry.corp/shop\nTAG ?= $(shell git rev-parse --short HEAD)\n\n.PHONY: push deploy\npush:\n\tdocker login registry.corp -u ci -p [{a24}]\n\tdocker push $(REGISTRY)/api:$(TAG)\n\ndeploy:\n\tcurl -fsS -X POST -H "X-Deploy-Key: [{h48}]" https://deploy.corp/hooks/shop',
    ),
    (
        "cat docker/Dockerfile.legacy",
        'FROM node:20-alpine\nWORKDIR /srv\nENV NODE_ENV=production \\\n    DB_HOST=mysql-1 \\\n    DB_PASSWORD=[{a17}]\nARG NPM_TOKEN=np|m_[{g36}]\nRUN echo "//registry.npmjs.org/:_authToken=$NPM_TOKEN" > .npmrc\nCOPY . .\nRUN npm ci\nCMD ⟦"node", "server.js"⟧',
    ),
    (
        "cat k8s/base/secret.yaml",
        'apiVersion: v1\nkind: Secret\nmetadata:\n  name: shop\ntype: Opaque\nstringData:\n  DATABASE_PASSWORD: "[{v}]"\n  SESSION_KEY: [{h64}]\n  MAILCHIMP_KEY: [{h32}-us14]',
    ),
    (
        "sed -n '/^postgresql/,/^ingress/p' charts/shop/values-prod.yaml",
        'postgresql:\n  enabled: true\n  auth:\n    username: shop\n    database: shop\n    password: [{v}]\n    postgresPassword: [{a20}]\nredis:\n  auth:\n    enabled: true\n    password: "[{a10}]"\ningress:',
    ),
    (
        "cat .github/workflows/e2e.yml",
        "name: e2e\non: ⟦pull_request⟧\njobs:\n  e2e:\n    runs-on: ubuntu-latest\n    env:\n      BASE_URL: https://staging.shop.corp\n      E2E_USER: robot\n      E2E_PASSWORD: '[{v}]'\n      CYPRESS_RECORD_KEY: [{uuid}]\n    steps:\n      - uses: actions/checkout@v4\n      - run: npx cypress run --record",
    ),
    (
        "head -24 .gitlab-ci.yml",
        "stages: ⟦test, deploy⟧\n\nvariables:\n  POSTGRES_DB: test\n  SONAR_TOKEN: \"sq|p_[{h40}]\"\n  KUBE_TOKEN: eyJhbGciOiJSUzI1NiIsImtpZCI6I[{w44}.{w180}.{w342}]\n\ntest:\n  image: python:3.12\n  script:\n    - pip install -r requirements.txt\n    - pytest -q\n\ndeploy:\n  stage: deploy\n  script:\n    - sshpass -p '[{a16}]' ssh -o StrictHostKeyChecking=no deploy@web-1 ./deploy.sh",
    ),
    (
        "cat ansible/inventory/prod.ini",
        "⟦web⟧\nweb-1 ansible_host=10.20.0.11\nweb-2 ansible_host=10.20.0.12\n\n⟦db⟧\ndb-1 ansible_host=10.20.0.21 ansible_user=root ansible_ssh_pass=[{a14}]\n\n⟦all:vars⟧\nansible_user=deploy\nansible_become_password=[{word}{d2}_{a6}]",
    ),
    (
        "cat ecosystem.config.js",
        "module.exports = {\n  apps: ⟦\n    {\n      name: 'bot',\n      script: 'dist/index.js',\n      instances: 1,\n      env_production: {\n        NODE_ENV: 'production',\n        BOT_TOKEN: '{d10}:[AA{w33}]',\n        MONGO_URI: 'mongodb+srv://bot:[{a16}]@cluster0.x2f9a.mongodb.net/bot',\n      },\n    },\n  ⟧,\n};",
    ),
    (
        "cat serverless.yml",
        "service: shop-hooks\nprovider:\n  name: aws\n  runtime: nodejs20.x\n  region: eu-central-1\n  environment:\n    TABLE: hooks\n    ALGOLIA_ADMIN_KEY: [{h32}]\n    PUSHER_SECRET: [{h20}]\nfunctions:\n  hook:\n    handler: src/hook.handler",
    ),
    (
        "cat nginx/conf.d/upstream.conf",
        'upstream search { server es-1:9200; }\nserver {\n    listen 8085;\n    location / {\n        proxy_pass http://search;\n        proxy_set_header Authorization "Basic [{a38}==]";\n        proxy_set_header Host $host;\n    }\n}',
    ),
    (
        "cat Caddyfile",
        "shop.corp {\n\ttls {\n\t\tdns cloudflare [{w40}]\n\t}\n\treverse_proxy api:8080\n}",
    ),
    (
        "cat monitoring/prometheus.yml",
        "global:\n  scrape_interval: 30s\nscrape_configs:\n  - job_name: api\n    basic_auth:\n      username: prometheus\n      password: [{v}]\n    static_configs:\n      - targets: ⟦'api:8080'⟧\nremote_write:\n  - url: https://prometheus-prod-01-eu-west-0.grafana.net/api/prom/push\n    basic_auth:\n      username: 812233\n      password: glc|_eyJ[{b120}]==",
    ),
    (
        "cat logstash/pipeline/orders.conf",
        'input {\n  jdbc {\n    jdbc_connection_string => "jdbc:postgresql://pg-1/orders"\n    jdbc_user => "logstash"\n    jdbc_password => "[{v}]"\n    schedule => "*/5 * * * *"\n    statement => "SELECT * FROM orders WHERE updated_at > :sql_last_value"\n  }\n}\noutput {\n  elasticsearch {\n    hosts => ⟦"https://es-1:9200"⟧\n    api_key => "[{w20}:{w22}]"\n  }\n}',
    ),
    (
        "cat cypress.env.json",
        '{\n  "apiUrl": "http://localhost:4000",\n  "adminEmail": "admin@shop.corp",\n  "adminPassword": "[{v}]",\n  "auth0_client_secret": "[{w64}]"\n}',
    ),
    (
        "cat playwright/.auth/admin.json",
        '{\n  "cookies": ⟦\n    {\n      "name": "session",\n      "value": "s%3A[{w32}.{b42}]",\n      "domain": "localhost",\n      "path": "/",\n      "expires": 1796112000,\n      "httpOnly": true,\n      "secure": false,\n      "sameSite": "Lax"\n    }\n  ⟧,\n  "origins": ⟦⟧\n}',
    ),
    (
        "cat 'postman/Staging.postman_environment.json' | jq -c '.values[]'",
        '{"key":"baseUrl","value":"https://staging.shop.corp","type":"default","enabled":true}\n{"key":"apiKey","value":"[{v}]","type":"secret","enabled":true}\n{"key":"accessToken","value":"eyJhbGciOiJIUzI1NiJ9.eyJ[{w96}.{w43}]","type":"any","enabled":true}',
    ),
    (
        "cat requests/orders.http",
        '@host = https://api.shop.corp\n@token = [{a48}]\n\n### list\nGET {{ host }}/v2/orders?limit=5\nAuthorization: Bearer {{ token }}\n\n### login\nPOST {{ host }}/v2/login\nContent-Type: application/json\n\n{"login": "robot", "password": "[{v}]"}',
    ),
    (
        "sed -n '1,22p' tests/cassettes/test_capture.yaml",
        'interactions:\n- request:\n    body: amount=1200&currency=eur\n    headers:\n      Accept:\n      - \'*/*\'\n      Authorization:\n      - Bearer sk_|test_[{a24}]\n      User-Agent:\n      - python-requests/2.32.3\n    method: POST\n    uri: https://api.stripe.com/v1/charges\n  response:\n    body:\n      string: \'{"id": "ch_{a24}", "object": "charge", "amount": 1200}\'\n    status:\n      code: 200\n      message: OK\nversion: 1',
    ),
    (
        "jq -c '.log.entries[0].request.headers[] | {name, value}' trace.har",
        '{"name":"Host","value":"api.shop.corp"}\n{"name":"Cookie","value":"sid=[{h64}]; theme=dark"}\n{"name":"X-CSRF-Token","value":"[{w36}]"}\n{"name":"Accept","value":"application/json"}',
    ),
    (
        "cat tests/fixtures/integrations.json",
        '⟦\n  {\n    "model": "integrations.account",\n    "pk": 1,\n    "fields": {\n      "provider": "shopware",\n      "client_id": "SWIA{S22}",\n      "client_secret": "[{a52}]",\n      "enabled": true\n    }\n  }\n⟧',
    ),
    (
        "grep -rn 'sk_live' --include=*.rb .",
        "./lib/billing/client.rb:12:    STRIPE_KEY = 'sk_|live_[{a99}]'.freeze\n./spec/support/stripe.rb:4:  Stripe.api_key = 'sk_|live_[{a24}]'",
    ),
    (
        "rg -n 'AKIA' -A1",
        'scripts/sync_assets.py\n18:AWS_ACCESS_KEY_ID = "AK|IA{S16}"\n19-AWS_SECRET_ACCESS_KEY = "[{b40}]"\n\nterraform/legacy/provider.tf\n4:  access_key = "AK|IA{S16}"\n5-  secret_key = "[{b40}]"',
    ),
    (
        "git grep -n -i passwd -- '*.java'",
        'src/main/java/com/shop/ftp/Uploader.java:27:    private static final String FTP_PASSWD = "[{v}]";\nsrc/main/java/com/shop/ftp/Uploader.java:61:        client.login(FTP_USER, FTP_PASSWD);',
    ),
    (
        "rg -in 'secret|passw' src --type ts",
        "src/lib/session.ts:6:const SECRET = process.env.SESSION_SECRET ¦¦ '[{v}]';\nsrc/lib/session.ts:14:  secret: SECRET,\nsrc/lib/ldap.ts:9:    bindCredentials: '[{a13}]',\nsrc/routes/login.ts:22:  const { email, password } = req.body;",
    ),
    (
        "sed -n '1,18p' src/services/mailer.js",
        "const nodemailer = require('nodemailer');\n\nconst transport = nodemailer.createTransport({\n  host: 'smtp.office365.com',\n  port: 587,\n  auth: {\n    user: 'orders@shop.corp',\n    pass: '[{v}]',\n  },\n});\n\nmodule.exports = (mail) => transport.sendMail(mail);",
    ),
    (
        "cat lib/api_client.dart",
        "import 'package:dio/dio.dart';\n\nconst _apiKey = '[{h40}]';\n\nfinal dio = Dio(BaseOptions(\n  baseUrl: 'https://api.shop.corp/v2',\n  headers: {'X-Api-Key': _apiKey},\n));",
    ),
    (
        "cat app/src/main/java/com/shop/app/Constants.java",
        'package com.shop.app;\n\npublic final class Constants {\n    public static final String BASE_URL = "https://api.shop.corp/";\n    public static final String HMAC_SECRET = "[{a32}]";\n    public static final String AES_KEY = "[{h32}]";\n    public static final int TIMEOUT_SECONDS = 20;\n\n    private Constants() {}\n}',
    ),
    (
        "cat Sources/App/Secrets.swift",
        'enum Secrets {\n    static let mapboxToken = "sk.|eyJ[{w84}.{w22}]"\n    static let intercomKey = "ios_|sdk-[{h40}]"\n}',
    ),
    (
        "sed -n '8,22p' internal/store/store_test.go",
        'func TestMain(m *testing.M) {\n\tdsn := os.Getenv("TEST_DSN")\n\tif dsn == "" {\n\t\tdsn = "host=localhost user=shop password=[{a14}] dbname=shop_test sslmode=disable"\n\t}\n\tdb, err := sql.Open("pgx", dsn)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\ttestDB = db\n\tos.Exit(m.Run())\n}',
    ),
    (
        "cat src/config.rs",
        'pub struct Config {\n    pub bind: &\'static str,\n    pub jwt_key: &\'static ⟦u8⟧,\n    pub smtp_pass: &\'static str,\n}\n\npub const CONFIG: Config = Config {\n    bind: "0.0.0.0:8080",\n    jwt_key: b"[{a64}]",\n    smtp_pass: "[{v}]",\n};',
    ),
    (
        "sed -n '10,20p' src/Shop.Web/Program.cs",
        'var builder = WebApplication.CreateBuilder(args);\n\nbuilder.Services.AddDbContext<ShopContext>(o => o.UseSqlServer(\n    "Server=tcp:shop-sql.database.windows.net,1433;Database=shop;User ID=shopadmin;Password=[{p16}];Encrypt=True;"));\n\nbuilder.Services.AddSingleton(new BlobServiceClient(\n    "DefaultEndpointsProtocol=https;AccountName=shopblobs;AccountKey=[{b86}==];EndpointSuffix=core.windows.net"));\n\nvar app = builder.Build();',
    ),
    (
        "cat scripts/backup.sh",
        "#!/bin/sh\nset -eu\nexport RESTIC_REPOSITORY=s3:s3.wasabisys.com/shop-backups\nexport RESTIC_PASSWORD='[{v}]'\nexport AWS_ACCESS_KEY_ID={S20}\nexport AWS_SECRET_ACCESS_KEY=[{a40}]\npg_dump -Fc shop ¦ restic backup --stdin --stdin-filename shop.dump\ncurl -fsS https://hc-ping.com/[{uuid}] > /dev/null",
    ),
    (
        "cat deploy\\deploy.ps1",
        "$ErrorActionPreference = 'Stop'\n$pw = ConvertTo-SecureString '[{v}]' -AsPlainText -Force\n$cred = New-Object System.Management.Automation.PSCredential('CORP\\svc-deploy', $pw)\nCopy-Item -Recurse .\\publish \\\\web-1\\wwwroot -Credential $cred\nInvoke-Command -ComputerName web-1 -Credential $cred { Restart-WebAppPool shop }",
    ),
    (
        "sed -n '1,16p' scripts/seed.py",
        'from shop.models import ApiClient, User\n\nROBOT_PASSWORD = "[{v}]"\n\n\ndef run():\n    robot = User.objects.create_user("robot", password=ROBOT_PASSWORD)\n    ApiClient.objects.create(\n        owner=robot,\n        key_id="ci",\n        secret="[{w43}]",\n    )',
    ),
    (
        "cat Vagrantfile",
        'Vagrant.configure("2") do ¦config¦\n  config.vm.box = "generic/windows10"\n  config.winrm.username = "builder"\n  config.winrm.password = "[{v}]"\n  config.vm.provider :vsphere do ¦v¦\n    v.host = "vcenter.corp"\n    v.password = "[{a8}#{a4}]"\n  end\nend',
    ),
    (
        "grep -nE 'WIFI|MQTT|OTA' sdkconfig",
        '412:CONFIG_EXAMPLE_WIFI_SSID="shop-iot"\n413:CONFIG_EXAMPLE_WIFI_PASSWORD="[{v}]"\n1290:CONFIG_SHOP_MQTT_USER="sensor"\n1291:CONFIG_SHOP_MQTT_PASS="[{a16}]"\n1295:CONFIG_SHOP_OTA_URL="https://ota.shop.corp/fw.bin"',
    ),
    (
        "git show HEAD~3:config/initializers/devise.rb | grep -v '^ *#'",
        "Devise.setup do ¦config¦\n  config.secret_key = '[{h128}]'\n  config.mailer_sender = 'noreply@shop.corp'\n  require 'devise/orm/active_record'\n  config.pepper = '[{h128}]'\n  config.omniauth :github, 'Iv1.b507a08c87ecfe98', '[{h40}]', scope: 'user'\nend",
    ),
    (
        "git diff --cached",
        "diff --git a/src/config/firebase.ts b/src/config/firebase.ts\nindex 5f1d2c7..9b03ae1 100644\n--- a/src/config/firebase.ts\n+++ b/src/config/firebase.ts\n@@ -3,4 +3,4 @@ import { initializeApp } from 'firebase/app';\n export const app = initializeApp({\n   projectId: 'shop-prod',\n-  apiKey: process.env.FIREBASE_KEY,\n+  apiKey: 'AI|za[{w35}]',\n });",
    ),
    (
        "git blame -s -L 10,14 etc/settings.ini",
        "^3c1f0a2 10) ⟦broker⟧\n^3c1f0a2 11) host = mq-1\n7be41d90 12) user = worker\n7be41d90 13) password = [{v}]\n^3c1f0a2 14) vhost = /shop",
    ),
    (
        "gitleaks dir --no-banner -l error -f json -r - . | jq -r '.[] | .RuleID, .File, .Secret'",
        "slack-bot-token\nbots/standup.py\nxo|xb-{d12}-{d13}-[{a24}]",
    ),
    (
        "trufflehog git file://. --only-verified --json 2>/dev/null | jq '{DetectorName, Raw, Redacted}'",
        '{\n  "DetectorName": "Github",\n  "Raw": "gh|p_[{g36}]",\n  "Redacted": ""\n}',
    ),
    (
        "jq -r '.cells[] | select(.cell_type==\"code\") | .source | add' notebooks/churn.ipynb | head -9",
        'import pandas as pd\nimport snowflake.connector\n\ncon = snowflake.connector.connect(\n    account="xy12345.eu-central-1",\n    user="ANALYST",\n    password="[{v}]",\n    warehouse="WH_S",\n)',
    ),
    (
        "cat .gitmodules",
        '⟦submodule "vendor/ui"⟧\n\tpath = vendor/ui\n\turl = https://ci:gl|pat-[{w20}]@git.corp/shop/ui.git\n⟦submodule "vendor/proto"⟧\n\tpath = vendor/proto\n\turl = ../proto.git',
    ),
    (
        "grep -n 'git+https' requirements.txt",
        "14:shop-sdk @ git+https://gh|p_[{g36}]@github.com/shop/sdk.git@v2.4.1",
    ),
    (
        "cat ~/.upmconfig.toml",
        '⟦npmAuth."https://upm.corp"⟧\ntoken = "[{w48}]"\nemail = "build@shop.corp"\nalwaysAuth = true',
    ),
    (
        "cat ~/.sbt/.credentials",
        "realm=Sonatype Nexus Repository Manager\nhost=nexus.corp\nuser=ci\npassword=[{v}]",
    ),
    (
        "sed -n '1,12p' Gemfile",
        "source 'https://rubygems.org'\n\nsource 'https://enterprise.contribsys.com/' do\n  gem 'sidekiq-ent'\nend\n\nsource 'https://[{h8}:{h8}]@gems.graphql.pro' do\n  gem 'graphql-pro'\nend",
    ),
    (
        "grep -nE 'password|secret' infra/*.tf",
        'infra/db.tf:18:  master_password        = "[{v}]"\ninfra/db.tf:31:  manage_master_user_password = false\ninfra/vars.tf:9:variable "oauth_client_secret" {',
    ),
    (
        "jq .backend .terraform/terraform.tfstate",
        '{\n  "type": "azurerm",\n  "config": {\n    "access_key": "[{b86}==]",\n    "container_name": "tfstate",\n    "key": "prod.terraform.tfstate",\n    "storage_account_name": "shoptfstate"\n  },\n  "hash": 2818471265\n}',
    ),
    (
        "cat cdk.out/ShopStack.template.json | jq '.Resources.Hook.Properties.Environment'",
        '{\n  "Variables": {\n    "STAGE": "prod",\n    "ZENDESK_TOKEN": "[{a40}]"\n  }\n}',
    ),
    (
        "sudo cat /var/lib/cloud/instance/user-data.txt",
        '#cloud-config\nhostname: web-3\nchpasswd:\n  expire: false\n  users:\n    - {name: ubuntu, password: "[{v}]", type: text}\nruncmd:\n  - tailscale up --authkey=tskey|-auth-k{a10}CNTRL-[{a32}]\n  - systemctl enable --now shop',
    ),
    (
        "grep -A6 -i password autounattend.xml",
        "        <AutoLogon>\n          <Password>\n            <Value>[{a12}]</Value>\n            <PlainText>true</PlainText>\n          </Password>\n          <Enabled>true</Enabled>\n          <LogonCount>1</LogonCount>\n          <Username>Administrator</Username>",
    ),
    (
        "grep 'passwd/.*-password ' pxe/preseed.cfg",
        "d-i passwd/root-password password [{v}]\nd-i passwd/user-password password [{a12}]",
    ),
    (
        "tail -5 ~/.psql_history",
        "\\d customers\nselect count(*) from customers;\nalter role reporting with password '[{v}]';\n\\du\n\\q",
    ),
    (
        "tail -4 ~/.mysql_history",
        "show databases;\ncreate user 'etl'@'%' identified by '[{v}]';\ngrant select on shop.* to 'etl'@'%';\nflush privileges;",
    ),
    (
        "tail -4 ~/.python_history",
        'import boto3\ns = boto3.Session(aws_access_key_id="AK|IA{S16}", aws_secret_access_key="[{b40}]")\ns.client("s3").list_buckets()\nexit()',
    ),
    (
        "grep -n -B0 -A1 'docker login' ~/.local/share/fish/fish_history",
        "212:- cmd: docker login ghcr.io -u shop-bot -p gh|p_[{g36}]\n213-  when: 1795771204",
    ),
    (
        "tail -3 ~/.node_repl_history",
        "const c = new (require('pg').Client)('postgres://shop:[{a16}]@db-1/shop')\nawait c.connect()\n(await c.query('select now()')).rows",
    ),
    (
        "fc -ln -4",
        "\t cd infra\n\t export TF_VAR_db_password=[{a20}]\n\t terraform apply -auto-approve\n\t curl -u elastic:[{w20}] https://es-1:9200/_cat/indices",
    ),
    (
        "Get-Content (Get-PSReadLineOption).HistorySavePath -Tail 4",
        "cd C:\\src\\shop\n$env:NUGET_API_KEY = 'oy2[{s43}]'\ndotnet nuget push .\\out\\*.nupkg -k $env:NUGET_API_KEY -s https://api.nuget.org/v3/index.json\nnet use Z: \\\\nas-1\\builds /user:CORP\\builder [{a12}]",
    ),
    ("doskey /history", "cd \\src\\shop\nset PGPASSWORD=[{v}]\npsql -h pg-1 -U shop -f migrate.sql"),
    (
        "gh run view 9182734410 --log-failed | tail -4",
        "migrate\tRun migrations\t2026-11-28T09:14:02.1180412Z > knex migrate:latest --env ci\nmigrate\tRun migrations\t2026-11-28T09:14:03.5217790Z Using connection postgresql://shop:[{a20}]@pg-1.internal:5432/shop\nmigrate\tRun migrations\t2026-11-28T09:14:13.0021166Z KnexTimeoutError: Timeout acquiring a connection. The pool is probably full.\nmigrate\tRun migrations\t2026-11-28T09:14:13.0120914Z ##⟦error⟧Process completed with exit code 1.",
    ),
    (
        "docker compose logs --no-log-prefix api | head -5",
        '{"level":"info","time":"2026-11-28T08:00:01Z","msg":"starting","version":"4.12.0"}\n{"level":"debug","time":"2026-11-28T08:00:01Z","msg":"config","config":{"port":8080,"smtp":{"host":"smtp.corp","user":"relay","password":"[{v}]"},"cache":{"ttl":300}}}\n{"level":"info","time":"2026-11-28T08:00:02Z","msg":"connected to database"}\n{"level":"info","time":"2026-11-28T08:00:02Z","msg":"listening on :8080"}',
    ),
    (
        "tail -6 log/development.log",
        'Started GET "/users/password/edit?reset_password_token=[{w20}]" for 127.0.0.1 at 2026-11-28 11:02:31 +0100\nProcessing by Devise::PasswordsController#edit as HTML\n  Parameters: {"reset_password_token"=>"⟦FILTERED⟧"}\n  Rendering layout layouts/application.html.erb\n  Rendered devise/passwords/edit.html.erb within layouts/application (Duration: 6.1ms ¦ GC: 0.0ms)\nCompleted 200 OK in 19ms (Views: 14.2ms ¦ ActiveRecord: 0.9ms)',
    ),
    (
        "pytest -q tests/test_config.py",
        "F                                                                        ⟦100%⟧\n=================================== FAILURES ===================================\n__________________________________ test_dsn ____________________________________\n\n    def test_dsn():\n>       assert load().dsn == \"postgres://shop@localhost/shop\"\nE       AssertionError: assert 'postgres://s...localhost/shop' == 'postgres://s...localhost/shop'\nE         \nE         - postgres://shop@localhost/shop\nE         + postgres://shop:[{a16}]@localhost/shop\n\ntests/test_config.py:9: AssertionError\n=========================== short test summary info ============================\nFAILED tests/test_config.py::test_dsn - AssertionError: assert 'postgres://s...\n1 failed in 0.21s",
    ),
    (
        "go test ./internal/auth -run TestIssue -v",
        "=== RUN   TestIssue\n    issue_test.go:31: issued eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.eyJ[{w104}.{w86}]\n--- PASS: TestIssue (0.00s)\nPASS\nok  \tshop/internal/auth\t0.018s",
    ),
    (
        "npx jest src/auth --silent=false 2>&1 | head -16",
        "  console.log\n    login response { status: 200, refreshToken: '[{h80}]' }\n\n      at Object.<anonymous> (src/auth/login.test.ts:22:11)\n\nPASS src/auth/login.test.ts\n  login\n    ✓ returns a pair of tokens (84 ms)\n    ✓ rejects a wrong password (12 ms)\n\nTest Suites: 1 passed, 1 total\nTests:       2 passed, 2 total\nSnapshots:   0 total\nTime:        1.204 s",
    ),
    (
        "GIT_TRACE_REDACT=0 GIT_TRACE_CURL=1 git fetch 2>&1 | grep -i 'authorization'",
        "11:40:18.220131 http.c:845              => Send header: Authorization: Basic [{a46}==]",
    ),
    (
        "bash -x deploy.sh 2>&1 | head -5",
        "+ set -euo pipefail\n+ source .deploy.env\n++ REGISTRY_USER=ci\n++ REGISTRY_PASSWORD=[{a22}]\n+ docker build -t registry.corp/shop:7be41d9 .",
    ),
    (
        "kubectl logs deploy/worker --tail=4",
        '  File "/usr/local/lib/python3.12/site-packages/redis/connection.py", line 405, in on_connect\n    raise ConnectionError("Invalid username-password pair")\nredis.exceptions.ConnectionError: Invalid username-password pair\n2026-11-28 10:11:12,481 CRITICAL worker: giving up on redis://default:[{a32}]@redis-master.cache:6379/0',
    ),
    (
        "sudo tcpdump -A -s0 -c 1 -i lo 'tcp dst port 6379 and greater 80' 2>/dev/null",
        "10:51:22.118204 IP localhost.51822 > localhost.6379: Flags ⟦P.⟧, seq 1:49, ack 1, win 512, options ⟦nop,nop,TS val 812 ecr 812⟧, length 48\nE..d..@.@.............n.........*2\n$4\nAUTH\n$28\n[{a28}]",
    ),
    (
        "tshark -r login.pcap -Y http.request -T fields -e http.request.uri -e http.file_data",
        '/api/login\t{"username":"robot","password":"[{v}]"}',
    ),
    (
        "mitmdump -nr flows.mitm --flow-detail 2 2>/dev/null | head -7",
        "127.0.0.1:52114: POST https://api.openai.com/v1/embeddings\n    Host: api.openai.com\n    Accept: application/json\n    Authorization: Bearer sk-|proj-[{w74}T3Blbk|FJ{w74}]\n    Content-Type: application/json\n    Content-Length: 118\n << 200 OK 18.1k",
    ),
    (
        "journalctl -u streamer -n 2 -o cat",
        "Output #0, flv, to 'rtmp://a.rtmp.youtube.com/live2/[{s4}-{s4}-{s4}-{s4}-{s4}]':\nframe= 1812 fps= 30 q=23.0 size=   22528KiB time=00:01:00.40 bitrate=3055.4kbits/s speed=1.0x",
    ),
    (
        "grep -i 'alter role' /var/log/postgresql/postgresql-16-main.log",
        "2026-11-27 14:02:51.400 UTC ⟦812⟧ postgres@shop LOG:  statement: ALTER ROLE metabase WITH LOGIN PASSWORD '[{v}]';",
    ),
    (
        "strace -f -s 200 -e trace=sendto -p 4120 2>&1 | head -2",
        'strace: Process 4120 attached with 3 threads\n⟦pid  4122⟧ sendto(14, "GET /v1/rates?access_key=[{h32}] HTTP/1.1\\r\\nHost: api.exchangerate.host\\r\\n\\r\\n", 102, MSG_NOSIGNAL, NULL, 0) = 102',
    ),
    (
        "python -c 'from app.db import engine; print(engine.url.render_as_string(hide_password=False))'",
        "postgresql+psycopg://orders:[{w24}]@pg-1:5432/orders",
    ),
    (
        "npx tsx -e 'import { env } from \"./src/env\"; console.log(env)'",
        "{\n  NODE_ENV: 'development',\n  PORT: 3000,\n  BETTER_AUTH_SECRET: '[{a32}]',\n  RESEND_API_KEY: 're|_[{a8}_{a24}]',\n  UPLOAD_DIR: './uploads'\n}",
    ),
    ("deno eval 'console.log(Deno.env.toObject().PAYLOAD_SECRET)'", "[{v}]"),
    (
        'Rscript -e \'cat(readLines("~/.Renviron"), sep = "\\n")\'',
        "R_LIBS_USER=~/R/library\nGITHUB_PAT=github|_pat_[{a22}_{a59}]\nWAREHOUSE_PWD=[{v}]",
    ),
    (
        "julia --project -e 'using Shop; println(Shop.settings())'",
        'Shop.Settings("db-1", 5432, "julia", "[{a18}]")',
    ),
    (
        "bb -e '(-> (slurp \"config.edn\") read-string :smtp prn)'",
        '{:host "smtp.corp", :port 587, :user "relay", :pass "[{v}]", :tls true}',
    ),
    (
        "bin/rails runner 'pp ActiveRecord::Base.connection_db_config.configuration_hash'",
        '{adapter: "trilogy",\n encoding: "utf8mb4",\n pool: 5,\n username: "shop",\n password: "[{v}]",\n host: "db-1",\n database: "shop_production"}',
    ),
    (
        "python manage.py dumpdata oauth2_provider.accesstoken --indent 1 | head -12",
        '⟦\n{\n "model": "oauth2_provider.accesstoken",\n "pk": 7,\n "fields": {\n  "user": 3,\n  "source_refresh_token": null,\n  "token": "[{a30}]",\n  "expires": "2026-11-29T20:00:00Z",\n  "scope": "read write"\n }\n}',
    ),
    (
        "psql shop -c '\\deu+'",
        "                        List of user mappings\n Server ¦ User name ¦                  FDW options\n--------+-----------+-----------------------------------------------\n crm    ¦ shop      ¦ (\"user\" 'crm_ro', password '[{a20}]')\n(1 row)",
    ),
    (
        "mysqldump --compact shop wp_options --where=\"option_name='woocommerce_stripe_settings'\"",
        'INSERT INTO `wp_options` VALUES (4121,\'woocommerce_stripe_settings\',\'a:3:{s:7:\\"enabled\\";s:3:\\"yes\\";s:10:\\"secret_key\\";s:107:\\"sk_|live_[{a99}]\\";s:14:\\"webhook_secret\\";s:38:\\"whsec|_[{a32}]\\";}\',\'yes\');',
    ),
    (
        "zcat backups/shop-2026-11-28.sql.gz | grep -m1 'INSERT INTO .personal_access_tokens'",
        "INSERT INTO `personal_access_tokens` VALUES (1,'App\\\\Models\\\\User',42,'mobile','[{h64}]','⟦\\\"*\\\"⟧',NULL,NULL,'2026-11-02 09:12:41','2026-11-02 09:12:41');",
    ),
    (
        "pg_restore -a -t integrations -f - shop.dump | sed -n '/^COPY/,/^\\\\./p'",
        "COPY public.integrations (id, name, api_secret, enabled) FROM stdin;\n1\tshippo\tshippo|_live_[{h40}]\tt\n2\tdhl\t[{a32}]\tf\n\\.",
    ),
    (
        "redis-cli monitor | head -3",
        'OK\n1795859400.118204 ⟦0 10.20.0.11:51822⟧ "SET" "sess:[{w32}]" "{\\"uid\\":42}" "EX" "86400"\n1795859400.220013 ⟦0 10.20.0.11:51822⟧ "GET" "page:home"',
    ),
    (
        "cat /opt/trino/etc/catalog/orders.properties",
        "connector.name=postgresql\nconnection-url=jdbc:postgresql://pg-1:5432/orders\nconnection-user=trino\nconnection-password=[{v}]",
    ),
    (
        "redis-cli lrange queue:mailers 0 0",
        '1) "{\\"class\\":\\"InviteMailer\\",\\"args\\":⟦42,\\"https://shop.corp/invite/[{w43}]\\"⟧,\\"retry\\":true,\\"jid\\":\\"{h24}\\"}"',
    ),
    (
        "aws codebuild batch-get-projects --names shop-ci --query 'projects[0].environment.environmentVariables'",
        '⟦\n    {\n        "name": "STAGE",\n        "value": "prod",\n        "type": "PLAINTEXT"\n    },\n    {\n        "name": "SNYK_TOKEN",\n        "value": "[{uuid}]",\n        "type": "PLAINTEXT"\n    }\n⟧',
    ),
    ("cat ~/.aws/sso/cache/*.json | jq -r '.accessToken // empty'", "aoaAAAAAG[{w120}]:[{w130}]"),
    ("summon -p keyring.py -f secrets.yml printenv SHOP_API_PASSWORD", "[{v}]"),
    (
        "az containerapp secret list -g prod -n shop --show-values -o table",
        "Name        Value\n----------  --------------------------------\ndb-pass     [{a20}]\nqueue-conn  Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=app;SharedAccessKey=[{b43}=]",
    ),
    (
        "az appconfig kv list -n shop-cfg --key 'Mail:*' --query '[].{k:key,v:value}' -o tsv",
        "Mail:Host\tsmtp.corp\nMail:Password\t[{v}]",
    ),
    (
        "kubectl get cronjob backup -n ops -o yaml | grep -A1 'name: .*PASS'",
        "            - name: PGPASSWORD\n              value: [{v}]\n--\n            - name: B2_PASSPHRASE\n              value: [{word}-{word}-{word}-{word}]",
    ),
    (
        "kubectl get application shop -n argocd -o yaml | yq .spec.source.helm",
        "parameters:\n  - name: image.tag\n    value: 4.12.0\n  - name: auth.rootPassword\n    value: [{v}]\nreleaseName: shop",
    ),
    (
        "docker exec web cat /app/config/local.yaml",
        "server:\n  port: 8080\nstorage:\n  endpoint: http://minio:9000\n  accessKey: shop\n  secretKey: [{a40}]",
    ),
    (
        "sudo crictl inspect 4c1b9e | jq -r '.info.runtimeSpec.process.env[]' | grep -v KUBERNETES",
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin\nHOSTNAME=api-0\nOIDC_CLIENT_SECRET=[{v}]",
    ),
    (
        "kind get kubeconfig --name shop | grep client-key-data",
        "    client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ[{b800}]==",
    ),
    (
        "aws-vault exec prod -- env | grep ^AWS_",
        "AWS_VAULT=prod\nAWS_REGION=eu-central-1\nAWS_ACCESS_KEY_ID=AS|IA{S16}\nAWS_SECRET_ACCESS_KEY=[{b40}]\nAWS_SESSION_TOKEN=IQoJb3JpZ2luX2Vj[{b340}]==",
    ),
    (
        "vault write -format=json pki/issue/web common_name=api.shop.corp ttl=72h | jq -r .data.private_key",
        "-----BEGIN RSA PRI|VATE KEY-----\n[MIIEowIBAAKCAQEA{b48}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b64}]\n[{b30}]==\n-----END RSA PRI|VATE KEY-----",
    ),
    (
        "keepassxc-cli export --format csv team.kdbx < pw.txt | head -3",
        '"Group","Title","Username","Password","URL","Notes","TOTP","Icon","Last Modified","Created"\n"Root/Infra","grafana","admin","[{v}]","https://grafana.corp","","","0","2026-03-02T10:11:12Z","2025-01-07T08:00:00Z"\n"Root/Infra","switches","netadmin","[{a14}]","","","[{t32}]","0","2026-03-02T10:11:12Z","2025-01-07T08:00:00Z"',
    ),
    (
        "bw export --format json --raw | jq -c '.items[0].login | {username, password}'",
        '{"username":"billing-bot","password":"[{v}]"}',
    ),
    (
        "sudo cat /etc/dovecot/dovecot-sql.conf.ext",
        "driver = mysql\nconnect = host=127.0.0.1 dbname=mail user=dovecot password=[{a18}]\ndefault_pass_scheme = SHA512-CRYPT",
    ),
    ("cat ~/.mbsyncrc", 'IMAPAccount work\nHost imap.corp\nUser bot\nPass "[{v}]"\nTLSType IMAPS'),
    (
        "ssh core-rtr 'show configuration | display set | match \"secret|authentication-key\"'",
        'set system radius-server 10.20.0.5 secret "$9$[{w28}]"\nset system tacplus-server 10.20.0.6 secret "$9$[{w32}]"\nset protocols bgp group upstream authentication-key "$9$[{w26}]"',
    ),
    (
        "ssh mikrotik '/export show-sensitive' | grep -iE 'pass|secret'",
        "add authentication-types=wpa2-psk name=office wpa2-pre-shared-key=[{a18}]\nadd name=site-b password=[{a14}] profile=vpn service=l2tp\nset ipsec-secret=[{a24}] use-ipsec=yes",
    ),
    (
        "tsig-keygen -a hmac-sha256 acme-update",
        'key "acme-update" {\n\talgorithm hmac-sha256;\n\tsecret "[{b43}=]";\n};',
    ),
    (
        "grep -vE '^(#|$)' /etc/turnserver.conf",
        "listening-port=3478\nuse-auth-secret\nstatic-auth-secret=[{h64}]\nrealm=turn.shop.corp\ncli-password=[{word}{a8}]",
    ),
    (
        "cat android/app/src/main/res/values/secrets.xml",
        '<?xml version="1.0" encoding="utf-8"?>\n<resources>\n    <string name="facebook_client_token">[{h32}]</string>\n    <string name="amplitude_secret" translatable="false">[{h32}]</string>\n</resources>',
    ),
    (
        "cat ios/Config/Release.xcconfig",
        "PRODUCT_BUNDLE_IDENTIFIER = com.shop.app\nAPI_HOST = api.shop.corp\nAPI_SECRET = [{a36}]\nSENTRY_AUTH_TOKEN = sntr|yu_[{h64}]",
    ),
    (
        "adb logcat -d -s OkHttp | tail -3",
        "11-28 10:21:07.401  8121  8160 I OkHttp  : --> GET https://api.shop.corp/v2/me\n11-28 10:21:07.402  8121  8160 I OkHttp  : Authorization: Bearer [{w64}]\n11-28 10:21:07.402  8121  8160 I OkHttp  : --> END GET",
    ),
    (
        "defaults read com.shop.desktop",
        '{\n    NSWindowFrameMain = "120 200 1280 800 0 0 2560 1440 ";\n    licenseKey = "[{S6}-{S6}-{S6}]";\n    syncPassword = "[{a15}]";\n}',
    ),
    (
        "/usr/libexec/PlistBuddy -c 'Print :EnvironmentVariables' ~/Library/LaunchAgents/com.shop.agent.plist",
        "Dict {\n    AGENT_TOKEN = [{w48}]\n    LOG_LEVEL = info\n}",
    ),
    (
        "grep -E 'rcon|query' /srv/minecraft/server.properties",
        "enable-query=false\nenable-rcon=true\nquery.port=25565\nrcon.password=[{v}]\nrcon.port=25575",
    ),
    (
        "cat .dvc/config.local",
        "⟦'remote \"store\"'⟧\n    access_key_id = shop-dvc\n    secret_access_key = [{a40}]",
    ),
    (
        "cat spark/conf/spark-defaults.conf | grep s3a",
        "spark.hadoop.fs.s3a.endpoint       http://minio:9000\nspark.hadoop.fs.s3a.access.key     spark\nspark.hadoop.fs.s3a.secret.key     [{v}]",
    ),
    (
        "Get-CimInstance Win32_Process -Filter \"name='sqlpackage.exe'\" | Select-Object -ExpandProperty CommandLine",
        'sqlpackage.exe /Action:Publish /SourceFile:shop.dacpac /TargetServerName:sql-1 /TargetDatabaseName:shop /TargetUser:deploy /TargetPassword:"[{v}]"',
    ),
    (
        "nssm get shop-api AppEnvironmentExtra",
        "ASPNETCORE_ENVIRONMENT=Production\nJwt__Key=[{b43}=]\nConnectionStrings__Main=Server=sql-1;Database=shop;User Id=shop;Password=[{p14}]",
    ),
    ("%windir%\\system32\\inetsrv\\appcmd list apppool shop /text:processModel.password", "[{v}]"),
    (
        "stripe webhook_endpoints create --url https://shop.corp/stripe -d 'enabled_events[]=charge.failed' | jq '{id, secret, status}'",
        '{\n  "id": "we_1{a23}",\n  "secret": "whsec|_[{a32}]",\n  "status": "enabled"\n}',
    ),
    (
        "kcat -b kafka-1 -t user.events -C -o -1 -e -q",
        '{"type":"password_reset_requested","user_id":42,"token":"[{w43}]","ts":1795859400}',
    ),
    (
        "sudo grep -E '^DB' /etc/zabbix/zabbix_server.conf",
        "DBName=zabbix\nDBUser=zabbix\nDBPassword=[{v}]",
    ),
)

CONTROLS = (
    (
        "cat keys/license_pub.pem",
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE{b28}\n{b58}==\n-----END PUBLIC KEY-----",
    ),
    (
        "ssh-keyscan -t ed25519 git.corp 2>/dev/null",
        "git.corp ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43}",
    ),
    (
        "cat /etc/ssh/trusted-user-ca-keys.pem",
        "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABB{b88}= user-ca",
    ),
    (
        "openssl req -new -key tls.key -subj /CN=api.shop.corp",
        "-----BEGIN CERTIFICATE REQUEST-----\nMIIC{b60}\n{b64}\n{b64}\n{b64}\n{b64}\n{b38}==\n-----END CERTIFICATE REQUEST-----",
    ),
    (
        "openssl dhparam -in dh2048.pem | tail -4",
        "{b64}\n{b64}\n{b14}CAQI=\n-----END DH PARAMETERS-----",
    ),
    (
        "cosign public-key --key awskms:///alias/sign",
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE{b28}\n{b58}==\n-----END PUBLIC KEY-----",
    ),
    (
        "cat dist/SHA256SUMS.asc",
        "-----BEGIN PGP SIGNATURE-----\n\niQIzBAABCgAdFiEE{b48}\n{b64}\n{b64}\n{b64}\n{b44}\n=a1B2\n-----END PGP SIGNATURE-----",
    ),
    (
        "minisign -Sm app.tgz < /dev/null; cat app.tgz.minisig",
        "untrusted comment: signature from minisign secret key\nRU{b98}=\ntrusted comment: timestamp:1795859400\tfile:app.tgz\thashed\n{b86}==",
    ),
    ("b3sum dist/*", "{h64}  dist/app-linux-amd64\n{h64}  dist/app-darwin-arm64"),
    (
        "grep -A3 '^axios@' yarn.lock",
        'axios@^1.7.4:\n  version "1.7.9"\n  resolved "https://registry.yarnpkg.com/axios/-/axios-1.7.9.tgz#{h40}"\n  integrity sha512-{b86}==',
    ),
    (
        "sed -n '/lodash@4/,/^$/p' pnpm-lock.yaml",
        "  lodash@4.17.21:\n    resolution: {integrity: sha512-{b86}==}",
    ),
    (
        "grep -A2 '^CHECKSUMS' Gemfile.lock",
        "CHECKSUMS\n  actioncable (8.0.1) sha256={h64}\n  actionmailbox (8.0.1) sha256={h64}",
    ),
    (
        "grep -B1 -A4 'name: dio' pubspec.lock",
        '  dio:\n    dependency: "direct main"\n    description:\n      name: dio\n      sha256: {h64}\n      url: "https://pub.dev"',
    ),
    (
        "jq -c '.pins[0]' Package.resolved",
        '{"identity":"alamofire","kind":"remoteSourceControl","location":"https://github.com/Alamofire/Alamofire.git","state":{"revision":"{h40}","version":"5.10.2"}}',
    ),
    (
        "head -3 requirements.lock",
        "certifi==2025.8.3 \\\n    --hash=sha256:{h64} \\\n    --hash=sha256:{h64}",
    ),
    (
        'jq \'.dependencies["net8.0"]["Serilog"]\' src/Shop/packages.lock.json',
        '{\n  "type": "Direct",\n  "requested": "⟦4.2.0, )",\n  "resolved": "4.2.0",\n  "contentHash": "{b86}=="\n}',
    ),
    (
        "sed -n '/SPEC CHECKSUMS/,/PODFILE/p' ios/Podfile.lock",
        "SPEC CHECKSUMS:\n  FBLazyVector: {h40}\n  Yoga: {h40}\n\nPODFILE CHECKSUM: {h40}",
    ),
    ("crane digest registry.corp/shop/api:4.12.0", "sha256:{h64}"),
    (
        "git reflog -4",
        "{h7} HEAD@{0 min ago}: commit: rotate the session key nightly\n{h7} HEAD@{5 min ago}: checkout: moving from main to fix/token-expiry\n{h7} HEAD@{1 hour ago}: pull: Fast-forward\n{h7} HEAD@{2 hours ago}: reset: moving to HEAD~1",
    ),
    (
        "git cat-file -p HEAD^{tree}",
        "100644 blob {h40}\t.env.dist\n100644 blob {h40}\tREADME.md\n040000 tree {h40}\tsecrets",
    ),
    (
        "git status --short",
        "M  src/auth/password_policy.py\n A tests/test_token_{word}.py\n?? .env.local\n?? secrets/",
    ),
    (
        "kubectl get secret shop -o yaml | sed -E 's/^(  [A-Z_]+:) .*/\\1 <redacted>/'",
        'apiVersion: v1\ndata:\n  DATABASE_PASSWORD: <redacted>\n  SESSION_KEY: <redacted>\nkind: Secret\nmetadata:\n  name: shop\n  namespace: prod\n  resourceVersion: "{d9}"\n  uid: {uuid}\ntype: Opaque',
    ),
    (
        "gitleaks git --redact -v --no-banner",
        "Finding:     api_key = REDACTED\nSecret:      REDACTED\nRuleID:      generic-api-key\nEntropy:     4.{d6}\nFile:        src/legacy.py\nLine:        14\nCommit:      {h40}\nFingerprint: {h40}:src/legacy.py:generic-api-key:14",
    ),
    (
        "celery -A shop report | grep -E 'broker|backend'",
        "broker_url: 'amqp://worker:********@mq-1:5672/shop'\nresult_backend: 'redis://:********@cache-1:6379/{d1}'",
    ),
    (
        "python -c 'from app.db import engine; print(engine)'",
        "Engine(postgresql+psycopg://orders:***@pg-1:54{d2}/orders)",
    ),
    (
        "duckdb shop.db -c 'select name, secret_string from duckdb_secrets()'",
        "name=s3_shop;type=s3;provider=config;serializable=true;scope=s3://shop-{word};key_id=redacted;region=eu-central-1;secret=redacted;session_token=redacted",
    ),
    (
        "wg show",
        "interface: wg0\n  public key: {b43}=\n  private key: (hidden)\n  listening port: 51820\n\npeer: {b43}=\n  preshared key: (hidden)\n  allowed ips: 10.9.0.2/32\n  latest handshake: {d2} seconds ago",
    ),
    (
        "glab variable get DEPLOY_KEY --scope staging",
        "ERROR: GET https://git.corp/api/v4/projects/{d3}/variables/DEPLOY_KEY: 404 {message: 404 Variable Not Found}",
    ),
    (
        "psql 'host=pg-1 user=shop dbname=shop' -c 'select 1'",
        'psql: error: connection to server at "pg-1" (10.20.0.21), port 54{d2} failed: FATAL:  password authentication failed for user "shop"',
    ),
    (
        "git push origin HEAD",
        "remote: HTTP Basic: Access denied. If a password was provided for Git authentication, the password was incorrect or you're required to use a token instead of a password.\nremote: correlation id {S26}\nfatal: Authentication failed for 'https://git.corp/shop/api.git/'",
    ),
    (
        "python worker.py 2>&1 | tail -3",
        '  File "/srv/worker.py", line {d2}, in <module>\n    stripe.api_key = os.environ⟦"STRIPE_SECRET_KEY"⟧\nKeyError: \'STRIPE_SECRET_KEY\'',
    ),
    (
        "terraform init -no-color",
        "Initializing the backend...\n\nError: No valid credential sources found\n\nPlease see https://www.terraform.io/docs/language/settings/backends/s3.html\nfor more information about providing credentials.\n\nError: failed to refresh cached credentials, no EC2 IMDS role found, request ID {uuid}",
    ),
    (
        "docker pull registry.corp/shop/base:12",
        'Error response from daemon: Head "https://registry.corp/v2/shop/base/manifests/12": unauthorized: authentication required (request {h32})',
    ),
    (
        "aws s3 ls s3://shop-backups",
        "An error occurred (InvalidAccessKeyId) when calling the ListObjectsV2 operation: The AWS Access Key Id you provided does not exist in our records. Request ID: {S16}",
    ),
    (
        "keytool -list -keystore upload.jks -storepass:env KS_PASS",
        "keytool error: java.io.IOException: keystore password was incorrect (upload.jks, {d4} bytes)",
    ),
    (
        "npm whoami",
        "npm error code ENEEDAUTH\nnpm error need auth This command requires you to be logged in.\nnpm error need auth You need to authorize this machine using `npm adduser`\nnpm error A complete log of this run can be found in: /root/.npm/_logs/2026-11-28T10_11_12_{d3}Z-debug-0.log",
    ),
    (
        'curl -s -H "Authorization: Bearer $T" https://api.corp/v2/me',
        '{"error":{"code":"token_expired","message":"The access token expired","request_id":"req_{a24}"}}',
    ),
    (
        "sed -n '/auth:/,/metrics:/p' charts/shop/values.yaml",
        'auth:\n  existingSecret: shop-{word}-credentials\n  existingSecretPasswordKey: postgres-password\n  username: shop\n  password: ""\nmetrics:',
    ),
    (
        "cat compose.prod.yml | grep -A9 '  db:'",
        "  db:\n    image: postgres:16@sha256:{h64}\n    environment:\n      POSTGRES_USER: shop\n      POSTGRES_PASSWORD_FILE: /run/secrets/db_password\n    secrets:\n      - db_password\nsecrets:\n  db_password:\n    file: ./secrets/db_password.txt",
    ),
    (
        "cat src/auth/LoginForm.tsx | sed -n '12,24p'",
        '  const ⟦password, setPassword⟧ = useState(\'\');\n  const passwordId = useId(); // {h8}\n\n  return (\n    <form onSubmit={ onSubmit }>\n      <input\n        id={ passwordId }\n        type="password"\n        autoComplete="current-password"\n        value={ password }\n      />\n    </form>\n  );',
    ),
    (
        "sed -n '/create_table \"api_clients\"/,/end/p' db/schema.rb",
        '  create_table "api_clients", force: :cascade do ¦t¦\n    t.string "client_id", null: false\n    t.string "client_secret_digest", null: false\n    t.string "password_salt", limit: {d2}\n    t.datetime "token_expires_at"\n    t.index ⟦"client_id"⟧, name: "index_api_clients_on_client_id", unique: true\n  end',
    ),
    (
        "mysql -t -e 'describe credentials' shop",
        "+------------+--------------+------+-----+---------+----------------+\n¦ Field      ¦ Type         ¦ Null ¦ Key ¦ Default ¦ Extra          ¦\n+------------+--------------+------+-----+---------+----------------+\n¦ id         ¦ int          ¦ NO   ¦ PRI ¦ NULL    ¦ auto_increment ¦\n¦ username   ¦ varchar(1{d2}) ¦ NO   ¦     ¦ NULL    ¦                ¦\n¦ secret     ¦ varchar(1{d2}) ¦ NO   ¦     ¦ NULL    ¦                ¦\n¦ api_key_id ¦ char(36)     ¦ YES  ¦     ¦ NULL    ¦                ¦\n+------------+--------------+------+-----+---------+----------------+",
    ),
    (
        "cat schema.graphql | grep -B1 -A6 'input Login'",
        "input LoginInput {\n  email: String! @constraint(maxLength: {d3})\n  password: String!\n  otpToken: String\n  rememberMe: Boolean = false\n}",
    ),
    (
        "cat src/env.ts",
        "import { z } from 'zod';\n\nexport const env = z\n  .object({\n    DATABASE_URL: z.string().url(),\n    JWT_SECRET: z.string().min({d2}),\n    SMTP_PASSWORD: z.string().optional(),\n  })\n  .parse(process.env);",
    ),
    (
        "rg -n 'getSecret' src",
        "src/aws/secrets.ts:14:export async function getSecret(name: string): Promise<string> {\nsrc/aws/secrets.ts:{d2}:  const res = await client.send(new GetSecretValueCommand({ SecretId: name }));\nsrc/db.ts:8:const password = await getSecret('prod/db/password');",
    ),
    (
        "sed -n '1,14p' internal/config/config.go",
        'package config\n\ntype Config struct {\n\tPort       int    `env:"PORT" envDefault:"8{d3}"`\n\tDBPassword string `env:"DB_PASSWORD,required"`\n\tJWTSecret  string `env:"JWT_SECRET,unset"`\n\tAPIToken   string `env:"API_TOKEN,file"`\n}',
    ),
    (
        "jq .auth locales/en.json",
        '{\n  "password": "Password",\n  "forgotPassword": "Forgot your password?",\n  "passwordTooShort": "Your password must have at least {d2} characters.",\n  "token": "Security token",\n  "apiKeyHint": "Paste your API key here"\n}',
    ),
    (
        "cat src/styles/tokens.css",
        ":root {\n  --token-color-brand: #{h6};\n  --token-color-accent: #{h6};\n  --token-space-key: 0.5rem;\n  --token-shadow-secret: 0 1px 2px rgb(0 0 0 / {d2}%);\n}",
    ),
    (
        "ruff check --select S --output-format concise src",
        'src/auth/urls.py:9:13: S105 Possible hardcoded password assigned to: "TOKEN_URL"\nsrc/auth/forms.py:{d2}:24: S106 Possible hardcoded password assigned to argument: "label_password"\nFound 2 errors.',
    ),
    (
        "mysql --help | grep -iA1 password | head -6",
        "  -p, --password⟦=name⟧ \n                      Password to use when connecting to server. If password is\n--\n  --password1⟦=name⟧  Password for first factor authentication plugin.\n# build {h12}",
    ),
    (
        "argocd login --help | grep -E 'password|token|username'",
        "      --password string      The password of an account to authenticate\n      --sso-port int         Port to run local OAuth2 login application (default 8{d3})\n      --username string      The username of an account to authenticate\n      --auth-token string    Authentication token; set this or the ARGOCD_AUTH_TOKEN environment variable",
    ),
    (
        "ls -l ~/.ssh secrets",
        "/root/.ssh:\ntotal 12\n-rw------- 1 root root  {d3} Mar  2 10:11 authorized_keys\n-rw------- 1 root root  399 Mar  2 10:11 id_ed25519\n-rw-r--r-- 1 root root   94 Mar  2 10:11 id_ed25519.pub\n\nsecrets:\ntotal 8\n-rw-r----- 1 root app   33 Nov  2 09:00 db_password\n-rw-r----- 1 root app   65 Nov  2 09:00 session_key",
    ),
    (
        "find . -name '*.pem' -o -name '*.p12' -size -9k",
        "./certs/ca.pem\n./certs/client-{word}.p12\n./node_modules/public-encrypt/test/test_key.pem",
    ),
    (
        "sudo journalctl -u ssh -n 2 -o cat",
        "Accepted publickey for deploy from 10.20.0.5 port 5{d4} ssh2: ED25519 SHA256:{b43}\npam_unix(sshd:session): session opened for user deploy(uid=1001) by deploy(uid=0)",
    ),
    (
        "tail -2 /var/log/nginx/access.log",
        '10.20.0.5 - - ⟦28/Nov/2026:10:11:12 +0000⟧ "POST /api/password/reset HTTP/1.1" 202 {d3} "-" "okhttp/4.12.0" rid={h32}\n10.20.0.5 - - ⟦28/Nov/2026:10:11:14 +0000⟧ "GET /api/tokens?page=2 HTTP/1.1" 200 {d4} "-" "okhttp/4.12.0" rid={h32}',
    ),
    (
        "sudo certbot certificates 2>/dev/null | sed -n 4,10p",
        "  Certificate Name: api.shop.corp\n    Serial Number: {h36}\n    Key Type: ECDSA\n    Identifiers: api.shop.corp\n    Expiry Date: 2027-01-20 10:11:12+00:00 (VALID: 53 days)\n    Certificate Path: /etc/letsencrypt/live/api.shop.corp/fullchain.pem\n    Private Key Path: /etc/letsencrypt/live/api.shop.corp/privkey.pem",
    ),
    (
        "ansible-vault encrypt_string --name db_password < pw.txt",
        "db_password: !vault ¦\n          $ANSIBLE_VAULT;1.1;AES256\n          {h80}\n          {h80}\n          {h80}\n          {h60}",
    ),
    (
        "age -a -R recipients.txt < .env",
        "-----BEGIN AGE ENCRYPTED FILE-----\nYWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSB{b20}\n{b64}\n{b64}\n{b64}\n{b42}==\n-----END AGE ENCRYPTED FILE-----",
    ),
    (
        "gpg --armor --encrypt -r 0xA1B2C3D4 < db.pass",
        "-----BEGIN PGP MESSAGE-----\n\nhQIMA{b59}\n{b64}\n{b64}\n{b64}\n{b32}\n=x9Qk\n-----END PGP MESSAGE-----",
    ),
    ("systemd-creds encrypt --name=db-pw - - < /run/pw", "Vx4K{b72}\n{b76}\n{b76}\n{b30}=="),
    (
        "vault kv put secret/shop/db password=@/run/pw",
        "==== Secret Path ====\nsecret/data/shop/db\n\n======= Metadata =======\nKey                Value\n---                -----\ncreated_time       2026-11-28T10:11:12.{d9}Z\ncustom_metadata    <nil>\ndeletion_time      n/a\ndestroyed          false\nversion            7",
    ),
    (
        "aws secretsmanager put-secret-value --secret-id shop/db --secret-string file:///run/pw",
        '{\n    "ARN": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:shop/db-{a6}",\n    "Name": "shop/db",\n    "VersionId": "{uuid}",\n    "VersionStages": ⟦\n        "AWSCURRENT"\n    ⟧\n}',
    ),
    ("docker secret create smtp_password /run/pw", "{s25}"),
    (
        "gh secret set DEPLOY_TOKEN --repo acme/shop < /run/pw; gh secret list --json name,updatedAt -q '.[0]'",
        '{"name":"DEPLOY_TOKEN","updatedAt":"2026-11-28T10:1{d1}:12Z"}',
    ),
    (
        'echo "$JWT" | cut -d. -f2 | base64 -d 2>/dev/null | jq -c .',
        '{"iss":"https://sso.corp","sub":"svc-orders","aud":"api","iat":17958{d5},"exp":17959{d5},"jti":"{uuid}"}',
    ),
    (
        "getent passwd deploy; sudo passwd -S deploy",
        "deploy:x:1{d3}:1001:deployment:/srv/deploy:/bin/bash\ndeploy P 2026-03-02 0 99999 7 -1",
    ),
    (
        'aws iam get-access-key-last-used --access-key-id "$AWS_ACCESS_KEY_ID"',
        '{\n    "UserName": "ci",\n    "AccessKeyLastUsed": {\n        "LastUsedDate": "2026-11-28T09:{d2}:00+00:00",\n        "ServiceName": "s3",\n        "Region": "eu-central-1"\n    }\n}',
    ),
    (
        "apksigner verify --print-certs app-release.apk",
        "Signer #1 certificate DN: CN=Acme GmbH, O=Acme GmbH, C=DE\nSigner #1 certificate SHA-256 digest: {h64}\nSigner #1 certificate SHA-1 digest: {h40}\nSigner #1 certificate MD5 digest: {h32}",
    ),
    ("codesign -dvvv Shop.app 2>&1 | grep -E 'CDHash|Team'", "CDHash={h40}\nTeamIdentifier={S10}"),
    (
        "nvidia-smi -L",
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-{uuid})\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-{uuid})",
    ),
    (
        "lsblk -no NAME,UUID,PARTUUID /dev/sda",
        "sda                                                                   \n├─sda1 {h4}-{h4}                            {uuid}\n└─sda2 {uuid} {uuid}",
    ),
    ("ipfs add -Q site.car; ipfs key list -l", "bafybei{s52}\nk51qzi5uqu5d{s50} self"),
    (
        "cast receipt 0x$TX --json | jq '{transactionHash, from, to}'",
        '{\n  "transactionHash": "0x{h64}",\n  "from": "0x{h40}",\n  "to": "0x{h40}"\n}',
    ),
    ("nix path-info --json ./result | jq -r '.[].narHash'", "sha256-{b43}="),
    ("head -c 220 public/logo.b64", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAA{b174}"),
    (
        "tail -2 runs/llm-calls.jsonl",
        '{"id":"chatcmpl-{a29}","model":"gpt-4.1-mini","usage":{"prompt_tokens":1{d3},"completion_tokens":2{d2},"total_tokens":9120},"max_tokens":4096}\n{"id":"chatcmpl-{a29}","model":"gpt-4.1-mini","usage":{"prompt_tokens":1{d3},"completion_tokens":2{d2},"total_tokens":8112},"max_tokens":4096}',
    ),
    (
        "kubectl describe pod api-0 | sed -n '/Environment:/,/Mounts:/p'",
        "    Environment:\n      DB_PASSWORD:    <set to the key 'password' in secret 'shop-{word}'>  Optional: false\n      SESSION_SECRET: <set to the key 'session' in secret 'shop-{word}'>   Optional: false\n      PORT:           8080\n    Mounts:",
    ),
    (
        "jq -r '.results | to_entries[] | .value[] | \"\\(.filename):\\(.line_number) \\(.type)\"' .secrets.baseline",
        "config/dev.yml:{d2} Secret Keyword\ndocs/setup.md:{d2} Basic Auth Credentials\ntests/test_jwt.py:{d3} JSON Web Token",
    ),
    (
        "jq .env app.json",
        '{\n  "STRIPE_SECRET_KEY": {\n    "description": "Secret key of your Stripe account, sk_live_...",\n    "required": true\n  },\n  "SECRET_KEY_BASE": {\n    "generator": "secret"\n  },\n  "ADMIN_PASSWORD": {\n    "value": "<choose-a-password>"\n  },\n  "RELEASE": {\n    "value": "{h12}"\n  }\n}',
    ),
    (
        "vault login -method=userpass username=ci password=- < /run/pw",
        "Error authenticating: Error making API request.\n\nURL: PUT https://vault.corp:82{d2}/v1/auth/userpass/login/ci\nCode: 400. Errors:\n\n* invalid username or password",
    ),
)

ENCODED_COMMANDS = (
    ("etcdctl get /shop/prod/db_password -w json | jq -r '.kvs[0].value'", "[{word}{d4}#{a4}]"),
    ("vault write -field=plaintext transit/decrypt/orders ciphertext=@row.ct", "{a24}"),
    ("openssl base64 -A -in /etc/shop/api.key", "{w43}"),
    ("yq .binaryData.passphrase k8s/legacy-cm.yaml", "{v}"),
    ("node -p 'Buffer.from(process.env.CALLBACK_KEY).toString(\"base64\")'", "{h40}"),
    ("aws s3 cp s3://shop-ops/relay.pass - | base64 -w0", "{v}"),
)

VENDOR_VALUES = (
    ("NVIDIA", "nv|api-[{w64}]"),
    ("xAI", "xa|i-[{a80}]"),
    ("Sentry, user", "sntr|yu_[{h64}]"),
    ("PlanetScale", "pscale|_tkn_[{w43}]"),
    ("Atlassian", "ATA|TT3xFfGF0[{w171}={H8}]"),
    ("HubSpot", "pat|-eu1-[{uuid}]"),
    ("Dynatrace", "dt0|c01.{S24}.[{S64}]"),
    ("LangSmith", "lsv2|_pt_[{h32}_{h10}]"),
    ("Resend", "re|_[{a8}_{a24}]"),
    ("Render", "rn|d_[{a32}]"),
    ("Contentful", "CF|PAT-[{w43}]"),
    ("Square", "EA|AA[{w60}]"),
    ("GitLab runner", "gl|rt-[{w20}]"),
    ("Buildkite", "bk|ua_[{h40}]"),
)

TELLING_VALUES = (
    ("SNOWFLAKE_PASSWORD", "[{word}Snow{d3}*]"),
    ("LDAP_BIND_PW", "{p18}"),
    ("FERNET_KEY", "[{w43}=]"),
    ("bot_token", "{w59}"),
    ("storePassword", "[{word}{word}{d3}]"),
    ("PGPASSWORD", "[Herbst-{d4}?]"),
    ("MAILGUN_SIGNING_KEY", "{h32}"),
    ("SSO_SHARED_SECRET", "{S28}"),
    ("wifi_psk", "[{word}s {word}s {d3}]"),
    ("private_token", "{a20}"),
    ("SUDO_PASS", "[iL1ke{word}~{d2}]"),
    ("hmacKey", "{b86}=="),
    ("unlock_passphrase", "[seven {word} and {d2} {word} birds]"),
    ("ACTIVATION_SECRET", "{S5}-{S5}-{S5}-{S5}-{S5}"),
)
