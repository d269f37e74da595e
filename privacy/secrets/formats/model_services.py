"""Formats of keys of model services: model servers, search, monitoring and sandboxes of agents.

Sources are the vendors' pages on their key formats. Every rule holds a long run (`core.rule.RUN`).
"""

from tracemill.privacy.core.entropy import is_mixed, is_mixed_case
from tracemill.privacy.core.rule import UUID, build_literal_rule

MODELS = (
    build_literal_rule("BRAVE_KEY", "BSA", r"\<BSA[\w-]{28}(?![\w-])", is_mixed_case),
    build_literal_rule("ANTHROPIC_KEY", "sk-ant-", r"\<sk-ant-[\w-]{20,}", is_mixed),
    build_literal_rule("OPENROUTER_KEY", "sk-or-", r"\<sk-or-(?:v\d-)?[A-Za-z0-9]{32,}"),
    build_literal_rule("LANGFUSE_KEY", "sk-lf- pk-lf-", r"\<[sp]k-lf-[0-9a-f-]{36}"),
    build_literal_rule(
        "OPENAI_KEY", "sk-", r"\<sk-(?!ant-|or-|lf-)(?:[a-z]{2,12}-){0,2}[\w-]{20,}", is_mixed
    ),
    build_literal_rule("HF_TOKEN", "hf_ api_org_", r"\<(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    build_literal_rule("GROQ_KEY", "gsk_", r"\<gsk_[A-Za-z0-9]{40,}"),
    build_literal_rule("XAI_KEY", "xai-", r"\<xai-[A-Za-z0-9]{60,}"),
    build_literal_rule("PERPLEXITY_KEY", "pplx-", r"\<pplx-[A-Za-z0-9]{40,}"),
    build_literal_rule("REPLICATE_TOKEN", "r8_", r"\<r8_[A-Za-z0-9]{37}"),
    build_literal_rule("FIREWORKS_KEY", "fw_", r"\<fw_[A-Za-z0-9]{20,}", is_mixed_case),
    build_literal_rule("LAMBDA_KEY", "secret_", r"\<secret_\w{1,40}_[0-9a-f]{32}\.[A-Za-z0-9]{32}"),
    build_literal_rule("MEM0_KEY", "m0-", r"\<m0-[A-Za-z0-9]{40}(?![\w-])", is_mixed_case),
    build_literal_rule("TOGETHER_KEY", "tgp_v1_", r"\<tgp_v1_[\w-]{40,}"),
    build_literal_rule("NVIDIA_KEY", "nvapi-", r"\<nvapi-[\w-]{50,}"),
    build_literal_rule("CEREBRAS_KEY", "csk-", r"\<csk-[a-z0-9]{40,}", is_mixed),
    build_literal_rule("VOYAGE_KEY", "pa-", r"\<pa-[\w-]{43}(?![\w-])", is_mixed_case),
    build_literal_rule("TAVILY_KEY", "tvly-", r"\<tvly-(?:dev-|prod-)?[\w-]{20,}", is_mixed),
    build_literal_rule("LANGSMITH_KEY", "lsv2_ ls__", r"\<(?:lsv2_(?:pt|sk)_|ls__)[0-9a-f_]{32,}"),
    build_literal_rule("PINECONE_KEY", "pcsk_", r"\<pcsk_\w{40,}"),
    build_literal_rule("WANDB_KEY", "wandb_v1_", r"\<wandb_v1_\w{40,}"),
    build_literal_rule("SANDBOX_KEY", "e2b_", r"\<e2b_[0-9a-f]{40}"),
    build_literal_rule("MODAL_TOKEN", "ak- as-", r"\<a[ks]-[A-Za-z0-9]{22}(?![\w-])", is_mixed_case),
    build_literal_rule("RUNPOD_KEY", "rpa_", r"\<rpa_[A-Z0-9]{36,}"),
    build_literal_rule("FIRECRAWL_KEY", "fc-", r"\<fc-[0-9a-f]{32}(?![A-Za-z0-9])"),
    build_literal_rule("ELEVENLABS_KEY", "sk_", r"\<sk_[0-9a-f]{48}(?![A-Za-z0-9])"),
    build_literal_rule("JINA_KEY", "jina_", r"\<jina_[0-9a-f]{32}[\w-]{20,}"),
    build_literal_rule("ANYSCALE_KEY", "esecret_", r"\<esecret_[A-Za-z0-9]{24,}"),
    build_literal_rule("APIFY_TOKEN", "apify_api_", r"\<apify_api_[A-Za-z0-9]{34,}"),
    build_literal_rule("BROWSERBASE_KEY", "bb_live_ bb_test_", r"\<bb_(?:live|test)_[\w-]{20,}"),
    build_literal_rule("CURSOR_KEY", "crsr_ key_", r"\<(?:crsr|key)_[0-9a-f]{64}(?![A-Za-z0-9])"),
    build_literal_rule("DAYTONA_KEY", "dtn_", r"\<dtn_[0-9a-f]{64}"),
    build_literal_rule("FRIENDLI_TOKEN", "flp_", r"\<flp_[A-Za-z0-9]{40,}"),
    build_literal_rule("CONTEXT7_KEY", "ctx7sk-", rf"\<ctx7sk-{UUID}"),
    build_literal_rule("VOLCENGINE_KEY", "AKLT", r"\<AKLT[\w-]{42,}"),
)
