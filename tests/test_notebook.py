"""The notebook runs from a session to a trained model, and shows what it showed when it was stored."""

import json
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NOTEBOOK = EXAMPLES / "quickstart.ipynb"
SAID = [
    "Trace(claude_code-3ab60806198d22416591, 12 steps in 1 context, outcome unknown, not redacted)",
    "12 steps",
    "TraceState(claude_code-3ab60806198d22416591:0:3, saw 7 messages, called Edit)",
    "True",
    "4 steps, mean loss 0.",
]
"""Lines of its outputs, in order, that no key of a run changes."""


def outputs(cells: list[Any]) -> str:
    texts = []
    for cell in cells:
        for output in cell.get("outputs", ()):
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            texts.append(text if isinstance(text, str) else "".join(text))
    return "\n".join(texts)


def check(said: str) -> None:
    at = 0
    for line in SAID:
        assert line in said[at:], line
        at = said.index(line, at) + len(line)


def test_the_stored_notebook_shows_its_results() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    check(outputs(notebook["cells"]))
    kinds = [output["output_type"] for cell in notebook["cells"] for output in cell.get("outputs", ())]
    assert "error" not in kinds
    assert "/home/" not in NOTEBOOK.read_text(encoding="utf-8").replace("/home/dev/", "")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own libraries
def test_it_runs_without_a_key_and_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        cell["outputs"] = []
    place = {"metadata": {"path": str(EXAMPLES)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=place).execute()
    check(outputs(notebook.cells))
