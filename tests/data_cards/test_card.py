"""The card says what the manifest says, its head is one the Hub reads, and it hides nothing."""

import random
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from tracemill.data_cards.card.audit_card import insert_audit_into_card
from tracemill.data_cards.card.check_card import check_card
from tracemill.data_cards.card.style_probe import StyleSample, auc
from tracemill.data_cards.model.audit_sample import Precision
from tracemill.data_cards.model.manifest import Manifest, read_manifest
from tracemill.data_cards.model.release_spec import DropExample, OperatorDrops, ReleaseSpec, TeacherEntry
from tracemill.data_cards.writing.write_release import Release, write_release
from tracemill.records.errors import ReleaseError
from tracemill.records.message import Message
from tracemill.records.pair import DPOPair, DroppedPair, NormalizedDPOPair, Vote

PRECISION = Precision(judged=2, accepted=2, sample=2, seed=3, precision=1.0, low=0.3, high=1.0)
TEACHERS = (
    TeacherEntry(
        name="qwen-a", model="qwen/qwen-x", family="qwen", distillation=True, terms="Apache-2.0 weights"
    ),
    TeacherEntry(name="zai-a", model="z-ai/glm-x", family="zai"),
)
LOSSES = (
    OperatorDrops(operator="side_length_filter(chosen)", rows_in=10, dropped=2, errors=1),
    OperatorDrops(operator="pair_deduplicator(chosen, rejected)", rows_in=8, dropped=0),
)
SPEC = ReleaseSpec(
    name="cards",
    redaction="r1",
    redaction_counts={"api_key": 3},
    created=datetime(2026, 11, 21, tzinfo=UTC),
    teachers=TEACHERS,
    losses=LOSSES,
    funnel={"traces": 3, "states": 120},
    policy="default: 2 votes of 2 families",
    spend_usd=0.4,
    cap_usd=10.0,
    git_commit="0123abc",
)


def kept(number: int, **changes: Any) -> NormalizedDPOPair:
    votes = (
        Vote("qwen-a", "qwen", 0, True, "", "k", "edit", True, 0.01, "q"),
        Vote("zai-a", "zai", 0, False, "failed call", "k", "edit", False, 0.0, "z"),
    )
    values: dict[str, Any] = {
        "step_id": f"openhands-{number}:0:0",
        "label_source": "teachers",
        "state_messages": (Message("user", "do it"),),
        "tools": (),
        "chosen": (Message("assistant", f"edit it, {number}"),),
        "rejected": (Message("assistant", "I am done"),),
        "chosen_operation": "edit",
        "rejected_operation": "finish",
        "source": "openhands",
        "harness": "openhands",
        "presentation": "p1;system=recorded",
        "student_model": "some/model",
        "student_family": "unknown",
        "n_teachers_agreeing": 2,
        "votes": votes,
        "cost_usd": 0.01,
        "licence": "cc-by-4.0",
    }
    return NormalizedDPOPair(DPOPair(**{**values, **changes}), "edit it", "I am done", "default-abc")


def make(tmp_path: Path, *pairs: NormalizedDPOPair, **changes: Any) -> tuple[str, Manifest, Path]:
    gone = kept(99).pair
    dropped = [DroppedPair(gone, "a", "b", "side_length_filter(chosen)", "operator raised", "KeyError")]
    release = write_release(SPEC.model_copy(update=changes), pairs, dropped, tmp_path)
    assert isinstance(release, Release)
    card = (release.path / "README.md").read_text(encoding="utf-8")
    return card, read_manifest(release.path), release.path


