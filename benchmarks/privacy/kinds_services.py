"""Token formats of chat, mail, payment, monitoring and other services, and URLs that are secrets.

Each row: name of the kind, the variable it is usually kept in, template (`shapes.py`).
"""

CHAT = (
    ("slack-bot", "SLACK_BOT_TOKEN", "xo|xb-{d12}-{d13}-{a24}"),
    ("slack-user", "SLACK_TOKEN", "xo|xp-{d12}-{d12}-{d13}-{h32}"),
    ("slack-app", "SLACK_APP_TOKEN", "xa|pp-1-A{S10}-{d13}-{h64}"),
    ("slack-refresh", "SLACK_REFRESH_TOKEN", "xo|xe-1-{a146}"),
    ("slack-webhook", "SLACK_WEBHOOK_URL", "https://hooks.slack|.com/services/[T{S10}/B{S10}/{a24}]"),
    ("discord-webhook", "DISCORD_WEBHOOK_URL", "https://discord|.com/api/webhooks/{d19}/[{w68}]"),
    ("telegram-bot", "TELEGRAM_BOT_TOKEN", "{d10}:AA{w33}"),
    (
        "teams-webhook",
        "TEAMS_WEBHOOK_URL",
        "https://{word}.webhook.office|.com/webhookb2/[{uuid}@{uuid}]/IncomingWebhook/[{h32}]/[{uuid}]",
    ),
    (
        "google-chat-webhook",
        "GCHAT_WEBHOOK",
        "https://chat.googleapis|.com/v1/spaces/AAAA{w7}/messages?key=AI|za[{w35}]&token=[{w43}]",
    ),
    ("twilio-key", "TWILIO_API_KEY", "S|K{h32}"),
    ("sendgrid-key", "SENDGRID_API_KEY", "S|G.{w22}.{w43}"),
    ("mailgun-key", "MAILGUN_API_KEY", "key|-{h32}"),
    ("mailchimp-key", "MAILCHIMP_API_KEY", "{h32}-us1{d1}"),
    ("brevo-key", "BREVO_API_KEY", "xkey|sib-{h64}-{a16}"),
    ("resend-key", "RESEND_API_KEY", "re|_{a8}_{a24}"),
)
PAYMENT = (
    ("stripe-live", "STRIPE_SECRET_KEY", "sk|_live_51{a97}"),
    ("stripe-test", "STRIPE_SECRET_KEY", "sk|_test_51{a97}"),
    ("stripe-restricted", "STRIPE_KEY", "rk|_live_51{a97}"),
    ("stripe-webhook", "STRIPE_WEBHOOK_SECRET", "wh|sec_{a32}"),
    ("square-access", "SQUARE_ACCESS_TOKEN", "EA|AA{w60}"),
    ("square-secret", "SQUARE_APPLICATION_SECRET", "sq|0csp-{w43}"),
    ("shopify-admin", "SHOPIFY_ACCESS_TOKEN", "sh|pat_{h32}"),
    ("shopify-shared", "SHOPIFY_API_SECRET", "sh|pss_{h32}"),
    ("plaid-access", "PLAID_ACCESS_TOKEN", "access|-production-{uuid}"),
    ("flutterwave-key", "FLW_SECRET_KEY", "FLW|SECK-{h32}-X"),
    ("paystack-key", "PAYSTACK_SECRET", "sk|_live_{h40}"),
    ("braintree-token", "BRAINTREE_TOKEN", "access_token$|production${s16}${h32}"),
)
WORK = (
    ("linear-key", "LINEAR_API_KEY", "lin|_api_{a40}"),
    ("notion-key", "NOTION_TOKEN", "nt|n_{d11}{a35}"),
    ("notion-legacy", "NOTION_API_KEY", "secret|_{a43}"),
    ("airtable-pat", "AIRTABLE_API_KEY", "pat|{a14}.{h64}"),
    ("figma-pat", "FIGMA_TOKEN", "fig|d_{w40}"),
    ("typeform-token", "TYPEFORM_TOKEN", "tf|p_{w44}_{w14}"),
    ("postman-key", "POSTMAN_API_KEY", "PM|AK-{h24}-{h34}"),
    ("contentful-pat", "CONTENTFUL_TOKEN", "CF|PAT-{w43}"),
    ("hubspot-token", "HUBSPOT_ACCESS_TOKEN", "pat|-na1-{uuid}"),
    ("prefect-key", "PREFECT_API_KEY", "pn|u_{a36}"),
    ("shippo-token", "SHIPPO_TOKEN", "shippo|_live_{h40}"),
    ("easypost-key", "EASYPOST_API_KEY", "EZ|AK{h32}{a22}"),
    ("dropbox-token", "DROPBOX_TOKEN", "s|l.u.AF{w130}"),
    ("mapbox-secret", "MAPBOX_TOKEN", "sk|.eyJ1Ijoi{w60}.{w22}"),
    ("facebook-token", "FB_ACCESS_TOKEN", "EAA|CEdEose0cBA{a150}"),
    ("twitter-bearer", "TWITTER_BEARER_TOKEN", "AAAAAAAA|AAAAAAAAAAAAAA{a30}%2B{a50}"),
    ("duffel-token", "DUFFEL_TOKEN", "duffel|_live_{w43}"),
)
WATCH = (
    ("newrelic-user", "NEW_RELIC_API_KEY", "NR|AK-{S27}"),
    ("sentry-user", "SENTRY_AUTH_TOKEN", "sntr|yu_{h64}"),
    ("sentry-org", "SENTRY_AUTH_TOKEN", "sntr|ys_eyJ{a110}_{b43}"),
    ("grafana-service", "GRAFANA_TOKEN", "gl|sa_{a32}_{h8}"),
    ("grafana-cloud", "GRAFANA_CLOUD_KEY", "gl|c_eyJ{a100}"),
    ("dynatrace-token", "DT_API_TOKEN", "dt|0c01.{t24}.{t64}"),
    ("honeycomb-key", "HONEYCOMB_API_KEY", "hc|aik_{s58}"),
    ("posthog-key", "POSTHOG_API_KEY", "ph|x_{a43}"),
    ("launchdarkly-key", "LAUNCHDARKLY_SDK_KEY", "sdk|-{uuid}"),
)
URLS = (
    ("url-password", "REPO_URL", "https://{user}:[{a18}]@git.{domain}/team/app.git"),
    ("url-token", "REMOTE", "https://oauth2:gl|pat-[{w20}]@gitlab.{domain}/team/app.git"),
    ("postgres-url", "DATABASE_URL", "postgresql://app:[{a16}]@{host}:5432/orders"),
    ("mysql-url", "DATABASE_URL", "mysql://root:[{a14}]@{host}:3306/shop"),
    ("mongodb-url", "MONGO_URI", "mongodb+srv://svc:[{a16}]@cluster0.{s5}.mongodb.net/prod?retryWrites=true"),
    ("redis-url", "REDIS_URL", "redis://:[{a20}]@{host}:6379/0"),
    ("amqp-url", "BROKER_URL", "amqp://worker:[{a12}]@{host}:5672/vhost"),
    ("sqlalchemy-url", "SQLALCHEMY_URL", "postgresql+psycopg2://{word}:[{p14}]@db.{domain}/app"),
    ("sentry-dsn", "SENTRY_DSN", "https://[{h32}]@o{d6}.ingest.sentry|.io/{d7}"),
    (
        "azure-sas-url",
        "BLOB_URL",
        "https://{word}store.blob.core.windows|.net/data/x.csv?sv=2023-11-03&se=2026-12-01"
        "&sr=b&sp=r&sig=[{a20}%2F{a20}%3D]",
    ),
    (
        "aws-presigned-url",
        "DOWNLOAD_URL",
        "https://{word}-bucket.s3|.amazonaws.com/a.zip?X-Amz-Algorithm=AWS4-HMAC-SHA256"
        "&X-Amz-Expires=3600&X-Amz-Signature=[{h64}]",
    ),
    ("query-token-url", "CALLBACK_URL", "https://api.{domain}/v1/report?format=csv&access_token=[{a32}]"),
    ("cloudinary-url", "CLOUDINARY_URL", "cloudinary://{d15}:[{w27}]@{word}"),
    ("smtp-url", "EMAIL_URL", "smtp://mailer:[{a16}]@smtp.{domain}:587"),
)
