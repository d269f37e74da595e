"""Select the environment variables of a training process: what training needs, and no credential."""

from collections.abc import Iterable, Mapping

_NAMES_TEXT = """PATH HOME USER LOGNAME LANG LANGUAGE TZ TERM TMPDIR TEMP TMP LD_LIBRARY_PATH LD_PRELOAD
    DYLD_LIBRARY_PATH VIRTUAL_ENV CONDA_PREFIX XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR
    SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY
    http_proxy https_proxy all_proxy no_proxy MASTER_ADDR MASTER_PORT RANK WORLD_SIZE LOCAL_RANK
    LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK"""
_NAMES = frozenset(_NAMES_TEXT.split())
_PREFIXES_TEXT = """LC_ PYTHON CUDA NVIDIA_ NCCL_ CUBLAS CUDNN HIP_ ROCR_ ROCM_ HSA_ MIOPEN_ GPU_ OMP_ GOMP_
    KMP_ MKL_ OPENBLAS_ NUMEXPR_ TORCH PYTORCH TRITON_ XLA_ HF_ TRANSFORMERS_ ACCELERATE_ TOKENIZERS_
    SAFETENSORS_ BITSANDBYTES_"""
_PREFIXES = tuple(_PREFIXES_TEXT.split())
_SECRET_WORDS = frozenset({"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS", "AUTH"})


def child_environment(environ: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables of `environ` that a training process gets.

    These are known names without words such as token, key or secret, and those in `named`.
    """
    named = set(named)
    return {name: value for name, value in environ.items() if name in named or _is_needed(name)}


def _is_needed(name: str) -> bool:
    is_known = name in _NAMES or name.startswith(_PREFIXES)
    return is_known and not _SECRET_WORDS & set(name.upper().split("_"))