def test_the_head_parses_and_names_every_table(tmp_path: Path) -> None:
    from huggingface_hub import DatasetCard, DatasetCardData

    card, manifest, path = make(tmp_path, *(kept(n) for n in range(8)), language=("en",))
    parsed = DatasetCard(card)
    data = parsed.data
    assert isinstance(data, DatasetCardData)
    assert (data.license, data.language, data.size_categories) == ("cc-by-4.0", ["en"], ["n<1K"])
    assert data.task_categories == ["text-generation"]
    head: dict[str, Any] = data.to_dict()
    assert [(c["config_name"], c.get("default")) for c in head["configs"]] == [
        ("dpo", True),
        ("dpo_json", None),
        ("sft", None),
        ("kto", None),
        ("prm", None),
        ("hints", None),
        ("votes", None),
        ("dropped", None),
    ]
    for config, info in zip(head["configs"], head["dataset_info"], strict=True):
        assert (path / config["data_files"][0]["path"]).is_file()
        entry = manifest.tables[config["config_name"]]
        assert info["splits"] == [
            {"name": "train", "num_bytes": entry.memory_bytes, "num_examples": entry.rows}
        ]
    assert "format:parquet" in head["tags"]
    assert "simulated" not in head["tags"]


def test_a_card_begins_with_what_a_newcomer_wants_and_one_real_pair(tmp_path: Path) -> None:
    reading = kept(1, chosen_operation="read", rejected_operation="search")
    ended = kept(2, chosen=(Message("assistant", "I run the tests before I say so."),), simulated=True)
    task = (Message("system", "s"), Message("user", "x" * 500))
    real = kept(3, chosen=(Message("assistant", "I mend the mean of an empty list."),), state_messages=task)
    card, manifest, _ = make(tmp_path, reading, ended, real)
    body = card.split("---\n")[2]
    sections = [line[3:] for line in body.splitlines() if line.startswith("## ")]
    first = ["Load and train", "One pair", "How it was made", "Before you use it", "Formats and lengths"]
    assert sections[:5] == first
    assert body.index("## Formats and lengths") < 4000
    one = body[body.index("## One pair") : body.index("## How it was made")]
    assert "teachers (`openhands-3:0:0:teachers`)." in one
    assert "```text\nI mend the mean of an empty list.\n```" in one
    assert "```text\nI am done\n```" in one
    assert f"```text\n{'x' * 400}\n[... 100 characters left out ...]\n```" in one
    assert "| sessions | 3; rows from openhands |" in body
    assert "| pairs that edit, test or finish on a side | 2 of 3 |" in body
    assert "- Licences: openhands cc-by-4.0.\n" in body
    assert manifest.rows == 3
    again, _, _ = make(tmp_path / "again", real, ended, reading)
    assert one in again


def test_a_card_says_at_the_top_in_how_many_rows_a_prompt_has_a_stand_in(tmp_path: Path) -> None:
    recorded = [kept(n) for n in range(3)]
    stood = kept(3, presentation="p2/system=stand_in,tools=stand_in+inferred")
    card, _, _ = make(tmp_path / "some", *recorded, stood)
    top = " ".join(card[: card.index("## Load and train")].split())
    assert "In 25.0% of the rows the prompt holds a stand-in for the agent's system prompt or tools" in top
    none, _, _ = make(tmp_path / "none", *recorded)
    assert "stand-in for" not in none


def test_a_card_calls_self_repairs_by_their_name_and_says_what_confirms_a_pair(tmp_path: Path) -> None:
    card, _, _ = make(tmp_path, kept(1), kept(2, label_source="hindsight", verified="lookahead"))
    assert "| hindsight | 1 | a self-repair: the action failed, and a later one" in card
    assert "- A self-repair (`hindsight`) says that an action failed" in card
    assert "| lookahead | 1 | what followed in the recorded session |" in card
    assert "| none | 1 | nothing but the votes |" in card


def test_the_example_of_a_card_cannot_break_it(tmp_path: Path) -> None:
    odd = "```\n## Audit\n<!-- audit -->\n````` \x00 \u202eevil <script>alert(1)</script>"
    card, manifest, path = make(tmp_path, kept(1, chosen=(Message("assistant", odd),)))
    shown = "```\n## Audit\n<! -- audit -->\n````` \\x00 \\u202eevil <script>alert(1)</script>"
    assert f"\n``````text\n{shown}\n``````\n" in card
    assert card.count("<!-- audit -->") == 1
    check_card(path, manifest)
    seen = insert_audit_into_card(card, PRECISION, "card")
    assert seen.replace("Somebody judged", "", 1).count("## ") == card.count("## ")


