"""Detect secrets that stand apart from their names: YAML blocks and lists, name and value pairs."""

from collections.abc import Iterator

from tracemill.privacy.core.rule import Detector, Span, TextView, build_rule_pattern, make_probed_detector
from tracemill.privacy.core.secret_names import secret_name_kind
from tracemill.privacy.secrets.assignments import find_assignment_starts, find_continued, name_around
from tracemill.privacy.secrets.joined_values import JOINED_PROBE

_ITEMS = 100  # values of a list that are read
_BLOCK = build_rule_pattern(
    r"(?P<tail>[\w\-]{0,40})[\"'`]?:[ \t]*(?:[|>][+-]?[ \t]*)?\r?\n(?P<indent>[ \t]{0,40})(?=[^\s#])"
)
_ITEM = build_rule_pattern(r"(?P<dash>-[ \t]+)?[\"']?(?P<v>[^\s\"'#,]{6,1024})[\"']?[ \t]*(?:\r?\n|$)")
_FLOW = build_rule_pattern(
    r"(?P<tail>[\w\-]{0,40})\\*[\"'`]?\s{0,3}(?::|=>?)\s{0,3}\[(?P<items>[^\[\]]{8,4000})\]"
)
_FLOW_ITEM = build_rule_pattern(
    r"\\*[\"'`](?P<q>[^\"'`\\\n]{6,1024})\\*[\"'`]|(?P<b>[^\s,\"'`\\\[\]]{6,1024})"
)
_NAME_BEFORE = build_rule_pattern(
    r"(?i)(?<!\w)(?:name|key)\\*[\"']?\s{0,3}[:=]\s{0,4}\\*[\"']?(?P<name>[\w.-]{3,60})\\*[\"']?\s{0,3}[,;]?\s{0,40}"
    r"\\*[\"']?$"
)
_ENDS = ("", "\n", "\r", '"', "'")
_VALUE = build_rule_pattern(r"(?i)value\\*[\"']?\s{0,3}[:=]\s{0,4}\\*[\"']?(?P<v>[^\s\"'\\<>]{4,512})")


def find_blocks(view: TextView) -> Iterator[Span]:
    """Find `api_key: |` with the value in the next line, and `api_keys:` with a list below."""
    text = view.text
    for at, end in find_assignment_starts(view):
        match = _BLOCK.match(text, end)
        start, name = name_around(text, at, match.end("tail")) if match else (at, "")
        if match is None or not name:
            continue
        line = text[text.rfind("\n", 0, start) + 1 : start]
        deeper = len(match["indent"]) > len(line) - len(line.lstrip(" \t"))
        item = _ITEM.match(text, match.end())
        for _ in range(_ITEMS):
            if item is None or not (item["dash"] or deeper) or item["v"].endswith(":"):
                break
            if kind := secret_name_kind(name, item["v"]):
                span = Span(*item.span("v"), kind)
                yield span
                yield from find_continued(text, span)
            following = item.end() + len(match["indent"])
            again = item["dash"] and text[item.end() : following] == match["indent"]
            item = _ITEM.match(text, following) if again else None


def find_flow_lists(view: TextView) -> Iterator[Span]:
    """Find `api_keys: [first, second]`, and the same in code."""
    text = view.text
    for at, end in find_assignment_starts(view):
        match = _FLOW.match(text, end)
        _, name = name_around(text, at, match.end("tail")) if match else (at, "")
        if match is None or not name:
            continue
        for item in _FLOW_ITEM.finditer(text, *match.span("items")):
            group = "q" if item["q"] else "b"
            if kind := secret_name_kind(name, item[group]):
                yield Span(*item.span(group), kind)


def find_named_values(view: TextView) -> Iterator[Span]:
    """Find `name: DB_PASSWORD` followed by `value: ...`, as in container manifests, XML and forms."""
    text = view.text
    for at in view.positions(b"value"):
        match = _VALUE.match(text, at)
        before = _NAME_BEFORE.search(text, max(0, at - 140), at) if match else None
        if (
            match
            and before
            and (
                kind := secret_name_kind(
                    before["name"], match["v"], text[match.end() : match.end() + 1] in _ENDS
                )
            )
        ):
            yield Span(*match.span("v"), kind)


DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(find_blocks, JOINED_PROBE, located=True),
    make_probed_detector(find_flow_lists, JOINED_PROBE, located=True),
    make_probed_detector(
        find_named_values,
        r"(?i)(?:name|key)\\*[\"']?\s*[:=]\s*\\*[\"']?[\w.-]{3,}\\*[\"']?\s*[,;]?\s*\\*[\"']?value\\*[\"']?\s*[:=]\s*"
        r"\\*[\"']?[^\s\"'\\<>]{4}",
    ),
)
