"""Options of well-known programs in one order and one spelling.

After the option strings of GNU coreutils 9, grep 3, diffutils 3, tar 1.35 and gzip 1.13, and XBD 12.2 of
POSIX.1-2017: flags may be clustered, a value may follow its letter at once, operands may stand between.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache


@dataclass(frozen=True, slots=True)
class _Program:
    """Its letters without and with a value; letters that only say more, and letters that mean another."""

    flags: frozenset[str]
    valued: frozenset[str]
    chatty: frozenset[str] = frozenset()
    same: Mapping[str, str] = field(default_factory=dict)
    first_operand_ends: bool = False


_TABLE = {
    "awk": (":", "Fvf"),
    "cat": ("nAbeEstTuv", ""),
    "chmod": ("Rvcf", ""),
    "chown": ("Rvcfh", ""),
    "cp": ("rRafpvnuiLPHdlsTx", "t"),
    "cut": ("szn", "dfcb"),
    "df": ("hkmiTaPlH", "tB"),
    "diff": ("rqNubaBwiEyst", "UCWxI"),
    "du": ("ahscbkmxLDPl0S", "dBXt"),
    "grep": ("rRnilLcvwxhHosqEFPIazT", "efABCm"),
    "gunzip": ("cfklnNqrtv", "S"),
    "gzip": ("cdfklnNqrtv123456789", "S"),
    "head": ("qvz", "nc"),
    "ln": ("sfnvirTLP", "t"),
    "ls": ("alhtrSR1FdiskUGopncu", ""),
    "mkdir": ("pv", "m"),
    "mv": ("fivnuT", "t"),
    "rm": ("rfivdR", ""),
    "rmdir": ("pv", ""),
    "sort": ("bdfgiMhnRrVuzcCsm", "ktoST"),
    "tail": ("qvzfF", "nc"),
    "tar": ("cxtrzjJvkpPuhaOSm", "fCTXb"),
    "touch": ("acmh", "dtr"),
    "tr": ("dscCt", ""),
    "uniq": ("cduizD", "wfs"),
    "wc": ("lwcmL", ""),
}
_CHATTY = frozenset(["cp", "mv", "rm", "mkdir", "rmdir", "ln", "chmod", "chown", "gzip", "gunzip", "tar"])
_SAME = {"cp": {"R": "r"}, "rm": {"R": "r"}}
_LONG = {"--verbose": "-v", "--recursive": "-r", "--reverse": "-r", "--unique": "-u", "--count": "-c"}
_LINES = re.compile(r"--(?:lines|bytes)=(\S+)")
_NUMBER = re.compile(r"-\d+")
_PACKED = re.compile(r"[A-Za-z]*[cxt][A-Za-z]*")


@cache
def _program(name: str) -> _Program | None:
    found = _TABLE.get(name)
    if found is None:
        return None
    chatty = frozenset("v") if name in _CHATTY else frozenset()
    flags = frozenset() if found[0] == ":" else frozenset(found[0])
    return _Program(flags, frozenset(found[1]), chatty, _SAME.get(name, {}), found[0] == ":")


@lru_cache(maxsize=1024)
def order_program_options(name: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """The words after a program's name: flags one by one in alphabetical order, then options with their
    values, those of one letter in their order, then operands. `head -5` is `head -n 5`; flags by which a
    program only says what it does go, as does the way of packing where tar finds it out itself. Options
    not known here count as operands; words of other programs stay as they are."""
    program = _program(name)
    if program is None or (name != "tar" and not any(word[:1] == "-" for word in words)):
        return words
    flags: set[str] = set()
    values: list[tuple[str, str]] = []
    rest: list[str] = []
    waiting = list(_spelled(name, words))
    while waiting:
        word = waiting.pop(0)
        if word == "--" or (rest and program.first_operand_ends):
            rest.extend(([] if word == "--" else [word]) + waiting)
            break
        taken = _taken(word, program, waiting)
        if taken is None:
            rest.append(word)
        else:
            flags |= taken[0]
            values += taken[1]
    flags = {program.same.get(flag, flag) for flag in flags}
    if name == "tar" and flags & {"x", "t"}:
        flags -= {"z", "j", "J"}
    flags -= set() if name == "tar" and "t" in flags else program.chatty
    told = [
        part for letter, value in sorted(values, key=lambda each: each[0]) for part in (f"-{letter}", value)
    ]
    options = (*sorted(f"-{flag}" for flag in flags), *told)
    if name == "tar" and rest and not options and _PACKED.fullmatch(rest[0]):
        return ("--", *rest)  # an operand that would be read as flags if it came first
    return (*options, *rest)


def _spelled(name: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """The words with options as `-x`: of tar its first word, of head and tail counts, some long names."""
    if name == "tar" and words and _PACKED.fullmatch(words[0]):
        words = (f"-{words[0]}", *words[1:])
    if name in ("head", "tail"):
        words = tuple(f"-n{word[1:]}" if _NUMBER.fullmatch(word) else word for word in words)
        words = tuple(
            _LINES.sub(lambda m: f"-{m[0][2].replace('l', 'n').replace('b', 'c')}{m[1]}", w) for w in words
        )
    return tuple(_LONG.get(word, word) for word in words)


def _taken(word: str, program: _Program, waiting: list[str]) -> tuple[set[str], list[tuple[str, str]]] | None:
    """The flags of a word, and its option with a value, which may be taken from the words that follow;
    None where it is no option, or holds one that is not known."""
    if len(word) < 2 or word[0] != "-" or word[1] == "-":
        return None
    flags: set[str] = set()
    for place, letter in enumerate(word[1:], 2):
        if letter in program.valued:
            if not word[place:] and not waiting:
                return None
            return flags, [(letter, word[place:] or waiting.pop(0))]
        if letter not in program.flags:
            return None
        flags.add(letter)
    return flags, []