def test_the_first_columns_are_those_that_are_read(tmp_path: Path) -> None:
    _, _, path = make(tmp_path, kept(1))
    for name in ("dpo", "dpo_json"):
        [file] = (path / "data" / name).glob("*.parquet")
        names = pq.read_schema(file).names
        assert names[:6] == [
            "prompt",
            "chosen",
            "rejected",
            "chosen_operation",
            "rejected_operation",
            "label_source",
        ]
        assert names[-3:] == ["tools", "chosen_wire", "rejected_wire"]


def test_each_config_is_a_line_of_the_head(tmp_path: Path) -> None:
    card, manifest, _ = make(tmp_path, *(kept(n) for n in range(3)), pretty_name="many: 'words'")
    head = card.split("---\n")[1]
    assert len(head.splitlines()) == 18 + 2 * len(manifest.tables)
    assert yaml.safe_load(head)["pretty_name"] == "many: 'words'"


def test_the_card_counts_the_pairs_that_decide_something(tmp_path: Path) -> None:
    reads = [kept(n, chosen_operation="read", rejected_operation="search") for n in range(2)]
    ends = [kept(n, chosen_operation="read") for n in range(2, 5)]
    card, _, _ = make(tmp_path, *reads, *ends, *(kept(n) for n in range(5, 8)))
    said = " ".join(card.split())
    assert "6 of 8 pairs (75.0%) decide something: a side edits a file, runs tests or finishes; in 3" in said


def test_the_figures_of_the_card_are_those_of_the_manifest(tmp_path: Path) -> None:
    hindsight = kept(8, label_source="hindsight", votes=(), cost_usd=0.0, presentation="p1;system=stand_in")
    card, manifest, _ = make(tmp_path, *(kept(n) for n in range(7)), hindsight)
    assert manifest.rows == 8
    assert manifest.label_sources == {"hindsight": 1, "teachers": 7}
    assert manifest.operations == {"finish -> edit": 8}
    assert manifest.sources == {"openhands": {"cc-by-4.0": 8}}
    assert manifest.presentation_shares == {"p1;system=recorded": 0.875, "p1;system=stand_in": 0.125}
    assert manifest.votes == {"qwen-a": {"agreeing": 8}, "zai-a": {"not counted": 8}}
    assert manifest.usd_per_pair == 0.05
    assert manifest.stated_cost_usd == pytest.approx(0.07)
    assert (manifest.simulated, manifest.unverified_rows) == ("none", 8)
    assert manifest.losses == LOSSES
    for line in (
        "| hindsight | 1 | a self-repair: the action failed",
        "| teachers | 7 | several teacher models",
        "| qwen-a | `qwen/qwen-x` | qwen | 8 | 0 | 0 | allowed: Apache-2.0 weights |",
        "| zai-a | `z-ai/glm-x` | zai | 0 | 0 | 8 | not known |",
        "| finish | edit | 8 | 100.0% |",
        "| p1;system=stand_in | 12.5% |",
        "| openhands | cc-by-4.0 | 8 |",
        "| side_length_filter(chosen) | 10 | 2 | 20.0% | 1 |",
        "| side_length_filter(chosen) | operator raised | 1 |",
        "| paid to teachers, also for steps that gave no pair | $0.4000 |",
        "| cap of the run | $10.00 |",
        "| a pair of this release | $0.0500 |",
        "| api_key | 3 |",
        "| tracemill | 0.1.0 (`0123abc`) |",
    ):
        assert line in card
    assert "8 of 8 rows are unverified" in card
    assert f"`{manifest.content_fingerprint}`" in card


def test_simulated_rows_are_said_first(tmp_path: Path) -> None:
    teachers = (TEACHERS[0].model_copy(update={"simulated": True}),)
    card, manifest, _ = make(tmp_path, kept(1, simulated=True), teachers=teachers)
    assert manifest.simulated == "all"
    body = card.split("---\n")[2].strip().splitlines()
    assert body[2] == "> [!WARNING]"
    assert body[3].startswith("> **Every row is simulated.** No model answered")
    assert "| qwen-a (simulated) |" in card
    assert "simulated money" in card
    assert "simulated" in yaml.safe_load(card.split("---\n")[1])["tags"]
    some, manifest, _ = make(tmp_path / "some", kept(1, simulated=True), kept(2))
    assert manifest.simulated == "some"
    assert "**1 of 2 rows are simulated**" in some


