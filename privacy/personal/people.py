# ruff: noqa: E501 (patterns)
"""Detect names of people and machines in system output: `sudo`, `ls -l`, logs, commits, ssh."""

import re
from collections.abc import Iterator

from tracemill.privacy.core.rule import Detector, Span, TextView, build_rule_pattern, make_probed_detector
from tracemill.privacy.core.word_lists import COMMON_WORDS, MACHINE_WORDS, NO_PERSONS, SHARED_NAMES
from tracemill.privacy.personal.labelled_data import PERSON

_USER = r"(?P<v>[A-Za-z_][\w.-]{2,31})"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_PROBE_USER = r"[A-Za-z_][\w.-]{2}"
_MODE = r"[dlcbps-](?:[r-][w-][xsStT-]){3}[@+.]?[ \t]+\d+[ \t]+"
# Ends of a mode, one literal a probe, for which the prefilter is fast.
_MODE_ENDS = ("rwx", "rw-", "r-x", "r--", "-wx", "-w-", "--x", "---", "[r-][w-][sStT]")
_NOT_ROOT = r"(?:[A-Za-qt-z_]|r[^o]|ro[^o]|roo[^t]|s[^t]|st[^a])"
# The pattern of a line that names an account, and its probes.
_ACCOUNTS = (
    (rf"\[sudo\] \w[\w ]{{2,24}} (?:for|f\xfcr|de|di|per|voor) {_USER}(?=:)", r"\[sudo\] "),
    (rf"sudo(?:\[\d+\])?: {{1,8}}{_USER} : (?:TTY|PWD|\d|command|user NOT|a password)", rf"sudo(?:\[\d+\])?: +{_PROBE_USER}[\w.-]* : "),
    (rf"(?<![^\n]) {{0,8}}{_USER} : (?:TTY=\S+ ; PWD=|user NOT in sudoers)", rf"{_PROBE_USER}[\w.-]* : (?:TTY=|user NOT)"),
    (rf"(?:Accepted|Failed) (?:publickey|password|keyboard-interactive\S*|none) for (?:invalid user )?{_USER} from", r"(?:Accepted|Failed) \S+ for "),
    (rf"(?:session (?:opened|closed) for user|Invalid user(?= \S{{1,40}} from )|[Nn]ew session \S{{1,8}} of user|user unknown:|Disconnected from(?: authenticating| invalid)? user|authentication failure\b[^\n]{{0,120}}\suser=) ?{_USER}", r"session (?:opened|closed) for user|Invalid user |ew session \S{1,8} of user|user unknown:|Disconnected from(?: authenticating| invalid)? user|authentication failure"),
    (rf"CROND?(?:\[\d+\])?: \({_USER}\) CMD|\({_USER.replace('<v>', '<w>')}\) CMD \(", r"\) CMD|CRON"),
    (rf"{_MODE}[\w.-]{{1,32}}[ \t]+{_USER}[ \t]+\d+[ \t]", *(rf"{end}[@+.]?[ \t]+\d+[ \t]+[\w.-]+[ \t]+{_NOT_ROOT}" for end in _MODE_ENDS)),
    (rf"/tmp/(?:pytest-of|claude|tmux|runtime|ssh|vscode|jetbrains|hsperfdata)[-_]{_USER}(?=[/\s\"'`:)]|$)", r"/tmp/(?:pytest-of|claude|tmux|runtime|ssh|vscode|jetbrains|hsperfdata)[-_][A-Za-z_]"),
    (rf"(?i)Documents and Settings\\{{1,4}}{_USER}(?=[\\\s\"'])", r"(?i)Documents and Settings\\"),
    (rf"(?i)OneDrive - [\w .-]{{2,40}}?[/\\]{{1,2}}{_USER}(?=[/\\])", r"(?i)OneDrive - "),
    (rf"(?<![\w.-])/(?:(?:afs|nfs|net|mnt|export|data|cluster|scratch|work|u|fs\d?)/(?:[\w.-]+/)?)?(?:homes|user_homes|scratch/users|home\d|people|staff|students)/{_USER}(?=[/\s\"'`:]|$)", rf"/(?:homes|user_homes|scratch/users|home\d|people|staff|students)/{_PROBE_USER}"),
    (rf"(?:hdfs|s3a?|gs|abfss?)://[\w.:@-]{{0,80}}/(?:user|users|home)/{_USER}(?=[/\s\"'`]|$)", r"(?:hdfs|s3a?|gs|abfss?)://[\w.:@-]*/(?:user|users|home)/"),
    (rf"/Volumes/[\w .-]{{1,40}}/Users/{_USER}", r"/Volumes/[\w .-]+/Users/"),
    (rf"(?m:^)[ \t]{{0,8}}Host(?:Name)? [^\n]{{1,80}}\n(?:[ \t]{{1,8}}(?!User )\w+ [^\n]{{1,200}}\n){{0,6}}[ \t]{{0,8}}User[ \t]{{1,4}}{_USER}(?=\s|$)", r"Host(?:Name)? [^\n]+\n(?:[^\n]*\n){0,6}\s*User[ \t]+[A-Za-z_]"),
    (rf"(?<![^\n])[ \t]{{0,8}}User[ \t]{{1,4}}{_USER}(?=\n[ \t]*(?:Host|Port|Identity|Proxy|Forward)|(?![\s\S]))", rf"User[ \t]+{_PROBE_USER}[\w.-]*(?:\n[ \t]*(?:Host|Port|Identity|Proxy|Forward)|$)"),
    (rf"(?<![\w\\/%:.-])(?!(?:HKEY_\w+|HKLM|HKCU|HKCR|NT|BUILTIN|IIS|SYSTEM|PHP|APP|WINDOWS|PROGRA~1)\\)[A-Z][A-Z0-9-]{{2,14}}\\{{1,2}}(?![A-Z_nrtbfvux0-9]){_USER}(?![\w\\(:;])", r"[A-Z][A-Z0-9-]{2,}\\{1,2}[ac-egh-mo-qswyz][\w.-]{2}"),
    (rf"(?<![\w.-])(?:user|username|usr|owner|uname|login|actor|created_by|assignee|acct)={_USER}(?=[ \t]+\w+=)", rf"(?:user|username|usr|owner|uname|login|actor|created_by|assignee|acct)={_PROBE_USER}[\w.-]*[ \t]+\w+="),
    (r"\"(?:username|user_?[nN]ame|login|userLogin|ownerLogin|samAccountName)\"\s?:\s?\"(?P<v>[A-Za-z_][\w.-]{3,31})\"", rf"\"(?:username|user_?[nN]ame|login|userLogin|ownerLogin|samAccountName)\"\s?:\s?\"{_PROBE_USER}"),
    (rf"(?<![^\n])r\d{{1,8}} \| {_USER} \| \d{{4}}-\d\d-\d\d", rf"r\d+ \| {_PROBE_USER}[\w.-]* \| \d{{4}}-"),
    (rf"(?<![^\n])(?:user: {{6,12}}|Last Changed Author: ){_USER}(?=\s|$)", rf"(?:user: {{6,12}}|Last Changed Author: ){_PROBE_USER}"),
    (rf"\bUID: \d{{4,6}} \({_USER}\)", r"UID: \d{4,6} \("),
    (r"\b(?:TODO|FIXME|XXX|HACK) ?\((?P<v>[a-z]{2,20}\.[a-z]{1,20})\)", r"(?:TODO|FIXME|XXX|HACK) ?\([a-z]+\.[a-z]+\)"),
    (rf"(?<![\w.-])@{_USER}(?=:[\w-]{{2,40}}(?:\.[\w-]{{2,40}}){{1,3}}(?![\w.:-]))", rf"@{_PROBE_USER}[\w.-]*:[\w-]+\.[a-z]{{2}}"),
    (rf"(?<![^\n])\[Service\]\n(?:[^\n\[]{{0,200}}\n){{0,12}}?User={_USER}(?=\r?\n|$)", r"\[Service\]"),
    (r"(?i:iphone|ipad|macbook(?:-(?:pro|air))?|galaxy|pixel)-(?:von|de|di|van|of)-(?P<v>[A-Z][a-z]{2,20})\b", r"(?i:iphone|ipad|macbook(?:-(?:pro|air))?|galaxy|pixel)-(?:von|de|di|van|of)-[A-Z]"),
    (rf"\((?:cron|CRON)\) {_USER}(?=[\s.,]|$)", r"\((?:cron|CRON)\) "),
    (rf"(?<![^\n]){_USER} {{1,16}}\d{{1,7}} +\d{{1,3}}\.\d +\d{{1,3}}\.\d +\d+ +\d+ +(?:\?\?|\?|pts/\d+|tty\w*|s\d{{3}}) +[RSDTZIWU][sl+<NL]{{0,4}} ", r"\d +\d+\.\d +\d+\.\d +\d+ +\d+ +(?:\?|pts|tty|s\d)"),
    (rf"(?<![^\n]){_USER} {{1,16}}(?:pts/\d+|ttys?\d+|console|:\d) +(?:\S+ +)?(?:\d{{4}}-\d\d-\d\d|[A-Z][a-z]{{2}} +\d{{1,2}}) +\d\d:\d\d", r"(?:pts/\d+|ttys?\d+|console|:\d) +(?:\S+ +)?(?:\d{4}-\d\d-\d\d|[A-Z][a-z]{2} +\d{1,2}) +\d\d:\d\d"),
)  # fmt: skip
_PERSON = r"(?P<v>[^\W\d_][\w.'-]{1,30}(?: [^\W\d_][\w.'-]{0,30}){0,3})"
_TRAILERS = "Author|Commit|Committer|Tagger|AuthorName|Signed-off-by|Co-authored-by|Co-Authored-By|Reviewed-by|Acked-by|Tested-by|Reported-by|Suggested-by|Helped-by|Maintainer|Packager|From|To|Cc"
# A host other than GitHub's noreply host.
_REPLIED_TO = r"(?:[^u]|u[^s]|us[^e]|use[^r]|user[^s]|users[^.]|users\.[^n])"
# The text before a trailer is checked after it, so that the search starts at first letters.
_TRAILER_LINE = "|".join(rf"{trailer}(?<!\w{trailer}): " for trailer in _TRAILERS.split("|"))
_PERSONS = (
    (rf"(?:{_TRAILER_LINE}) {{0,4}}{_PERSON} <(?P<w>[^\s<>@]{{1,64}}@[^\s<>]{{3,80}})>", rf"(?:{_TRAILERS}): +[^\n<]+ <[^\s<>@]+@{_REPLIED_TO}"),
    (rf"(?<![^\n])(?:author|committer) {_PERSON}(?=\n(?:author|committer)-mail )", r"(?:author|committer)-mail "),
    (rf"(?<![^\n])(?:user|committer|author): {{2,12}}{_PERSON}(?=[ \t]*(?:<|\n|$))", r"(?:user|committer|author): {2,12}[^\s]+ [^\s]"),
    (rf"(?<!\w)\^?[0-9a-f]{{7,40}} (?:[\w./-]{{1,80}} {{1,4}})?\({_PERSON} {{1,30}}\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{{4}} {{1,8}}\d{{1,6}}\) ", r"\d:\d\d:\d\d [+-]\d{4} +\d+\) "),
    (rf"(?:(?i:user\.name)(?:=\\*[\"']?|[ \t]{{1,4}}\\*[\"'])|git config [^\n]{{0,40}}user\.name ){_PERSON}(?=\\*[\"']|[\n;&|]|$)", r"(?i)user\.name(?:=|[ \t]+)\\*[\"']?[^\s=]"),
    (rf"(?<![^\n])\[user\]\n(?:[ \t]+(?!name)\w+[^\n]*\n){{0,4}}[ \t]+name = {_PERSON}(?=\n|$)", r"\[user\]\n[^\[]*name = "),
    (rf"(?:GIT_(?:AUTHOR|COMMITTER)_NAME)=\\*[\"']?{_PERSON}(?=\\*[\"']|[\n;&|]|$)", r"GIT_(?:AUTHOR|COMMITTER)_NAME="),
    (r"(?i:\b(?:my name is|mein name ist|ich hei(?:\xdf|ss)e|je m'appelle|me llamo|mi chiamo|regards,?|gr\xfc\xdfen?,?|gru\xdf,?|cheers,))\s{1,4}(?P<v>[A-Z\xc0-\xde][\w.'-]{1,30}(?: [A-Z\xc0-\xde][\w.'-]{1,30}){0,2})(?!\w)", r"(?i)(?:my name is|mein name ist|ich hei(?:\xdf|ss)e|je m'appelle|me llamo|mi chiamo|regards,?|gr\xfc\xdfen?,?|gru\xdf,?|cheers,)\s"),
    (r"(?:\b[Hh]i|[Hh]ello|[Hh]allo|[Hh]ey)?[,!.]? ?(?:(?<![\w'])I'm|(?<!\w)I am|(?<!\w)[Ii]ch bin) (?P<v>\w{2,30} [A-Z\xc0-\xde][\w'-]{1,30})(?=[,.!]| (?:and|from|at|und|von|here|working))", r"(?:I'm|I am|[Ii]ch bin) [^\s]+ [A-Z\xc0-\xde]"),
    (r"(?<![^\n:])[\w.-]{1,40}:x:\d{1,6}:\d{1,6}:(?P<v>[^\W\d_][^:,\n]{2,60} [^:,\n]{2,60})[,:]", r":x:\d{4}:\d+:[^:,\n]+ "),
)  # fmt: skip
_HOSTS = (
    (rf"(?<![\w]){_MONTH} {{1,2}}\d{{1,2}} \d\d:\d\d:\d\d (?P<v>[A-Za-z][\w-]{{2,62}}(?:\.[\w-]+)*) [\w./()@-]{{2,48}}(?:\[\d+\])?:", rf"{_MONTH} +\d+ \d\d:\d\d:\d\d [A-Za-z][\w.-]+ [\w./()@-]+(?:\[\d+\])?:"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*[+-]\d\d:\d\d (?P<v>[A-Za-z][\w-]{2,62}(?:\.[\w-]+)*) [\w./()@-]{2,48}\[\d+\]:", r"T\d\d:\d\d:\d\d[\d.]*[+-]\d\d:\d\d [A-Za-z][\w.-]+ [\w./()@-]+\[\d+\]:"),
    (r"(?:(?<=[$#%>&;|] )|(?<![\s\S]))hostname(?: -[fs])?\n(?P<v>[A-Za-z][\w.-]{2,62})(?=[\n\"'`\\]|$)", r"hostname(?: -[fs])?\n[A-Za-z]"),
    (r"(?<![\w./-])(?P<v>[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*-?(?i:macbook|imac|mbp|macmini|mac-mini|laptop|desktop|thinkpad|workstation|pc)(?:-[A-Za-z0-9]+)*)(?=(?:\.(?:local|lan|home|fritz\.box))\b)", r"(?i)(?:macbook|imac|mbp|macmini|mac-mini|laptop|desktop|thinkpad|workstation|pc)[\w-]*\.(?:local|lan|home|fritz)"),
    (r"(?<![\w./-])(?P<v>(?=[A-Za-z0-9-]*[A-Z])[A-Za-z0-9]+(?:-[A-Za-z0-9]+){1,6})(?=\.local(?![\w.-]))", r"-[A-Za-z0-9]+\.local"),
    (r"(?:(?<![\s\S])|(?<=[\n;&|])|(?<=[$#>`] )|(?<=&& ))(?:ssh|mosh)(?: -(?:[46AaCfGgKkMNnqsTtVvXxYy]+|[bcDEeFIiJLlmOopQRSWw] ?\S+))* (?P<v>(?=[\w.-]*[-\d])(?!\d+(?:\.\d+){3})[A-Za-z][\w-]{2,62}(?:\.[\w-]+)*)(?=[\s\"'`;|&]|$)", r"(?:ssh|mosh) (?:-\S+ +(?:\S+ +)?)*[A-Za-z][\w.-]*[-\d]"),
    (r"(?i)://(?:[^\s/@\"'<>]{1,64}@)?(?P<v>(?!metadata\.|host\.docker)[a-z0-9][\w-]{0,62}(?:\.[\w-]{1,63}){0,3}\.(?:intra|intranet|internal|corp|lan|priv|int)(?:\.[a-z][\w-]{1,63}){1,3})(?=[:/\s\"'`)]|$)", r"(?i)://[^\s/\"'<>]*\.(?:intra|intranet|internal|corp|lan|priv|int)\.[a-z]"),
    (r"(?<![\w.-])(?P<v>(?:DESKTOP|LAPTOP|WIN|PC)-(?=[A-Z0-9]*\d)[A-Z0-9]{6,11})(?![\w-])", r"(?:DESKTOP|LAPTOP|WIN|PC)-[A-Z0-9]{6}"),
)  # fmt: skip


_NOBODY = COMMON_WORDS | SHARED_NAMES | NO_PERSONS
_NOWHERE = COMMON_WORDS | MACHINE_WORDS | SHARED_NAMES
_NUMBER = build_rule_pattern(r"[\d.]+|[0-9a-f]{12}")


def _finding(kind: str, nobody: frozenset[str], pattern: str, *probes: str) -> Detector:
    searched = (
        re.compile(pattern) if kind == "PERSON" else build_rule_pattern(pattern)
    )  # persons have any alphabet

    def find(view: TextView) -> Iterator[Span]:
        for match in searched.finditer(view.text):
            yield from _spans(match, kind, nobody)

    return make_probed_detector(find, *probes)


def _spans(match: re.Match[str], kind: str, nobody: frozenset[str]) -> Iterator[Span]:
    names = match.groupdict()
    for group, value in names.items():
        if not value or (group == "w" and kind == "PERSON"):
            continue
        if value.lower() in nobody or _NUMBER.fullmatch(value):
            continue
        if kind == "PERSON" and (_is_nobody(value, nobody) or "noreply" in (names.get("w") or "")):
            continue
        start, end = match.span(group)
        yield Span(start, end, kind)
        if kind == "PERSON" and names.get("w"):
            yield Span(*match.span("w"), "EMAIL")


def _is_nobody(name: str, nobody: frozenset[str]) -> bool:
    words = name.lower().split(" ")
    return any(word in NO_PERSONS for word in words) or all(word in nobody for word in words)


# Lines that only name the account of the person who works there.
_SURE = 3
_TELLING = (
    *(build_rule_pattern(pattern) for pattern, *_ in _ACCOUNTS[:_SURE]),
    build_rule_pattern(  # a home folder
        rf"(?<![^\n])d(?:[r-][w-][xsStT-]){{3}}[@+.]{{0,2}}[ \t]+\d+[ \t]+{_USER}[ \t][^\n]{{8,80}}[ \t](?P=v)/?(?=\r?\n|$)"
    ),
    build_rule_pattern(
        rf"(?:\buid=\d{{3,7}}\(|(?<![A-Z_])(?:USER|LOGNAME)=|(?<![^\n])(?:[^\n]{{0,80}}[$#%>] )?whoami\n){_USER}(?=[)\s\"';]|$)"
    ),
)


_PROCESS = build_rule_pattern(
    r"(?<![^\n])(?P<v>[a-z_][\w.-]{2,31})\+? {1,12}\d{1,7} {1,4}\d{1,3}\.\d {1,4}\d{1,3}\.\d {1,4}\d+ +\d+ +[?\w/]+ +[A-Za-z]"
)
_PROCESSES = build_rule_pattern(r"PID +%CPU")


def find_owners(view: TextView) -> Iterator[Span]:
    """Find the owners of processes in a table that starts with its header."""
    if header := _PROCESSES.search(view.text):
        for match in _PROCESS.finditer(view.text, header.end()):
            yield from _spans(match, "USER", _NOBODY)


_ADDRESS = re.compile(r" <(?P<w>[^\s<>@]{1,64}@[^\s<>@]{3,80})>")
_BEFORE_ADDRESS = re.compile(rf"(?<![\w.@/-])(?P<v>{PERSON})\"?\Z")
_LONGEST = 100  # characters of a name


def find_addressed(view: TextView) -> Iterator[Span]:
    """Find names of persons before their addresses: `First Last <local@host>`."""
    for address in _ADDRESS.finditer(view.text):
        low = max(0, address.start() - _LONGEST)
        name = _BEFORE_ADDRESS.search(view.text, low, address.start())
        if name and not _is_nobody(name["v"], _NOBODY) and "noreply" not in address["w"]:
            yield Span(*name.span("v"), "PERSON")
            yield Span(*address.span("w"), "EMAIL")


def find_people_named(text: str) -> Iterator[str]:
    """Yield account names from lines that surely name the person who works there."""
    for pattern in _TELLING:
        for match in pattern.finditer(text):
            if match["v"].lower() not in _NOBODY:
                yield match["v"]


DETECTORS: tuple[Detector, ...] = (
    *(_finding("USER", _NOBODY, *each) for each in _ACCOUNTS),
    make_probed_detector(find_owners, r"PID +%CPU(?s:.*)\n(?:[a-qs-z_]|r[^o]|ro[^o]|roo[^t]|root[^ +])"),
    *(_finding("PERSON", _NOBODY, *each) for each in _PERSONS),
    make_probed_detector(find_addressed, rf"[^\s<>] <[^\s<>@]+@{_REPLIED_TO}"),
    *(_finding("HOST", _NOWHERE, *each) for each in _HOSTS),
)
TELLING: tuple[Detector, ...] = DETECTORS[:_SURE]
"""The detectors that match wherever `find_people_named` finds a name, besides `accounts.ACCOUNTS`."""
