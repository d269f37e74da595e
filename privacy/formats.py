"""Formats of the tokens, keys and webhook addresses that services hand out.

Sources are the vendors' own pages on their key formats. Prefixes that a vendor made distinctive need no
context; the others do (`contexts.py`). Every rule of `TOKENS` holds a long run (`rules.RUN`).
"""

from privacy.randomness import is_mixed, is_mixed_case
from privacy.rules import Rule, rule

# A bot token begins with the user's number in Base64: digits come out as these.
_DISCORD = " ".join(a + b + c for a in "MNO" for b in "DTjz" for c in "AEIMQUYcgk")

_CLOUD = (
    rule("AWS_KEY_ID", "AKIA ASIA ABIA ACCA", r"\<(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    rule("AWS_KEY", "ABSK", r"\<ABSK[A-Za-z0-9+/]{100,}={0,2}"),
    rule("GOOGLE_KEY", "AIza", r"\<AIza[\w-]{35}(?![\w-])"),
    rule("GOOGLE_KEY", "GOCSPX-", r"\<GOCSPX-[\w-]{24,}"),
    rule("GOOGLE_TOKEN", "ya29.", r"\<ya29\.[\w-]{20,}"),
    rule("GOOGLE_TOKEN", "1//0", r"(?:\<)1//0[\w-]{30,}"),
    rule("AZURE_KEY", "Q~", r"(?:\<)[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~-])", is_mixed_case),
    rule(
        "AZURE_KEY",
        "AccountKey= SharedAccessKey=",
        r"(?:AccountKey|SharedAccessKey)=(?P<v>[A-Za-z0-9+/]{40,}={0,2})",
    ),
    rule("AZURE_KEY", "JQQJ99", r"(?<![A-Za-z0-9])[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{10}AAAA[A-Za-z0-9]{8,12}"),
    rule("AZURE_KEY", "sig=", r"[?&;]sig=(?P<v>[A-Za-z0-9%+/]{40,}(?:=|%3D)?)"),
    rule("AWS_SIGNATURE", "X-Amz-Signature=", r"X-Amz-Signature=(?P<v>[0-9a-f]{64})"),
    rule("AWS_TOKEN", "Security-Token=", r"X-Amz-Security-Token=(?P<v>[A-Za-z0-9%+/=]{60,})"),
    rule("ALIBABA_KEY", "LTAI", r"\<LTAI[A-Za-z0-9]{16,26}(?![A-Za-z0-9])", is_mixed),
    rule("TENCENT_KEY", "AKID", r"\<AKID[A-Za-z0-9]{32}(?![A-Za-z0-9])", is_mixed),
    rule("DIGITALOCEAN_TOKEN", "dop_v1_ doo_v1_ dor_v1_", r"\<do[opr]_v1_[0-9a-f]{64}"),
    rule("HEROKU_KEY", "HRKU-", r"\<HRKU-[\w-]{36,}"),
    rule("CLOUDFLARE_TOKEN", "v1.0-", r"\<v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    rule("CLOUDFLARE_TOKEN", "cfut_ cfat_ cfk_", r"\<cf(?:ut|at|k)_[A-Za-z0-9]{40,}"),
    rule("FLY_TOKEN", "fm1_ fm1r_ fm1a_ fm2_ fo1_", r"\<(?:fm(?:1[ra]?|2)|fo1)_[A-Za-z0-9+/_=-]{40,}"),
    rule("VAULT_TOKEN", "hvs. hvb. hvr.", r"\<hv[sbr]\.[\w-]{24,}"),
    rule("TERRAFORM_TOKEN", ".atlasv1.", r"(?:\<)[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}"),
    rule("DOPPLER_TOKEN", "dp.", r"\<dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    rule("PULUMI_TOKEN", "pul-", r"\<pul-[0-9a-f]{40}"),
    rule("DATABRICKS_TOKEN", "dapi", r"\<dapi[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])"),
    rule("SCALEWAY_KEY", "SCW", r"\<SCW[A-Z0-9]{17}(?![A-Za-z0-9])", is_mixed),
)
_GIT_HOSTS = (
    rule("GITHUB_TOKEN", "ghp_ gho_ ghs_ ghu_ ghr_", r"\<gh[opsur]_[A-Za-z0-9]{30,255}"),
    rule("GITHUB_TOKEN", "github_pat_", r"\<github_pat_\w{36,255}"),
    rule(
        "GITLAB_TOKEN",
        "glpat- gldt- glrt- glrtr- glptt- glcbt- gloas- glsoat- glft- glimt- glagent- glffct- GR1348941",
        r"\<(?:gl(?:pat|dt|rtr?|ptt|cbt|oas|soat|ft|imt|agent|ffct)-|GR1348941)[\w.-]{20,300}",
        is_mixed,
    ),
    rule("BITBUCKET_TOKEN", "ATBB ATCTT3 ATATT3", r"\<(?:ATBB[A-Za-z0-9]{28,36}|AT(?:CTT|ATT)3[\w=-]{60,})"),
)
_MODELS = (
    rule("ANTHROPIC_KEY", "sk-ant-", r"\<sk-ant-[\w-]{20,}", is_mixed),
    rule("OPENROUTER_KEY", "sk-or-", r"\<sk-or-(?:v\d-)?[A-Za-z0-9]{32,}"),
    rule("LANGFUSE_KEY", "sk-lf- pk-lf-", r"\<[sp]k-lf-[0-9a-f-]{36}"),
    rule("OPENAI_KEY", "sk-", r"\<sk-(?!ant-|or-|lf-)(?:[a-z]{2,12}-){0,2}[\w-]{20,}", is_mixed),
    rule("HF_TOKEN", "hf_ api_org_", r"\<(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    rule("GROQ_KEY", "gsk_", r"\<gsk_[A-Za-z0-9]{40,}"),
    rule("XAI_KEY", "xai-", r"\<xai-[A-Za-z0-9]{60,}"),
    rule("PERPLEXITY_KEY", "pplx-", r"\<pplx-[A-Za-z0-9]{40,}"),
    rule("REPLICATE_TOKEN", "r8_", r"\<r8_[A-Za-z0-9]{37}"),
    rule("FIREWORKS_KEY", "fw_", r"\<fw_[A-Za-z0-9]{20,}", is_mixed_case),
    rule("TOGETHER_KEY", "tgp_v1_", r"\<tgp_v1_[\w-]{40,}"),
    rule("NVIDIA_KEY", "nvapi-", r"\<nvapi-[\w-]{50,}"),
    rule("CEREBRAS_KEY", "csk-", r"\<csk-[a-z0-9]{40,}", is_mixed),
    rule("VOYAGE_KEY", "pa-", r"\<pa-[\w-]{43}(?![\w-])", is_mixed_case),
    rule("TAVILY_KEY", "tvly-", r"\<tvly-(?:dev-|prod-)?[\w-]{20,}", is_mixed),
    rule("LANGSMITH_KEY", "lsv2_ ls__", r"\<(?:lsv2_(?:pt|sk)_|ls__)[0-9a-f_]{32,}"),
    rule("PINECONE_KEY", "pcsk_", r"\<pcsk_\w{40,}"),
    rule("WANDB_KEY", "wandb_v1_", r"\<wandb_v1_\w{40,}"),
    rule("SANDBOX_KEY", "e2b_", r"\<e2b_[0-9a-f]{40}"),
    rule("MODAL_TOKEN", "ak- as-", r"\<a[ks]-[A-Za-z0-9]{22}(?![\w-])", is_mixed_case),
    rule("RUNPOD_KEY", "rpa_", r"\<rpa_[A-Z0-9]{36,}"),
)
_PACKAGES = (
    rule("NPM_TOKEN", "npm_", r"\<npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    rule("PYPI_TOKEN", "pypi-", r"\<pypi-AgE[\w-]{50,}"),
    rule("DOCKER_TOKEN", "dckr_", r"\<dckr_(?:pat|oat)_[\w-]{24,}"),
    rule("RUBYGEMS_KEY", "rubygems_", r"\<rubygems_[0-9a-f]{48}"),
    rule("NUGET_KEY", "oy2", r"\<oy2[a-z0-9]{43}(?![A-Za-z0-9])"),
    rule("CRATES_TOKEN", "cio", r"\<cio[A-Za-z0-9]{32}(?![A-Za-z0-9])", is_mixed_case),
    rule("ARTIFACTORY_KEY", "AKC cmVmd", r"\<(?:AKC[A-Za-z0-9]{60,}|cmVmd[A-Za-z0-9]{59})"),
    rule("ANACONDA_TOKEN", "an-", r"\<an-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"),
)
_CHAT = (
    rule("SLACK_TOKEN", "xox", r"\<xox[abeoprs](?:\.xox[a-z])?-[\w-]{20,}", is_mixed),
    rule("SLACK_TOKEN", "xapp-", r"\<xapp-\d-[\w-]{40,}"),
    rule(
        "SLACK_WEBHOOK",
        "hooks.slack.com",
        r"hooks\.slack\.com\\?/(?P<v>(?:services|workflows|triggers)\\?/[\w\\/-]{20,})",
    ),
    rule(
        "DISCORD_WEBHOOK",
        "webhooks",
        r"discord(?:app)?\.com\\?/api\\?/(?:v\d+\\?/)?webhooks\\?/(?P<v>\d{15,22}\\?/[\w-]{40,})",
    ),
    rule(
        "TEAMS_WEBHOOK",
        "office.com",
        r"(?:webhook\.office\.com|outlook\.office\.com)/(?P<v>webhook(?:b2)?/[\w@/-]{60,})",
    ),
    rule("DISCORD_TOKEN", _DISCORD, r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,45}(?![\w-])", is_mixed_case),
    rule("TELEGRAM_TOKEN", ":A", r"(?<!\d)\d{8,10}:A[\w-]{34}(?![\w-])"),
    rule("TWILIO_KEY", "SK AC", r"\<(?:SK|AC)[0-9a-f]{32}(?![A-Za-z0-9])"),
    rule("SENDGRID_KEY", "SG.", r"\<SG\.[\w-]{20,24}\.[\w-]{39,50}"),
    rule("MAILGUN_KEY", "key-", r"\<key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    rule(
        "MAILCHIMP_KEY",
        "-us1 -us2 -us3 -us4 -us5 -us6 -us7 -us8 -us9",
        r"(?:\<)[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])",
    ),
    rule("BREVO_KEY", "xkeysib- xsmtpsib-", r"\<x(?:key|smtp)sib-[0-9a-f]{64}-\w{16}"),
    rule("RESEND_KEY", "re_", r"\<re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,28}", is_mixed_case),
    rule("FACEBOOK_TOKEN", "EAA", r"\<(?<![+/])EAA[A-Za-z0-9]{80,}"),
    rule("TWITTER_TOKEN", "AAAAAAAAAAAAAAAAAAAAA", r"\<A{21,22}[\w%-]{60,}"),
)
_SERVICES = (
    rule(
        "STRIPE_KEY",
        "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ pk_live_",
        r"\<(?:[sr]k_(?:live|test|prod)|pk_live)_[A-Za-z0-9]{16,}",
    ),
    rule("STRIPE_KEY", "whsec_", r"\<whsec_[A-Za-z0-9+/=]{24,}"),
    rule("SQUARE_TOKEN", "EAAA sq0", r"\<(?:EAAA[\w-]{60}|sq0(?:atp|csp|idp)-[\w-]{22,})(?![\w-])"),
    rule("SHOPIFY_TOKEN", "shpat_ shpca_ shppa_ shpss_", r"\<shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    rule(
        "PAYPAL_TOKEN", "access_token$", r"access_token\$(?:production|sandbox)\$(?P<v>\w{16}\$[0-9a-f]{32})"
    ),
    rule(
        "PLAID_TOKEN",
        "access-sandbox- access-development- access-production-",
        r"\<access-(?:sandbox|development|production)-[0-9a-f-]{36}",
    ),
    rule("SENTRY_TOKEN", "sntrys_ sntryu_", r"\<sntry[su]_[A-Za-z0-9+/=_-]{60,}"),
    rule("NEWRELIC_KEY", "NRAK- NRII- NRJS- NRRA-", r"\<NR(?:AK|II|JS|RA)-[A-Za-z0-9-]{19,}", is_mixed),
    rule(
        "GRAFANA_TOKEN",
        "glsa_ glc_",
        r"\<(?:glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|glc_[A-Za-z0-9+/]{32,}={0,2})",
    ),
    rule("DYNATRACE_TOKEN", "dt0", r"\<dt0[a-z]\d{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    rule("POSTMAN_KEY", "PMAK-", r"\<PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    rule("LINEAR_KEY", "lin_api_ lin_oauth_", r"\<lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    rule("NOTION_TOKEN", "ntn_", r"\<ntn_[A-Za-z0-9]{40,}"),
    rule("NOTION_TOKEN", "secret_", r"\<secret_[A-Za-z0-9]{43}(?![A-Za-z0-9])", is_mixed_case),
    rule("FIGMA_TOKEN", "figd_ figu_", r"\<fig[du]_[\w-]{36,}"),
    rule("AIRTABLE_TOKEN", "pat", r"\<pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    rule("ATLASSIAN_TOKEN", "ATATT ATSTT", r"\<AT(?:ATT|STT)[\w=-]{60,}"),
    rule("SUPABASE_KEY", "sbp_ sb_secret_", r"\<(?:sbp_[0-9a-f]{40}|sb_secret_[\w-]{20,})"),
    rule("PLANETSCALE_TOKEN", "pscale_", r"\<pscale_(?:tkn|pw|oauth)_[\w.=-]{32,}"),
    rule("NETLIFY_TOKEN", "nfp_ nfc_ nfo_", r"\<nf[pco]_[A-Za-z0-9]{36,}"),
    rule(
        "VERCEL_TOKEN",
        "vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_",
        r"\<(?:vc[piark]_|vercel_blob_rw_)\w{24,}",
        is_mixed_case,
    ),
    rule("CI_TOKEN", "CCIPAT_ bkua_", r"\<(?:CCIPAT_\w{40,}|bkua_[0-9a-z]{40})"),
    rule("SOURCEGRAPH_TOKEN", "sgp_", r"\<sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}"),
    rule("SONAR_TOKEN", "squ_ sqp_ sqa_", r"\<sq[upa]_[0-9a-f]{40}"),
    rule("POSTHOG_KEY", "phx_", r"\<phx_[A-Za-z0-9]{40,}"),
    rule("TYPEFORM_TOKEN", "tfp_", r"\<tfp_\w{40,}"),
    rule("ADAFRUIT_KEY", "aio_", r"\<aio_[A-Za-z0-9]{28}(?![A-Za-z0-9])", is_mixed),
    rule("CONTENTFUL_TOKEN", "CFPAT-", r"\<CFPAT-[\w-]{40,}"),
    rule("AGE_KEY", "AGE-SECRET-KEY-", r"\<AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    rule("TAILSCALE_KEY", "tskey-", r"\<tskey-(?:[a-z]+-)?[A-Za-z0-9]+-[A-Za-z0-9]{20,}"),
    rule(
        "ONEPASSWORD_TOKEN",
        "ops_eyJ A3-",
        r"\<(?:ops_eyJ[\w+/=-]{100,}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,6}-){4,5}[A-Z0-9]{5})",
    ),
    rule("JWT", "eyJ", r"\<eyJ[\w-]{10,}\.eyJ[\w-]{10,}(?:\.[\w-]{6,})?"),
    rule("JWE", "eyJ", r"\<eyJ[\w-]{15,}\.[\w-]{20,}\.[\w-]{10,}\.[\w-]{20,}\.[\w-]{10,}"),
)
TOKENS: tuple[Rule, ...] = (*_CLOUD, *_GIT_HOSTS, *_MODELS, *_PACKAGES, *_CHAT, *_SERVICES)
