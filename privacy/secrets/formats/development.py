"""Formats of the tokens of those who develop: git hosts, package registries, builds, boards and monitors.

Sources are the vendors' own pages on their key formats. Every rule holds a long run (`rules.RUN`).
"""

from tracemill.privacy.core.entropy import is_mixed, is_mixed_case
from tracemill.privacy.core.rule import UUID, rule

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
    rule("GITHUB_TOKEN", "v1.", r"\<v1\.[0-9a-f]{40}(?![A-Za-z0-9])"),
)
_PACKAGES = (
    rule("NPM_TOKEN", "npm_", r"\<npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    rule("PYPI_TOKEN", "pypi-", r"\<pypi-AgE[\w-]{50,}"),
    rule("DOCKER_TOKEN", "dckr_", r"\<dckr_(?:pat|oat)_[\w-]{24,}"),
    rule("RUBYGEMS_KEY", "rubygems_", r"\<rubygems_[0-9a-f]{48}"),
    rule("NUGET_KEY", "oy2", r"\<oy2[a-z0-9]{43}(?![A-Za-z0-9])"),
    rule("CRATES_TOKEN", "cio", r"\<cio[A-Za-z0-9]{32}(?![A-Za-z0-9])", is_mixed_case),
    rule("ARTIFACTORY_KEY", "AKC cmVmd", r"\<(?:AKC[A-Za-z0-9]{60,}|cmVmd[A-Za-z0-9]{59})"),
    rule("ANACONDA_TOKEN", "an-", rf"\<an-{UUID}"),
    rule("CLOJARS_TOKEN", "CLOJARS_", r"\<CLOJARS_[0-9a-f]{60}"),
    rule("PACKAGIST_TOKEN", "packagist_", r"\<packagist_[a-z]{3}_[0-9a-f]{40,}"),
    rule("OPENVSX_TOKEN", "ovsxat_ ovsxp_", rf"\<ovsx(?:at|p)_{UUID}"),
    rule("THUNDERSTORE_TOKEN", "tss_", r"\<tss_[\w-]{36,}", is_mixed_case),
)
_TOOLS = (
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
    rule("ATLASSIAN_TOKEN", "ATATT ATSTT", r"\<AT(?:ATT|STT)[\w=-]{60,}"),
    rule("CI_TOKEN", "CCIPAT_ bkua_", r"\<(?:CCIPAT_\w{40,}|bkua_[0-9a-z]{40})"),
    rule("SOURCEGRAPH_TOKEN", "sgp_", r"\<sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}"),
    rule("SONAR_TOKEN", "squ_ sqp_ sqa_", r"\<sq[upa]_[0-9a-f]{40}"),
    rule("POSTHOG_KEY", "phx_", r"\<phx_[A-Za-z0-9]{40,}"),
    rule("NEWRELIC_KEY", "NRAL", r"(?:\<)(?:eu01xx)?[0-9a-f]{30,36}NRAL(?![A-Za-z0-9])"),
    rule("PREFECT_KEY", "pnu_ pnb_", r"\<pn[ub]_[A-Za-z0-9]{36}"),
    rule("README_KEY", "rdme_", r"\<rdme_[a-z0-9]{70}"),
    rule("OCTOPUS_KEY", "API-", r"\<API-[A-Z0-9]{25,32}(?![A-Za-z0-9])", is_mixed),
    rule("GRAFANA_KEY", "eyJrIjoi", r"\<eyJrIjoi[A-Za-z0-9+/]{70,}={0,2}"),
    rule("YOUTRACK_TOKEN", "perm:", r"\<perm:[\w=+/-]{8,}\.[\w=+/-]{4,}\.[\w=+/-]{20,}"),
    rule("WAKATIME_KEY", "waka_", rf"\<waka_{UUID}"),
    rule("INFRACOST_KEY", "ico-", r"\<ico-[A-Za-z0-9]{32}(?![A-Za-z0-9])", is_mixed_case),
    rule("LAUNCHDARKLY_KEY", "sdk- api- mob-", rf"\<(?:sdk|api|mob)-{UUID}(?![\w-])"),
    rule("HONEYCOMB_KEY", "hcaik_ hcaic_ hcamk_ hcxik_ hcbik_", r"\<hc[abx][a-z]{2}_[a-z0-9]{26,}"),
    rule("HARNESS_TOKEN", "pat. sat.", r"\<[ps]at\.[\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}(?![A-Za-z0-9])"),
    rule("INTRA42_SECRET", "s-s4t2", r"\<s-s4t2(?:ud|af)-[0-9a-f]{64}"),
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
    rule("STATSIG_KEY", "secret-", r"\<secret-[A-Za-z0-9]{40,50}(?![\w-])", is_mixed_case),
    rule("ENDOR_KEY", "endr+", r"\<endr\+[A-Za-z0-9-]{16,}", is_mixed),
    rule("AXIOM_TOKEN", "xaat- xapt-", rf"\<xa[ap]t-{UUID}"),
    rule("BUILDKITE_TOKEN", "bkct_ bkaj_ bksk_ bkpt_", r"\<bk(?:ct|aj|sk|pt)_[A-Za-z0-9]{36,}"),
    rule("DJANGO_KEY", "django-insecure-", r"\<django-insecure-[^\s\"'\\]{30,}"),
    rule("GITPOD_TOKEN", "gitpod_pat_", r"\<gitpod_pat_[\w.-]{20,}"),
    rule("HONEYBADGER_KEY", "hbp_", r"\<hbp_[A-Za-z0-9]{36}"),
    rule("IONIC_TOKEN", "ion_", r"\<ion_[a-zA-Z0-9]{42}"),
    rule("LOGICMONITOR_TOKEN", "lmb_ lma_", r"\<lm[ab]_[A-Za-z0-9+/=]{60,}"),
    rule("MERGIFY_KEY", "mka_", r"\<mka_[\w-]{30,}"),
    rule("RAYCAST_TOKEN", "rca_", r"\<rca_[0-9a-f]{64}"),
    rule("ROOTLY_KEY", "rootly_", r"\<rootly_[0-9a-f]{64}"),
    rule("SANITY_TOKEN", "sk", r"\<sk[A-Za-z0-9]{80,180}(?![\w-])", is_mixed_case),
    rule("SNYK_TOKEN", "snyk_uat. snyk_sat.", r"\<snyk_[us]at\.[\w.-]{30,}"),
    rule("SOCKET_KEY", "sktsec_", r"\<sktsec_[\w-]{30,}"),
    rule("SOURCEGRAPH_TOKEN", "sgamp_ sgd_ slk_", r"\<(?:sgamp_user|sgd|slk)_[\w-]{32,}", is_mixed),
    rule("VALTOWN_TOKEN", "vtwn_", r"\<vtwn_[A-Za-z0-9]{27,}"),
    rule("NIGHTFALL_KEY", "NF-", r"\<NF-[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    rule("DEVCYCLE_KEY", "dvc_", r"\<dvc_(?:server|mobile)_[\w-]{20,}"),
)
DEVELOPMENT = (*_GIT_HOSTS, *_PACKAGES, *_TOOLS)
