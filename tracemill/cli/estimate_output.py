"""An estimate as the rows of a table, with what each figure rests on."""

from tracemill.flows.estimate.estimate_cost import Estimate, Figures
from tracemill.teachers.planning.measured_usage import BYTES_A_TOKEN


def estimate_rows(found: Estimate) -> list[tuple[str, str]]:
    """The figures by teacher, cheapest first, in all, and the assumptions."""
    rows = [(figures.teacher, _lines(figures)) for figures in found.teachers]
    rows.append(("all teachers", _lines(found.total)))
    if found.decided_later:
        rows.append(("decided later", estimate_later_text(found.decided_later)))
    if found.no_room:
        steps = f"about {found.no_room:,} steps: the caps of [pairs] would drop their pairs"
        rows.append(("left out", steps))
    rows.append(("cap", _cap(found)))
    rows.append(("prices", "\n".join(f"{f.teacher}: {f.price_from}" for f in found.teachers)))
    rows.append(("tokens and time", "\n".join(_measured(f) for f in found.teachers)))
    rows.append(("caching", _CACHING))
    rows.append(("early stopping", _early(found)))
    return rows


def estimate_later_text(steps: int) -> str:
    """What is said of steps whose decision rests on answers that are not in yet."""
    return f"{steps:,} steps: a replay decides them by the answers to the steps before, this by what is known"


_CACHING = (
    "steps of a context go out in order and each finds what the one before it left; nothing expires "
    "between them\nat the first step, and without caching, every token is at the input price"
)


def _lines(f: Figures) -> str:
    done = f" ({f.bought:,} bought before)" if f.bought else ""
    lines = [
        f"{f.states:,} states, {f.calls:,} calls{done}",
        f"{f.prompt_tokens:,} tokens in, {f.answer_tokens:,} out",
        f"${f.usd_uncached:.4f} without caching, ${f.usd_cached:.4f} with it, ${f.usd_early:.4f} with early"
        " stopping too",
        f"about {_time(f.wall_s)}",
    ]
    if f.too_long:
        some = f"{f.too_long:,} more prompts are" if f.calls else f"all {f.too_long:,} prompts are"
        lines.append(f"{some} longer than the model's context: rows context_too_long, not sent")
    return "\n".join(lines)


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _cap(found: Estimate) -> str:
    worst = f"the dearest call reserves ${found.total.usd_worst:.4f}"
    if found.cap_usd is None:
        return f"none given; {worst}"
    enough = "covers" if found.total.usd_cached <= found.cap_usd else "does not cover"
    return f"${found.cap_usd:.2f} {enough} all calls with caching; {worst}"


def _measured(f: Figures) -> str:
    m = f.measured
    ratio = "assumed" if m.bytes_a_token == BYTES_A_TOKEN else "measured"
    source = f"measured on {m.replies:,} replies here" if m.replies else "assumed"
    return (
        f"{f.teacher}: {m.bytes_a_token:.2f} bytes a token ({ratio}), {m.answer_tokens:.0f} tokens an answer"
        f" and {m.latency_s:.1f} s a call ({source})"
    )


def _early(found: Estimate) -> str:
    shares = ", ".join(f"{share:.0%}" for share in found.shares)
    return (
        f"cheapest teacher first; asked at {shares} of the steps\nassumed: teachers agree as "
        "five recorded agents did in the same states"
    )
