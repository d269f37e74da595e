# ruff: noqa: E501 (patterns)
"""Detect places: degrees and minutes, map links, and pairs of decimals after a word for a place."""

from collections.abc import Iterator

from tracemill.privacy.core.rule import Detector, Span, TextView, build_rule_pattern, make_probed_detector

_DEGREES = build_rule_pattern(
    r"(?<![\w.])\d{1,3}\s?(?:\xb0|\xba|deg|&deg;|\\u00b0)\s?\d{1,2}\s?(?:['\u2032\u2019]|min)?\s?\d{0,2}(?:[.,]\d{1,6})?\s?(?:\"|''|\\\"|\u2033|\u201d|sec)?\s?[NSEWO]"
    r"(?:[ ,;/]{1,3}\d{1,3}\s?(?:\xb0|\xba|deg|&deg;|\\u00b0)\s?\d{1,2}\s?(?:['\u2032\u2019]|min)?\s?\d{0,2}(?:[.,]\d{1,6})?\s?(?:\"|''|\\\"|\u2033|\u201d|sec)?\s?[NSEWO])?(?!\w)"
)
_NUMBER = r"[-+]?\d{1,3}\.\d{4,15}"
_WORDS = r"(?:koordinaten?|coordonn\xe9es|coordenadas|coordinat[ei]|co\xf6rdinaten|standort|ubicaci\xf3n|localiza\xe7\xe3o|posizione|position|location|coords?|coordinates?|gps|geo(?:point)?|lat(?:itude)?[ ,/]{0,2}l(?:on|ng)(?:gitude)?|centroid|center|centre|home|house|live[sd]?|located|meet|at|near|around)"
_BEFORE = build_rule_pattern(
    rf"(?:(?i:(?<![a-z]){_WORDS})(?:[ \t](?:is|are|at|of|point|ist|est|son|in|near)){{0,2}}[\"']?[ \t]{{0,3}}[:=@]?[ \t]{{0,3}}[(\[\"']{{0,2}}"
    r"|(?:maps[^\s\"'<>]{0,120}?(?:/@|[?&](?:q|ll|center|query|daddr|saddr|destination|origin)=|/place/)|geo:|openstreetmap\.org/[^\s\"'<>]{0,60}?(?:map=\d{1,2}/))"
    r"|\"coordinates\"\s?:\s?\[{1,4}\s{0,20}|<coordinates>\s{0,40})$"
)
_PAIR = build_rule_pattern(
    rf"(?<![\w.+-])(?P<v>{_NUMBER})(?:\s?(?:,|;|/|%2C)\s{{0,20}})(?P<w>{_NUMBER})(?![\w.]|\s?,\s?[-+]?\d+\.)"
)
_FIRST = build_rule_pattern(r"[-+]?\d{1,3}$")
_REACH = 180  # characters before a pair that can say that it is a place
_LATITUDE, _LONGITUDE = 90, 180


def find_degrees(view: TextView) -> Iterator[Span]:
    """Find places in degrees and minutes, one coordinate or two."""
    for match in _DEGREES.finditer(view.text):
        yield Span(*match.span(), "LOCATION")


def find_pairs(view: TextView) -> Iterator[Span]:
    """Find pairs of decimals in range, after a word for a place, in map links and in GeoJSON and KML."""
    text, done = view.text, 0
    for at in view.positions(b".0000"):
        start = _FIRST.search(text, max(done, at - 4), at)
        match = _PAIR.match(text, start.start()) if start else None
        if match is None or not _is_place(abs(float(match["v"])), abs(float(match["w"]))):
            continue
        done = match.end()
        if _BEFORE.search(text, max(0, match.start() - _REACH), match.start()):
            yield Span(*match.span("v"), "LOCATION")
            yield Span(*match.span("w"), "LOCATION")


def _is_place(first: float, second: float) -> bool:
    return max(first, second) <= _LONGITUDE and min(first, second) <= _LATITUDE and first != second


DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(
        find_degrees,
        r"\d\s?(?:\xb0|\xba|deg|&deg;|\\u00b0)\s?\d",
    ),
    make_probed_detector(find_pairs, r"\d\.\d{4,}[\"']?\s?(?:,|;|/|%2C)\s*[-+]?\d{1,3}\.\d{4}"),
)
POINTS = DETECTORS[1]
"""The detector of pairs, which reads JSON as a whole."""
