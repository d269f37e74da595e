"""Parse base URLs: origin, host, and whether they lead to this machine."""

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from tracemill.records.errors import ConfigError

_PORTS = {"http": 80, "https": 443}


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL as `https://host:8443`, without a default port.

    See RFC 6454, section 6. Raises ConfigError for another scheme, a missing host or an invalid port.
    """
    parts, port = _split(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}" + ("" if port == _PORTS[parts.scheme] else f":{port}")


def host_of(url: str) -> str:
    """Return the host of a URL in lower case. Raises ConfigError as `origin_of` does."""
    return _split(url)[0].hostname or ""


def is_loopback(url: str) -> bool:
    """Return whether a URL is a loopback address, which only this machine can reach."""
    host = host_of(url)
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _split(url: str) -> tuple[SplitResult, int]:
    try:
        parts = urlsplit(url)
        port = parts.port if parts.port is not None else _PORTS.get(parts.scheme, 0)
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ConfigError("a teacher's base_url names no server", "http://host:port/v1 or https://host/v1")
    return parts, port
