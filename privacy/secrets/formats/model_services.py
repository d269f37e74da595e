"""Formats of the keys of models: who serves them, what agents search with, watch and run in.

Sources are the vendors' own pages on their key formats. Every rule holds a long run (`rules.RUN`).
"""

from tracemill.privacy.core.entropy import is_mixed, is_mixed_case
from tracemill.privacy.core.rule import rule

MODELS = (
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
    rule("FIRECRAWL_KEY", "fc-", r"\<fc-[0-9a-f]{32}(?![A-Za-z0-9])"),
    rule("ELEVENLABS_KEY", "sk_", r"\<sk_[0-9a-f]{48}(?![A-Za-z0-9])"),
    rule("JINA_KEY", "jina_", r"\<jina_[0-9a-f]{32}[\w-]{20,}"),
    rule("ANYSCALE_KEY", "esecret_", r"\<esecret_[A-Za-z0-9]{24,}"),
    rule("APIFY_TOKEN", "apify_api_", r"\<apify_api_[A-Za-z0-9]{34,}"),
    rule("BROWSERBASE_KEY", "bb_live_ bb_test_", r"\<bb_(?:live|test)_[\w-]{20,}"),
    rule("CURSOR_KEY", "crsr_ key_", r"\<(?:crsr|key)_[0-9a-f]{64}(?![A-Za-z0-9])"),
    rule("DAYTONA_KEY", "dtn_", r"\<dtn_[0-9a-f]{64}"),
    rule("FRIENDLI_TOKEN", "flp_", r"\<flp_[A-Za-z0-9]{40,}"),
    rule("VOLCENGINE_KEY", "AKLT", r"\<AKLT[\w-]{42,}"),
)