def test_a_run_without_teachers_says_so(tmp_path: Path) -> None:
    plain = kept(1, label_source="hindsight", votes=(), cost_usd=0.0, licence=None, verified="outcome")
    card, manifest, _ = make(tmp_path, plain, teachers=(), spend_usd=0.0, cap_usd=None, losses=())
    assert "No teacher was asked." in card
    assert '"What the agent saw" excludes thinking' in card
    assert "| cap of the run | none set |" in card
    assert "| openhands | unknown | 1 |" in card
    assert yaml.safe_load(card.split("---\n")[1])["license"] == "unknown"
    assert (manifest.unverified_rows, manifest.statement) == (
        0,
        "Every row was confirmed as its column `verified` says.",
    )
    assert "[!IMPORTANT]" not in card


@pytest.mark.parametrize(
    ("licences", "said"),
    [
        (("MIT", "MIT"), {"license": "mit"}),
        (("mit", None), {"license": "other", "license_name": "by-source", "license_link": "README.md"}),
        (("house rules",), {"license": "other", "license_name": "by-source", "license_link": "README.md"}),
    ],
)
def test_licences_are_never_guessed(
    tmp_path: Path, licences: tuple[str | None, ...], said: dict[str, str]
) -> None:
    card, _, _ = make(tmp_path, *(kept(n, licence=licence) for n, licence in enumerate(licences)))
    head = yaml.safe_load(card.split("---\n")[1])
    assert {key: value for key, value in head.items() if key.startswith("license")} == said


def test_the_terms_behind_what_agents_wrote_are_said(tmp_path: Path) -> None:
    claude = {"student_model": "claude-opus-4-6", "student_family": "anthropic"}
    open_ = {"student_model": "openai/gpt-oss-120b", "student_family": "openai"}
    card, _, _ = make(tmp_path, kept(1, **claude), kept(2, **claude), kept(3), kept(4, **open_))
    assert "Anthropic's terms forbid training a competing model on outputs" in card
    assert "without its approval (2 of 4 rows)." in card
    assert "OpenAI's terms" not in card


def test_names_cannot_break_the_page(tmp_path: Path) -> None:
    odd = kept(1, source="a | b\n# c", student_model="{{ m.name }}", rejected_operation="x|y")
    card, _, _ = make(tmp_path, odd, pretty_name="--- 'quoted': yes\n# no")
    assert "# --- 'quoted': yes # no 2026.11.21\n" in card
    assert "| a \\| b # c | cc-by-4.0 | 1 |" in card
    assert "| x\\|y | edit | 1 | 100.0% |" in card
    assert "Agents: {{ m.name }} (1)." in card
    assert (
        yaml.safe_load(re.split(r"^---$", card, flags=re.MULTILINE)[1])["pretty_name"]
        == "--- 'quoted': yes\n# no"
    )


def test_examples_of_dropped_rows_keep_their_lines(tmp_path: Path) -> None:
    chosen = "def f(a|b):\n    return a\n\n\tx"
    example = DropExample(pair_id="p1", reason="too short", value="1", chosen=chosen, rejected="")
    losses = (OperatorDrops(operator="words(chosen)", rows_in=4, dropped=1, examples=(example,)),)
    card, _, _ = make(tmp_path, kept(1), losses=losses)
    lines = "def f(a\\|b):<br>&nbsp;&nbsp;&nbsp;&nbsp;return a<br><br>&nbsp;x"
    assert f"| p1 | too short | 1 | {lines} |   |\n" in card


def test_a_broken_manifest_of_an_earlier_version_is_said(tmp_path: Path) -> None:
    _, _, path = make(tmp_path, kept(1))
    (path / "manifest.json").write_text('{"schema_version": 2}', encoding="utf-8")
    with pytest.raises(
        ReleaseError, match=r"manifest\.json is not a manifest of this version \(schema_version\)"
    ):
        make(tmp_path, kept(2))
    (path / "manifest.json").unlink()
    with pytest.raises(ReleaseError, match=r"manifest\.json cannot be read \(No such file"):
        make(tmp_path, kept(2))
    assert sorted(p.name for p in path.parent.iterdir()) == [".lock", "2026.11.21"]


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a..b", "x" * 97])
def test_a_name_that_is_no_folder_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="letters, digits"):
        ReleaseSpec(name=name, redaction="r1")


