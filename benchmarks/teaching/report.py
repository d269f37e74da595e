"""A table and a figure of stored results: what each arm adds to the start, with intervals."""

import html
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.teaching.arms import ARMS

DRAWS = 2000
_WIDTH, _ROW, _LEFT, _SCALE = 760, 22, 330, 380

Seeds = Mapping[int, Mapping[str, Any]]
Arms = Mapping[str, Seeds]
Results = dict[tuple[str, str, str], dict[str, dict[int, dict[str, Any]]]]


def read_results(out: Path) -> Results:
    """Return results by (world, size, regime), then by arm and seed."""
    found: Results = {}
    for path in sorted((out / "results").glob("*/*/*/*/seed*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        if "success" in result:
            place = (result["world"], result["size"], result["regime"])
            found.setdefault(place, {}).setdefault(result["arm"], {})[result["seed"]] = result
    return found


def difference(arm: Seeds, base: Seeds, draws: int = DRAWS) -> tuple[float, float, float] | None:
    """Return the mean difference in success over common seeds, and its 95 % interval.

    The bootstrap draws seeds, and tasks within each, the same tasks for both arms.
    """
    seeds = sorted(arm.keys() & base.keys())
    if not seeds:
        return None
    gaps = [
        [one - other for one, other in zip(_shares(arm[seed]), _shares(base[seed]), strict=True)]
        for seed in seeds
    ]
    mean = sum(sum(each) / len(each) for each in gaps) / len(gaps)
    rng, found = random.Random(0), list[float]()
    for _ in range(draws):
        total = 0.0
        for _ in gaps:
            tasks = gaps[rng.randrange(len(gaps))]
            total += sum(rng.choices(tasks, k=len(tasks))) / len(tasks)
        found.append(total / len(gaps))
    found.sort()
    return mean, found[int(0.025 * draws)], found[int(0.975 * draws) - 1]


def _shares(result: Mapping[str, Any]) -> list[float]:
    """Return the share of plays that solved each task."""
    return [int(digit) / result["samples"] for digit in result["solved"]]


def mean_of(arm: Seeds, key: str) -> float:
    """Return the mean of a figure over seeds."""
    return sum(result[key] for result in arm.values()) / len(arm)


def table(found: Results) -> str:
    """Return the results as Markdown, a table for each world, size and regime."""
    parts: list[str] = []
    for (world, size, regime), arms in found.items():
        shared = found.get((world, size, "independent"), {})
        whole = {**{name: shared[name] for name in shared if not ARMS[name].taught}, **arms}
        parts.append(f"### `{world}`, {size} student, {regime.replace('_', ' ')}\n")
        parts.append(
            "| arm | seeds | rows | success | over the start | `default` over it | margin | learning rate "
            "| labels USD | s |"
        )
        parts.append("|---|---|---|---|---|---|---|---|---|---|")
        parts += [_line(name, whole) for name in ARMS if name in whole]
        parts += ["", *(f"- {each}" for each in _findings(whole, arms.get("default", {}))), ""]
    return "\n".join(parts)


def _findings(arms: Arms, released: Seeds) -> list[str]:
    """Return sentences on the claims about the default release, with figures."""
    sentences: list[str] = []
    start, default, truth = (arms.get(name, {}) for name in ("start", "default", "truth"))
    seeds = start.keys() & default.keys() & truth.keys()
    if seeds:
        gain, most = (
            sum(arm[seed]["success"] - start[seed]["success"] for seed in seeds) for arm in (default, truth)
        )
        sentences.append(
            f"the default has {gain / most:.0%} of the gain of `truth`" if most > 0 else "no gain"
        )
    warned = sum(bool(result["warnings"]) for result in released.values())
    sentences.append(f"the card warns of shared errors in {warned} of {len(released)} releases")
    return sentences


def _format_difference(over: tuple[float, float, float] | None) -> str:
    return f"{over[0]:+.3f} [{over[1]:+.3f}, {over[2]:+.3f}]" if over else "-"


def _line(name: str, arms: Arms) -> str:
    arm = arms[name]
    over = difference(arm, arms.get("start", {})) if name != "start" else None
    behind = difference(arms.get("default", {}), arm) if name != "default" else None
    rate = next(iter(arm.values()))["rate"]
    usd = mean_of(arm, "usd") if ARMS[name].taught else 0.0
    cells = (
        f"`{name}`: {ARMS[name].says}",
        str(len(arm)),
        f"{mean_of(arm, 'rows'):,.0f}",
        f"{mean_of(arm, 'success'):.3f}",
        _format_difference(over),
        _format_difference(behind),
        f"{mean_of(arm, 'margin'):+.2f}",
        f"{rate:g}" if rate else "-",
        f"{usd:.2f}",
        f"{mean_of(arm, 'seconds'):.0f}",
    )
    return f"| {' | '.join(cells)} |"


def figure(found: Results) -> str:
    """Return an SVG of success by arm in each world, teachers with independent errors, the small student."""
    lines: list[str] = []
    y = 52
    for (world, size, regime), arms in found.items():
        if size != "small" or regime != "independent":
            continue
        lines.append(_text(10, y, world, "bold"))
        y += _ROW
        for name in ARMS:
            if name in arms:
                lines += _bar(
                    y, name, mean_of(arms[name], "success"), [r["success"] for r in arms[name].values()]
                )
                y += _ROW
        y += 10
    size = f'viewBox="0 0 {_WIDTH} {y}" font-family="sans-serif" font-size="13"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    title = "Share of tasks solved, by what the student was trained on; a dot is one student"
    back = f'<rect width="{_WIDTH}" height="{y}" fill="#ffffff"/>'
    return "\n".join([head, f"<title>{title}</title>", back, _text(10, 24, title), *lines, "</svg>", ""])


def _bar(y: int, name: str, value: float, seeds: Sequence[float]) -> list[str]:
    colour = "#1f6f5c" if name == "default" else "#8fa3ad"
    width = round(value * _SCALE, 1)
    bar = f'<rect x="{_LEFT}" y="{y - 12}" width="{width}" height="15" fill="{colour}"/>'
    dots = [
        f'<circle cx="{_LEFT + round(each * _SCALE, 1)}" cy="{y - 4}" r="2.5" fill="#20313a"/>'
        for each in seeds
    ]
    beside = _LEFT + round(max(value, *seeds) * _SCALE, 1) + 8
    label = ARMS[name].says.replace("`", "")
    weight = "bold" if name == "default" else "normal"
    return [_text(10, y, label, weight), bar, *dots, _text(beside, y, f"{value:.2f}", weight)]


def _text(x: float, y: int, text: str, weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" font-weight="{weight}" fill="#20313a">{html.escape(text)}</text>'


def write_report(out: Path) -> str:
    """Write `table.md`, `success.svg` and `results.jsonl` beside the results; return the table."""
    found = read_results(out)
    every = [result for arms in found.values() for seeds in arms.values() for result in seeds.values()]
    made = table(found) + f"\n{_sources(every)}\n"
    lines = "".join(f"{json.dumps(result, sort_keys=True)}\n" for result in every)
    (out / "results.jsonl").write_text(lines, encoding="utf-8")
    (out / "table.md").write_text(made, encoding="utf-8")
    (out / "success.svg").write_text(figure(found), encoding="utf-8")
    return made


def _sources(results: Sequence[Mapping[str, Any]]) -> str:
    made = Counter(result["source"] for result in results)
    counts = ", ".join(f"{count} by `{source}`" for source, count in made.most_common())
    return f"{len(results)} results, by digest of the source that made them: {counts}."
