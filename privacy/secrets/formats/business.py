"""Formats of business tokens, keys and webhooks: messages, office and content, payments and shops.

Sources are the vendors' pages on their key formats. Every rule holds a long run (`core.rule.RUN`).
"""

from tracemill.privacy.core.entropy import is_mixed, is_mixed_case
from tracemill.privacy.core.rule import UUID, build_literal_rule

# A bot token begins with the user's number in Base64; digits are encoded as these.
_DISCORD = " ".join(a + b + c for a in "MNO" for b in "DTjz" for c in "AEIMQUYcgk")

_MESSAGES = (
    build_literal_rule("INTERCOM_TOKEN", "dG9rO", r"\<dG9rO[A-Za-z0-9+/]{40,100}={0,2}"),
    build_literal_rule("WEBEX_TOKEN", "_P", rf"(?:\<)[A-Za-z0-9+/=]{{60,100}}_P[A-Z0-9]{{3}}_{UUID}"),
    build_literal_rule(
        "SLACK_TOKEN", "xox", r"\<xox[a-eoprs](?:\.xox[a-z])?-(?:[\w-]|%[0-9A-F]{2}){20,}", is_mixed
    ),
    build_literal_rule("SLACK_TOKEN", "xapp-", r"\<xapp-\d-[\w-]{40,}"),
    build_literal_rule(
        "SLACK_WEBHOOK",
        "hooks.slack.com",
        r"hooks\.slack\.com\\?/(?P<v>(?:services|workflows|triggers)\\?/[\w\\/-]{20,})",
    ),
    build_literal_rule(
        "DISCORD_WEBHOOK",
        "webhooks",
        r"discord(?:app)?\.com\\?/api\\?/(?:v\d+\\?/)?webhooks\\?/(?P<v>\d{15,22}\\?/[\w-]{40,})",
    ),
    build_literal_rule(
        "TEAMS_WEBHOOK",
        "office.com",
        r"(?:webhook\.office\.com|outlook\.office\.com)/(?P<v>webhook(?:b2)?/[\w@/-]{60,})",
    ),
    build_literal_rule(
        "DISCORD_TOKEN",
        _DISCORD,
        r"[MNO][DTjz][AEIMQUYcgk][\w-]{20,25}\.[\w-]{6}\.[\w-]{27,45}(?![\w-])",
        is_mixed_case,
    ),
    build_literal_rule("TELEGRAM_TOKEN", ":A", r"(?<!\d)\d{8,10}:A[\w-]{34}(?![\w-])"),
    build_literal_rule("TWILIO_KEY", "SK AC", r"\<(?:SK|AC)[0-9a-f]{32}(?![A-Za-z0-9])"),
    build_literal_rule("SENDGRID_KEY", "SG.", r"\<SG\.[\w-]{20,24}\.[\w-]{39,50}"),
    build_literal_rule("TOLGEE_TOKEN", "tgpat_ tgpak_", r"\<tgpa[tk]_[a-z0-9]{40,}"),
    build_literal_rule("METABASE_KEY", "mb_", r"\<mb_[A-Za-z0-9+/]{43}=", is_mixed_case),
    build_literal_rule(
        "XENDIT_KEY", "xnd_", r"\<xnd_(?:production|development|public)_\w{40,}", is_mixed_case
    ),
    build_literal_rule("OUTLINE_KEY", "ol_api_", r"\<ol_api_[A-Za-z0-9]{38}(?!\w)", is_mixed_case),
    build_literal_rule("PLANE_KEY", "plane_api_", r"\<plane_api_[0-9a-f]{32}(?![0-9a-f])"),
    build_literal_rule("MAILGUN_KEY", "key-", r"\<key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    build_literal_rule(
        "MAILCHIMP_KEY",
        "-us1 -us2 -us3 -us4 -us5 -us6 -us7 -us8 -us9",
        r"(?:\<)[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])",
    ),
    build_literal_rule(
        "IFTTT_KEY",
        "maker.ifttt.com",
        r"maker\.ifttt\.com/trigger/[\w-]+/(?:json/)?with/key/(?P<v>[\w-]{20,})",
    ),
    build_literal_rule("CHAT_WEBHOOK", "/hooks/", r"/hooks/(?P<v>[a-z0-9]{26})(?![A-Za-z0-9])", is_mixed),
    build_literal_rule("BREVO_KEY", "xkeysib- xsmtpsib-", r"\<x(?:key|smtp)sib-[0-9a-f]{64}-\w{16}"),
    build_literal_rule("RESEND_KEY", "re_", r"\<re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,28}", is_mixed_case),
    build_literal_rule("FACEBOOK_TOKEN", "EAA", r"\<(?<![+/])EAA[A-Za-z0-9]{80,}"),
    build_literal_rule("TWITTER_TOKEN", "AAAAAAAAAAAAAAAAAAAAA", r"\<A{21,22}[\w%-]{60,}"),
    build_literal_rule("NTFY_TOKEN", "tk_", r"\<tk_[a-z0-9]{29}(?![A-Za-z0-9])", is_mixed),
    build_literal_rule("SLACK_TOKEN", "xwfp-", r"\<xwfp-[\w-]{30,}", is_mixed),
    build_literal_rule("NYLAS_KEY", "nyk_v0_", r"\<nyk_v0_[A-Za-z0-9]{40,}"),
    build_literal_rule("MAILGUN_KEY", "pubkey-", r"\<pubkey-[0-9a-f]{32}(?![A-Za-z0-9])"),
    build_literal_rule("KLAVIYO_KEY", "pk_", r"\<pk_[0-9a-f]{34}(?![A-Za-z0-9])"),
    build_literal_rule("ONESIGNAL_KEY", "os_v2_", r"\<os_v2_(?:app|org)_[a-z0-9]{90,}"),
    build_literal_rule("PINTEREST_TOKEN", "pina_", r"\<pina_[A-Za-z0-9]{32,}"),
    build_literal_rule("TELNYX_KEY", "KEY0", r"\<KEY[0-9A-F]{32,}_[A-Za-z0-9]{20,}"),
    build_literal_rule("LINKEDIN_SECRET", "WPL_AP", r"\<WPL_AP\d\.[\w.+/=]{20,}"),
)
_OFFICE = (
    build_literal_rule("NOTION_TOKEN", "ntn_", r"\<ntn_[A-Za-z0-9]{40,}"),
    build_literal_rule("NOTION_TOKEN", "secret_", r"\<secret_[A-Za-z0-9]{43}(?![A-Za-z0-9])", is_mixed_case),
    build_literal_rule("FIGMA_TOKEN", "figd_ figu_", r"\<fig[du]_[\w-]{36,}"),
    build_literal_rule("AIRTABLE_TOKEN", "pat", r"\<pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    build_literal_rule("TYPEFORM_TOKEN", "tfp_", r"\<tfp_[\w.=-]{40,}"),
    build_literal_rule("ADAFRUIT_KEY", "aio_", r"\<aio_[A-Za-z0-9]{28}(?![A-Za-z0-9])", is_mixed),
    build_literal_rule("CONTENTFUL_TOKEN", "CFPAT-", r"\<CFPAT-[\w-]{40,}"),
    build_literal_rule("DROPBOX_TOKEN", "sl.", r"\<sl\.(?:u\.)?[\w-]{100,}"),
    build_literal_rule("MAPBOX_TOKEN", "sk.eyJ", r"\<sk\.eyJ[\w-]{20,}\.[\w-]{20,}"),
    build_literal_rule("FRAMEIO_TOKEN", "fio-u-", r"\<fio-u-[\w=-]{60,}"),
    build_literal_rule("ADOBE_SECRET", "p8e-", r"\<p8e-[A-Za-z0-9]{32}"),
    build_literal_rule("HUBSPOT_TOKEN", "pat-na pat-eu pat-ap", rf"\<pat-(?:na|eu|ap)\d-{UUID}"),
    build_literal_rule("MAPBOX_TOKEN", "tk.eyJ", r"\<tk\.eyJ[\w-]{20,}\.[\w-]{20,}"),
    build_literal_rule("SALESFORCE_TOKEN", "!AQ", r"(?:\<)00D[A-Za-z0-9]{12,15}!AQ[\w.]{80,}"),
    build_literal_rule("CALENDAR_KEY", "cal_live_ cal_test_", r"\<cal_(?:live|test)_[0-9a-f]{32}"),
    build_literal_rule("CANVA_SECRET", "cnvca", r"\<cnvca[\w-]{40,}", is_mixed_case),
    build_literal_rule("SEGMENT_TOKEN", "sgp_", r"\<sgp_[A-Za-z0-9]{64}(?![A-Za-z0-9])"),
    build_literal_rule("ZOHO_TOKEN", "1000.", r"\<1000\.[0-9a-f]{32}\.[0-9a-f]{32}"),
)
_PAYMENTS = (
    build_literal_rule(
        "STRIPE_KEY",
        "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ pk_live_",
        r"\<(?:[sr]k_(?:live|test|prod)|pk_live)_[A-Za-z0-9]{16,}",
    ),
    build_literal_rule("STRIPE_KEY", "whsec_", r"\<whsec_[A-Za-z0-9+/=]{24,}"),
    build_literal_rule(
        "SQUARE_TOKEN", "EAAA sq0", r"\<(?:EAAA[\w-]{60}|sq0(?:atp|csp|idp)-[\w-]{22,})(?![\w-])"
    ),
    build_literal_rule(
        "SHOPIFY_TOKEN", "shpat_ shpca_ shppa_ shpss_", r"\<shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"
    ),
    build_literal_rule(
        "PAYPAL_TOKEN", "access_token$", r"access_token\$(?:production|sandbox)\$(?P<v>\w{16}\$[0-9a-f]{32})"
    ),
    build_literal_rule(
        "PLAID_TOKEN",
        "access-sandbox- access-development- access-production-",
        r"\<access-(?:sandbox|development|production)-[0-9a-f-]{36}",
    ),
    build_literal_rule("RAZORPAY_KEY", "rzp_live_ rzp_test_", r"\<rzp_(?:live|test)_[A-Za-z0-9]{14,}"),
    build_literal_rule("EASYPOST_KEY", "EZAK EZTK", r"\<EZ[AT]K[A-Za-z0-9]{54}"),
    build_literal_rule(
        "FLUTTERWAVE_KEY", "FLWSECK", r"\<FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,}(?:-X)?", is_mixed
    ),
    build_literal_rule("SHIPPO_TOKEN", "shippo_live_ shippo_test_", r"\<shippo_(?:live|test)_[0-9a-f]{40}"),
    build_literal_rule("DUFFEL_TOKEN", "duffel_live_ duffel_test_", r"\<duffel_(?:live|test)_[\w=-]{40,}"),
    build_literal_rule("AMAZON_MWS_KEY", "amzn.mws.", rf"\<amzn\.mws\.{UUID}"),
    build_literal_rule("POLAR_TOKEN", "polar_", r"\<polar_[a-z]{2,4}_[A-Za-z0-9]{30,}", is_mixed_case),
    build_literal_rule("PAYPAL_TOKEN", "A21AA", r"\<A21AA[\w-]{60,}"),
    build_literal_rule("ADYEN_KEY", "AQE", r"\<(?<![+/])AQE[A-Za-z0-9+/=-]{60,}", is_mixed_case),
    build_literal_rule(
        "MERCADOPAGO_TOKEN", "APP_USR-", r"\<APP_USR-(?:\d{10,}-\d{6}-[0-9a-f]{32}-\d+|[\w-]{36,})"
    ),
    build_literal_rule(
        "PADDLE_KEY", "pdl_", r"\<pdl_(?:live|sdbx)_apikey_[a-z0-9]{26}_[A-Za-z0-9]{22}_[A-Za-z0-9]{3}"
    ),
    build_literal_rule("SHOPIFY_TOKEN", "shptka_ shpit_ prtapi_", r"\<(?:shptka|shpit|prtapi)_[0-9a-f]{32}"),
    build_literal_rule("BITCOIN_KEY", "xprv yprv zprv tprv", r"\<[xyzt]prv[1-9A-HJ-NP-Za-km-z]{100,112}"),
    build_literal_rule("MIDTRANS_KEY", "-server-", r"(?:\<)(?:SB-)?Mid-server-[\w-]{20,}", is_mixed),
)
BUSINESS = (*_MESSAGES, *_OFFICE, *_PAYMENTS)
