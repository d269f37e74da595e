"""Say what is asked for: in a sentence, or with the interface and what the tests expect of it."""

from typing import Literal

from tracemill.environments.feature_deletion.delete_features import Feature

Level = Literal["terse", "detailed"]
_MISSING = "NotImplementedError"


def task_text(feature: Feature, level: Level) -> str:
    """Return the text of a task."""
    if level == "terse":
        return _terse(feature)
    return _detailed(feature)


def _terse(feature: Feature) -> str:
    names = [f"`{function.name}`" for function in feature.functions]
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    if len(feature.files) == 1:
        return f"{shown} in {feature.files[0]} does nothing but raise {_MISSING}. Make it work again."
    return f"{shown} do nothing but raise {_MISSING}. Make them work again."


def _detailed(feature: Feature) -> str:
    lines = [
        "A feature of this repository was removed: the functions below raise NotImplementedError.",
        "Implement them so that the repository behaves as its code, documentation and callers expect.",
        "Tests that you do not see decide; everything that works now must go on working.",
        "",
    ]
    for function in feature.functions:
        lines.append(f"- `{function.signature}` ({function.file}, `{function.name}`)")
        first = function.docstring.strip().partition("\n\n")[0].replace("\n", " ").strip()
        if first:
            lines.append(f"  {first}")
    lines += ["", "There is no network, and no other copy of the code. When you are done, say so."]
    return "\n".join(lines)
