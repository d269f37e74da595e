"""The help of `tracemill`: its commands under headings, in the order of use."""

from typing import Any

from typer.core import TyperGroup

SECTIONS = {
    "Start here": {
        "init": "Write a commented configuration from at most six questions.",
        "run": "Read sessions, ask teachers, make pairs, write a release.",
        "status": "Show the last runs and the releases, or some pairs.",
        "estimate": "Predict calls, cost and time before anything is sent.",
        "doctor": "Check this machine, a configuration and its services.",
    },
    "Stages of a run": {
        "ingest": "Read sessions, redact them and store their traces.",
        "replay": "Ask teachers at the steps of stored traces.",
        "label": "Make pairs from teachers' votes and self-repairs.",
    },
    "Datasets and privacy": {
        "release": "Write, compare, publish and retract releases.",
        "privacy": "Find private data in any file; remove it.",
        "export": "Write sessions as chat rows, ATIF or session traces.",
        "formats": "List the formats of sessions; inspect a file.",
    },
    "Train and measure": {
        "train": "Train a model on a release with TRL.",
        "eval-model": "Measure how models rank held-out pairs.",
        "evaluate": "Measure label quality on tables of several models.",
        "judge": "Measure how often a judge is right.",
        "env": "Make coding tasks, run agents on them, verify them.",
    },
    "Operate and develop": {
        "schedule": "Run a configuration on a cron schedule until Ctrl-C.",
        "deploy": "Deploy a configuration to a Prefect server.",
        "notify": "Have Prefect send messages on failures and releases.",
        "dev": "Try recipes, and test without a provider.",
    },
}
"""Headings, and the line of each command below them."""


class GroupedHelp(TyperGroup):
    """The group of all commands, whose help has headings."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of each section, names in one column."""
        width = max(len(name) for lines in SECTIONS.values() for name in lines)
        for title, lines in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, line in lines.items()])
