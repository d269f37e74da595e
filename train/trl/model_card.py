"""Write the card of a checkpoint: what it was trained on, how, and what came of it."""

import json
from typing import Any

from tracemill.train.composer_settings import FILES
from tracemill.train.hints.writers import origin_lines

_ENVIRONMENT = ("model", "output", "launcher", "launch", "environment", "hub", "chat_template", "accelerate")
"""Settings that name places and machines: the card may be published."""


def model_card(report: dict[str, Any], base_model: str) -> str:
    """Return the card of a training as Markdown, from its `training.json`.

    `base_model` is named where it is an id of the Hub.
    """
    release, settings, losses = report["release"], report["settings"], report["losses"]
    local = base_model.startswith((".", "/", "~"))
    head = ["---", "library_name: transformers", "tags:", "- tracemill", f"- {settings['method']}"]
    head += [] if local else [f"base_model: {base_model}"]
    rows = report["rows"]["train"]
    facts = [
        ("release", f"{release['name']}@{release['version']}"),
        ("digest", release["digest"]),
        ("simulated rows", release["simulated"]),
        ("rows", f"{rows['used']} used, {rows['cut']} cut, {sum(rows['dropped'].values())} dropped"),
        ("method", settings["method"]),
        ("steps", report["steps"]),
    ]
    if losses:
        facts.append(
            ("loss", f"{losses[0]['loss']:.4f} at the first step, {losses[-1]['loss']:.4f} at the last")
        )
    if report["validation"]:
        last = report["validation"][-1]
        facts.append(("validation", ", ".join(f"{key} {last[key]:.4f}" for key in last if key != "step")))
    if calibration := report.get("calibration"):
        facts.append(("calibration", ", ".join(f"{key} {each:.4g}" for key, each in calibration.items())))
    facts += [(f"channel {name}", _channel(each)) for name, each in report.get("channels", {}).items()]
    used = {key: settings[key] for key in sorted(settings) if key not in _ENVIRONMENT}
    if composer := used.get("composer"):
        used["composer"] = {key: value for key, value in composer.items() if key not in FILES}
    return "\n".join(
        [
            *head,
            "---",
            "",
            f"# {release['name']}, {settings['method']}",
            "",
            "| | |",
            "|---|---|",
            *(f"| {name} | {value} |" for name, value in facts),
            "",
            *(f"- {line}" for line in report["warnings"]),
            *([""] if report["warnings"] else []),
            *_terms(release.get("terms", {})),
            "The card of the release has its sources and its teachers.",
            "",
            "## Settings",
            "",
            "```json",
            json.dumps({**used, "versions": report["versions"]}, indent=2),
            "```",
            "",
        ]
    )


def _terms(terms: dict[str, str]) -> list[str]:
    """Return a section on the terms of the teachers whose answers the model was trained on."""
    if not terms:
        return []
    lines = [f"- `{name}`: {said}." for name, said in sorted(terms.items())]
    return ["## Terms of the teachers", "", *lines, ""]


def _channel(channel: dict[str, Any]) -> str:
    """Return the training rows of a channel, or that it is off."""
    if channel["off"]:
        return f"off: {channel['off']}"
    dropped = sum(channel["dropped"].values())
    said = f"weight {channel['weight']:g}, {channel['examples']} examples, {dropped} dropped"
    return "; ".join([said, *origin_lines(channel)])
