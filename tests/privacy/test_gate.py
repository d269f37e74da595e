"""The publish gate: what it refuses, what it says of it, what it lets pass and writes down."""

import base64
import json
import os
import random
import string
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plain_pairs import plain_pair

from tracemill.data_cards.model.manifest import GateEntry, read_manifest
from tracemill.data_cards.model.release_spec import ReleaseSpec
from tracemill.data_cards.writing.write_release import Release, write_release
from tracemill.privacy.personal.known_identity import make_known
from tracemill.privacy.publish_gate.accepted_findings import read_accepted
from tracemill.privacy.publish_gate.findings import fingerprint_finding
from tracemill.privacy.publish_gate.gate import PublishGate
from tracemill.privacy.publish_gate.scan_paths import Scanner
from tracemill.records.errors import ConfigError, PrivacyError
from tracemill.records.message import Message, ToolCall
from tracemill.records.pair import NormalizedDPOPair, Vote
from tracemill.records.trace import MessageView

KEY = b"k" * 32
TABLE = "data/dpo/train-00000-of-00001.parquet"
SPEC = ReleaseSpec(name="demo", redaction="r1")
WITHOUT = {"TRACEMILL_KINGFISHER": "none"}
WITH = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}


def token(seed: int = 1) -> str:
    """A token of GitHub's form that nobody was given."""
    letters = string.ascii_letters + string.digits
    return "gh" + "p_" + "".join(random.Random(seed).choices(letters, k=36))


def pair(number: int, said: str = "I look first.", arguments: str = '{"command": "ls"}') -> NormalizedDPOPair:
    shown = (Message("system", "You are an agent."), Message("user", "Fix the bug in /home/user_5f99/app."))
    made = plain_pair(
        step_id=f"claude_code-{number:04}:0:1",
        state_messages=MessageView(shown, 2),
        chosen=(Message("assistant", said, (ToolCall("c1", "Bash", arguments),)),),
        rejected=(Message("assistant", f"Done with {number}, key <GITHUB_TOKEN_3f2a>."),),
        source="claude_code",
        harness="claude_code",
        presentation="p1;system=stand_in",
        student_model="anthropic/claude-x",
        student_family="anthropic",
    )
    return NormalizedDPOPair(made, "chosen text", f"rejected text {number}", "default-1")


def gate(folder: Path, environ: dict[str, str] = WITHOUT, **changes: object) -> PublishGate:
    scanner = Scanner(make_known(["hunter2-of-mine"], ["marguerite"]), KEY, environ)
    return replace(PublishGate(scanner, "r1", folder / "accepted.json"), **changes)  # type: ignore[arg-type]


def release(pairs: Sequence[NormalizedDPOPair], folder: Path, judge: PublishGate) -> Release:
    def entry(path: Path) -> GateEntry:
        passed = judge.judge(path)
        return GateEntry(
            statement=passed.statement, opinions=passed.opinions, accepted=passed.accepted, texts=passed.texts
        )

    made = write_release(SPEC, pairs, (), folder / "releases", gate=entry)
    assert isinstance(made, Release)
    return made


@pytest.mark.parametrize("environ", [WITHOUT, WITH], ids=["own rules", "with kingfisher"])
def test_a_planted_key_refuses_the_release_and_is_never_told(tmp_path: Path, environ: dict[str, str]) -> None:
    planted = token()
    pairs = [pair(0), pair(1), pair(2, arguments=json.dumps({"command": f"cat .env\n{planted}\n"}))]
    with pytest.raises(PrivacyError) as caught:
        release(pairs, tmp_path, gate(tmp_path, environ))
    first, *lines = str(caught.value).splitlines()
    assert first.startswith("the release is refused: 1 private value in 9 places; expected none")
    fingerprint = fingerprint_finding(KEY, "GITHUB_TOKEN", planted)
    assert lines[0] == (
        f"  {fingerprint}  {TABLE} row 2 chosen[0].tool_calls[0].function.arguments.command (9 places): "
        "GITHUB_TOKEN: cat .env [GITHUB_TOKEN, 40 characters]"
    )
    assert len(lines) == 1 or environ is WITHOUT
    assert planted not in str(caught.value)
    assert planted[4:20] not in str(caught.value)
    left = [path.name for path in (tmp_path / "releases" / "demo").iterdir()]
    assert left == [".lock"]
    assert not (tmp_path / "accepted.json").exists()


