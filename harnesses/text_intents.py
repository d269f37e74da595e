r"""Classify a text without a call: answer, question, refusal, announcement, command, or provider error.

Where such a text ends the work, only an answer finishes it. The patterns match forms that answers do not
have: an announcement is short, its last sentence names a next act of the agent, and no sentence before it
reports finished work. Texts that are not in English are answers or questions.
"""

import re
from functools import lru_cache
from typing import Literal

TextKind = Literal["answer", "question", "refusal", "announcement", "command", "error"]

_LONGEST_ANNOUNCEMENT = 600
_LONGEST_REFUSAL = 400
_LONGEST_ERROR = 1000
_TRAILING = "".join(char for char in map(chr, range(0x3001)) if char.isspace()) + "\"'*_)]"
"""Blanks, quotes and brackets that may follow a question mark at the end."""

_THOUGHT = re.compile(r"<(think|thinking|thought)>.*?</\1>", re.DOTALL)
_BLOCK = re.compile(
    r"(?P<before>.*?)^[ \t]*```(?:bash|sh|shell|zsh|console|terminal|tool_code)[ \t]*\n"
    r"(?:(?!^[ \t]*```).)*^[ \t]*```\s*\Z",
    re.DOTALL | re.MULTILINE,
)
_LISTED = re.compile(r"^[ \t]*(?:[-*+\u2022|#>]|\d+[.)])[ \t]*\S", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!:;\u2026])[\"')\]*_]*\s+|\n+")
_CLAUSE = re.compile(r"\s+(?:\u2014|\u2013|--?)\s+")


def _any(words: str) -> str:
    """Return a pattern that matches any of some words; `_` stands for blanks."""
    return f"(?:{'|'.join(word.replace('_', chr(92) + 's+') for word in words.split())})"


