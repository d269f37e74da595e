"""Formats of keys and tokens of clouds, hosts, databases, networks and secret stores.

Sources are the vendors' pages on their key formats. Every rule holds a long run (`core.rule.RUN`).
"""

from tracemill.privacy.core.entropy import is_mixed, is_mixed_case
from tracemill.privacy.core.rule import build_literal_rule

HOSTING = (
    build_literal_rule(
        "BAIDU_KEY", "bce-v", r"\<bce-v\d/ALTAK-[A-Za-z0-9]{16,24}/[0-9a-f]{40}(?![A-Za-z0-9])"
    ),
    build_literal_rule(
        "AWS_KEY_ID", "AKIA ASIA ABIA ACCA", r"\<(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])"
    ),
    build_literal_rule("AWS_KEY", "ABSK", r"\<ABSK[A-Za-z0-9+/]{100,}={0,2}"),
    build_literal_rule("GOOGLE_KEY", "AIza", r"\<AIza[\w-]{35}(?![\w-])"),
    build_literal_rule("GOOGLE_KEY", "AQ.Ab", r"\<AQ\.Ab[\w-]{40,}"),
    build_literal_rule("GOOGLE_KEY", "GOCSPX-", r"\<GOCSPX-[\w-]{24,}"),
    build_literal_rule("GOOGLE_TOKEN", "ya29.", r"\<ya29\.(?:[a-z]\.)?[\w-]{20,}"),
    build_literal_rule("GOOGLE_TOKEN", "1//0", r"(?:\<)1//0[\w-]{30,}"),
    build_literal_rule("AZURE_KEY", "Q~", r"(?:\<)[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~-])", is_mixed_case),
    build_literal_rule(
        "AZURE_KEY",
        "AccountKey= SharedAccessKey=",
        r"(?:AccountKey|SharedAccessKey)=(?P<v>[A-Za-z0-9+/]{40,}={0,2})",
    ),
    build_literal_rule("AZURE_KEY", "JQQJ99", r"(?<![A-Za-z0-9])[A-Za-z0-9]{30,60}JQQJ99[A-Za-z0-9]{16,40}"),
    build_literal_rule("AZURE_KEY", "sig=", r"[?&;]sig=(?P<v>[\w%+/-]{40,}(?:=|%3D)?)"),
    build_literal_rule("AWS_SIGNATURE", "X-Amz-Signature=", r"X-Amz-Signature=(?P<v>[0-9a-f]{64})"),
    build_literal_rule("AWS_TOKEN", "Security-Token=", r"X-Amz-Security-Token=(?P<v>[A-Za-z0-9%+/=]{60,})"),
    build_literal_rule("ALIBABA_KEY", "LTAI", r"\<LTAI[A-Za-z0-9]{16,26}(?![A-Za-z0-9])", is_mixed),
    build_literal_rule("TENCENT_KEY", "AKID", r"\<AKID[A-Za-z0-9]{32}(?![A-Za-z0-9])", is_mixed),
    build_literal_rule("DIGITALOCEAN_TOKEN", "dop_v1_ doo_v1_ dor_v1_", r"\<do[opr]_v1_[0-9a-f]{64}"),
    build_literal_rule("HEROKU_KEY", "HRKU-", r"\<HRKU-[\w-]{36,}"),
    build_literal_rule("CLOUDFLARE_TOKEN", "v1.0-", r"\<v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    build_literal_rule("CLOUDFLARE_TOKEN", "cfut_ cfat_ cfk_", r"\<cf(?:ut|at|k)_[A-Za-z0-9]{40,}"),
    build_literal_rule(
        "FLY_TOKEN", "fm1_ fm1r_ fm1a_ fm2_ fo1_", r"\<(?:fm(?:1[ra]?|2)|fo1)_[A-Za-z0-9+/_=-]{40,}"
    ),
    build_literal_rule("VAULT_TOKEN", "hvs. hvb. hvr.", r"\<hv[sbr]\.[\w-]{24,}"),
    build_literal_rule("TERRAFORM_TOKEN", ".atlasv1.", r"(?:\<)[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}"),
    build_literal_rule(
        "DOPPLER_TOKEN", "dp.", r"\<dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]{2,35}\.)?[A-Za-z0-9]{40,44}"
    ),
    build_literal_rule("PULUMI_TOKEN", "pul-", r"\<pul-[0-9a-f]{40}"),
    build_literal_rule("DATABRICKS_TOKEN", "dapi", r"\<dapi[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])"),
    build_literal_rule("SCALEWAY_KEY", "SCW", r"\<SCW[A-Z0-9]{17}(?![A-Za-z0-9])", is_mixed),
    build_literal_rule("SUPABASE_KEY", "sbp_ sb_secret_", r"\<(?:sbp_[0-9a-f]{40}|sb_secret_[\w-]{20,})"),
    build_literal_rule("PLANETSCALE_TOKEN", "pscale_", r"\<pscale_(?:tkn|pw|oauth)_[\w.=-]{32,}"),
    build_literal_rule("NETLIFY_TOKEN", "nfp_ nfc_ nfo_", r"\<nf[pco]_[A-Za-z0-9]{36,}"),
    build_literal_rule(
        "VERCEL_TOKEN",
        "vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_",
        r"\<(?:vc[piark]_|vercel_blob_rw_)\w{24,}",
        is_mixed_case,
    ),
    build_literal_rule("YANDEX_TOKEN", "y0_", r"\<y0_[\w-]{50,}", is_mixed_case),
    build_literal_rule("NEBULA_KEY", "dnkey-", r"\<dnkey-[\w-]{60,}", is_mixed_case),
    build_literal_rule("NATS_SEED", "SUA SAA SOA SNA SCA", r"\<S[UAONC]A[A-Z2-7]{55}(?![A-Za-z0-9])"),
    build_literal_rule("AGE_KEY", "AGE-SECRET-KEY-", r"\<AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    build_literal_rule("TAILSCALE_KEY", "tskey-", r"\<tskey-(?:[a-z]+-)?[A-Za-z0-9]+-[A-Za-z0-9]{20,}"),
    build_literal_rule(
        "ONEPASSWORD_TOKEN",
        "ops_eyJ A3-",
        r"\<(?:ops_eyJ[\w+/=-]{100,}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,6}-){4,5}[A-Z0-9]{5})",
    ),
    build_literal_rule("RENDER_KEY", "rnd_", r"\<rnd_[A-Za-z0-9]{28,}", is_mixed),
    build_literal_rule("INFISICAL_TOKEN", "st.", r"\<st\.[0-9a-f-]{24,36}\.[0-9a-f]{20,}\.[0-9a-f]{20,}"),
    build_literal_rule("FIREBASE_KEY", "AAAA", r"\<AAAA[\w-]{7}:[\w-]{140}"),
    build_literal_rule("GOOGLE_HMAC", "GOOG", r"\<GOOG1?[A-Z0-9]{18,60}(?![A-Za-z0-9])", is_mixed),
    build_literal_rule("KUBE_TOKEN", "sha256~", r"\<sha256~[\w-]{43}"),
    build_literal_rule("VAULT_TOKEN", "s.", r"\<s\.[A-Za-z0-9]{24}(?![\w-])", is_mixed_case),
    build_literal_rule("JWT", "eyJ", r"\<eyJ[\w-]{10,}\.eyJ[\w-]{10,}(?:\.[\w-]{6,})?"),
    build_literal_rule("JWE", "eyJ", r"\<eyJ[\w-]{15,}\.[\w-]{20,}\.[\w-]{10,}\.[\w-]{20,}\.[\w-]{10,}"),
    build_literal_rule("MAXMIND_KEY", "_mmk", r"(?<![A-Za-z0-9])[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?!\w)"),
    build_literal_rule("SCALINGO_TOKEN", "tk-", r"\<tk-[a-z]{2,4}-[\w-]{48}(?![\w-])", is_mixed_case),
    build_literal_rule(
        "SETTLEMINT_TOKEN", "sm_aat_ sm_pat_ sm_sat_", r"\<sm_[aps]at_[A-Za-z0-9]{16,}", is_mixed_case
    ),
    build_literal_rule(
        "YANDEX_KEY", "AQVN YC", r"\<(?:AQVN[\w-]{35,38}|YC[\w-]{38})(?![\w-])", is_mixed_case
    ),
    build_literal_rule("YANDEX_TOKEN", "t1.", r"\<t1\.[\w-]{20,}={0,2}\.[\w-]{86}={0,2}"),
    build_literal_rule("NEON_KEY", "napi_", r"\<napi_[a-z0-9]{40,}", is_mixed),
    build_literal_rule(
        "AZURE_KEY",
        "AZDO AzSe AzFu +ACR ACDb +ASt AIoT +ASb +AEh +ABa APIM",
        r"(?<![A-Za-z0-9])(?:[A-Za-z0-9]{52,76}AZDO[A-Za-z0-9]{4}|[A-Za-z0-9]{42,76}AzSe[A-D][A-Za-z0-9]{5}"
        r"|[\w-]{44}AzFu[\w-]{5}[A-Za-z0-9=]{1,3}|[A-Za-z0-9/+]{33,76}"
        r"(?:\+ACR|ACDb|\+ASt|AIoT|\+ASb|\+AEh|\+ABa|APIM)[A-Za-z0-9/+]{5,6}={0,2})(?![A-Za-z0-9])",
    ),
    build_literal_rule(
        "AIVEN_TOKEN", "aivenv1 AVNS_", r"\<(?:aivenv1[A-Za-z0-9+/=]{40,}|AVNS_[\w-]{15,})", is_mixed_case
    ),
    build_literal_rule("AKAMAI_KEY", "akab-", r"\<akab-[a-z0-9]{16}-[a-z0-9]{16}"),
    build_literal_rule("ALCHEMY_KEY", "alcht_", r"\<alcht_[A-Za-z0-9]{30,}"),
    build_literal_rule("BACKBLAZE_KEY", "K00", r"\<K00\d[A-Za-z0-9/+]{27}(?![\w/+])", is_mixed_case),
    build_literal_rule("CLICKHOUSE_KEY", "4b1d", r"\<4b1d[A-Za-z0-9]{38}(?![A-Za-z0-9])", is_mixed_case),
    build_literal_rule("COCKROACH_KEY", "CCDB1_", r"\<CCDB1_[A-Za-z0-9]{22}_[A-Za-z0-9]{40}"),
    build_literal_rule("CONFLUENT_KEY", "cflt", r"\<cflt[A-Za-z0-9/+]{60}"),
    build_literal_rule(
        "CONVEX_KEY",
        "|",
        r"(?:\<)(?:prod|dev|preview|project):[\w-]+(?::[\w-]+)?\|(?P<v>[A-Za-z0-9+/=]{40,})",
    ),
    build_literal_rule("DENO_TOKEN", "ddp_ ddo_ ddw_", r"\<dd[pow]_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    build_literal_rule(
        "DIGITALOCEAN_KEY", "DO00 DO80", r"\<DO(?:00|80)[A-Z0-9]{16}(?![A-Za-z0-9])", is_mixed
    ),
    build_literal_rule("EXOSCALE_KEY", "EXO", r"\<EXO[0-9a-f]{24}(?![A-Za-z0-9])"),
    build_literal_rule("FAUNA_KEY", "fnA", r"\<fnA[A-Z][\w-]{36,}", is_mixed_case),
    build_literal_rule("GOOGLE_CODE", "4/0", r"(?:\<)4/0A[\w-]{50,}"),
    build_literal_rule("MONGODB_SECRET", "mdb_sa_sk_", r"\<mdb_sa_sk_[\w-]{40}"),
    build_literal_rule("UPCLOUD_TOKEN", "ucat_", r"\<ucat_[A-Z0-9]{26}"),
    build_literal_rule("XATA_KEY", "xau_", r"\<xau_[A-Za-z0-9]{30,}"),
    build_literal_rule("ZUPLO_KEY", "zpka_", r"\<zpka_[\w-]{40,}"),
)
