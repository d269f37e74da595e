"""Formats of developer tokens: git hosts, package registries, builds, boards and monitors.

Sources are the vendors' pages on their key formats. Every rule holds a long run (`core.rule.RUN`).
"""

from tracemill.privacy.core.entropy import is_mixed, is_mixed_case
from tracemill.privacy.core.rule import UUID, build_literal_rule

_GIT_HOSTS = (
    build_literal_rule("GITHUB_TOKEN", "ghp_ gho_ ghs_ ghu_ ghr_", r"\<gh[opsur]_[A-Za-z0-9]{30,255}"),
    build_literal_rule("GITHUB_TOKEN", "github_pat_", r"\<github_pat_\w{36,255}"),
    build_literal_rule(
        "GITLAB_TOKEN",
        "glpat- gldt- glrt- glrtr- glptt- glcbt- gloas- glsoat- glft- glimt- glagent- glffct- GR1348941",
        r"\<(?:gl(?:pat|dt|rtr?|ptt|cbt|oas|soat|ft|imt|agent|ffct)-|GR1348941)[\w.-]{20,300}",
        is_mixed,
    ),
    build_literal_rule(
        "BITBUCKET_TOKEN", "ATBB ATCTT3 ATATT3", r"\<(?:ATBB[A-Za-z0-9]{28,36}|AT(?:CTT|ATT)3[\w=-]{60,})"
    ),
    build_literal_rule("GITHUB_TOKEN", "v1.", r"\<v1\.[0-9a-f]{40}(?![A-Za-z0-9])"),
)
_PACKAGES = (
    build_literal_rule("ELASTIC_KEY", "essu_", r"\<essu_[A-Za-z0-9+/_-]{40,}={0,2}"),
    build_literal_rule("LICHESS_TOKEN", "lip_", r"\<lip_[A-Za-z0-9]{20}(?![A-Za-z0-9])", is_mixed_case),
    build_literal_rule("MAILERSEND_KEY", "mlsn.", r"\<mlsn\.[0-9a-f]{64}"),
    build_literal_rule("JITPACK_TOKEN", "jp_", r"\<jp_[a-z0-9]{26}(?![A-Za-z0-9_])", is_mixed),
    build_literal_rule("NPM_TOKEN", "npm_", r"\<npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    build_literal_rule("PYPI_TOKEN", "pypi-", r"\<pypi-AgE[\w-]{50,}"),
    build_literal_rule("DOCKER_TOKEN", "dckr_", r"\<dckr_(?:pat|oat)_[\w-]{24,}"),
    build_literal_rule("RUBYGEMS_KEY", "rubygems_", r"\<rubygems_[0-9a-f]{48}"),
    build_literal_rule("NUGET_KEY", "oy2", r"\<oy2[a-z0-9]{43}(?![A-Za-z0-9])"),
    build_literal_rule("CRATES_TOKEN", "cio", r"\<cio[A-Za-z0-9]{32}(?![A-Za-z0-9])", is_mixed_case),
    build_literal_rule("ARTIFACTORY_KEY", "AKC cmVmd", r"\<(?:AKC[A-Za-z0-9]{60,}|cmVmd[A-Za-z0-9]{59})"),
    build_literal_rule("ANACONDA_TOKEN", "an-", rf"\<an-{UUID}"),
    build_literal_rule("CLOJARS_TOKEN", "CLOJARS_", r"\<CLOJARS_[0-9a-f]{60}"),
    build_literal_rule("PACKAGIST_TOKEN", "packagist_", r"\<packagist_[a-z]{3}_[0-9a-f]{40,}"),
    build_literal_rule("OPENVSX_TOKEN", "ovsxat_ ovsxp_", rf"\<ovsx(?:at|p)_{UUID}"),
    build_literal_rule("THUNDERSTORE_TOKEN", "tss_", r"\<tss_[\w-]{36,}", is_mixed_case),
)
_TOOLS = (
    build_literal_rule(
        "UNLEASH_TOKEN",
        ":production. :development. :default.",
        r"(?:\<)?[\w*-]{0,32}:(?:production|development|default)\.(?P<v>[0-9a-f]{48,64})(?![A-Za-z0-9])",
    ),
    build_literal_rule(
        "TABLEAU_TOKEN", "==:", r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{22}==:[A-Za-z0-9]{32}(?![A-Za-z0-9])"
    ),
    build_literal_rule("SENTRY_TOKEN", "sntrys_ sntryu_", r"\<sntry[su]_[A-Za-z0-9+/=_-]{60,}"),
    build_literal_rule(
        "NEWRELIC_KEY", "NRAK- NRII- NRJS- NRRA-", r"\<NR(?:AK|II|JS|RA)-[A-Za-z0-9-]{19,}", is_mixed
    ),
    build_literal_rule(
        "GRAFANA_TOKEN",
        "glsa_ glc_",
        r"\<(?:glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|glc_[A-Za-z0-9+/]{32,}={0,2})",
    ),
    build_literal_rule("DYNATRACE_TOKEN", "dt0", r"\<dt0[a-z]\d{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    build_literal_rule("POSTMAN_KEY", "PMAK-", r"\<PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    build_literal_rule("LINEAR_KEY", "lin_api_ lin_oauth_", r"\<lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    build_literal_rule("ATLASSIAN_TOKEN", "ATATT ATSTT", r"\<AT(?:ATT|STT)[\w=-]{60,}"),
    build_literal_rule("CI_TOKEN", "CCIPAT_ bkua_", r"\<(?:CCIPAT_\w{40,}|bkua_[0-9a-z]{40})"),
    build_literal_rule("SOURCEGRAPH_TOKEN", "sgp_", r"\<sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}"),
    build_literal_rule("SONAR_TOKEN", "squ_ sqp_ sqa_", r"\<sq[upa]_[0-9a-f]{40}"),
    build_literal_rule("POSTHOG_KEY", "phx_", r"\<phx_[A-Za-z0-9]{40,}"),
    build_literal_rule("NEWRELIC_KEY", "NRAL", r"(?:\<)(?:eu01xx)?[0-9a-f]{30,36}NRAL(?![A-Za-z0-9])"),
    build_literal_rule("PREFECT_KEY", "pnu_ pnb_", r"\<pn[ub]_[A-Za-z0-9]{36}"),
    build_literal_rule("README_KEY", "rdme_", r"\<rdme_[a-z0-9]{70}"),
    build_literal_rule("OCTOPUS_KEY", "API-", r"\<API-[A-Z0-9]{25,32}(?![A-Za-z0-9])", is_mixed),
    build_literal_rule("GRAFANA_KEY", "eyJrIjoi", r"\<eyJrIjoi[A-Za-z0-9+/]{70,}={0,2}"),
    build_literal_rule(
        "YOUTRACK_TOKEN", "perm: perm-", r"\<perm[:-][\w=+/-]{8,}\.[\w=+/-]{4,}\.[\w=+/-]{20,}"
    ),
    build_literal_rule("WAKATIME_KEY", "waka_", rf"\<waka_{UUID}"),
    build_literal_rule("INFRACOST_KEY", "ico-", r"\<ico-[A-Za-z0-9]{32}(?![A-Za-z0-9])", is_mixed_case),
    build_literal_rule("LAUNCHDARKLY_KEY", "sdk- api- mob-", rf"\<(?:sdk|api|mob)-{UUID}(?![\w-])"),
    build_literal_rule(
        "HONEYCOMB_KEY", "hcaik_ hcaic_ hcamk_ hcxik_ hcbik_", r"\<hc[abx][a-z]{2}_[a-z0-9]{26,}"
    ),
    build_literal_rule(
        "HARNESS_TOKEN", "pat. sat.", r"\<[ps]at\.[\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}(?![A-Za-z0-9])"
    ),
    build_literal_rule("INTRA42_SECRET", "s-s4t2", r"\<s-s4t2(?:ud|af)-[0-9a-f]{64}"),
    build_literal_rule("INNGEST_KEY", "signkey-", r"\<signkey-(?:[a-z]{2,10}-)?[0-9a-f]{32,64}"),
    build_literal_rule(
        "TRIGGER_KEY",
        "tr_dev_ tr_prod_ tr_stg_ tr_pat_",
        r"\<tr_(?:dev|prod|stg|pat)_[A-Za-z0-9]{20,}",
        is_mixed_case,
    ),
    build_literal_rule("TRELLO_TOKEN", "ATTA", r"\<ATTA[0-9a-f]{64,72}[0-9A-F]{0,8}(?![A-Za-z0-9])"),
    build_literal_rule("CLICKUP_TOKEN", "pk_", r"\<pk_\d{5,10}_[A-Z0-9]{32}(?![A-Za-z0-9])"),
    build_literal_rule("DBT_TOKEN", "dbtc_ dbtu_", r"\<dbt[cu]_[\w-]{40,}", is_mixed_case),
    build_literal_rule("STATSIG_KEY", "secret-", r"\<secret-[A-Za-z0-9]{40,50}(?![\w-])", is_mixed_case),
    build_literal_rule("ENDOR_KEY", "endr+", r"\<endr\+[A-Za-z0-9-]{16,}", is_mixed),
    build_literal_rule("AXIOM_TOKEN", "xaat- xapt-", rf"\<xa[ap]t-{UUID}"),
    build_literal_rule("BUILDKITE_TOKEN", "bkct_ bkaj_ bksk_ bkpt_", r"\<bk(?:ct|aj|sk|pt)_[A-Za-z0-9]{36,}"),
    build_literal_rule("DJANGO_KEY", "django-insecure-", r"\<django-insecure-[^\s\"'\\]{30,}"),
    build_literal_rule("GITPOD_TOKEN", "gitpod_pat_", r"\<gitpod_pat_[\w.-]{20,}"),
    build_literal_rule("HONEYBADGER_KEY", "hbp_", r"\<hbp_[A-Za-z0-9]{36}"),
    build_literal_rule("IONIC_TOKEN", "ion_", r"\<ion_[a-zA-Z0-9]{42}"),
    build_literal_rule("LOGICMONITOR_TOKEN", "lmb_ lma_", r"\<lm[ab]_[A-Za-z0-9+/=]{60,}"),
    build_literal_rule("MERGIFY_KEY", "mka_", r"\<mka_[\w-]{30,}"),
    build_literal_rule("RAYCAST_TOKEN", "rca_", r"\<rca_[0-9a-f]{64}"),
    build_literal_rule("ROOTLY_KEY", "rootly_", r"\<rootly_[0-9a-f]{64}"),
    build_literal_rule("SANITY_TOKEN", "sk", r"\<sk[A-Za-z0-9]{80,180}(?![\w-])", is_mixed_case),
    build_literal_rule("SNYK_TOKEN", "snyk_uat. snyk_sat.", r"\<snyk_[us]at\.[\w.-]{30,}"),
    build_literal_rule("SOCKET_KEY", "sktsec_", r"\<sktsec_[\w-]{30,}"),
    build_literal_rule(
        "SOURCEGRAPH_TOKEN", "sgamp_ sgd_ slk_", r"\<(?:sgamp_user|sgd|slk)_[\w-]{32,}", is_mixed
    ),
    build_literal_rule("VALTOWN_TOKEN", "vtwn_", r"\<vtwn_[A-Za-z0-9]{27,}"),
    build_literal_rule("NIGHTFALL_KEY", "NF-", r"\<NF-[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    build_literal_rule("DEVCYCLE_KEY", "dvc_", r"\<dvc_(?:server|mobile)_[\w-]{20,}"),
)
DEVELOPMENT = (*_GIT_HOSTS, *_PACKAGES, *_TOOLS)