_ACTS = _any(
    r"""add adjust adopt amend analy[sz]e apply audit build calculate call capture change check claim clean
    clear close collect combine commit compare compile complete compute configure confirm connect
    consolidate convert copy correct count craft create cross-check cut debug decode decompile decompose
    define delegate delete deploy design determine diagnose dig digest disassemble discover dispatch do_an?
    do_the double-check download draft edit enable ensure enumerate establish evaluate examine execute expand
    experiment explore export extend extract fetch figure_out fill find fix force format gather generate
    get(?!_back) grab grep handle harvest hunt identify implement import improve include incorporate
    initiali[sz]e insert inspect install instrument integrate investigate invoke isolate iterate kill launch
    learn load locate look make_(?:sure|the|this|these|an?_(?:change|copy|patch|new|small))
    map mark measure merge migrate modify move narrow navigate obtain open parse
    patch peek perform pick pin pinpoint poke prepare probe prove pull push put query read rebase rebuild
    recheck re-check recompile record recreate redo re-examine re-fetch refactor refine reformat regenerate
    register reload remove rename reorder reorgani[sz]e repeat replace reproduce request reread re-read rerun
    re-run research reset resolve restart restore restructure resume retrieve retry revert review revise
    revisit rewrite rule_out run save scan scroll scrutini[sz]e search see select send set setup simulate
    sketch skim solve sort spawn spin split stage start_(?!by|with) stash step stop_(?:the|it|that|this) strip
    study submit suppress swap switch sync tackle take(?!_you) test tidy trace track trigger try tweak uncover
    understand undo uninstall unpack unzip update upgrade upload use utili[sz]e validate verify view visit
    work write"""
)
"""What an agent does with tools, without talking and waiting."""
_LEADS = _any(
    """now next first firstly then so ok okay alright sure certainly great good perfect also and but instead
    finally lastly meanwhile before_that to_start to_begin for_now from_here here"""
)
_ADVERBS = _any(
    """now first also just quickly then next instead go_ahead_and go_and carefully briefly try_to try_and
    start_by begin_by directly further once_more again take_a_moment_to move_on_to jump_to"""
)
_SAYS = _any(
    r"""let_me let['\u2019]?s let_us i['\u2019]ll i_will i['\u2019]m_going_to i_am_going_to
    i_(?:now_|first_|also_)?need_to i_should i_must i_have_to i_want_to"""
)
_BEGINS = (
    r"(?:start|begin|proceed|continue|move\s+on|go\s+on)\s*(?:[.:]|\Z|the\b|(?:by|with|to|on)\s+"
    r"(?!explain|summ|describ|outlin|answer|giving|an?\s+(?:overview|summary|explanation|recap)))"
)
_WHY = r"(?:(?:to|for|in\s+order\s+to|since|because|as|given)\b[^.!?]{0,160}?,\s+)?"
_NEXT = re.compile(
    rf"(?:{_LEADS}[,!.]?\s+)*{_WHY}{_SAYS}\s+(?:{_ADVERBS}\s+)*"
    rf"(?:{_ACTS}\b(?!\s+you\b)|{_BEGINS}|(?:help|assist)\s+you\b)",
    re.IGNORECASE,
)
_ORDER = re.compile(rf"(?:{_LEADS}[,!.]?\s+)*{_ACTS}\b[^.]*:|(?:now|next)\b[^.]*:", re.IGNORECASE)
_UP_TO_USER = re.compile(
    r"\b(?:if|once|when|whenever|unless|until|as\s+soon\s+as|in\s+case|after|before|should)\s+(?:you|your|they|"
    r"that\s+works|it\s+is\s+ok|approved|confirmed|all|both|the\s+\w+\s+(?:agents?|jobs?))\b"
    r"|\byou(?:['\u2019]d)?\s+(?:want|like|prefer|need|wish|say)\b"
    r"|\byour\s+(?:reply|answer|approval|call|choice|confirmation|go-ahead|ok|word|input|feedback|decision)\b"
    r"|\bon\s+request\b|\bany\s*time\b|\blater\b|\bfrom\s+(?:now|here)\s+on\b|\bgoing\s+forward\b"
    r"|\bin\s+(?:the\s+)?future\b|\bnext\s+time\b|\balways\b",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"\b(?:done|fixed|implemented|resolved|completed?|finished|committed|pushed|merged|updated|added|created|"
    r"changed|removed|deleted|renamed|replaced|refactored|rewrote|written|wrote|applied|installed|deployed|"
    r"posted|published|reverted|restored|bumped|moved|corrected|succe\w+|(?:tests?|checks?|build|suite|lint)\s+"
    r"(?:now\s+|all\s+)?(?:pass(?:es|ed)?|green|clean)|all\s+(?:green|clean|pass\w*|good|set))\b"
    r"|\bthe\s+(?:final\s+)?(?:answer|result|solution|conclusion|flag|output)\s+is\b|\bsummary\b",
    re.IGNORECASE,
)
_UNDONE = re.compile(
    r"\b(?:not|never|to\s+be|being|need(?:s|ed)?|must|should|failed\s+to|yet)\b|n['\u2019]t\b", re.IGNORECASE
)
_REFUSES = re.compile(
    r"(?:(?:(?:i['\u2019]m|i\s+am|we['\u2019]re)\s+(?:(?:very|so|really)\s+)?(?:sorry|afraid)|sorry|no|"
    r"unfortunately|i\s+apologi[sz]e|apologies)[,.]?\s*(?:(?:but|that)\s+)?)?"
    r"(?:(?:i|we)\s*(?:cannot|can\s+not|can['\u2019]t|won['\u2019]t|will\s+not|must\s+decline\s+to|(?:refuse|decline)"
    r"\s+to|(?:am|are|['\u2019]m|['\u2019]re)\s+(?:unable|not\s+(?:able|allowed|permitted))\s+to)\s+"
    r"(?:help|assist|comply|continue|proceed|do\s+(?:that|this|it|so)|fulfil+|"
    r"(?:complete|carry\s+out|perform)\s+(?:this|that|the|your)\s+(?:task|request))\b"
    r"|i\s+(?:(?:have\s+to|must)\s+)?giv(?:e|ing)\s+up\b)",
    re.IGNORECASE,
)
_STATUS = _any(
    r"""[45]\d\d\b rate.?limit too_many_requests quota overloaded capacity time.?d?\s?-?out unavailable
    internal inference connection network gateway upstream server_error context.?(?:length|window)
    maximum_context token_limit max.tokens invalid.?(?:request|api|json) api.?key unauthori[sz]ed forbidden
    authentication billing insufficient model_(?:not_found|is_not) parsing content.?(?:filter|policy)
    try_again_later prompt_is_too_long no_response"""
)
_SPEAKS = re.compile(rf"\b(?:I|we|We)\b|{_TOLD.pattern}")
"""Words that no provider error has."""
_OWNERS = "internal|inference|parsing|connection|network|provider|gateway|api|server|upstream|request|model"
_ERROR = re.compile(
    rf"\W*(?:error\W*|(?:type\W+|(?:[a-z]+\s+){{0,3}}?[\w.]*)error\b\s*(?:code\b)?[\s:\"',\u2013\u2014(-]+.{{0,60}}?{_STATUS}.*|"
    rf"(?:{_OWNERS})\s+(?:server\s+)?error\b.*|"
    r"(?:http\s*)?(?:429|5\d\d)\b[\s:\u2013\u2014-]+(?:too\s+many|service|internal|bad|gateway|server|error).*|"
    r"(?:the\s+)?(?:request|rate|model|service|server|provider)\s+(?:(?:has|is|was)\s+)?(?:currently\s+)?"
    r"(?:timed\s+out|limit(?:ed)?(?:\s+(?:exceeded|reached))?|overloaded|unavailable)\b.*)",
    re.IGNORECASE | re.DOTALL,
)


