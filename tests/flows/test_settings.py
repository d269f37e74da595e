"""The run configuration: what is accepted, what is refused and in which words."""

import tomllib
from pathlib import Path

import pytest

from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.sources.sampling import SampleOptions
from tracemill.records.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = sorted((ROOT / "configs").glob("*.toml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_checked_in_configuration_loads(path: Path) -> None:
    settings = load_settings(path, {})
    assert len(settings.asked_teachers()) >= 3
    assert settings.cap_usd() is not None
    assert tomllib.loads(path.read_text())["release"]["name"] == settings.release.name


def _refused(tmp_path: Path, text: str, over: dict | None = None) -> str:
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_settings(path, over or {})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_unknown_key_is_named_with_its_place(tmp_path: Path) -> None:
    assert "unknown key 'budget.max_usd'" in _refused(tmp_path, "[budget]\nmax_total_usd = 1\nmax_usd = 2")
    assert "unknown key 'teechers'" in _refused(tmp_path, "teechers = []")
    assert "sources.claude_cod" in _refused(tmp_path, "[sources]\nclaude_cod = ['x']")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[release]\nnmae = 'x'", "unknown key 'release.nmae'; did you mean 'name'?"),
        (
            "[[teachers]]\ntype = 'openrouter'\nmodel = 'a/b'\nmax_token = 9",
            "'teachers.0.max_token'; did you mean 'max_tokens'?",
        ),
        ("[[sources]]\npaths = ['x']", "sources: expected a table, [sources]"),
        ("[budget]\nmax_total_usd = 1\nzebra = 2", "unknown key 'budget.zebra'; remove it or see"),
    ],
)
def test_a_misspelt_key_is_told_with_the_nearest_one(tmp_path: Path, text: str, line: str) -> None:
    assert line in _refused(tmp_path, text)


def test_three_faults_are_told_and_the_others_counted(tmp_path: Path) -> None:
    text = "[release]\nnmae = 'x'\n[replay]\nconcurrency = 0\n[budget]\nmax_total_usd = -1\ncap = 2"
    said = _refused(tmp_path, text)
    places = ("release.nmae", "replay.concurrency", "budget.max_total_usd", "budget.cap")
    assert sum(place in said for place in places) == 3
    assert said.endswith("(and 1 more)")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[sources]\nidle_minutes = 5", "'sources.idle_minutes'; it is 'sources.min_age_minutes' now"),
        ("[replay]\nask_again = true", "'replay.ask_again'; it is 'replay.reredact' now"),
        ("[release]\naccept = []", "'release.accept'; it is 'release.allow_findings' now"),
    ],
)
def test_a_renamed_key_names_the_new_one(tmp_path: Path, text: str, line: str) -> None:
    assert f"unknown key {line}" in _refused(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[budget]\nmax_total_usd = -1", "max_total_usd"),
        ("preset = 'best'", "'open', 'frontier'"),
        ("[replay]\nconcurrency = 0", "greater than or equal to 1 (found 0)"),
        ("[release]\nname = '../up'", "lower-case letters"),
        ("shard_mb = 0", "shard_mb"),
        ("[[teachers]]\ntype = 'openrouter'", "model"),
        ("[[teachers]]\ntype = 'telepathy'\nmodel = 'm'", "telepathy"),
        ("sources = 3", "sources"),
        ("workspace = 3", "workspace"),
    ],
)
def test_a_value_out_of_range_is_named(tmp_path: Path, text: str, said: str) -> None:
    assert said in _refused(tmp_path, text)


def test_no_toml_and_no_file(tmp_path: Path) -> None:
    assert "is not valid TOML" in _refused(tmp_path, "a = = 1")
    with pytest.raises(ConfigError, match="is not there"):
        load_settings(tmp_path / "missing.toml", {})


def test_flags_go_over_the_file_and_keep_the_rest_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("preset = 'open'\n[budget]\nmax_total_usd = 1\nmax_day_usd = 3\n[sources]\npaths = ['a']")
    over = {"budget": {"max_total_usd": 2.0}, "preset": "simulated"}
    settings = load_settings(path, over)
    assert settings.budget is not None
    assert (settings.cap_usd(), settings.budget.max_day_usd, settings.preset) == (2.0, 3, "simulated")
    assert settings.sources.paths == (tmp_path / "a",)


def test_sources_on_this_machine_and_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        "[sources]\npaths = ['a', 'https://h.co/x.parquet?sig=1']\nurls = ['http://h.co/y.parquet']\n"
        "hub = ['own/set@v1:train']\nformat = 'swe_gym'\nmin_age_minutes = 3\n[sample]\nmax_traces = 9\n"
    )
    settings = load_settings(path, {"sample": {"seed": 4}})
    order = settings.sources.order()
    assert order.given == ((tmp_path / "a", None),)
    assert order.urls == ("http://h.co/y.parquet", "https://h.co/x.parquet?sig=1")
    assert (order.hub, order.format, order.min_age_minutes) == (("own/set@v1:train",), "swe_gym", 3)
    names = [str(tmp_path / "a"), "http://h.co/y.parquet", "https://h.co/x.parquet", "own/set@v1:train"]
    assert order.names() == names
    assert settings.sample.order() == SampleOptions(9, 4)
    assert RunSettings.model_validate(settings.model_dump(mode="json")) == settings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[sources]\nhub = ['no name']", "is not the name of a dataset; expected OWNER/NAME"),
        ("[sources]\nurls = ['ftp://x/y']", "http:// or https:// URLs only"),
        ("[sources]\nformat = 'aider'", "no such format; there are claude_code, "),
        ("[sources]\nmin_age_minutes = -1", "sources.min_age_minutes"),
        ("[sample]\nmax_traces = 0", "sample.max_traces"),
        ("[sample]\nby = ['colour']", "sample.by.0"),
    ],
)
def test_sources_that_cannot_be_meant_are_one_line(tmp_path: Path, text: str, said: str) -> None:
    assert said in _refused(tmp_path, text)


def test_teachers_without_a_cap_and_two_ways_to_name_them_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"but no budget; set budget.max_total_usd or --max-usd"):
        RunSettings(preset="simulated").cap_usd()
    teacher = {"type": "simulated", "model": "simulated/glm-a"}
    both = load_settings(None, {"preset": "open", "teachers": [teacher]})
    with pytest.raises(ConfigError, match="one of them"):
        both.asked_teachers()


def test_the_fingerprint_is_what_the_run_is_and_not_where_or_how_fast_it_runs() -> None:
    base = {"preset": "simulated", "sources": {"paths": ["a"]}, "budget": {"max_total_usd": 1}}
    one = load_settings(None, base).fingerprint()
    same = [
        {"workspace": "elsewhere"},
        {"replay": {"concurrency": 2}},
        {"budget": {"max_total_usd": 5}},
        {"shard_mb": 1},
        {"ledger_url": "sqlite:///x"},
    ]
    other = [
        {"preset": "open"},
        {"sources": {"paths": ["b"]}},
        {"agreement": {"threshold": 3}},
        {"gate": {"share": 0.5}},
        {"replay": {"samples": 2}},
        {"release": {"name": "other"}},
    ]
    assert {load_settings(None, base | change).fingerprint() for change in same} == {one}
    assert len({load_settings(None, base | change).fingerprint() for change in other} | {one}) == 7
