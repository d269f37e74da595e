"""Formats of tokens, continued: services whose prefixes are less known, and prefixes that say secret.

Sources are the vendors' own pages on their key formats. Every rule holds a long run (`rules.RUN`).
"""

import re

from privacy.randomness import is_mixed, is_mixed_case, is_scrambled
from privacy.rules import rule

_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_SERVICES = (
    rule("HUBSPOT_TOKEN", "pat-na pat-eu pat-ap", rf"\<pat-(?:na|eu|ap)\d-{_UUID}"),
    rule("LAUNCHDARKLY_KEY", "sdk- api- mob-", rf"\<(?:sdk|api|mob)-{_UUID}(?![\w-])"),
    rule("HONEYCOMB_KEY", "hcaik_ hcaic_ hcamk_ hcxik_ hcbik_", r"\<hc[abx][a-z]{2}_[a-z0-9]{26,}"),
    rule("JINA_KEY", "jina_", r"\<jina_[0-9a-f]{32}[\w-]{20,}"),
    rule("HARNESS_TOKEN", "pat. sat.", r"\<[ps]at\.[\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}(?![A-Za-z0-9])"),
    rule("INTRA42_SECRET", "s-s4t2", r"\<s-s4t2(?:ud|af)-[0-9a-f]{64}"),
    rule("MAXMIND_KEY", "_mmk", r"(?<![A-Za-z0-9])[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?!\w)"),
    rule("SCALINGO_TOKEN", "tk-", r"\<tk-[a-z]{2,4}-[\w-]{48}(?![\w-])", is_mixed_case),
    rule("SETTLEMINT_TOKEN", "sm_aat_ sm_pat_ sm_sat_", r"\<sm_[aps]at_[A-Za-z0-9]{16,}", is_mixed_case),
    rule("YANDEX_KEY", "AQVN YC", r"\<(?:AQVN[\w-]{35,38}|YC[\w-]{38})(?![\w-])", is_mixed_case),
    rule("YANDEX_TOKEN", "t1.", r"\<t1\.[\w-]{20,}={0,2}\.[\w-]{86}={0,2}"),
    rule("NEON_KEY", "napi_", r"\<napi_[a-z0-9]{40,}", is_mixed),
    rule("INNGEST_KEY", "signkey-", r"\<signkey-(?:[a-z]{2,10}-)?[0-9a-f]{32,64}"),
    rule(
        "TRIGGER_KEY",
        "tr_dev_ tr_prod_ tr_stg_ tr_pat_",
        r"\<tr_(?:dev|prod|stg|pat)_[A-Za-z0-9]{20,}",
        is_mixed_case,
    ),
    rule("TRELLO_TOKEN", "ATTA", r"\<ATTA[0-9a-f]{64,72}[0-9A-F]{0,8}(?![A-Za-z0-9])"),
    rule("CLICKUP_TOKEN", "pk_", r"\<pk_\d{5,10}_[A-Z0-9]{32}(?![A-Za-z0-9])"),
    rule("DBT_TOKEN", "dbtc_ dbtu_", r"\<dbt[cu]_[\w-]{40,}", is_mixed_case),
    rule("AMAZON_MWS_KEY", "amzn.mws.", rf"\<amzn\.mws\.{_UUID}"),
    rule(
        "AZURE_KEY",
        "AZDO AzSe",
        r"(?<![A-Za-z0-9])[A-Za-z0-9]{52,76}(?:AZDO[A-Za-z0-9]{4}|AzSe[A-D][A-Za-z0-9]{5})(?![A-Za-z0-9])",
    ),
    rule("PACKAGIST_TOKEN", "packagist_", r"\<packagist_[a-z]{3}_[0-9a-f]{40,}"),
    rule("POLAR_TOKEN", "polar_", r"\<polar_[a-z]{2,4}_[A-Za-z0-9]{30,}", is_mixed_case),
    rule("PAYPAL_TOKEN", "A21AA", r"\<A21AA[\w-]{60,}"),
    rule("STATSIG_KEY", "secret-", r"\<secret-[A-Za-z0-9]{40,50}(?![\w-])", is_mixed_case),
    rule("SLACK_TOKEN", "xwfp-", r"\<xwfp-[\w-]{30,}", is_mixed),
    rule("MAPBOX_TOKEN", "tk.eyJ", r"\<tk\.eyJ[\w-]{20,}\.[\w-]{20,}"),
    rule("SALESFORCE_TOKEN", "!AQ", r"(?:\<)00D[A-Za-z0-9]{12,15}!AQ[\w.]{80,}"),
    rule("NYLAS_KEY", "nyk_v0_", r"\<nyk_v0_[A-Za-z0-9]{40,}"),
    rule("ENDOR_KEY", "endr+", r"\<endr\+[A-Za-z0-9-]{16,}", is_mixed),
    rule("MAILGUN_KEY", "pubkey-", r"\<pubkey-[0-9a-f]{32}(?![A-Za-z0-9])"),
    rule("GITHUB_TOKEN", "v1.", r"\<v1\.[0-9a-f]{40}(?![A-Za-z0-9])"),
)


