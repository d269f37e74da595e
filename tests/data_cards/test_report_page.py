"""The page of a report in Chromium: what it marks, filters, and shows; and that nothing of a session acts."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from chromium_page import CHROMIUM, ChromiumPage, chromium_page
from console_says import NO_BROWSER

from tracemill.data_cards.model.release_spec import ReleaseSpec
from tracemill.data_cards.model.report_model import REPORT_PAGE
from tracemill.data_cards.writing.write_release import Release, write_release
from tracemill.records.message import Message, ToolCall
from tracemill.records.pair import DPOPair, NormalizedDPOPair, Vote

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_BROWSER)
WIDE, PHONE = (1440, 900), (390, 844)
HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'> <!-- "
    "\u202eevil\u202c \x00 \x1b[31m \u2028 שלום " + "long" * 60
)
OLD, NEW = "    return sum(items)", "    return sum(items) / len(items)"
SAFE = "    if not items:\n        return 0\n    return sum(items) / len(items)"


def edited(*edits: str | tuple[str, str]) -> Message:
    calls = tuple(
        ToolCall(
            f"c{at}", "Edit", json.dumps({"file_path": "src/mean.py", "old_string": old, "new_string": new})
        )
        for at, (old, new) in enumerate(each if isinstance(each, tuple) else (OLD, each) for each in edits)
    )
    return Message("assistant", "I mend the mean.", calls)


FIRST = ("def low(day):\n    turns = int(day)", "def low(day):\n    turns = day // 2")
SECOND = (
    "def low(day: int):\n    turns = int(day)",
    "def one():\n    return 1\n\n\ndef low(day: int):\n    turns = day // 2",
)
IMPORTS = ("import os", "import json\nimport os")


def ran(command: str) -> Message:
    return Message("assistant", "", (ToolCall("c", "Bash", json.dumps({"command": command})),))


def vote(teacher: str, agrees: bool) -> Vote:
    return Vote(teacher, f"f{teacher}", 0, True, "", "k", "edit", agrees, 0.1, "q")


def pair(number: int, chosen: Message, rejected: Message, **changes: Any) -> NormalizedDPOPair:
    context = [Message("system", "You help."), Message("user", "Mend the mean of an empty list.")]
    for turn in range(number + 2):
        output = "\n".join(f"line {line} of output {turn}" for line in range(40))
        call = ToolCall(f"t{turn}", "Read", json.dumps({"file_path": f"src/part{turn}.py"}))
        context += [Message("assistant", f"I look at part {turn}.", (call,))]
        context += [Message("tool", output, tool_call_id=f"t{turn}", name="Read")]
    values: dict[str, Any] = {
        "step_id": f"claude_code-{number % 2}:0:{number}",
        "label_source": "teachers",
        "state_messages": tuple(context),
        "tools": (),
        "chosen": (chosen,),
        "rejected": (rejected,),
        "chosen_operation": "edit",
        "rejected_operation": "edit",
        "source": "claude_code",
        "harness": "claude_code",
        "presentation": "p1",
        "student_model": "m",
        "student_family": "anthropic",
        "votes": (vote("a", True), vote("b", True), vote("c", number == 0)),
        "n_teachers_agreeing": 2 + (number == 0),
        "repository": "owner/mean",
    }
    return NormalizedDPOPair(DPOPair(**(values | changes)), "c", "r", "r")


def pairs() -> list[NormalizedDPOPair]:
    said = Message("assistant", HOSTILE, (ToolCall("c", HOSTILE, json.dumps({HOSTILE: HOSTILE})),))
    reading = {"chosen_operation": "run_test", "rejected_operation": "read"}
    ending = {"rejected_operation": "finish", "chosen_operation": "search"}
    return [
        pair(0, edited(SAFE), edited(NEW)),
        pair(1, ran("pytest -q tests/test_mean.py"), ran("pytest -q tests/test_everything.py"), **reading),
        pair(2, ran("rg mean src"), Message("assistant", "Done."), **ending),
        pair(3, said, Message("assistant", HOSTILE[::-1]), evidence=HOSTILE, repository=HOSTILE),
        *(pair(n, ran(f"ls {n}"), ran("ls"), label_source="hindsight", votes=()) for n in range(4, 28)),
        pair(28, edited(SECOND), edited(FIRST), label_source="user", votes=()),
        pair(29, edited(IMPORTS, NEW), edited(NEW), label_source="revised_edit", votes=()),
    ]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    spec = ReleaseSpec(name="seen", redaction="r1", created=datetime(2026, 11, 21, tzinfo=UTC), views=())
    made = write_release(spec, pairs(), (), tmp_path_factory.mktemp("releases"))
    assert isinstance(made, Release)
    return (made.path / REPORT_PAGE).as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[ChromiumPage]:
    with chromium_page() as page:
        yield page


@pytest.fixture
def page(browser: ChromiumPage, url: str) -> Iterator[ChromiumPage]:
    """The report in a wide window; its console has to stay silent."""
    load(browser, url)
    yield browser
    assert browser.errors == []


def load(page: ChromiumPage, url: str, size: tuple[int, int] = WIDE) -> None:
    page.open(url, *size)
    page.wait("document.documentElement && document.documentElement.dataset.whole !== undefined")


def text(page: ChromiumPage, selector: str) -> Any:
    found = f"[...document.querySelectorAll({json.dumps(selector)})]"
    return page.evaluate(f"{found}.map((each) => each.textContent)")


def choose(page: ChromiumPage, field: str, value: str) -> str:
    script = f"const f = document.getElementById('by-{field}'); f.value = {json.dumps(value)};"
    page.evaluate(f"{{ {script} f.dispatchEvent(new Event('change')); }}")
    return text(page, "#told")[0]


def find(page: ChromiumPage, words: str) -> str:
    script = f"const s = document.getElementById('search'); s.value = {json.dumps(words)};"
    page.evaluate(
        f"{{ {script} s.dispatchEvent(new Event('input')); delete document.body.dataset.waited; "
        "setTimeout(() => { document.body.dataset.waited = 1; }, 200); }"
    )
    page.wait("document.body.dataset.waited")
    return text(page, "#told")[0]


def test_what_differs_between_two_edits_is_marked(page: ChromiumPage) -> None:
    assert text(page, ".sum") == ["Same tool; new_string differs."]
    assert text(page, ".good .line.add") == ["+    if not items:", "+        return 0", f"+{NEW}"]
    assert text(page, ".good .line.del") == [f"\u2212{OLD}"]
    assert text(page, ".bad .line.add") == [f"+{NEW}"]
    assert text(page, ".bad mark") == []
    marked = "".join(text(page, ".good mark"))
    assert "".join(marked.split()) == "ifnotitems:return0"
    assert text(page, ".good .arg.same .key") == ["file_path"]
    assert text(page, ".good .line.add .t-word") == ["if", "not", "return", "return"]


def test_the_word_that_differs_is_the_marked_one(page: ChromiumPage) -> None:
    page.press("j")
    assert text(page, ".bad mark") == ["test_everything"]
    assert text(page, ".good mark") == ["test_mean"]
    page.press("j")
    assert text(page, ".sum") == ["Calls Bash instead of ending the turn."]
    assert text(page, ".bad .quiet") == ["No tool call: the turn ends here."]
    assert text(page, ".good mark") == []


def test_lines_that_both_sides_have_are_not_marked(page: ChromiumPage) -> None:
    """A line is compared with the line that it changes, not with the first that begins alike."""
    choose(page, "source", "user")
    assert text(page, ".bad mark") == []
    assert "".join("".join(text(page, ".good mark")).split()) == "defone():return1:int"


def test_each_call_is_compared_with_the_one_that_is_most_like_it(page: ChromiumPage) -> None:
    choose(page, "source", "revised_edit")
    assert text(page, ".sum") == ["Calls Edit \u00d72 instead of Edit."]
    assert text(page, ".good .tool-name") == ["Editonly here", "Edit"]
    assert text(page, ".bad .tool-name") == ["Edit"]
    assert text(page, "#pair mark") == []
    assert text(page, ".good .arg.same .key") == ["file_path", "old_string \u2192 new_string"]


def test_keys_move_between_pairs_search_and_help(page: ChromiumPage) -> None:
    assert text(page, "#place") == ["1 of 30"]
    page.press("j", "j", "ArrowRight", "k")
    assert text(page, "#place") == ["3 of 30"]
    assert page.evaluate("location.hash") == "#pair-claude_code-0:0:2:teachers"
    assert text(page, ".entry[aria-selected=true] .ops") == ["search over finish"]
    page.press("ArrowLeft", "k", "k", "k")
    assert text(page, "#place") == ["1 of 30"]
    page.press("/", "j")
    assert page.evaluate("document.activeElement.id + document.activeElement.value") == "searchj"
    page.press("Escape", "?")
    assert page.evaluate("document.getElementById('help').open") is True
    page.press("j")
    assert text(page, "#place") == ["1 of 30"]
    page.evaluate("document.getElementById('help-close').click()")
    assert page.evaluate("document.getElementById('help').open") is False


def test_filters_count_and_combine(page: ChromiumPage) -> None:
    options = text(page, "#by-agreement option")
    assert options == ["any", "no votes (26)", "2 of 3 votes (3)", "3 of 3 votes (1)"]
    assert choose(page, "agreement", "2 of 3 votes") == "3 of 30 pairs"
    assert choose(page, "decides", "chosen") == "2 of 30 pairs"
    assert choose(page, "decides", "any") == "3 of 30 pairs"
    assert choose(page, "did", "finish") == "1 of 30 pairs"
    assert text(page, "#filters summary") == ["Filters (3)"]
    page.evaluate("document.getElementById('clear').click()")
    assert text(page, "#told") == ["30 pairs"]
    assert choose(page, "source", "hindsight") == "24 of 30 pairs"
    shown = "document.getElementById('by-source').selectedOptions[0].text"
    assert page.evaluate(shown) == "self-repair (24)"
    assert choose(page, "trace", "claude_code-1") == "12 of 30 pairs"
    page.evaluate("document.getElementById('clear').click()")
    assert find(page, "test_MEAN") == "1 of 30 pairs"
    assert find(page, "part20.py") == "11 of 30 pairs"
    assert find(page, "messages") == find(page, "assistant") == "0 of 30 pairs"
    assert find(page, "nowhere") == "0 of 30 pairs"
    assert text(page, "#pair") == ["No pair fits. Clear the filters to see all."]
    page.evaluate("document.querySelector('button[data-rejected=finish]').click()")
    assert text(page, "#told") == ["1 of 30 pairs"]
    assert text(page, "#pair h3") == ["search over finish"]


def test_print_shows_the_pair_whole_and_no_controls(page: ChromiumPage) -> None:
    page.press("j")
    page.call("Emulation.setEmulatedMedia", media="print")
    shown = (
        "[...document.querySelectorAll('nav, .find, #list, .pager')].filter((each) => each.checkVisibility())"
    )
    assert page.evaluate(f"{shown}.length") == 0
    assert page.evaluate("getComputedStyle(document.querySelector('#pair pre')).maxHeight") == "none"
    page.call("Emulation.setEmulatedMedia", media="")


def test_a_link_opens_its_pair(browser: ChromiumPage, url: str) -> None:
    load(browser, f"{url}#pair-claude_code-1:0:5:hindsight")
    assert text(browser, "#place") == ["6 of 30"]
    choose(browser, "did", "finish")
    browser.evaluate("location.hash = 'pair-claude_code-0:0:6:hindsight'")
    browser.wait("document.getElementById('place').textContent === '7 of 30'")
    assert text(browser, "#told") == ["30 pairs"]
    load(browser, f"{url}#pair-none")
    assert text(browser, "#told") == ["The linked pair is not in this page."]
    assert text(browser, "#place") == ["1 of 30"]
    assert browser.errors == []


def test_the_context_is_a_conversation_with_its_end_open(page: ChromiumPage) -> None:
    page.press("j")
    assert text(page, ".context > .turn > .role") == ["Output of Read", "Agent", "Output of Read"]
    assert page.evaluate("document.querySelectorAll('.context > .turn details').length") == 0
    assert text(page, ".earlier > summary") == ["The 5 messages before"]
    assert page.evaluate("document.querySelectorAll('.earlier .turn').length") == 0
    page.press("o")
    page.wait("document.querySelectorAll('.earlier .turn').length === 5")
    roles = ["System", "User", "Agent", "Output of Read", "Agent"]
    assert text(page, ".earlier .role") == roles
    folded = text(page, ".earlier .tool details summary")
    assert folded == ["line 0 of output 0 40 lines"]
    assert text(page, ".earlier .call .tool-name") == ["Read", "Read"]


def test_no_text_of_a_session_acts_or_shows_unseen_signs(page: ChromiumPage) -> None:
    page.press("j", "j", "j", "o")
    shown = page.evaluate("document.getElementById('pair').innerText")
    assert "</script><script>document.title='owned'" in shown
    assert "\\u202eevil\\u202c \\x00 \\x1b[31m \\u2028 שלום" in shown
    assert not {"\u202e", "\x00", "\x1b", "\u2028"} & set(shown)
    assert page.evaluate("document.title") == "seen 2026.11.21 · tracemill report"
    assert page.evaluate("document.querySelectorAll('#pair img, #pair script').length") == 0
    assert page.evaluate("document.scripts.length") == 3


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_nothing_is_wider_than_a_phone(browser: ChromiumPage, url: str, at: int) -> None:
    load(browser, url, PHONE)
    browser.press(*"j" * at, "o")
    browser.evaluate("document.getElementById('filters').open = true")
    assert browser.evaluate("document.documentElement.scrollWidth") == 390
    sticking = """[...document.querySelectorAll('main *, header *, footer *')].filter((each) => {
        for (let p = each.parentElement; p; p = p.parentElement)
            if (/auto|scroll|hidden/.test(getComputedStyle(p).overflowX)) return false;
        const box = each.getBoundingClientRect();
        return box.width && box.right > 390.5; }).map((each) => each.className + each.tagName)"""
    assert browser.evaluate(sticking) == []
    assert browser.evaluate("getComputedStyle(document.querySelector('#operations .wide')).display") == "none"
    operations = text(browser, "#operations .cells li")
    assert operations[0] == "edit over edit2893%"
    assert browser.errors == []


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_its_ground(browser: ChromiumPage, url: str, dark: bool) -> None:
    """The contrast of WCAG 2 AA, 4.5 to 1, for every text of the page that can be seen."""
    browser.open(url, *WIDE, dark)
    browser.wait("document.documentElement && document.documentElement.dataset.whole !== undefined")
    browser.press("j", "o", "k", "o")
    assert browser.evaluate(FAINT) == []
    ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(252, 252, 251)") is not dark


FAINT = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const over = (colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (rgb) => rgb.reduce((sum, v, i) => sum + linear(v / 255) * [0.2126, 0.7152, 0.0722][i], 0);
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement, style = getComputedStyle(node);
    if (!walker.currentNode.data.trim() || !node.checkVisibility()) continue;
    if (node.closest("script, :disabled, svg")) continue;
    const grounds = [];
    for (let each = node; each; each = each.parentElement) {
      grounds.unshift(getComputedStyle(each).backgroundColor);
    }
    const back = over(grounds), front = over([...grounds, style.color]);
    const [high, low] = [light(front), light(back)].sort((a, b) => b - a);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < 4.5) found.add(`${node.className || node.tagName} ${contrast.toFixed(2)}`);
  }
  return [...found];
})()"""
