"""An estimate as the rows of a table, with what each figure rests on."""

from tracemill.flows.estimate.estimate_cost import CostFigures, Estimate
from tracemill.teachers.planning.measured_usage import BYTES_A_TOKEN


def estimate_rows(found: Estimate) -> list[tuple[str, str]]:
    """Return the figures by teacher, cheapest first, the totals and the assumptions, as (name, figures)."""
    rows = [(figures.teacher, _lines(figures)) for figures in found.teachers]
    rows.append(("all teachers", _lines(found.total)))
    if found.decided_later:
        rows.append(("decided later", estimate_later_text(found.decided_later)))
    if found.no_room:
        steps = f"about {found.no_room:,} steps whose pairs the caps of [pairs] would drop"
        rows.append(("skipped", steps))
    rows.append(("cap", _cap(found)))
    rows.append(("prices", "\n".join(f"{f.teacher}: {f.price_from}" for f in found.teachers)))
    rows.append(("tokens and time", "\n".join(_measured(f) for f in found.teachers)))
    rows.append(("caching", _CACHING))
    rows.append(("early stopping", _early(found)))
    if found.judge:
        rows.append(("judge", found.judge))
    if found.hints:
        rows.append(("hints", found.hints))
    if found.by_share:
        rows.append(("gate.share", _by_share(found)))
    return rows


def estimate_later_text(steps: int) -> str:
    """Return the line on steps whose selection depends on answers that are not in yet."""
    return f"{steps:,} steps: a replay selects them by earlier answers, this estimate by what is known now"


_CACHING = (
    "assumed: each step of a context hits the prompt cache of the step before\n"
    "first steps, and all without caching, pay the full input price"
)


def _lines(f: CostFigures) -> str:
    done = f" ({f.bought:,} cached)" if f.bought else ""
    lines = [
        f"{f.states:,} steps, {f.calls:,} calls{done}",
        f"{f.prompt_tokens:,} tokens in, {f.answer_tokens:,} out",
        f"${f.usd_uncached:.4f} without prompt caching",
        f"${f.usd_cached:.4f} with prompt caching",
        f"${f.usd_early:.4f} with prompt caching and early stopping",
        f"about {_time(f.wall_s)}",
    ]
    if f.too_long:
        some = f"{f.too_long:,} more prompts are" if f.calls else f"all {f.too_long:,} prompts are"
        lines.append(f"{some} longer than the model's context and not sent")
    return "\n".join(lines)


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _cap(found: Estimate) -> str:
    worst = f"most expensive call: ${found.total.usd_worst:.4f}"
    if found.cap_usd is None:
        return f"none set\n{worst}"
    enough = "covers" if found.total.usd_cached <= found.cap_usd else "does not cover"
    said = f"${found.cap_usd:.2f} {enough} all calls with prompt caching"
    if found.total.usd_cached > found.cap_usd:
        said += f": a run stops there and keeps what it bought{_within(found, found.cap_usd)}"
    return f"{said}\n{worst}"


def _within(found: Estimate, cap_usd: float) -> str:
    """Return a line on the largest share of the steps whose cost the cap covers, "" where there is none."""
    within = [each for each in found.by_share if each.usd <= cap_usd]
    if not within:
        return ""
    most = max(within, key=lambda each: each.usd)
    pairs = f"about {most.pairs:,.0f} steps with a pair"
    return f"\ngate.share = {most.share:g} costs ${most.usd:.4f} and goes where a pair is likeliest: {pairs}"


def _measured(f: CostFigures) -> str:
    m = f.measured
    ratio = "assumed" if m.bytes_a_token == BYTES_A_TOKEN else "measured"
    source = f"measured on {m.replies:,} replies in this workspace" if m.replies else "assumed"
    return (
        f"{f.teacher}: {m.bytes_a_token:.2f} bytes/token ({ratio}), {m.answer_tokens:.0f} tokens/answer,"
        f" {m.latency_s:.1f} s/call ({source})"
    )


def _by_share(found: Estimate) -> str:
    lines = [
        f"{each.share:>7.0%}  ${each.usd:.4f}  about {each.pairs:,.0f} steps with a pair ({each.of_all:.0%})"
        for each in found.by_share
    ]
    learned = f" and {found.learned_steps:,} votes of this workspace" if found.learned_steps else ""
    return "\n".join(
        [
            "share of the full cost, early stopping in it, and the steps with a pair that it finds",
            *lines,
            f"estimated by the gate, whose weights rest on public tables{learned}",
            *([] if learned else ["before the first votes the shares say more than the counts"]),
        ]
    )


def _early(found: Estimate) -> str:
    shares = "\n".join(
        f"{share:>7.0%}  of the steps ask teacher {at}" for at, share in enumerate(found.shares, start=1)
    )
    assumed = "assumed: teachers agree as five recorded agents did at the same steps"
    return f"cheapest teacher first\n{shares}\n{assumed}"