def _is_secret_part(value: str) -> bool:
    """The last part of a token is no word, number or name: three digits and both cases, or 32 hex digits."""
    body = re.split(r"[_-]", value)[-1]
    if re.fullmatch(r"[0-9a-f]{32,}|[0-9A-F]{32,}", body):
        return is_mixed(body)
    return is_scrambled(body) or (is_mixed_case(body) and sum(map(str.isdigit, body)) >= 2)


_NEWER = (
    rule("ADYEN_KEY", "AQE", r"\<(?<![+/])AQE[A-Za-z0-9+/=-]{60,}", is_mixed_case),
    rule("AIVEN_TOKEN", "aivenv1 AVNS_", r"\<(?:aivenv1[A-Za-z0-9+/=]{40,}|AVNS_[\w-]{15,})", is_mixed_case),
    rule("AKAMAI_KEY", "akab-", r"\<akab-[a-z0-9]{16}-[a-z0-9]{16}"),
    rule("ALCHEMY_KEY", "alcht_", r"\<alcht_[A-Za-z0-9]{30,}"),
    rule("ANYSCALE_KEY", "esecret_", r"\<esecret_[A-Za-z0-9]{24,}"),
    rule("APIFY_TOKEN", "apify_api_", r"\<apify_api_[A-Za-z0-9]{34,}"),
    rule("AXIOM_TOKEN", "xaat- xapt-", rf"\<xa[ap]t-{_UUID}"),
    rule("BACKBLAZE_KEY", "K00", r"\<K00\d[A-Za-z0-9/+]{27}(?![\w/+])", is_mixed_case),
    rule("BROWSERBASE_KEY", "bb_live_ bb_test_", r"\<bb_(?:live|test)_[\w-]{20,}"),
    rule("BUILDKITE_TOKEN", "bkct_ bkaj_ bksk_ bkpt_", r"\<bk(?:ct|aj|sk|pt)_[A-Za-z0-9]{36,}"),
    rule("CALENDAR_KEY", "cal_live_ cal_test_", r"\<cal_(?:live|test)_[0-9a-f]{32}"),
    rule("CANVA_SECRET", "cnvca", r"\<cnvca[\w-]{40,}", is_mixed_case),
    rule("CLERK_KEY", "sk_ pk_live", r"\<(?:sk_|pk_live_)[A-Za-z0-9]{24,}", is_mixed_case),
    rule("CLICKHOUSE_KEY", "4b1d", r"\<4b1d[A-Za-z0-9]{38}(?![A-Za-z0-9])", is_mixed_case),
    rule("COCKROACH_KEY", "CCDB1_", r"\<CCDB1_[A-Za-z0-9]{22}_[A-Za-z0-9]{40}"),
    rule("COMPOSIO_KEY", "ak_", r"\<ak_[A-Za-z0-9_-]{20,}", is_mixed_case),
    rule("CONFLUENT_KEY", "cflt", r"\<cflt[A-Za-z0-9/+]{60}"),
    rule(
        "CONVEX_KEY",
        "|",
        r"(?:\<)(?:prod|dev|preview|project):[\w-]+(?::[\w-]+)?\|(?P<v>[A-Za-z0-9+/=]{40,})",
    ),
    rule("CURSOR_KEY", "crsr_ key_", r"\<(?:crsr|key)_[0-9a-f]{64}(?![A-Za-z0-9])"),
    rule("DAYTONA_KEY", "dtn_", r"\<dtn_[0-9a-f]{64}"),
    rule("DENO_TOKEN", "ddp_ ddo_ ddw_", r"\<dd[pow]_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    rule("DIGITALOCEAN_KEY", "DO00 DO80", r"\<DO(?:00|80)[A-Z0-9]{16}(?![A-Za-z0-9])", is_mixed),
    rule("DJANGO_KEY", "django-insecure-", r"\<django-insecure-[^\s\"'\\]{30,}"),
    rule("EXOSCALE_KEY", "EXO", r"\<EXO[0-9a-f]{24}(?![A-Za-z0-9])"),
    rule("FAUNA_KEY", "fnA", r"\<fnA[A-Z][\w-]{36,}", is_mixed_case),
    rule("FRIENDLI_TOKEN", "flp_", r"\<flp_[A-Za-z0-9]{40,}"),
    rule("GITPOD_TOKEN", "gitpod_pat_", r"\<gitpod_pat_[\w.-]{20,}"),
    rule("GOOGLE_CODE", "4/0", r"(?:\<)4/0A[\w-]{50,}"),
    rule("HONEYBADGER_KEY", "hbp_", r"\<hbp_[A-Za-z0-9]{36}"),
    rule("IONIC_TOKEN", "ion_", r"\<ion_[a-zA-Z0-9]{42}"),
    rule("KLAVIYO_KEY", "pk_", r"\<pk_[0-9a-f]{34}(?![A-Za-z0-9])"),
    rule(
        "LOB_KEY", "live_ test_", r"\<(?:live|test)_(?:[0-9a-f]{35}|[A-Za-z0-9]{30})(?![A-Za-z0-9])", is_mixed
    ),
    rule("LOGICMONITOR_TOKEN", "lmb_ lma_", r"\<lm[ab]_[A-Za-z0-9+/=]{60,}"),
    rule("MERCADOPAGO_TOKEN", "APP_USR-", r"\<APP_USR-(?:\d{10,}-\d{6}-[0-9a-f]{32}-\d+|[\w-]{36,})"),
    rule("MERGIFY_KEY", "mka_", r"\<mka_[\w-]{30,}"),
    rule("MONGODB_SECRET", "mdb_sa_sk_", r"\<mdb_sa_sk_[\w-]{40}"),
    rule("ONESIGNAL_KEY", "os_v2_", r"\<os_v2_(?:app|org)_[a-z0-9]{90,}"),
    rule("OPENVSX_TOKEN", "ovsxat_ ovsxp_", rf"\<ovsx(?:at|p)_{_UUID}"),
    rule("PADDLE_KEY", "pdl_", r"\<pdl_(?:live|sdbx)_apikey_[a-z0-9]{26}_[A-Za-z0-9]{22}_[A-Za-z0-9]{3}"),
    rule("PINTEREST_TOKEN", "pina_", r"\<pina_[A-Za-z0-9]{32,}"),
    rule("RAYCAST_TOKEN", "rca_", r"\<rca_[0-9a-f]{64}"),
    rule("ROOTLY_KEY", "rootly_", r"\<rootly_[0-9a-f]{64}"),
    rule("SANITY_TOKEN", "sk", r"\<sk[A-Za-z0-9]{80,180}(?![\w-])", is_mixed_case),
    rule("SEGMENT_TOKEN", "sgp_", r"\<sgp_[A-Za-z0-9]{64}(?![A-Za-z0-9])"),
    rule("SHOPIFY_TOKEN", "shptka_ shpit_ prtapi_", r"\<(?:shptka|shpit|prtapi)_[0-9a-f]{32}"),
    rule("SNYK_TOKEN", "snyk_uat. snyk_sat.", r"\<snyk_[us]at\.[\w.-]{30,}"),
    rule("SOCKET_KEY", "sktsec_", r"\<sktsec_[\w-]{30,}"),
    rule("SOURCEGRAPH_TOKEN", "sgamp_ sgd_ slk_", r"\<(?:sgamp_user|sgd|slk)_[\w-]{32,}", is_mixed),
    rule("TELNYX_KEY", "KEY0", r"\<KEY[0-9A-F]{32,}_[A-Za-z0-9]{20,}"),
    rule("THUNDERSTORE_TOKEN", "tss_", r"\<tss_[\w-]{36,}", is_mixed_case),
    rule("UPCLOUD_TOKEN", "ucat_", r"\<ucat_[A-Z0-9]{26}"),
    rule("VALTOWN_TOKEN", "vtwn_", r"\<vtwn_[A-Za-z0-9]{27,}"),
    rule("VOLCENGINE_KEY", "AKLT", r"\<AKLT[\w-]{42,}"),
    rule("XATA_KEY", "xau_", r"\<xau_[A-Za-z0-9]{30,}"),
    rule("ZOHO_TOKEN", "1000.", r"\<1000\.[0-9a-f]{32}\.[0-9a-f]{32}"),
    rule("ZUPLO_KEY", "zpka_", r"\<zpka_[\w-]{40,}"),
    rule("BITCOIN_KEY", "prv", r"\<[xyzt]prv[1-9A-HJ-NP-Za-km-z]{100,112}"),
    rule("MIDTRANS_KEY", "-server-", r"(?:\<)(?:SB-)?Mid-server-[\w-]{20,}", is_mixed),
    rule("GOCARDLESS_TOKEN", "live_ sandbox_", r"\<(?:live|sandbox)_[\w=-]{40}(?![\w-])", is_mixed_case),
    rule("LINKEDIN_SECRET", "WPL_AP", r"\<WPL_AP\d\.[\w.+/=]{20,}"),
    rule("NIGHTFALL_KEY", "NF-", r"\<NF-[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    rule("DEVCYCLE_KEY", "dvc_", r"\<dvc_(?:server|mobile)_[\w-]{20,}"),
)
_CUT = (
    # Pieces of tokens of which an output shows no more.
    rule(
        "GITHUB_TOKEN",
        "ghp_ gho_ ghs_ ghu_ ghr_ github_pat_",
        r"\<(?:gh[opsur]|github_pat)_[A-Za-z0-9_]{16,}",
        is_mixed,
    ),
    rule("ANTHROPIC_KEY", "sk-ant-", r"\<sk-ant-[a-z]{2,6}\d\d-[\w-]{8,}"),
    rule("OPENAI_KEY", "sk-proj-", r"\<sk-(?:proj|svcacct|admin)-[\w-]{12,}", is_mixed_case),
    rule("NPM_TOKEN", "npm_", r"\<npm_[A-Za-z0-9]{16,}", is_mixed_case),
    rule("GITLAB_TOKEN", "glpat-", r"\<glpat-[\w-]{14,}", is_mixed_case),
    rule("GOOGLE_KEY", "AIza", r"\<AIza[\w-]{18,}", is_mixed_case),
    rule("HF_TOKEN", "hf_", r"\<hf_[A-Za-z0-9]{18,}", is_mixed_case),
)
_SAYING = (
    rule(
        "API_KEY",
        "live_ test_ prod_ api_ key_ pat_ oat_ secret_ token_ sk_ tok_ auth_ apikey_ svc_ sat_ access_ "
        "admin_ live- prod- api- key- pat- oat- secret- token- sk- auth- apikey-",
        r"(?:\<)(?:[a-z][a-z0-9]{1,15}[_-]){0,3}(?:live|prod|api|apikey|key|pat|oat|secret|token|sk|tok|auth|svc|sat|"
        r"access|admin)[_-](?:[a-z]{2,8}[_-]|[a-z]{0,3}\d{1,2}[_-])?[A-Za-z0-9]{20,}(?![\w-])",
        _is_secret_part,
    ),
    rule(
        "API_KEY",
        "_test_ -test- _sandbox_ _dev_",
        r"(?:\<)[a-z][a-z0-9]{1,15}[_-](?:test|sandbox|dev)[_-][A-Za-z0-9]{20,}(?![\w-])",
        _is_secret_part,
    ),
)
MORE = (*_SERVICES, *_NEWER, *_CUT, *_SAYING)
