"""Map model ids to vendor families; a fine-tune belongs to the family of its base model.

Two teachers of one family make the same errors more often (co-failure 3.7 times chance inside a family, 2.9
across). So votes are counted by family, and the student's own family does not vote.
"""

import re
from functools import lru_cache

UNKNOWN = "unknown"

# First match wins: a fine-tune names its base after its own brand, so bases come before brands.
_PATTERNS: tuple[tuple[str, str], ...] = (
    (r"(?<!o)llama(?!\.?cpp)|vicuna|alpaca|meta-|hermes-(?:3|4-70b|4-405b)", "meta"),
    (r"qwen|qwq|qvq|alibaba|tongyi|openhands-(?:lm|7b|14b|32b)|swe-agent-lm|skywork-swe", "qwen"),
    (r"kimi-dev|deepcoder|deepswe|r2e-?gym", "qwen"),
    (r"mixtral|mistral|codestral|devstral|magistral|ministral", "mistral"),
    (r"claude|anthropic", "anthropic"),
    (r"deepseek|r1-1776", "deepseek"),
    (r"gemini|gemma|google|palm|bison", "google"),
    (r"kimi|moonshot", "moonshot"),
    (r"glm|z-ai|zhipu|chatglm", "zai"),
    (r"minimax|abab", "minimax"),
    (r"grok|x-ai", "xai"),
    (r"gpt|openai|davinci|codex|\bo[134]\b|\bo[134]-", "openai"),
    (r"nemotron|nvidia", "nvidia"),
    (r"command-|cohere|aya-", "cohere"),
    (r"mimo|xiaomi", "xiaomi"),
    (r"starcoder|starchat", "bigcode"),
    (r"\bphi-|microsoft", "microsoft"),
    (r"\byi-|01-ai", "01ai"),
    (r"granite|ibm", "ibm"),
    (r"\bnova|amazon", "amazon"),
    (r"simulated/", "simulated"),
)
_COMPILED = tuple((re.compile(pattern), family) for pattern, family in _PATTERNS)


@lru_cache(maxsize=4096)
def family_of(model: str | None) -> str:
    """Return the vendor family of a model id, `unknown` if the table has none.

    `simulated/<family>-...` belongs to that family where the table has it, so that a simulated teacher counts
    like the model it stands for.
    """
    if not model:
        return UNKNOWN
    lowered = model.lower().split("litellm_proxy/")[-1]
    for pattern, family in _COMPILED:
        if pattern.search(lowered):
            return family
    return UNKNOWN
