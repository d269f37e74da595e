"""Recognise values of settings that are no secrets: words, numbers, switches, paths."""

import re

from tracemill.privacy.core.word_lists import COMMON_WORDS, SETTING_WORDS, WEAK_PASSWORDS

MIN_SECRET = 8  # characters of a value that is searched for exactly
_WORDS = COMMON_WORDS | SETTING_WORDS | WEAK_PASSWORDS
_PLAIN = re.compile(
    r"[-+\d.,:_/%]+(?:[a-zA-Z]{1,3})?"  # numbers, versions, dates, sizes, times
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.,]*(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
    r"|\d[\d.,]* (?:bytes?|[kKMGT]i?B|(?:second|minute|hour|day|week|month|year)s?(?: ago)?)"
    r"|(?:\d+(?:\.\d+)?(?:ns|us|ms|mo|s|m|h|d|w|y)){1,6}"
    r"|(?:[A-Za-z]:[\\/]|~?/|\.{1,2}/|\\\\)[\w.@ \\/-]*"  # paths
    r"|[\w.-]+/(?:[\w.-]+/)*[\w-]+\.[a-z]{1,5}"
    r"|\$\{?\w+\}?(?:/[\w./-]*)?"  # other variables
    r"|(?:[a-z+]{2,12}://)?(?:[A-Za-z][A-Za-z0-9-]*(?:\.[a-z0-9-]+)*|\d{1,3}(?:\.\d{1,3}){3}|\[::1?\])"
    r":\d{2,5}(?:/[a-z0-9._-]{0,20})*"  # services: a host and its port
    r"|[a-z+]{2,12}://[a-z0-9.-]+(?:/[a-z0-9._-]{0,20})*"  # URLs without credentials or parameters
    r"|(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Etc|Europe|Indian|Pacific)/[\w/+-]+"
    r"|[a-z]{2}_[A-Z]{2}(?:\.[\w-]+)?"
    r"|[a-z]{2}-[a-z]{4,10}(?:-[a-z]{4,10})?-?\d[a-z]?"  # regions of clouds
)
_TOKENLIKE = re.compile(r"(?=[^/]*[0-9])(?=[^/]*[a-z])[A-Za-z0-9]{16,}")


def is_ordinary(value: str) -> bool:
    """Tell whether a value is ordinary in a configuration.

    Ordinary are words of configuration, numbers, versions, dates, switches, paths, other variables, hosts
    with a port, URLs without credentials or parameters, time zones, locales and cloud regions.
    """
    if all(word.strip() in _WORDS for word in value.lower().split(",")):
        return True
    return bool(_PLAIN.fullmatch(value)) and not _TOKENLIKE.search(value)
