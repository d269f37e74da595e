"""The table of all formats of tokens, keys and webhook URLs that services issue.

Formats of single services are in `model_services.py`, `business.py`, `hosting.py` and `development.py`;
formats that several services share are here. Distinctive prefixes need no context; the others do
(`surroundings.py`). Where two rules find the same, the earlier one of `TOKENS` names it. Every rule holds a
long run (`core.rule.RUN`).
"""

import re

from tracemill.privacy.core.entropy import is_mixed, is_mixed_case, is_scrambled
from tracemill.privacy.core.rule import FormatRule, build_literal_rule
from tracemill.privacy.secrets.formats.business import BUSINESS
from tracemill.privacy.secrets.formats.development import DEVELOPMENT
from tracemill.privacy.secrets.formats.hosting import HOSTING
from tracemill.privacy.secrets.formats.model_services import MODELS


def _is_secret_part(value: str) -> bool:
    """Tell whether the last part of a token is no word, number or name.

    It is 32 hex digits, both cases and two digits, or letters of changing case.
    """
    body = re.split(r"[_-]", value)[-1]
    if re.fullmatch(r"[0-9a-f]{32,}|[0-9A-F]{32,}", body):
        return is_mixed(body)
    return is_scrambled(body) or (is_mixed_case(body) and sum(map(str.isdigit, body)) >= 2)


# Clerk, Composio, Lob and GoCardless: others use their prefixes too, followed by a name.
_PLAIN = (
    build_literal_rule("CLERK_KEY", "sk_ pk_live", r"\<(?:sk_|pk_live_)[A-Za-z0-9]{24,}", is_mixed_case),
    build_literal_rule("COMPOSIO_KEY", "ak_", r"\<ak_[A-Za-z0-9_-]{20,}", is_mixed_case),
    build_literal_rule(
        "LOB_KEY", "live_ test_", r"\<(?:live|test)_(?:[0-9a-f]{35}|[A-Za-z0-9]{30})(?![A-Za-z0-9])", is_mixed
    ),
    build_literal_rule(
        "GOCARDLESS_TOKEN", "live_ sandbox_", r"\<(?:live|sandbox)_[\w=-]{40}(?![\w-])", is_mixed_case
    ),
)
# Tokens of which an output shows only a piece.
_CUT = (
    build_literal_rule(
        "GITHUB_TOKEN",
        "ghp_ gho_ ghs_ ghu_ ghr_ github_pat_",
        r"\<(?:gh[opsur]|github_pat)_[A-Za-z0-9_]{16,}",
        is_mixed,
    ),
    build_literal_rule("ANTHROPIC_KEY", "sk-ant-", r"\<sk-ant-[a-z]{2,6}\d\d-[\w-]{8,}"),
    build_literal_rule("OPENAI_KEY", "sk-proj-", r"\<sk-(?:proj|svcacct|admin)-[\w-]{12,}", is_mixed_case),
    build_literal_rule("NPM_TOKEN", "npm_", r"\<npm_[A-Za-z0-9]{16,}", is_mixed_case),
    build_literal_rule("GITLAB_TOKEN", "glpat-", r"\<glpat-[\w-]{14,}", is_mixed_case),
    build_literal_rule("GOOGLE_KEY", "AIza", r"\<AIza[\w-]{18,}", is_mixed_case),
    build_literal_rule("HF_TOKEN", "hf_", r"\<hf_[A-Za-z0-9]{18,}", is_mixed_case),
)
# Prefixes that contain a word for secrets.
_SAYING = (
    build_literal_rule(
        "API_KEY",
        "live_ test_ prod_ api_ key_ pat_ oat_ secret_ token_ sk_ tok_ auth_ apikey_ svc_ sat_ access_ "
        "admin_ live- prod- api- key- pat- oat- secret- token- sk- auth- apikey-",
        r"(?:\<)(?:[a-z][a-z0-9]{1,15}[_-]){0,3}(?:live|prod|api|apikey|key|pat|oat|secret|token|sk|tok|auth|svc|sat|"
        r"access|admin)[_-](?:[a-z]{2,8}[_-]|[a-z]{0,3}\d{1,2}[_-])?[A-Za-z0-9]{20,}(?![\w-])",
        _is_secret_part,
    ),
    build_literal_rule(
        "API_KEY",
        "_test_ -test- _sandbox_ _dev_",
        r"(?:\<)[a-z][a-z0-9]{1,15}[_-](?:test|sandbox|dev)[_-][A-Za-z0-9]{20,}(?![\w-])",
        _is_secret_part,
    ),
)
TOKENS: tuple[FormatRule, ...] = (*MODELS, *BUSINESS, *_PLAIN, *HOSTING, *DEVELOPMENT, *_CUT, *_SAYING)