def sided(number: int, chosen: str, rejected: str) -> NormalizedDPOPair:
    return NormalizedDPOPair(kept(number).pair, chosen, rejected, "default-abc")


def test_style_that_gives_the_chosen_side_away_is_a_figure_of_the_card(tmp_path: Path) -> None:
    told = [sided(n, f"Let me look, {n}, carefully first", f"ok {n}") for n in range(60)]
    card, manifest, _ = make(tmp_path, *told)
    assert manifest.style is not None
    assert (manifest.style.pairs, manifest.style.words_auc, manifest.style.length_auc) == (60, 1.0, 1.0)
    assert "with\n  an AUC of 1.00 on traces it has not seen; length alone with 1.00 (0.5 is chance" in card
    few, manifest, _ = make(tmp_path / "few", *told[:39])
    assert manifest.style is None
    assert "How well style alone tells chosen from rejected is not known" in few


def test_style_that_tells_nothing_is_near_one_half_in_whatever_order() -> None:
    dice = random.Random(7)
    words = [" ".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=12)) for _ in range(1200)]
    pairs = [sided(n, words[2 * n], words[2 * n + 1]) for n in range(600)]
    found = []
    for order in (pairs, pairs[::-1]):
        sample = StyleSample()
        for each in order:
            sample.keep(each)
        found.append(sample.figures())
    assert found[0] == found[1]
    assert found[0] is not None
    assert abs(found[0].words_auc - 0.5) < 0.06
    assert auc([1, 2, 2], [2, 0]) == pytest.approx((0 + 1 + 0.5 + 1 + 0.5 + 1) / 6)


def test_the_changelog_grows_with_every_version(tmp_path: Path) -> None:
    make(tmp_path, kept(1), kept(2))
    other = kept(2, chosen=(Message("assistant", "another"),))
    card, manifest, _ = make(tmp_path, other, kept(3), created=datetime(2026, 11, 22, tzinfo=UTC))
    assert (
        "| 2026.11.22 | 2026-11-22 | 2, 0 | 1, 0 | 1, 0 | 1, 0 |\n| 2026.11.21 | 2026-11-21 | 2, 0 | first |"
        in card
    )
    assert [change.version for change in manifest.changes] == ["2026.11.21", "2026.11.22"]


def test_what_the_gate_decided_and_explored_is_on_the_card(tmp_path: Path) -> None:
    gating = {
        "share": 0.4,
        "version": "g2",
        "steps": {"ask": {"explored": 5, "worth it": 20}, "skip": {"not worth it": 75}},
        "pairs": {"counted": 12.0, "estimate": 30.2, "low": 20.0, "high": 41.0},
    }
    card, manifest, _ = make(tmp_path, kept(1), gating=gating)
    assert manifest.gating == gating
    assert "Step selection: 40% of the full cost (g2)." in card
    assert "| asked | sampled for calibration (all teachers asked) | 5 |" in card
    assert "| not asked | not worth it | 75 |" in card
    assert "12 steps gave a pair; all steps would give about 30 (95 %: 20 to 41)." in card


def test_the_head_names_no_json_column_and_old_readers_are_told_nothing_they_cannot_read(
    tmp_path: Path,
) -> None:
    card, manifest, path = make(tmp_path, *(kept(n) for n in range(3)))
    head = yaml.safe_load(card.split("---\n")[1])
    assert "json" not in str(head["dataset_info"]).lower().replace("dpo_json", "")
    assert not any("features" in info for info in head["dataset_info"])
    old = {"dpo_json", "prm", "votes"}
    for name in manifest.tables:
        [file] = (path / "data" / name).glob("*.parquet")
        assert ((pq.read_schema(file).metadata or {}).get(b"huggingface") is None) == (name in old)