@pytest.mark.parametrize("environ", [WITHOUT, WITH], ids=["own rules", "with kingfisher"])
def test_an_accepted_finding_passes_is_recorded_and_holds_from_then_on(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    planted = token()
    pairs = [pair(0, said=f"The key is {planted}.")]
    fingerprint = fingerprint_finding(KEY, "GITHUB_TOKEN", planted)
    made = release(pairs, tmp_path, gate(tmp_path, environ, accept=(fingerprint,)))
    judged = read_manifest(made.path).gate
    assert judged is not None
    assert judged.accepted == 1
    assert "findings accepted by the publisher: 1." in (made.path / "README.md").read_text()
    entry = read_accepted(tmp_path / "accepted.json")[fingerprint]
    assert entry["rule"] == "GITHUB_TOKEN"
    assert entry["where"].startswith("README.md line ")  # the card shows the pair
    assert entry["accepted_at"].endswith("Z")
    assert planted.encode() not in (tmp_path / "accepted.json").read_bytes()
    assert planted.encode() not in (made.path / "manifest.json").read_bytes()

    other = [*pairs, pair(1)]
    assert release(other, tmp_path, gate(tmp_path, environ)).version != made.version
    more = [*other, pair(2, said=f"Another: {token(2)}.")]
    with pytest.raises(PrivacyError, match="1 private value in"):
        release(more, tmp_path, gate(tmp_path, environ))


def test_a_release_that_lies_there_already_is_judged_again(tmp_path: Path) -> None:
    planted = token()
    pairs = [pair(0, said=planted)]
    write_release(SPEC, pairs, (), tmp_path / "releases")
    with pytest.raises(PrivacyError, match="refused"):
        release(pairs, tmp_path, gate(tmp_path))


def test_placeholders_and_identifiers_are_no_findings_and_both_opinions_are_on_the_card(
    tmp_path: Path,
) -> None:
    said = "api_key = '<SECRET_0a1b>', password: REDACTED_PASSWORD_3f2a, Bearer <BEARER_TOKEN_9c01>"
    made = release([pair(n, said=said) for n in range(5)], tmp_path, gate(tmp_path, WITH))
    judged = read_manifest(made.path).gate
    assert judged is not None
    assert judged.opinions[0] == "own rules r1"
    assert judged.opinions[1].startswith("kingfisher 2.")
    assert judged.statement in (made.path / "README.md").read_text()


def test_without_kingfisher_one_line_says_so_and_it_can_be_demanded(tmp_path: Path) -> None:
    passed = gate(tmp_path).judge(release([pair(0)], tmp_path, gate(tmp_path)).path)
    assert passed.statement == "own rules only (own rules r1); kingfisher was not installed"
    assert passed.lines()[1] == "no second opinion: kingfisher is absent (pip install kingfisher-bin)"
    with pytest.raises(PrivacyError, match="require_second_opinion"):
        gate(tmp_path, require_second=True).check()
    with pytest.raises(ConfigError, match="names no file"):
        gate(tmp_path, {"TRACEMILL_KINGFISHER": str(tmp_path / "nowhere")})


def test_a_kingfisher_that_fails_refuses_and_is_not_quoted(tmp_path: Path) -> None:
    broken = tmp_path / "kingfisher"
    broken.write_text("#!/bin/sh\n[ $1 = --version ] && echo kingfisher 2.0 && exit\ncat $0 >&2\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(PrivacyError) as caught:
        release([pair(0)], tmp_path, gate(tmp_path, {"TRACEMILL_KINGFISHER": str(broken)}))
    assert str(caught.value).startswith("the second opinion failed: kingfisher ended with 3; expected")
    assert "\n" not in str(caught.value)
    assert [path.name for path in (tmp_path / "releases" / "demo").iterdir()] == [".lock"]


def test_known_values_are_found_wherever_they_stand(tmp_path: Path) -> None:
    pairs = [pair(0, said="It says hunter2-of-mine here."), pair(1, said="Ask Marguerite about it.")]
    with pytest.raises(PrivacyError) as caught:
        release(pairs, tmp_path, gate(tmp_path))
    assert {line.split(": ")[1] for line in str(caught.value).splitlines()[1:-1]} == {"SECRET", "USER"}
    assert "hunter2" not in str(caught.value)
    assert "arguerite" not in str(caught.value)


def test_kingfisher_finds_what_our_rules_cannot_see(tmp_path: Path) -> None:
    """A token inside Base64 inside Base64: the reason for asking somebody else."""
    planted = token()
    inner = base64.b64encode(f"export GITHUB_TOKEN={planted}".encode())
    encoded = base64.b64encode(inner).decode()
    pairs = [pair(0, said=f"It printed {encoded} and ended.")]
    assert release(pairs, tmp_path / "a", gate(tmp_path / "a")).rows == 1
    with pytest.raises(PrivacyError) as caught:
        release(pairs, tmp_path / "b", gate(tmp_path / "b", WITH))
    assert "kingfisher:github-pat" in str(caught.value)
    assert planted not in str(caught.value)
    assert encoded[:20] not in str(caught.value)


def test_a_broken_record_of_acceptance_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "accepted.json").write_text('{"accepted": [{"fingerprint": "../x"}]}')
    with pytest.raises(PrivacyError, match="is no list of accepted findings"):
        gate(tmp_path).check()


def test_a_release_of_two_thousand_rows_with_shared_contexts_is_judged_once_a_text(tmp_path: Path) -> None:
    context = [{"role": "tool", "content": f"line {n} of a log\n" * 400} for n in range(60)]
    rows = [{"prompt": context, "chosen": f"Answer {n}"} for n in range(2000)]
    path = tmp_path / "data" / "train.parquet"
    path.parent.mkdir()
    schema = pa.schema(
        [
            ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
            ("chosen", pa.string()),
        ]
    )
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, 2000, 100):
            writer.write_table(pa.Table.from_pylist(rows[start : start + 100], schema=schema))
    verdict = Scanner(make_known([]), KEY, WITH).scan(tmp_path)
    assert verdict.findings == ()
    assert verdict.texts == 60 + 2000 + 2  # the role and the name of the file
    assert verdict.characters < 600_000


def test_votes_do_not_read_as_secrets(tmp_path: Path) -> None:
    vote = Vote(
        "qwen-a", "qwen", 0, True, "", "run:ls", "run", True, 0.001, "9f86d081884c7d659a2feaa0c55ad015"
    )
    one = pair(0)
    voted = replace(one, pair=replace(one.pair, votes=(vote,)))
    assert release([voted], tmp_path, gate(tmp_path, WITH)).rows == 1