@lru_cache(maxsize=256)
def find_text_intent(text: str) -> TextKind:
    """Classify a text without a call.

    - `error`: an error of the model's provider, and nothing else.
    - `question`: the text ends with one.
    - `command`: a shell block alone, or after an announcement.
    - `announcement`: it names a next act of the agent and no finished work, and does not wait for the user.
    - `refusal`: it begins with the statement that the agent gives up, cannot or will not help.
    - `answer`: anything else, an empty text too.
    """
    plain = (_THOUGHT.sub("", text) if "<th" in text else text).strip()
    if len(plain) <= _LONGEST_ERROR and _ERROR.fullmatch(plain) and not _SPEAKS.search(plain):
        return "error"
    if plain.rstrip(_TRAILING).endswith("?"):
        return "question"
    if plain.endswith("```") and (block := _BLOCK.fullmatch(plain)):
        before = block["before"].strip()
        return "command" if not before or _names_act(before) else "answer"
    if len(plain) > _LONGEST_ANNOUNCEMENT:
        return "answer"
    if _names_act(plain) or _ORDER.fullmatch(_sentences(plain)[-1]):
        return "announcement" if _is_bare(plain) else "answer"
    return "refusal" if len(plain) <= _LONGEST_REFUSAL and _REFUSES.match(plain) else "answer"


def _names_act(text: str) -> bool:
    """Return whether the last sentence names a next act of the agent."""
    last = _sentences(text)[-1]
    return not _UP_TO_USER.search(last) and any(_NEXT.match(clause) for clause in _CLAUSE.split(last))


def _is_bare(text: str) -> bool:
    """Return whether a short text contains no output, and reports no work before its last sentence."""
    if "```" in text or _LISTED.search(text):
        return False
    return not any(_TOLD.search(each) and not _UNDONE.search(each) for each in _sentences(text)[:-1])


def _sentences(text: str) -> list[str]:
    return [each.strip() for each in _SENTENCE.split(text) if each.strip()] or [""]
